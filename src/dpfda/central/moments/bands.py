"""How far released means may be from the truth: simulated errors, and bands from them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.joint import BELIEVED
from dpfda.curves.band import PATHS, Band, Of, around, whose
from dpfda.noise.law import NoiseLaw

_SKEWED = 0.3  # deviations that clipping moves a mean by, at most, where nearly all is clipped


@lru_cache(maxsize=4)  # of a release, every pair of groups is asked for
def errors(moments: CurveMoments, *, sampling: bool = True, size: int = PATHS) -> FloatArray:
    """Errors of the means' coefficients like the ones made, (size, groups, M).

    Drawn from the law of the privacy noise and, with `sampling`, from N(0, Σ_g/n_g): other people
    might have been asked, and clipping may have moved apart groups that scatter differently.
    """
    generator = np.random.default_rng(0)
    drawn = moments.parts(moments.law.draw(size, generator))
    kept = moments.basis.size
    found = (drawn.means / moments.share[:, None] * moments.unit)[..., :kept]
    people = np.full((size, len(moments.sizes)), float(moments.n))
    if drawn.shares.size:  # a size that came out too large makes the mean too small
        wrong = drawn.shares - drawn.shares.mean(axis=-1, keepdims=True)
        share = np.clip(moments.answer.shares - wrong, 1 / moments.n, 1.0)
        truth = moments.belief.mean - moments.look.center[:kept]
        truth = truth + np.sqrt(moments.belief.variance) * generator.normal(size=found.shape)
        found += truth * (share / moments.share - 1)[..., None]
        people *= share
    if sampling:
        spreads = _spreads(moments)
        for number, spread in enumerate(spreads):
            other = NoiseLaw.normal(spread).draw(size, generator)
            found[:, number] += other / np.sqrt(people[:, number, None])
        if moments.look.emphasis == "differences":
            deviations = np.sqrt([np.diag(spread) for spread in spreads])
            one_for_all = generator.normal(size=(size, 1, deviations.shape[1]))
            found += one_for_all * moved(moments, deviations)
    found.flags.writeable = False
    return np.asarray(found)


def _spreads(moments: CurveMoments) -> list[FloatArray]:
    """Covariances of the groups; those of tests need no floor."""
    floor = 0.0 if moments.look.emphasis == "differences" else BELIEVED
    names = moments.groups or (None,)
    return [moments.covariance(name, floor=floor) for name in names]


def moved(moments: CurveMoments, deviations: FloatArray) -> FloatArray:
    """How far clipping may have moved groups apart that scatter differently, (groups, M).

    A skewed group loses more of its tail the further it scatters: of exponential and lognormal
    curves the mean of a coefficient is moved by 0.3 s³ deviations at most, s being the root mean
    square of what was left of curves over the radius (s = 0.3 to 0.83, 0.5 to 30 % of the curves
    clipped). What all groups have in common sets none apart. Only what the released second moments
    clearly show of a difference counts, so that groups that scatter alike are compared as sharply
    as before.

    Args:
        moments: the release.
        deviations: of a person's coefficients, (groups, M).
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
    """How far clipping may have moved the mean of each group, (groups, M)."""
    squares = _mean_squares(moments, deviations)
    return np.asarray(_SKEWED * squares[:, None] ** 1.5 * deviations)


def _mean_squares(moments: CurveMoments, deviations: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(((deviations / moments.unit) ** 2).sum(axis=1), 1.0))


def _square_noise(moments: CurveMoments) -> FloatArray:
    """Variance of the noise on each group's mean square of clipped curves."""
    parts, people, few = moments.variances, moments.share, moments.look.second
    if moments.look.blocks == 1:
        return np.zeros(len(people))  # one covariance for all: nothing tells them apart
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
    """Σ_g c_g mean_g with a band; the public center is left out.

    Args:
        moments: the release.
        contrast: c.
        level: probability with which the band holds the true curve.
        of: whose mean: of everybody who might have been asked, or of those who were.
        simultaneous: for the whole curve at once; otherwise at each point by itself.
    """
    level = _validate.fraction("level", level)
    sampling = whose(of) == "population"
    paths = np.einsum("g,sgm->sm", contrast, errors(moments, sampling=sampling))
    if not sampling and moments.look.emphasis == "differences":
        deviations = np.sqrt([np.diag(spread) for spread in _spreads(moments)])
        most = contrast @ _clipped(moments, deviations)  # two deviations: the radius is for tests
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
    group: Any = None,
    of: Of = "population",
    simultaneous: bool = True,
) -> Band:
    """The mean curve of a group with its band."""
    contrast = np.eye(len(moments.sizes))[moments.number_of(group)]
    found = band(moments, contrast, level=level, of=of, simultaneous=simultaneous)
    return found.about(moments.center)


def difference(
    moments: CurveMoments, one: Any, other: Any, level: float = 0.95, *, simultaneous: bool = True
) -> Band:
    """The mean curve of group `one` minus that of group `other`, with its band."""
    places = np.eye(len(moments.sizes))
    contrast = places[moments.number_of(one)] - places[moments.number_of(other)]
    return band(moments, contrast, level=level, simultaneous=simultaneous)
