"""``dpfda release``: a noisy functional summary of a file that may be shown to anyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table as Picture

from dpfda.central import (
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
    PrivateMean,
    Release,
)
from dpfda.central.density_mechanism import DensityMechanism
from dpfda.central.files import Table, read_table
from dpfda.central.function_mechanism import FunctionMechanism
from dpfda.errors import InvalidData, InvalidParameter, UnknownName

SUMMARIES = ("mean", "covariance", "density", "function-on-scalar", "kernel-machine")


@click.command(name="release")
@click.argument("summary", type=click.Choice(SUMMARIES))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="Privacy budget ε.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="δ; 0 for pure ε.")
@click.option("--bound", type=float, help="Public bound on the norm of a curve (minus --centre).")
@click.option(
    "--centre", type=float, default=0.0, show_default=True, help="Public level to subtract."
)
@click.option("--range", "ranges", type=(float, float), multiple=True,
    help="Public domain of the curves, or range of points (twice for two columns).")  # fmt: skip
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
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a PNG here.")
@click.option("--json", "as_json", is_flag=True, help="Print the release as JSON.")
def command(summary: str, file: Path, plot: Path | None, as_json: bool, **options: Any) -> None:
    """Release a SUMMARY of the rows of FILE (CSV, Parquet or NPZ).

    A row is a curve (or a point, for densities and kernel machines); its columns are grid points.
    Bounds and ranges are public knowledge and must be given. Every run spends its budget anew.
    """
    table = read_table(file)
    if np.isnan(table.values).any() and not options["fill"]:
        raise InvalidData("file", "complete (or pass --fill for curves)", "missing values")
    release = _RELEASES[summary](table, options)
    if plot is not None:
        _draw(release, plot)
    click.echo(release.to_json(indent=2)) if as_json else _print(release, plot)


def _shared(options: dict[str, Any]) -> dict[str, Any]:
    names = ("epsilon", "delta", "unit")
    return {name: options[name] for name in names} | {"random_state": options["seed"]}


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
    return model.fit(table.columns(names), table.without(names).values).release_


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


def _draw(release: Release, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    release.plot(axes)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _print(release: Release, plot: Path | None) -> None:
    console = Console()
    picture = Picture(title=f"{release.summary} (ten points of the grid)", title_justify="left")
    if len(release.basis.grid) == 1:
        t = np.linspace(release.basis.grid[0][0], release.basis.grid[0][-1], 10)
        low, high = (np.atleast_2d(side) for side in release.interval(0.95, grid_points=t))
        values = np.atleast_2d(release.values(t))
        picture.add_column("t", justify="right")
        for number in range(len(values)):
            picture.add_column(
                f"value {number + 1}" if len(values) > 1 else "value", justify="right"
            )
            picture.add_column("95 % band of the noise", justify="right")
        for place, point in enumerate(t):
            cells = [f"{point:.4g}"]
            for row in range(len(values)):
                cells.append(f"{values[row, place]:.4g}")
                cells.append(f"{low[row, place]:.4g} … {high[row, place]:.4g}")
            picture.add_row(*cells)
        console.print(picture)
    console.print(repr(release), markup=False)
    for key, value in release.parameters.items():
        console.print(f"  {key}: {value}", markup=False)
    if plot is not None:
        console.print(f"plot written to {plot}", markup=False)
