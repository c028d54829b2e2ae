"""How ``dpfda release`` and ``dpfda show`` show moments of groups of curves."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from dpfda.cli._release_view import print_public
from dpfda.moments.bands import interval
from dpfda.moments.curve_moments import CurveMoments
from dpfda.moments.report import differences_in_words
from dpfda.moments.synthetic import SyntheticCurves

_ROWS = 10  # points shown of a curve


def print_moments(moments: CurveMoments) -> None:
    """Means at some points, sizes, what groups differ by, the promise."""
    console = Console(markup=False)
    console.print(_means(moments))
    if moments.groups:
        sizes = zip(moments.groups, moments.sizes, strict=True)
        told = ", ".join(f"{name} about {size:.0f}" for name, size in sizes)
        console.print(f"sizes: {told}", markup=False)
        console.print(differences_in_words(moments), markup=False)
    print_public(console, moments)


def print_synthetic(moments: CurveMoments, drawn: SyntheticCurves) -> None:
    """What curves were drawn from, and what they are good for."""
    print_moments(moments)
    Console(markup=False).print(
        f"{len(drawn)} synthetic curves were drawn from this release: they reveal no more than it "
        "does, hold means and covariances, and nothing else of the people.",
        markup=False,
    )


def _means(moments: CurveMoments) -> Table:
    table = Table(title="means (ten points of the domain)", title_justify="left")
    table.add_column("t", justify="right")
    bands = []
    for name in moments.groups or (None,):
        table.add_column("mean" if name is None else f"mean of {name}", justify="right")
        table.add_column("95 % band of the population's", justify="right")
        bands.append(interval(moments, group=name))
    places = np.linspace(0, len(moments.grid_points) - 1, _ROWS).round().astype(np.int64)
    for place in np.unique(places):
        cells = [f"{moments.grid_points[place]:.4g}"]
        for values, band in zip(moments.means, bands, strict=True):
            cells += [f"{values[place]:.4g}", f"{band.low[place]:.4g} … {band.high[place]:.4g}"]
        table.add_row(*cells)
    return table
