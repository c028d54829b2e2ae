"""Inference for released means: simulated errors, bands, and a test of equal groups."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.joint_answer import BELIEVED
from dpfda.curves.band import PATHS, Band, Of, around, whose
from dpfda.errors import InvalidParameter
from dpfda.noise.law import NoiseLaw
from dpfda.protocol.plan import Label

_SKEWED = 0.3  # largest bias of a mean by clipping, in deviations, if nearly all curves are clipped


@lru_cache(maxsize=4)  # every pair of groups of a release needs the same errors
def errors(moments: CurveMoments, *, sampling: bool = True, size: int = PATHS) -> FloatArray:
    """Simulated errors of the coefficients of the group means, (size, groups, M).

    They contain the privacy noise. With `sampling` they also contain the sampling error
    N(0, Σ_g/n_g) and the bias of clipping, which may differ between groups of different spread.
    """
    generator = np.random.default_rng(0)
    drawn = moments.parts(moments.law.draw(size, generator))
    kept = moments.basis.size
    found = (drawn.means / moments.share[:, None] * moments.unit)[..., :kept]
    people = np.full((size, len(moments.sizes)), float(moments.n))
    if drawn.shares.size:  # a size that is too large makes the mean too small
        wrong = drawn.shares - drawn.shares.mean(axis=-1, keepdims=True)
        share = np.clip(moments.answer.shares - wrong, 1 / moments.n, 1.0)
        truth = moments.posterior.mean - moments.query.center[:kept]
        truth = truth + np.sqrt(moments.posterior.variance) * generator.normal(size=found.shape)
        found += truth * (share / moments.share - 1)[..., None]
        people *= share
    if sampling:
        spreads = _spreads(moments)
        for number, spread in enumerate(spreads):
            other = NoiseLaw.normal(spread).draw(size, generator)
            found[:, number] += other / np.sqrt(people[:, number, None])
        if moments.query.emphasis == "differences":
            deviations = np.sqrt([np.diag(spread) for spread in spreads])
            one_for_all = generator.normal(size=(size, 1, deviations.shape[1]))
            found += one_for_all * moved(moments, deviations)
    found.flags.writeable = False
    return np.asarray(found)


def _spreads(moments: CurveMoments) -> list[FloatArray]:
    """Covariances of the groups; tests use no eigenvalue floor."""
    floor = 0.0 if moments.query.emphasis == "differences" else BELIEVED
    names = moments.groups or (None,)
    return [moments.covariance(name, floor=floor) for name in names]


def moved(moments: CurveMoments, deviations: FloatArray) -> FloatArray:
    """Bound on differences of groups that clipping alone may cause, (groups, M).

    Clipping removes more of the tail of a skewed group if the group has a larger spread. For
    exponential and lognormal curves, the bias of the mean of a coefficient is at most 0.3 s³
    deviations, where s is the root mean square of the clipped curves over the radius (s = 0.3 to
    0.83, with 0.5 to 30 % of the curves clipped). A bias common to all groups does not affect
    differences. The bound uses only differences of spread that the released second moments show
    clearly, so that it does not reduce the power for groups of equal spread.

    Args:
        moments: the release.
        deviations: standard deviations of a person's coefficients, (groups, M).
    """
    squares = _mean_squares(moments, deviations)
    share = moments.sizes / moments.sizes.sum()
    noise = _square_noise(moments)
    beyond = squares - share @ squares
    own = (1 - share) ** 2 * noise
    blur = own + share**2 @ noise - share**2 * noise
    clear = np.sqrt(np.maximum(1 - blur / np.maximum(beyond**2, 1e-300), 0.0))
    far = _clipped(moments, deviations)
    return np.asarray(clear[:, None] * (far - share @ far))


def _clipped(moments: CurveMoments, deviations: FloatArray) -> FloatArray:
    """Bound on the bias of each group mean by clipping, (groups, M)."""
    squares = _mean_squares(moments, deviations)
    return np.asarray(_SKEWED * squares[:, None] ** 1.5 * deviations)


def _mean_squares(moments: CurveMoments, deviations: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(((deviations / moments.unit) ** 2).sum(axis=1), 1.0))


def _square_noise(moments: CurveMoments) -> FloatArray:
    """Variance of the noise on each group's mean square of clipped curves."""
    parts, people, few = moments.variances, moments.share, moments.query.second
    if moments.query.blocks == 1:
        return np.zeros(len(people))  # one covariance for all groups: their spreads are equal
    entries = np.array([few * moments.product_noise(table) ** 2 for table in range(len(people))])
    return np.asarray(entries + parts.rests / people**2)


def band(
    moments: CurveMoments,
    contrast: FloatArray,
    *,
    level: float = 0.95,
    of: Of = "population",
    simultaneous: bool = True,
) -> Band:
    """The contrast Σ_g c_g mean_g with a band, without the public center.

    Args:
        moments: the release.
        contrast: c.
        level: coverage probability of the band.
        of: ``population`` or ``sample``: the mean of the population, or of the people in the data.
        simultaneous: whether the band covers the whole curve at once or each point separately.
    """
    level = _validate.fraction("level", level)
    sampling = whose(of) == "population"
    paths = np.einsum("g,sgm->sm", contrast, errors(moments, sampling=sampling))
    if not sampling and moments.query.emphasis == "differences":
        deviations = np.sqrt([np.diag(spread) for spread in _spreads(moments)])
        most = contrast @ _clipped(moments, deviations)  # taken as two deviations of the bias
        paths = paths + np.random.default_rng(1).normal(size=paths.shape) * most / 2
    middle = np.asarray((contrast @ moments.coefficients) @ moments.basis.functions)
    curves = paths @ moments.basis.functions
    beside = float(np.sqrt(contrast**2 @ moments.left_out**2))
    curves += beside * np.random.default_rng(2).normal(size=curves.shape)
    found = around(middle, curves, level=level, simultaneous=simultaneous)
    own = np.asarray((contrast @ moments.shrunk) @ moments.basis.functions)
    return found.holding(own)


def interval(
    moments: CurveMoments,
    level: float = 0.95,
    *,
    group: Label | None = None,
    of: Of = "population",
    simultaneous: bool = True,
) -> Band:
    """The mean curve of a group with its band."""
    contrast = np.eye(len(moments.sizes))[moments.number_of(group)]
    found = band(moments, contrast, level=level, of=of, simultaneous=simultaneous)
    return found.about(moments.center)


def difference(
    moments: CurveMoments,
    one: Label,
    other: Label,
    level: float = 0.95,
    *,
    simultaneous: bool = True,
) -> Band:
    """The mean curve of group `one` minus that of group `other`, with its band."""
    places = np.eye(len(moments.sizes))
    contrast = places[moments.number_of(one)] - places[moments.number_of(other)]
    return band(moments, contrast, level=level, simultaneous=simultaneous)


_LEAST = 30.0  # smallest size of a group that is tested
_CLEAR = 3.0  # a tested group is also larger than this many deviations of the noise of its size
_PLAUSIBLE = 2.0  # a group may be empty if its size is below this many deviations of its noise
_NOBODY = 5.0  # or if its released size is below this number


def pvalue(moments: CurveMoments) -> float:
    """p-value of the hypothesis that all groups have the same mean curve.

    The statistic is that of `chance`; its null distribution comes from simulated errors. Small
    groups are excluded (`large`). If fewer than two groups remain, the p-value is 1.
    """
    if len(moments.sizes) < 2:
        raise InvalidParameter("groups", "at least two", moments.groups)
    places, few = large(moments), moments.query.second
    if len(places) < 2:
        return 1.0
    null, seen = errors(moments)[:, places, :few], moments.coefficients[places, :few]
    return chance(null, seen)


def large(moments: CurveMoments) -> list[int]:
    """The groups whose released size is large enough for a test."""
    wanted = np.maximum(_LEAST, _CLEAR * _size_noise(moments))
    return np.flatnonzero(moments.sizes >= wanted).tolist()


def about_small(moments: CurveMoments) -> tuple[str, ...]:
    """Warnings about small groups, from the released sizes.

    Tests assume normal errors of the means and therefore need large groups. Bands of means are
    valid for small groups and for uncertain sizes. If the emphasis is on means, a group is thus too
    small only if it may be empty.
    """
    if len(moments.groups) < 2:
        return ()
    found, means = [], moments.query.emphasis == "means"
    noise = _PLAUSIBLE * _size_noise(moments)
    empty = moments.sizes < noise
    kept = set(np.flatnonzero(~empty).tolist() if means else large(moments))
    for place, (name, size) in enumerate(zip(moments.groups, moments.sizes, strict=True)):
        if place not in kept:
            nobody = empty[place] or size < _NOBODY
            hint = "; perhaps nobody is in it: check how its name is spelt" if nobody else ""
            few = "too few to tell from none" if means else "too few to tell anything of it"
            about = min(size if size > 1 else 0.0, moments.n)
            people = f"about {about:.0f} people (noise: ±{noise[place]:.0f})"
            found.append(f"group {name!r} has {people}, {few}{hint}")
    return tuple(found)


def _size_noise(moments: CurveMoments) -> FloatArray:
    """Standard deviation of the noise on released sizes."""
    return np.asarray(moments.n * np.sqrt(moments.variances.shares))


def chance(null: FloatArray, seen: FloatArray) -> float:
    """Share of simulated errors (draws, groups, coefficients) as extreme as the released means.

    Each group is weighted by its precision (`_scores`), so that groups with large errors do not
    reduce the power. The scores are made uncorrelated along the coefficients, in order of
    decreasing smoothness. The statistic is the largest standardized partial sum of their squares,
    so that differences in the first few functions are detected in spite of noise in the others.

    Args:
        null: simulated errors of the group means, from noise and sampling.
        seen: the released means, (groups, coefficients).
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

    C is the covariance of the errors of the groups, which share a part of the noise.
    """
    covariance = np.einsum("sgj,shj->jgh", null, null) / len(null)
    inverse = np.linalg.inv(covariance)
    rows = inverse.sum(axis=-1, keepdims=True)
    return np.asarray(inverse - rows * rows.mT / inverse.sum(axis=(-1, -2), keepdims=True))


def _scores(means: FloatArray, weights: FloatArray) -> FloatArray:
    """(P m)_g, the difference of a group from the common mean times its precision.

    Their squares add up to the locally most powerful invariant statistic against effects of the
    same variance in every group; independent errors of variance v_g give (m_g - common mean)/v_g.
    """
    return np.asarray(np.einsum("jgh,...hj->...gj", weights, means))


def _partial_sums(rows: FloatArray, root: FloatArray) -> FloatArray:
    """Sums of squares over groups and the first k whitened coefficients, k = 1, 2, ..."""
    white = np.linalg.solve(root, rows.reshape(-1, len(root)).T).T.reshape(rows.shape)
    return np.asarray(np.cumsum((white**2).sum(axis=-2), axis=-1))
