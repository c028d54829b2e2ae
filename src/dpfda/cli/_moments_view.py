"""How ``dpfda release`` and ``dpfda show`` show moments of groups of curves."""

from __future__ import annotations

from rich.console import Console

from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.shown import means
from dpfda.central.moments.synthetic import SyntheticCurves
from dpfda.cli._release_view import print_public
from dpfda.report.terminal import rich_table


def print_moments(moments: CurveMoments) -> None:
    """Means at some points, sizes, what groups differ by, the promise."""
    console = Console(markup=False)
    console.print(rich_table(means(moments)))
    if moments.groups:
        sizes = zip(moments.groups, moments.sizes, strict=True)
        told = ", ".join(f"{name} about {size:.0f}" for name, size in sizes)
        console.print(f"sizes: {told}", markup=False)
    print_public(console, moments)


def print_synthetic(moments: CurveMoments, drawn: SyntheticCurves) -> None:
    """What curves were drawn from, and what they are good for."""
    print_moments(moments)
    Console(markup=False).print(
        f"{len(drawn)} synthetic curves were drawn from this release: they reveal no more than it "
        "does, hold means and covariances, and nothing else of the people.",
        markup=False,
    )
