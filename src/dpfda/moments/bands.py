"""How far released means may be from the truth: simulated errors, and bands from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.curves.band import PATHS, Band, Of, around, whose
from dpfda.moments.curve_moments import CurveMoments
from dpfda.noise.law import NoiseLaw


def errors(moments: CurveMoments, *, sampling: bool = True, size: int = PATHS) -> FloatArray:
    """Errors of the means' coefficients like the ones made, (size, groups, M).

    Drawn from the law of the privacy noise and, with `sampling`, from N(0, Σ_g/n_g): other people
    might have been asked.
    """
    generator = np.random.default_rng(0)
    drawn = moments.parts(moments.law.draw(size, generator))
    found = drawn.means / moments.share[:, None]
    if drawn.shares.size:  # a size that came out too large makes the mean too small
        found = found - moments.shift * (drawn.shares / moments.share)[..., None]
    found = found * moments.unit
    if sampling:
        names = moments.groups or (None,)
        for number, (name, people) in enumerate(zip(names, moments.sizes, strict=True)):
            law = NoiseLaw.normal(moments.covariance(name) / people)
            found[:, number] += law.draw(size, generator)
    return np.asarray(found)


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
    middle = np.asarray((contrast @ moments.coefficients) @ moments.basis.functions)
    curves = paths @ moments.basis.functions
    return around(middle, curves, level=level, simultaneous=simultaneous)


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
