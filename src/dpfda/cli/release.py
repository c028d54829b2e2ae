"""``dpfda release``: a noisy functional summary of a file that may be shown to anyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from dpfda.central import (
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
    PrivateMean,
    Release,
)
from dpfda.central.files import Table, read_table
from dpfda.cli._ledger import ledger_options, open_ledger
from dpfda.cli._release_view import check_picture, describe_table, draw, print_release
from dpfda.errors import InvalidData, InvalidParameter

_MODELS: dict[str, Any] = {
    "mean": PrivateMean,
    "covariance": PrivateCovariance,
    "density": PrivateDensity,
    "function-on-scalar": PrivateFunctionOnScalar,
    "kernel-machine": PrivateKernelMachine,
}


@click.command(name="release")
@click.argument("summary", type=click.Choice(list(_MODELS)))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="δ; 0 for pure ε.")
@click.option("--bound", type=float,
    help="Public bound on √(average of X(t)² over the domain), minus --center.")  # fmt: skip
@click.option(
    "--center", type=float, default=0.0, show_default=True, help="Public level to subtract."
)
@click.option("--range", "ranges", type=(float, float), multiple=True,
    help="Public domain of the curves, or range of points (twice for two columns).")  # fmt: skip
@click.option("--header/--no-header", default=None,
    help="Whether a CSV file's first row holds names (numbers: grid points).")  # fmt: skip
@click.option("--mechanism", help="Another mechanism: adaptive, allocation, iclp_qr, frl, ...")
@click.option("--covariates", help="Columns of covariates (function-on-scalar), comma-separated.")
@click.option("--covariate-bound", type=float, help="Public bound on the norm of the covariates.")
@click.option("--target", help="Column to predict (kernel-machine).")
@click.option("--target-bound", type=float, help="Public bound on |target| for squared loss.")
@click.option("--loss", type=click.Choice(["squared", "logistic", "smoothed_hinge"]),
    default="squared", show_default=True, help="Loss of the kernel machine.")  # fmt: skip
@click.option(
    "--fill", is_flag=True, help="Fill missing values along each curve by straight lines."
)
@click.option("--unit", default="person", show_default=True, help="Whose data one row is.")
@click.option("--seed", type=int, help="Seeded simulation instead of exact noise: not private.")
@ledger_options
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path),
    help="Write a picture here (.png, .pdf or .svg).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the release as JSON.")
@click.pass_context
def command(
    context: click.Context,
    /,
    summary: str,
    file: Path,
    plot: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Release a SUMMARY of the rows of FILE (CSV, Parquet or NPZ).

    A row is a curve (or a point, for densities and kernel machines); its columns are grid points.
    Bounds and ranges are public knowledge and must be given. Without --ledger every run spends
    its budget anew.
    """
    _refuse_foreign(context, summary)
    if plot is not None:
        check_picture(plot)
    table = read_table(file, header=options["header"])
    missing = np.isnan(table.values)
    if missing.any() and not options["fill"]:
        place = f"missing values, the first in {table.place_of(missing)}"
        raise InvalidData("file", "complete (or pass --fill for curves)", place)
    # Before anything is spent, and on stderr, so that stdout stays one document.
    span = (*options["ranges"], (0.0, 1.0))[0] if summary in ("mean", "covariance") else None
    click.echo(describe_table(table, file.name, span), err=True)
    release: Release = _fitted(summary, table, options).release_
    if as_json:
        click.echo(release.to_json(indent=2))
    else:
        print_release(release)
    if plot is not None:  # last: whatever goes wrong with it, the release has been shown
        draw(release, plot)
        click.echo(f"plot written to {plot}", err=True)


_CURVES = {"bound", "center", "ranges", "fill"}
_OWN = {
    "mean": _CURVES | {"mechanism"},
    "covariance": _CURVES,
    "density": {"ranges", "mechanism"},
    "function-on-scalar": _CURVES | {"covariates", "covariate_bound"},
    "kernel-machine": {"ranges", "target", "target_bound", "loss"},
}


def _refuse_foreign(context: click.Context, summary: str) -> None:
    """An option that belongs to other summaries is an error, not something to ignore."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in set().union(*_OWN.values()) - _OWN[summary]:
            meant = ", ".join(kind for kind in _MODELS if name in _OWN[kind])
            raise InvalidParameter(parameter.opts[0], f"left out (it is for {meant})", summary)


def _model(summary: str, options: dict[str, Any]) -> Any:
    """The estimator behind a summary; options of the same names are its parameters."""
    kind, ranges = _MODELS[summary], options["ranges"]
    if not ranges and "bound" not in _OWN[summary]:
        raise InvalidParameter("--range", "given: the public range of the points", None)
    names = set(kind().get_params())
    return kind(
        **{name: value for name, value in options.items() if name in names and value is not None}
        | {
            "domain_range": ranges[0] if len(ranges) == 1 else ranges or None,
            "random_state": options["seed"],
            "ledger": open_ledger(options),
        }
    )


def _fitted(summary: str, table: Table, options: dict[str, Any]) -> Any:
    if summary == "function-on-scalar":
        names = [name.strip() for name in (options["covariates"] or "").split(",") if name.strip()]
        if not names:
            raise InvalidParameter("--covariates", "given: names of columns", None)
        curves = table.without(names)
        rows = table.columns(names), curves.values
        return _model(summary, options).fit(*rows, grid_points=curves.grid_points)
    if summary == "kernel-machine":
        if options["target"] is None:
            raise InvalidParameter("--target", "given: the name of a column", None)
        points, target = table.without([options["target"]]), table.columns([options["target"]])
        return _model(summary, options).fit(points.values, target[:, 0])
    where = {} if summary == "density" else {"grid_points": table.grid_points}
    return _model(summary, options).fit(table.values, **where)
