"""How ``dpfda release`` shows what it read and what it released."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table as Picture

from dpfda.central.files import Table
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter, MissingExtra

_PICTURES = (".png", ".pdf", ".svg")
_ROWS, _SURFACE_ROWS = 10, 5  # points shown of a curve, and along each side of a surface


def check_picture(path: Path) -> None:
    """Refuse a picture that could not be written, before anything is spent."""
    if path.suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot", f"a {', '.join(_PICTURES)} file", path.name)
    folder = path.parent
    if not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise InvalidParameter("--plot", "in a folder that exists and may be written", str(path))
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None


def describe_table(table: Table, name: str, span: tuple[float, float] | None) -> str:
    """One line: how the file was read; `span` is the domain of curves without grid points."""
    rows, columns = table.values.shape
    line = f"read {name}: {rows} rows, {columns} columns"
    if table.header is not None:
        line += f"; the first row is {'a header' if table.header else 'data (no header)'}"
    if table.grid_points is not None:
        ends = f"{table.grid_points[0]:.6g} to {table.grid_points[-1]:.6g}"
        line += f"; {table.grid_points.size} grid points from {ends}"
    elif span is not None:
        line += f"; {columns} grid points, evenly spaced from {span[0]:.6g} to {span[1]:.6g}"
    return line


def draw(release: Release, path: Path) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    release.plot(axes)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise click.ClickException(f"the plot was not written: {error.strerror}") from None
    finally:
        plt.close(figure)


def print_release(release: Release) -> None:
    """A table of some points, the promise, and the public parameters."""
    console = Console()
    console.print(_curve(release) if len(release.basis.grid) == 1 else _surface(release))
    console.print(repr(release), markup=False)
    for key, value in release.parameters.items():
        console.print(f"  {key}: {_short(value)}", markup=False)


def _curve(release: Release) -> Picture:
    t = np.linspace(release.basis.grid[0][0], release.basis.grid[0][-1], _ROWS)
    low, high = (np.atleast_2d(side) for side in release.interval(0.95, grid_points=t))
    values = np.atleast_2d(release.values(t))
    picture = Picture(title=f"{release.summary} (ten points of the domain)", title_justify="left")
    picture.add_column("t", justify="right")
    for number in range(len(values)):
        name = f"value {number + 1}" if len(values) > 1 else "value"
        picture.add_column(name, justify="right")
        picture.add_column("95 % band of the noise", justify="right")
    for place, point in enumerate(t):
        cells = [f"{point:.4g}"]
        for row in range(len(values)):
            cells.append(f"{values[row, place]:.4g}")
            cells.append(f"{low[row, place]:.4g} … {high[row, place]:.4g}")
        picture.add_row(*cells)
    return picture


def _surface(release: Release) -> Picture:
    s, t = (np.linspace(axis[0], axis[-1], _SURFACE_ROWS) for axis in release.basis.grid)
    picture = Picture(title=f"{release.summary} (rows s, columns t)", title_justify="left")
    picture.add_column("s", justify="right")
    for point in t:
        picture.add_column(f"t = {point:.4g}", justify="right")
    for point, row in zip(s, release.values((s, t)), strict=True):
        picture.add_row(f"{point:.4g}", *(f"{value:.4g}" for value in row))
    return picture


def _short(value: Any) -> str:
    """Numbers with four digits: more are noise to a reader, and are in the JSON."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_short(part) for part in value) + ")"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(part)}" for key, part in value.items())
    return str(value)
