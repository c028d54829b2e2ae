"""Whether a regression shows more than noise: the judge of coefficients, slopes and classifiers."""

from __future__ import annotations

import math
import warnings

import numpy as np
from scipy.special import ndtri

from dpfda.privacy.calibration import gaussian_mu
from dpfda.regression.model import RegressionModel
from dpfda.report import Verdict

_MOSTLY = 0.5  # of what a slope function could explain, hidden by noise
_VAGUE = 0.3  # of the factor that shortened curves make slopes too large by
_CLEAR = 3.0
"""Deviations by which a fit explains more than noise would: noise alone does a few times in 100
(most often with one feature and Laplace noise, whose square has the longest tail)."""
_FEW = 10.0  # nμ/√D below which noise hides nearly everything (`Regression.clarity`)
_CHANCE = 0.05  # of noise alone making any of several coefficients stand out
_NEARLY_ALL = 2.5  # deviations of scores from 0: one person in 160 gets another class
_HIDDEN = (
    "noise hides how far curves scatter in their value_range: the slope and its band may be wrong "
    "by a common factor, so that the band may miss the slope. Ask more people, allow a larger "
    "epsilon or give a narrower value_range"
)
_PULLED = (
    "the slope is pulled towards 0: noise hides most of how curves vary, so its band rests on a "
    "guess of how large a slope may be more than on data, and may miss the slope. Ask more people, "
    "allow a larger epsilon or give a narrower value_range"
)
_CONSTANT = (
    "The fit explains no more of the target than noise alone would: its predictions may be no "
    "better than one number for everybody."
)
_GUESSING = (
    "The classes differ by no more than noise alone would make them: this classifier may be no "
    "better than naming the most frequent class for everybody."
)
_NOISE = "No coefficient stands out of its privacy noise: all of them may be noise alone."
_TOO_FEW = (
    "There are too few rows for this budget: predictions may be no better than one constant for "
    "everybody."
)
_ANYWHERE = (
    "The band of the slope function holds 0 everywhere: predictions rest on the curves, but on "
    "which part of them is not known."
)


def judged(model: RegressionModel) -> Verdict:
    """The verdict on a regression or a classifier."""
    fit = model.fit
    if fit.explained is not None and fit.clarity is not None:
        if fit.explained <= 0 or fit.clarity < _CLEAR:
            told = _CONSTANT if model.classes is None else _GUESSING
            return Verdict(kind="guessing", sentences=(told,))
        if label := _same_for_all(model):
            told = f"This classifier names {label} for nearly everybody: it is no better than "
            told += "guessing the most frequent class."
            return Verdict(kind="guessing", sentences=(told,))
        return Verdict(sentences=(_ANYWHERE,) * _zero_everywhere(model))
    errors = model.standard_errors
    if errors is None:
        few = _strength(model) < _FEW
        return Verdict(kind="guessing" if few else "unclear", sentences=(_TOO_FEW,) * few)
    largest = np.max(np.abs(model.slopes) / np.maximum(errors, 1e-300))
    if largest > -ndtri(_CHANCE / (2 * errors.size)):
        return Verdict()
    return Verdict(kind="noise", sentences=(_NOISE,))


def _strength(model: RegressionModel) -> float:
    """nμ/√D of a fit whose noise has no simple form (nε/√D without a δ)."""
    promise = model.guarantee
    mu = promise.epsilon
    if promise.delta:
        mu = gaussian_mu(epsilon=promise.epsilon, delta=promise.delta)
    return model.rows * mu / math.sqrt(len(model.features))


def _same_for_all(model: RegressionModel) -> str:
    """The class that nearly everybody is given; empty if there is none."""
    spread, score = model.fit.spread, model.fit.offset
    if model.classes is None or spread is None or abs(score) <= _NEARLY_ALL * spread:
        return ""
    return repr(model.classes[int(score > 0)])


def _zero_everywhere(model: RegressionModel) -> bool:
    """Whether no part of the slope function is known to differ from 0."""
    if not model.has_band:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said by `pulled`
        band = model.slope_band()
    return bool(np.all((band.low <= 0) & (band.high >= 0)))


def pulled(model: RegressionModel) -> str | None:
    """A warning where noise hides how curves vary, so that a band may miss; or None."""
    if not model.has_band:
        return None
    if model.fit.inflation_error > _VAGUE:
        return _HIDDEN
    told = model.likely_slopes * np.asarray(model.fit.explains)  # adds up to 1
    return _PULLED if float(told @ np.diag(np.asarray(model.fit.lost))) > _MOSTLY else None
