"""Whether groups of curves have one mean: a test from released means, sizes and covariances."""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.moments.bands import errors
from dpfda.moments.curve_moments import CurveMoments


def pvalue(moments: CurveMoments) -> float:
    """Of the hypothesis that all groups have one mean curve.

    The groups' means about their common mean are made uncorrelated, smooth functions first; the
    statistic is the largest standardized partial sum of their squares, so that a difference in the
    first few functions is not drowned by the others. Its law under the hypothesis is that of
    simulated errors (methods.md 9.3).
    """
    people, few = moments.sizes, moments.look.second
    if len(people) < 2:
        raise InvalidParameter("groups", "two at least", moments.groups)
    null, seen = errors(moments)[..., :few], moments.coefficients[..., :few]
    return chance(null, seen, people)


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
