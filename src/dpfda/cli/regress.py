"""``dpfda regress``: a private linear or logistic regression of one column on others."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from dpfda import _validate
from dpfda.cli import _columns
from dpfda.cli._ledger import ledger_options, open_ledger
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.regression.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dpfda.regression.methods import Method

_SLACK = 1.0 + 1e-9  # as the estimators': a value stored as float32 may exceed its bound by this

Ranges = list[tuple[float, float]]


@click.command(name="regress")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", required=True, help="Column to predict.")
@click.option(
    "--features", help="Columns to predict from, separated by commas. Default: all others."
)
@click.option(
    "--task",
    type=click.Choice(["linear", "logistic"]),
    default="linear",
    show_default=True,
    help="A number, or one of two classes.",
)
@click.option(
    "--method",
    type=click.Choice(sorted(Method.members())),
    default="moments",
    show_default=True,
    help="How the budget is spent.",
)
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε of the whole fit.")
@click.option("--delta", type=float, default=1e-5, show_default=True, help="δ; 0 for pure ε.")
@click.option("--ranges", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='JSON file with a public range for every feature: {"age": [18, 100], ...}.')  # fmt: skip
@click.option("--norm-bound", type=float, help="Without --ranges: public bound on a row's length.")
@click.option("--target-range", type=(float, float), default=(-1.0, 1.0), show_default=True,
    help="Public range of the target (linear).")  # fmt: skip
@click.option("--classes", type=(str, str), default=("0", "1"), show_default=True,
    help="The two public labels (logistic).")  # fmt: skip
@click.option("--clip", is_flag=True, help="Move values to the bounds instead of refusing them.")
@ledger_options
@click.option("--seed", type=int, help="Seeded simulation instead of exact noise: not private.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, as_json: bool, **options: Any) -> None:
    """Fit a private regression to FILE (CSV, Parquet or NPZ).

    Bounds are public knowledge and must be given: --ranges for features in their own units, or
    --norm-bound for rows that are scaled already. A CSV file is read in chunks, once for each stage
    of the method. Without --ledger every run spends its budget anew.

    The default method is made for prediction and clips rows; where coefficients are the question,
    choose --method gaussian_fm.
    """
    _check(options)
    features = _features(file, options)
    ranges = _ranges(options["ranges"], features)
    if ranges is None and options["norm_bound"] is None:
        raise InvalidParameter("--ranges or --norm-bound", "given: bounds are public", None)
    model = _model(options, ranges)
    try:
        _fit(model, file, features, ranges, options)
    except InvalidParameter as error:
        if error.name not in ("epsilon", "delta", "method"):
            raise
        raise InvalidParameter(f"--{error.name}", error.rule, options[error.name]) from None
    result = _result(model, features, ranges)
    click.echo(json.dumps(result, indent=2)) if as_json else _print(result)


def _fit(
    model: Any, file: Path, features: list[str], ranges: Ranges | None, options: dict[str, Any]
) -> None:
    """Fit to the file at once, or in chunks where file and method allow it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the result
        if not _columns.is_csv(file) or not Method.named(options["method"]).additive:
            model.fit(*_rows(_columns.columns(file), features, ranges, options))
            return
        chosen = [*features, options["target"]]
        model.fit_stream(
            lambda: (
                _rows(table, features, ranges, options) for table in _columns.chunks(file, chosen)
            )
        )


def _check(options: dict[str, Any]) -> None:
    """Refuse bad options by the name they have here."""
    _validate.positive("--epsilon", options["epsilon"])
    if options["delta"]:
        _validate.fraction("--delta", options["delta"])
    if options["norm_bound"] is not None:
        _validate.positive("--norm-bound", options["norm_bound"])
    _validate.interval("--target-range", options["target_range"])
    if options["classes"][0] == options["classes"][1]:
        raise InvalidParameter("--classes", "two different labels", options["classes"])
    if options["seed"] is not None:
        _validate.whole("--seed", options["seed"], least=0)


def _model(options: dict[str, Any], ranges: Ranges | None) -> Any:
    shared = {
        "epsilon": options["epsilon"],
        "delta": options["delta"],
        "method": options["method"],
        "feature_norm_bound": None if ranges else options["norm_bound"],
        "encoder": CurveEncoder("identity", bounds=ranges) if ranges else None,
        "clip": options["clip"],
        "ledger": open_ledger(options),
        "random_state": options["seed"],
    }
    if options["task"] == "logistic":
        return PrivateLogisticRegression(**shared, classes=options["classes"])
    low, high = options["target_range"]
    return PrivateLinearRegression(
        **shared, target_center=(low + high) / 2, target_bound=(high - low) / 2
    )


def _result(model: Any, features: list[str], ranges: Ranges | None) -> dict[str, Any]:
    """Coefficients in the units of the file."""
    scale = np.array([(high - low) / 2 for low, high in ranges]) if ranges else 1.0
    center = np.array([(high + low) / 2 for low, high in ranges]) if ranges else 0.0
    slope = model.coef_ / scale
    errors = model.coef_standard_error_
    return {
        "method": model.method if isinstance(model.method, str) else model.method.name,
        "rows": model.n_seen_,
        "stages": model.stages_,
        "intercept": float(model.intercept_ - np.sum(slope * center)),
        "coefficients": [
            {
                "feature": name,
                "value": float(slope[number]),
                "privacy_standard_error": None
                if errors is None
                else float((errors / scale)[number]),
            }
            for number, name in enumerate(features)
        ],
        "clips": model.fit_.clips,
        "clipping_inflation": float(model.clipping_inflation_),
        "notes": _notes(model),
        "guarantee": model.guarantee_.to_dict(),
        "warnings": list(model.fit_.warnings),
    }


def _notes(model: Any) -> list[str]:
    """How to read the coefficients."""
    notes = []
    if model.fit_.clips:
        notes.append(
            "the coefficients hold for rows shortened to the clipping ball, as predictions use "
            f"them. They are about {model.clipping_inflation_:.2g} times what unclipped rows would "
            "give, each by another factor, so no error is stated. To interpret coefficients, use "
            "--method gaussian_fm"
        )
    elif model.coef_standard_error_ is None:
        notes.append("the privacy noise of these coefficients has no simple form")
    else:
        notes.append(
            "± is one standard deviation of the privacy noise alone, without the sampling error of "
            "the rows or the pull of a ridge. The intercept has none: it is the value where all "
            "features are 0, and mixes the errors of all coefficients"
        )
    return notes


def _print(result: dict[str, Any]) -> None:
    table = Table(title=f"{result['method']}, {result['rows']} rows, {result['stages']} stages")
    stated = any(row["privacy_standard_error"] is not None for row in result["coefficients"])
    table.add_column("feature")
    table.add_column(
        "coefficient (clipped rows)" if result["clips"] else "coefficient", justify="right"
    )
    if stated:
        table.add_column("± from privacy noise", justify="right")
    table.add_row("(intercept)", f"{result['intercept']:.5g}")
    for row in result["coefficients"]:
        error = row["privacy_standard_error"]
        table.add_row(row["feature"], f"{row['value']:.5g}", *([f"{error:.2g}"] if stated else []))
    console = Console()
    console.print(table)
    promise = result["guarantee"]
    sampler = "exact" if promise["sampler"] == "exact" else "simulation (seeded, not private)"
    console.print(f"ε = {promise['epsilon']:g}, δ = {promise['delta']:g}, sampler = {sampler}")
    for note in result["notes"]:
        console.print(f"note: {note}", markup=False)
    for warning in result["warnings"]:
        console.print(f"warning: {warning}", markup=False)


def _features(file: Path, options: dict[str, Any]) -> list[str]:
    names = _columns.names(file)
    target = options["target"]
    if target not in names:
        raise InvalidParameter("--target", "a column of the file", target)
    if options["features"] is None:
        return [name for name in names if name != target]
    chosen = [name.strip() for name in options["features"].split(",")]
    for name in chosen:
        if name not in names or name == target:
            raise InvalidParameter("--features", "columns of the file, without the target", name)
    return chosen


def _ranges(path: Path | None, features: list[str]) -> Ranges | None:
    if path is None:
        return None
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        given = None
    if not isinstance(given, dict):
        raise InvalidParameter(
            "--ranges", 'a JSON file like {"age": [18, 100], "weight": [30, 150]}', path.name
        )
    for name in features:
        if name not in given:
            raise InvalidParameter("--ranges", f"a range for the feature {name!r}", sorted(given))
    return [
        _validate.interval(f"--ranges of the feature {name!r}", given[name]) for name in features
    ]


def _rows(
    table: dict[str, Any], features: list[str], ranges: Ranges | None, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Features and target of some people, refused where bounds do not hold and --clip is absent."""
    X = np.column_stack([_numbers(table[name], name) for name in features])
    y = table[options["target"]]
    clip = options["clip"]
    if ranges is not None and not clip:
        for name, column, (low, high) in zip(features, X.T, ranges, strict=True):
            _require(column, name, low, high, "its range in --ranges")
    elif not clip:
        bound = options["norm_bound"]
        if np.linalg.norm(X, axis=1).max(initial=0.0) > bound * _SLACK:
            raise InvalidData("rows", f"no longer than --norm-bound {bound:g} (or pass --clip)")
    if options["task"] == "logistic":
        y = np.array([_label(value) for value in y])
        if not np.isin(y, options["classes"]).all():
            first, second = options["classes"]
            raise InvalidData(
                f"the target {options['target']!r}", f"made of --classes {first} {second} only"
            )
        return X, y
    y = _numbers(y, options["target"])
    if not clip:
        low, high = options["target_range"]
        _require(y, options["target"], low, high, f"--target-range {low:g} {high:g}")
    return X, y


def _numbers(column: Any, name: str) -> Any:
    if column.dtype.kind not in "fiub":
        raise InvalidData(f"the column {name!r}", "made of numbers")
    values = column.astype(np.float64)
    if not np.isfinite(values).all():
        raise InvalidData(f"the column {name!r}", "finite, with no empty cell")
    return values


def _require(column: Any, name: str, low: float, high: float, where: str) -> None:
    """Refuse a column that leaves its public range."""
    reach = (high - low) / 2 * _SLACK
    if np.abs(column - (low + high) / 2).max(initial=0.0) > reach:
        raise InvalidData(f"the column {name!r}", f"within {where} (or pass --clip)")


def _label(value: Any) -> str:
    """A class as text: 1, 1.0 and "1" are the same label."""
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)
