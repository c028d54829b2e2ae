"""How ``dpfda release`` and ``dpfda show`` show a release."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Picture

from dpfda.central.release import Release

_ROWS, _SURFACE_ROWS = 10, 5  # points shown of a curve, and along each side of a surface


def print_release(release: Release) -> None:
    """A table of some points, the promise, and the public parameters."""
    console = Console(markup=False)
    console.print(_curve(release) if len(release.basis.grid) == 1 else _surface(release))
    print_public(console, release)


def print_public(console: Console, released: Any) -> None:
    """What a reader should know of anything released: promise, parameters, warnings."""
    console.print(repr(released), markup=False)
    for key, value in released.parameters.items():
        console.print(f"  {key}: {_short(value)}", markup=False)
    for warning in released.warnings:
        console.print(f"warning: {warning}", markup=False)


def _curve(release: Release) -> Picture:
    t = np.linspace(release.basis.grid[0][0], release.basis.grid[0][-1], _ROWS)
    low, high = (np.atleast_2d(side) for side in release.interval(0.95, grid_points=t))
    values = np.atleast_2d(release.values(t))
    picture = Picture(title=f"{release.summary} (ten points of the domain)", title_justify="left")
    picture.add_column("t", justify="right")
    for number in range(len(values)):
        name = release.name_of(number + 1) if len(values) > 1 else "value"
        picture.add_column(name, justify="right")
        picture.add_column(f"95 % band {release.covered}", justify="right")
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
