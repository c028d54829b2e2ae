"""Curves that nobody has: drawn from released means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.errors import MissingExtra
from dpfda.noise.law import NoiseLaw

_BELIEVED = 4.0  # noise deviations: with fewer, curves are drawn that a classifier mistakes
_DRAWN = 40  # curves of a picture


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticCurves:
    """Curves that nobody has, to hand around.

    Attributes:
        curves: on the grid, (n, T).
        groups: the name of each one's group; empty where there is one.
        grid_points: where the curves are known.
    """

    curves: FloatArray
    groups: AnyArray
    grid_points: FloatArray

    def __len__(self) -> int:
        return len(self.curves)

    def __repr__(self) -> str:
        return f"SyntheticCurves({len(self)} curves at {len(self.grid_points)} points)"

    def to_frame(self) -> Any:
        """A pandas data frame: a row a curve, a column a point; ``group`` first, if there are."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "files") from None
        frame = pd.DataFrame(self.curves, columns=[f"{t:.10g}" for t in self.grid_points])
        if len(self.groups):
            frame.insert(0, "group", self.groups)
        return frame

    def to_skfda(self) -> Any:
        """A scikit-fda ``FDataGrid``, without groups."""
        try:
            from skfda import FDataGrid
        except ImportError:
            raise MissingExtra("scikit-fda", "fda") from None
        return FDataGrid(self.curves, grid_points=[self.grid_points])

    def plot(self, ax: Any = None) -> Any:
        """Draw the first few, a color a group; returns the axes."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        names = list(dict.fromkeys(self.groups.tolist()))
        for number, row in enumerate(self.curves[:_DRAWN]):
            color = names.index(self.groups[number]) if names else 0
            ax.plot(self.grid_points, row, color=f"C{color}", alpha=0.4, linewidth=0.8)
        for number, name in enumerate(names):
            ax.plot([], [], color=f"C{number}", label=str(name))
        if names:
            ax.legend()
        ax.set_xlabel("t")
        ax.set_title(f"{min(_DRAWN, len(self))} synthetic curves", fontsize="small")
        return ax


def sample(
    moments: CurveMoments, size: int, *, group: Any = None, seed: int | None = None
) -> SyntheticCurves:
    """Synthetic curves.

    They reveal no more than the release did: draw as many as you like. They are normal about the
    groups' means; what means and covariances do not hold is not in them.

    Args:
        moments: the release.
        size: how many.
        group: of one group only; otherwise of all, in the proportion of their sizes.
        seed: of the drawing, which protects nobody.
    """
    size = _validate.whole("size", size)
    generator = np.random.default_rng(seed)
    share = moments.sizes / moments.sizes.sum()
    if group is not None:
        share = np.eye(len(share))[moments.number_of(group)]
    numbers = generator.choice(len(share), size, p=share)
    rows = moments.shrunk[numbers]
    for number, name in enumerate(moments.groups or (None,)):
        own = np.flatnonzero(numbers == number)
        law = NoiseLaw.normal(moments.covariance(name, floor=_BELIEVED))
        rows[own] += law.draw(len(own), generator)
    return SyntheticCurves(
        curves=np.asarray(rows @ moments.basis.functions + moments.center),
        groups=np.array(moments.groups)[numbers] if moments.groups else np.array([]),
        grid_points=moments.grid_points,
    )
