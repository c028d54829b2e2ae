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
from dpfda.central.density import DensityMechanism
from dpfda.central.files import Table, read_table
from dpfda.central.function_mechanism import FunctionMechanism
from dpfda.cli._ledger import ledger_options, open_ledger
from dpfda.cli._release_view import check_picture, describe_table, draw, print_release
from dpfda.errors import InvalidData, InvalidParameter, UnknownName

SUMMARIES = ("mean", "covariance", "density", "function-on-scalar", "kernel-machine")


@click.command(name="release")
@click.argument("summary", type=click.Choice(SUMMARIES))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="δ; 0 for pure ε.")
@click.option("--bound", type=float,
    help="Public bound on √(average of X(t)² over the domain), minus --centre.")  # fmt: skip
@click.option(
    "--centre", type=float, default=0.0, show_default=True, help="Public level to subtract."
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
    release = _RELEASES[summary](table, options)
    if as_json:
        click.echo(release.to_json(indent=2))
    else:
        print_release(release)
    if plot is not None:  # last: whatever goes wrong with it, the release has been shown
        draw(release, plot)
        click.echo(f"plot written to {plot}", err=True)


_CURVES = {"bound", "centre", "ranges", "fill"}
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
            meant = ", ".join(kind for kind in SUMMARIES if name in _OWN[kind])
            raise InvalidParameter(parameter.opts[0], f"left out (it is for {meant})", summary)


def _shared(options: dict[str, Any]) -> dict[str, Any]:
    names = ("epsilon", "delta", "unit")
    own = {"random_state": options["seed"], "ledger": open_ledger(options)}
    return {name: options[name] for name in names} | own


def _curves(options: dict[str, Any]) -> dict[str, Any]:
    span = options["ranges"][0] if options["ranges"] else None
    return _shared(options) | {
        "bound": options["bound"],
        "centre": options["centre"],
        "domain_range": span,
    }


def _mean(table: Table, options: dict[str, Any]) -> Release:
    chosen = options["mechanism"] or "adaptive"
    if chosen not in FunctionMechanism.members():
        raise UnknownName("mechanism", chosen, sorted(FunctionMechanism.members()))
    model = PrivateMean(**_curves(options), mechanism=chosen)
    return model.fit(table.values, grid_points=table.grid_points).release_


def _covariance(table: Table, options: dict[str, Any]) -> Release:
    model = PrivateCovariance(**_curves(options))
    return model.fit(table.values, grid_points=table.grid_points).release_


def _density(table: Table, options: dict[str, Any]) -> Release:
    chosen = options["mechanism"] or "histogram"
    if chosen not in DensityMechanism.members():
        raise UnknownName("mechanism", chosen, sorted(DensityMechanism.members()))
    model = PrivateDensity(**_shared(options), domain_range=_box(options), mechanism=chosen)
    return model.fit(table.values).release_


def _function_on_scalar(table: Table, options: dict[str, Any]) -> Release:
    names = [name.strip() for name in (options["covariates"] or "").split(",") if name.strip()]
    if not names:
        raise InvalidParameter("--covariates", "given: names of columns", None)
    model = PrivateFunctionOnScalar(**_curves(options), covariate_bound=options["covariate_bound"])
    curves = table.without(names)
    found = model.fit(table.columns(names), curves.values, grid_points=curves.grid_points)
    return found.release_


def _kernel_machine(table: Table, options: dict[str, Any]) -> Release:
    if options["target"] is None:
        raise InvalidParameter("--target", "given: the name of a column", None)
    model = PrivateKernelMachine(
        **_shared(options),
        domain_range=_box(options),
        target_bound=options["target_bound"],
        loss=options["loss"],
    )
    target = table.columns([options["target"]])[:, 0]
    return model.fit(table.without([options["target"]]).values, target).release_


_RELEASES = {
    "mean": _mean,
    "covariance": _covariance,
    "density": _density,
    "function-on-scalar": _function_on_scalar,
    "kernel-machine": _kernel_machine,
}


def _box(options: dict[str, Any]) -> Any:
    ranges = options["ranges"]
    if not ranges:
        raise InvalidParameter("--range", "given: the public range of the points", None)
    return ranges[0] if len(ranges) == 1 else ranges
