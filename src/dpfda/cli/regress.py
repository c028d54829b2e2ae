"""``dpfda regress``: a private linear or logistic regression of one column on others."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter, MissingExtra
from dpfda.regression.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dpfda.regression.methods import Method

_CHUNK = 100_000
_WHOLE = ("objective_perturbation", "output_perturbation")


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
@click.option("--seed", type=int, help="Seeded simulation instead of exact noise: not private.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, as_json: bool, **options: Any) -> None:
    """Fit a private regression to FILE (CSV, Parquet or NPZ).

    Bounds are public knowledge and must be given: --ranges for features in their own units, or
    --norm-bound for rows that are scaled already. A CSV file is read in chunks, once for each stage
    of the method.
    """
    features = _features(file, options)
    ranges = _ranges(options["ranges"], features)
    if ranges is None and options["norm_bound"] is None:
        raise InvalidParameter("--ranges or --norm-bound", "given: bounds are public", None)
    model = _model(options, ranges)
    if file.suffixes[:1] == [".csv"] and options["method"] not in _WHOLE:
        model.fit_stream(lambda: _chunks(file, features, options))
    else:
        X, y = _columns(_read(file), features, options)
        model.fit(X, y)
    result = _result(model, features, ranges)
    click.echo(json.dumps(result, indent=2)) if as_json else _print(result)


def _model(options: dict[str, Any], ranges: list[tuple[float, float]] | None) -> Any:
    shared = {
        "epsilon": options["epsilon"],
        "delta": options["delta"],
        "method": options["method"],
        "feature_norm_bound": None if ranges else options["norm_bound"],
        "encoder": CurveEncoder("identity", bounds=ranges) if ranges else None,
        "clip": options["clip"],
        "random_state": options["seed"],
    }
    if options["task"] == "logistic":
        return PrivateLogisticRegression(**shared, classes=options["classes"])
    low, high = options["target_range"]
    return PrivateLinearRegression(
        **shared, target_center=(low + high) / 2, target_bound=(high - low) / 2
    )


def _result(
    model: Any, features: list[str], ranges: list[tuple[float, float]] | None
) -> dict[str, Any]:
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
        "guarantee": model.guarantee_.to_dict(),
        "warnings": list(model.fit_.warnings),
    }


def _print(result: dict[str, Any]) -> None:
    table = Table(title=f"{result['method']}, {result['rows']} rows, {result['stages']} stages")
    for column in ("feature", "coefficient", "± from privacy noise"):
        table.add_column(column, justify="left" if column == "feature" else "right")
    table.add_row("(intercept)", f"{result['intercept']:.5g}", "")
    for row in result["coefficients"]:
        error = row["privacy_standard_error"]
        table.add_row(
            row["feature"], f"{row['value']:.5g}", "" if error is None else f"{error:.2g}"
        )
    console = Console()
    console.print(table)
    promise = result["guarantee"]
    sampler = "exact" if promise["sampler"] == "exact" else "simulation (seeded, not private)"
    console.print(f"ε = {promise['epsilon']:g}, δ = {promise['delta']:g}, sampler = {sampler}")
    for warning in result["warnings"]:
        console.print(f"warning: {warning}")


def _features(file: Path, options: dict[str, Any]) -> list[str]:
    names = _names(file)
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


def _ranges(path: Path | None, features: list[str]) -> list[tuple[float, float]] | None:
    if path is None:
        return None
    given = json.loads(path.read_text())
    for name in features:
        if name not in given:
            raise InvalidParameter("--ranges", f"a range for the feature {name!r}", sorted(given))
    return [(float(given[name][0]), float(given[name][1])) for name in features]


def _names(file: Path) -> list[str]:
    if file.suffixes[:1] == [".csv"]:
        return [str(name) for name in _pandas().read_csv(file, nrows=0).columns]
    return list(_read(file))


def _read(file: Path) -> dict[str, Any]:
    """The columns of a whole file, by name."""
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    if file.suffixes[:1] == [".csv"]:
        frame = _pandas().read_csv(file)
    elif file.suffix == ".parquet":
        frame = _pandas().read_parquet(file)
    else:
        raise InvalidParameter("FILE", "a .csv, .parquet or .npz file", file.name)
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def _chunks(file: Path, features: list[str], options: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    columns = [*features, options["target"]]
    with _pandas().read_csv(file, usecols=columns, chunksize=_CHUNK) as frames:
        for frame in frames:
            yield _columns({name: frame[name].to_numpy() for name in columns}, features, options)


def _columns(
    table: dict[str, Any], features: list[str], options: dict[str, Any]
) -> tuple[Any, Any]:
    X = np.column_stack([table[name] for name in features])
    y = table[options["target"]]
    if options["task"] == "logistic":
        y = np.array([_label(value) for value in y])
    return X, y


def _label(value: Any) -> str:
    """A class as text: 1, 1.0 and "1" are the same label."""
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", "files") from None
    return pd
