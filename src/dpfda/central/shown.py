"""What a release shows, on a terminal and in a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.central.release import Release
from dpfda.report import Contents, Picture, Table

_ROWS, _SURFACE_ROWS = 10, 5  # points shown of a curve, and along each side of a surface


def contents(release: Release) -> Contents:
    """Some points with their bands, a picture, and in words whether noise hides everything."""
    curve = len(release.basis.grid) == 1
    caption = f"The released {release.summary}"
    if curve:
        caption += f", with a 95 % band {release.covered} for the whole curve"
    return Contents(
        verdict=release.verdict.findings,
        doubts=release.verdict.added_to(release.warnings),
        tables=(table(release),),
        pictures=(Picture.of(release.plot, f"{caption}."),),
        settings=release.parameters,
        notes=(_about_bands(release),) if curve else (),
    )


def table(release: Release) -> Table:
    """The function at some points."""
    return _curve(release) if len(release.basis.grid) == 1 else _surface(release)


def _about_bands(release: Release) -> str:
    about = (
        f"Bands of the table hold at each point by itself, with 95 %; they speak {release.covered}"
    )
    if release.sampling:
        return f"{about}: they hold {release.target}."
    return (
        f"{about} alone, and hold {release.target}: not of who else might have been asked, nor of "
        "values that were clipped."
    )


def _curve(release: Release) -> Table:
    t = np.linspace(release.basis.grid[0][0], release.basis.grid[0][-1], _ROWS)
    low, high = (np.atleast_2d(side) for side in release.interval(0.95, grid_points=t))
    values = np.atleast_2d(release.values(t))
    headings = ["t"]
    for number in range(len(values)):
        headings.append(release.name_of(number + 1) if len(values) > 1 else "value")
        headings.append(f"95 % band {release.covered}")
    rows = []
    for place, point in enumerate(t):
        cells = [f"{point:.4g}"]
        for row in range(len(values)):
            cells.append(f"{values[row, place]:.4g}")
            cells.append(f"{low[row, place]:.4g} … {high[row, place]:.4g}")
        rows.append(tuple(cells))
    title = f"{release.summary} (ten points of the domain)"
    return Table(headings=tuple(headings), rows=tuple(rows), title=title)


def _surface(release: Release) -> Table:
    s, t = (np.linspace(axis[0], axis[-1], _SURFACE_ROWS) for axis in release.basis.grid)
    rows: list[tuple[Any, ...]] = [
        (f"{point:.4g}", *(f"{value:.4g}" for value in row))
        for point, row in zip(s, release.values((s, t)), strict=True)
    ]
    headings = ("s", *(f"t = {point:.4g}" for point in t))
    title = f"{release.summary} (rows s, columns t)"
    return Table(headings=headings, rows=tuple(rows), title=title)
