"""Whether released moments show more than noise: the judge of groups and of synthetic curves."""

from __future__ import annotations

import math

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import DOUBTED
from dpfda.central.judged import NARROW, public_span, remedy
from dpfda.central.moments.bands import errors
from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.moments.differences import compared, differ
from dpfda.report import Verdict, worst_of

_DRAWS = 400  # of errors, for their mean squares


def judged(moments: CurveMoments) -> Verdict:
    """The verdict on moments of one group or of several."""
    parts = []
    if moments.look.emphasis == "means":
        parts.append(_means(moments))
    if moments.look.emphasis == "covariances":
        parts.append(_covariances(moments))
    if len(moments.groups) > 1:
        parts.append(_differences(moments))
    return worst_of(parts)


def _means(moments: CurveMoments) -> Verdict:
    """Beside the public center: are the means told from it, or at least known well?"""
    belief, length = moments.belief, float(np.ptp(moments.grid_points))
    error, span = belief.error, public_span(moments.parameters)
    doubt = error.sum() / (error.sum() + (belief.mean**2).sum())
    # A band of ±2 deviations that narrow is known well, wherever it is.
    if span is not None and 4 * math.sqrt(error.mean() / length) <= NARROW * span:
        return Verdict()
    if doubt <= DOUBTED:
        return Verdict()
    told = "mean: noise hides where the curves are: their public center may be as close."
    told = f"{told} {remedy(moments.warnings)}"
    return Verdict(kind="noise", sentences=(told,))


def _covariances(moments: CurveMoments) -> Verdict:
    """Of what curves are drawn from: does any direction stand out of the noise?"""
    few = moments.look.second
    for table, products in enumerate(moments.products):
        # The largest eigenvalue of a symmetric matrix of noise is about 2σ√J.
        if np.linalg.eigvalsh(products)[-1] > 2 * np.sqrt(few) * moments.product_noise(table):
            return Verdict()
    told = "covariance: noise hides how curves vary, and synthetic curves vary by noise."
    told = f"{told} {remedy(moments.warnings)}"
    return Verdict(kind="noise", sentences=(told,))


def _differences(moments: CurveMoments) -> Verdict:
    """Do groups differ? If not: is privacy noise larger than sampling error, and hides it?"""
    told = (compared(moments),)
    if differ(moments) or moments.look.emphasis == "means":  # where that was not the question
        return Verdict(sentences=told)
    noise, whole = (
        float((_apart(errors(moments, sampling=sampling, size=_DRAWS)) ** 2).mean())
        for sampling in (False, True)
    )
    return Verdict(kind="unclear" if noise > whole / 2 else "signal", sentences=told)


def _apart(drawn: FloatArray) -> FloatArray:
    """Errors of groups about their mean."""
    return np.asarray(drawn - drawn.mean(axis=1, keepdims=True))
