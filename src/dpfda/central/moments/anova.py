"""Whether groups of curves have one mean: a test from released means, sizes and covariances."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.moments.bands import errors
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.errors import InvalidParameter

_LEAST = 30.0  # people of a group of which something can be told
_CLEAR = 3.0  # deviations of noise below which a size is too uncertain
_PLAUSIBLE = 2.0  # deviations of noise within which a group may be empty
_NOBODY = 5.0


def pvalue(moments: CurveMoments) -> float:
    """Of the hypothesis that all groups have one mean curve.

    The statistic is that of `chance`; its law under the hypothesis is that of simulated errors.
    Groups too small to be told of are left out (`large`); where that leaves fewer than two, nothing
    speaks against the hypothesis: 1.
    """
    if len(moments.sizes) < 2:
        raise InvalidParameter("groups", "two at least", moments.groups)
    places, few = large(moments), moments.look.second
    if len(places) < 2:
        return 1.0
    null, seen = errors(moments)[:, places, :few], moments.coefficients[places, :few]
    return chance(null, seen)


def large(moments: CurveMoments) -> list[int]:
    """The groups whose released size is not too small to tell anything of them."""
    wanted = np.maximum(_LEAST, _CLEAR * _size_noise(moments))
    return np.flatnonzero(moments.sizes >= wanted).tolist()


def about_small(moments: CurveMoments) -> tuple[str, ...]:
    """What is to be said of the others; free, from the released sizes.

    Tests take errors of means for normal, and so want people. The band of a mean allows for few of
    them, and for a size that is hardly known: where means are asked for, a group is too small only
    if nobody may be in it.
    """
    if len(moments.groups) < 2:
        return ()
    found, means = [], moments.look.emphasis == "means"
    empty = moments.sizes < _PLAUSIBLE * _size_noise(moments)
    kept = set(np.flatnonzero(~empty).tolist() if means else large(moments))
    for place, (name, size) in enumerate(zip(moments.groups, moments.sizes, strict=True)):
        if place not in kept:
            told = f"group {name!r} has about {size if size > 1 else 0:.0f} people, too few to tell"
            nobody = empty[place] or size < _NOBODY
            hint = "; perhaps nobody is in it: check how its name is spelt" if nobody else ""
            found.append(f"{told} anything of it{hint}")
    return tuple(found)


def _size_noise(moments: CurveMoments) -> FloatArray:
    """Standard deviation of the noise on released sizes."""
    return np.asarray(moments.n * np.sqrt(moments.variances.shares))


def chance(null: FloatArray, seen: FloatArray) -> float:
    """How often errors (draws, groups, coefficients) look as far apart as the means seen do.

    Each group counts by its precision (`_scores`), so that groups of which little is known cost no
    power. The scores are made uncorrelated along the coefficients, smooth functions first; the
    statistic is the largest standardized partial sum of their squares, so that a difference in the
    first few functions is not drowned by the others.

    Args:
        null: simulated errors of the groups' means, noise and sampling.
        seen: the means, (groups, coefficients).
    """
    weights = _precision(null)
    null, seen = _scores(null, weights), _scores(seen, weights)
    spread = np.einsum("sgi,sgj->ij", null, null) / len(null)
    root = np.linalg.cholesky(spread + 1e-12 * np.trace(spread) * np.eye(len(spread)))
    under, found = _partial_sums(null, root), _partial_sums(seen, root)
    middle, deviation = under.mean(axis=0), under.std(axis=0)
    statistics = ((under - middle) / deviation).max(axis=-1)
    beyond = np.sum(statistics >= ((found - middle) / deviation).max())
    return (1 + int(beyond)) / (1 + len(null))


def _precision(null: FloatArray) -> FloatArray:
    """P = C⁻¹ - C⁻¹11ᵀC⁻¹/1ᵀC⁻¹1 of each coefficient, (coefficients, groups, groups).

    C is the covariance of the groups' errors; groups share a part of the noise.
    """
    covariance = np.einsum("sgj,shj->jgh", null, null) / len(null)
    inverse = np.linalg.inv(covariance)
    rows = inverse.sum(axis=-1, keepdims=True)
    return np.asarray(inverse - rows * rows.mT / inverse.sum(axis=(-1, -2), keepdims=True))


def _scores(means: FloatArray, weights: FloatArray) -> FloatArray:
    """(P m)_g: a group's distance from the common mean times its precision.

    Their squares add up to the locally most powerful invariant statistic against effects of the
    same variance in every group; independent errors of variance v_g give (m_g - common mean)/v_g.
    """
    return np.asarray(np.einsum("jgh,...hj->...gj", weights, means))


def _partial_sums(rows: FloatArray, root: FloatArray) -> FloatArray:
    """Sums of squares over groups and the first k whitened coefficients, k = 1, 2, ..."""
    white = np.linalg.solve(root, rows.reshape(-1, len(root)).T).T.reshape(rows.shape)
    return np.asarray(np.cumsum((white**2).sum(axis=-2), axis=-1))
