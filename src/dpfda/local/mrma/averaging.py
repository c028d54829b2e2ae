"""Model averaging: accuracies of members from evaluations, their weights, and their average.

The accuracy of each member is estimated from people's randomized evaluations. All functions use
only sums of replies and public numbers, so they spend no budget. The members are the last axis of
weights and scores, and the second to last axis of coefficients. Arrays may have any leading axes:
one study has shape (B,), a simulation of R studies has shape (R, B).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.protocol.estimate import accuracies_behind


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Unbiased accuracies r̃ of candidates and their standard errors.

    Attributes:
        value: r̃; it may lie outside [0, 1].
        standard_error: includes the randomized response (C5); infinite without answers.
        people: the number of answers.

    Examples:
        >>> found = accuracies([30.0, -10.0], [50, 50], epsilon=1.0)
        >>> found.value.round(2).tolist(), found.standard_error.round(2).tolist()
        ([1.15, 0.28], [0.12, 0.15])
    """

    value: FloatArray
    standard_error: FloatArray
    people: FloatArray

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Two-sided normal intervals: lower and upper ends."""
        half = float(ndtri((1 + _validate.fraction("level", level)) / 2)) * self.standard_error
        return self.value - half, self.value + half


def accuracies(totals: ArrayLike, people: ArrayLike, *, epsilon: float) -> Accuracies:
    """Accuracies estimated from sums of randomized evaluations; see `accuracies_behind`.

    Args:
        totals: sums of evaluations, shape (..., B).
        people: numbers of evaluations, broadcast against `totals`.
        epsilon: ε_v of the randomized response.
    """
    counts = np.broadcast_to(np.asarray(people, dtype=np.float64), np.shape(totals))
    value, error = accuracies_behind(totals, counts, epsilon=epsilon)
    return Accuracies(value=value, standard_error=error, people=counts)


def largest_standard_error(people: ArrayLike, *, epsilon: float) -> FloatArray:
    """The bound (e^ε + 1)/(2 (e^ε - 1) √n) of Theorem 3 of 001, which does not depend on data.

    Examples:
        >>> round(float(largest_standard_error(50, epsilon=1.0)), 3)
        0.153
    """
    q = RandomizedResponse(epsilon=epsilon).keep_probability
    n = np.asarray(people, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (2 * (2 * q - 1) * np.sqrt(n)))


def directions(accuracy: ArrayLike) -> FloatArray:
    """-1 if r̃ < ½, so that the candidate is reversed, and +1 otherwise: Eq. (9) of 001.

    Examples:
        >>> directions([0.3, 0.5, 1.2]).tolist()
        [-1.0, 1.0, 1.0]
    """
    return np.where(np.asarray(accuracy) < 0.5, -1.0, 1.0)


def strengths(accuracy: ArrayLike) -> FloatArray:
    """r̃* = max(r̃, 1 - r̃), from which weights are computed.

    It is biased upwards (for a coin flip, evaluated by 50 people at ε = 0.5, its mean is 0.73). It
    is therefore used only for weights. Accuracies are estimated from people who evaluated nothing
    before.

    Examples:
        >>> strengths([0.3, 0.5, 1.2]).tolist()
        [0.7, 0.5, 1.2]
    """
    value = np.asarray(accuracy, dtype=np.float64)
    return np.maximum(value, 1 - value)


DEFAULT_STRICTNESS = 0.0
"""How many standard errors above ½ a member's r̃* must lie to get a weight. With 0, weights are
∝ |r̃ - ½|: uninformative members get small weights, so a cutoff is not needed."""


def default_cutoff(
    people: ArrayLike, *, epsilon: float, strictness: float = DEFAULT_STRICTNESS
) -> FloatArray:
    """The public cutoff r0 = ½ + c (e^ε + 1)/(2 (e^ε - 1) √n1), one for each member (C3).

    With c = 0 it is ½ for every member; with a larger c it depends on the noise of r̃. The papers
    choose fixed values of r0 from 0.6 to 0.9.

    Examples:
        >>> default_cutoff([50, 200], epsilon=1.0, strictness=1.0).round(3).tolist()
        [0.653, 0.577]
    """
    strictness = _validate.non_negative("strictness", strictness)
    with np.errstate(invalid="ignore"):  # 0 times infinity, if nobody answered
        above = strictness * largest_standard_error(people, epsilon=epsilon)
    return np.asarray(0.5 + np.where(np.isnan(above), np.inf, above))


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the members.

    Attributes:
        value: shape (..., B), adding up to 1.
        survived: shape (...), False if no member passed the cutoff. Only the strongest member is
            then used, and the classifier is unreliable.
    """

    value: FloatArray
    survived: npt.NDArray[np.bool_]


def weights(strength: ArrayLike, *, cutoff: FloatArray | float) -> Weights:
    """w_b ∝ max(r̃*_b - r0, 0), Eq. (10) of 001, with the no-survivor rule of C3.

    Examples:
        >>> found = weights([[0.9, 0.8, 0.6], [0.6, 0.55, 0.5]], cutoff=0.7)
        >>> found.value.round(2).tolist(), found.survived.tolist()
        ([[0.67, 0.33, 0.0], [1.0, 0.0, 0.0]], [True, False])
    """
    strong = np.asarray(strength, dtype=np.float64)
    excess = np.maximum(strong - cutoff, 0)
    total = excess.sum(axis=-1, keepdims=True)
    survived = total > 0
    best = np.arange(strong.shape[-1]) == strong.argmax(axis=-1)[..., None]
    shares = np.where(survived, excess / np.where(survived, total, 1), best)
    return Weights(shares, survived[..., 0])


def unit_norm(intercept: ArrayLike, coefficients: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Members as hyperplanes: (α, b) is divided by its length, so that all have the same scale.

    Examples:
        >>> unit_norm([3.0], [[4.0, 0.0]])
        (array([0.6]), array([[0.8, 0. ]]))
    """
    a, b = np.asarray(intercept, dtype=np.float64), np.asarray(coefficients, dtype=np.float64)
    length = np.sqrt(a**2 + np.sum(b**2, axis=-1))
    scale = np.where(length > 0, length, 1)
    return a / scale, b / scale[..., None]


def average_parameters(
    intercept: ArrayLike, coefficients: ArrayLike, weight: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Intercept (...) and coefficients (..., d) of Σ w_b f_b; weights of reversed members are < 0.

    Examples:
        >>> a, b = average_parameters([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], [0.5, -0.5])
        >>> a.item(), b.tolist()
        (-0.5, [0.5, -0.5])
    """
    w, slopes = np.asarray(weight, dtype=np.float64), np.asarray(coefficients)
    return np.sum(w * np.asarray(intercept), axis=-1), np.einsum("...b,...bd->...d", w, slopes)


def check_cutoff(cutoff: object) -> float | None:
    """Check a fixed cutoff in [½, 1); None means the default."""
    if cutoff is None:
        return None
    value = _validate.finite("cutoff", cutoff)
    if not 0.5 <= value < 1:
        raise InvalidParameter("cutoff", "None or a number from 0.5 to below 1", cutoff)
    return value
