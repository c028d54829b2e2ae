"""Curves that nobody has: drawn from released means and covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.moments.curve_moments import CurveMoments
from dpfda.noise.law import NoiseLaw

_BELIEVED = 4.0  # noise deviations: with fewer, curves are drawn that a classifier mistakes


def sample(
    moments: CurveMoments, size: int, *, group: Any = None, seed: int | None = None
) -> tuple[FloatArray, IntArray]:
    """Synthetic curves on the grid, and the number of each one's group.

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
    return np.asarray(rows @ moments.basis.functions + moments.center), np.asarray(numbers)
