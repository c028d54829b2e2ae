"""Whether groups of curves have one mean: a test from released means, sizes and covariances."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.moments.bands import errors
from dpfda.moments.curve_moments import CurveMoments

_LEAST = 30.0  # people of a group of which something can be told
_CLEAR = 3.0  # deviations of noise below which a size may be none
_NOBODY = 5.0


def pvalue(moments: CurveMoments) -> float:
    """Of the hypothesis that all groups have one mean curve.

    The groups' means about their common mean are made uncorrelated, smooth functions first; the
    statistic is the largest standardized partial sum of their squares, so that a difference in the
    first few functions is not drowned by the others. Its law under the hypothesis is that of
    simulated errors. Groups too small to be told of are left out (`large`); where that leaves fewer
    than two, nothing speaks against the hypothesis: 1.
    """
    if len(moments.sizes) < 2:
        raise InvalidParameter("groups", "two at least", moments.groups)
    places, few = large(moments), moments.look.second
    if len(places) < 2:
        return 1.0
    null, seen = errors(moments)[:, places, :few], moments.coefficients[places, :few]
    return chance(null, seen, moments.sizes[places])


def large(moments: CurveMoments) -> list[int]:
    """The groups whose released size is not too small to tell anything of them."""
    least = np.maximum(_LEAST, _CLEAR * _size_noise(moments))
    return np.flatnonzero(moments.sizes >= least).tolist()


def about_small(moments: CurveMoments) -> tuple[str, ...]:
    """What is to be said of the others; free, from the released sizes."""
    if len(moments.groups) < 2:
        return ()
    found, kept = [], set(large(moments))
    for place, (name, size) in enumerate(zip(moments.groups, moments.sizes, strict=True)):
        if place not in kept:
            told = f"group {name!r} has about {size if size > 1 else 0:.0f} people, too few to tell"
            nobody = size < max(_NOBODY, _CLEAR * float(_size_noise(moments)[place]))
            hint = ": perhaps none, is it spelt as in the data?" if nobody else ""
            found.append(f"{told} anything of it{hint}")
    return tuple(found)


def _size_noise(moments: CurveMoments) -> FloatArray:
    """Standard deviation of the noise on released sizes."""
    return np.asarray(moments.n * np.sqrt(moments.variances.shares))


def chance(null: FloatArray, seen: FloatArray, people: FloatArray) -> float:
    """How often errors (draws, groups, coefficients) look as far apart as the means seen do."""
    null, seen = _apart(null, people), _apart(seen, people)
    freedom, few = len(people) - 1, seen.shape[-1]
    spread = np.einsum("sgi,sgj->ij", null, null) / (len(null) * freedom)
    root = np.linalg.cholesky(spread + 1e-12 * np.trace(spread) * np.eye(few))
    beyond = np.sum(_largest(null, root, freedom) >= _largest(seen, root, freedom))
    return (1 + int(beyond)) / (1 + len(null))


def _apart(means: FloatArray, people: FloatArray) -> FloatArray:
    """√n_g (mean_g - common mean), the last two axes being groups and coefficients."""
    common = np.einsum("g,...gm->...m", people / people.sum(), means)[..., None, :]
    return np.asarray((means - common) * np.sqrt(people)[:, None])


def _largest(rows: FloatArray, root: FloatArray, freedom: int) -> FloatArray:
    """max_k (q_k - k f)/√(2 k f), q_k the sum of squares of the first k whitened coefficients."""
    few = len(root)
    white = np.linalg.solve(root, rows.reshape(-1, few).T).T.reshape(rows.shape)
    free = freedom * np.arange(1, few + 1)
    sums = np.cumsum((white**2).sum(axis=-2), axis=-1)
    return np.asarray(((sums - free) / np.sqrt(2 * free)).max(axis=-1))
