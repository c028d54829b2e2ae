"""The smooth margin losses ℓ(m), m = y·score, that Newton's method minimizes.

Each has a slope and a curvature, written without branches (a vectorized choice between two
results costs ten times an addition).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from dpfda.local.mrma.learners._arrays import Array, namespace, scalar


class Loss(ABC):
    """A convex, decreasing function of the margin."""

    damping: float = 0.0
    """Times the size of the gradient: added to the Hessian, for losses with flat pieces."""

    radius: float = 0.0
    """A Newton step that changes no margin by more than this descends for certain."""

    at_zero: tuple[float, float]
    """−ℓ'(0), and a curvature that describes ℓ from 0 to about 1."""

    @abstractmethod
    def slopes(self, margins: Array) -> tuple[Array, Array]:
        """(−ℓ', ℓ'') at every margin."""

    @abstractmethod
    def value(self, margins: Array) -> Array:
        """ℓ at every margin."""


class LogisticLoss(Loss):
    """ℓ(m) = log(1 + e^{−m})."""

    # |ℓ'''| ≤ ℓ'', so over a step of size r the curvature changes by at most e^r (Bach 2010,
    # Prop. 1) and a full step descends while (e^r − r − 1)/r² < 1, that is r < 1.79.
    radius = 1.5
    at_zero = (0.5, 0.25)

    def slopes(self, margins: Array) -> tuple[Array, Array]:
        xp = namespace(margins)
        # Beyond 500 the slope is 0 in double precision, and e^m must not overflow.
        probability = 1.0 / (1.0 + xp.exp(xp.minimum(margins, scalar(500.0, like=margins))))
        return probability, probability * (1.0 - probability)

    def value(self, margins: Array) -> Array:
        xp = namespace(margins)
        size = xp.abs(margins)
        return xp.log1p(xp.exp(-size)) + 0.5 * (size - margins)


class SquaredHingeLoss(Loss):
    """ℓ(m) = max(0, 1 − m)²."""

    damping = 0.01
    at_zero = (2.0, 2.0)

    def slopes(self, margins: Array) -> tuple[Array, Array]:
        xp = namespace(margins)
        missing = xp.maximum(1.0 - margins, scalar(0.0, like=margins))
        return 2.0 * missing, 2.0 * xp.astype(margins < 1.0, margins.dtype)

    def value(self, margins: Array) -> Array:
        xp = namespace(margins)
        missing = xp.maximum(1.0 - margins, scalar(0.0, like=margins))
        return missing * missing


class DistanceWeightedLoss(Loss):
    """ℓ(m) = 1 − m up to m = ½, then 1/(4m): Marron, Todd & Ahn (2007) as a margin loss."""

    damping = 0.3
    at_zero = (1.0, 0.5)

    def slopes(self, margins: Array) -> tuple[Array, Array]:
        xp = namespace(margins)
        inverse = 1.0 / xp.maximum(margins, scalar(0.5, like=margins))
        square = inverse * inverse
        curved = xp.astype(margins > 0.5, margins.dtype)
        return 0.25 * square, 0.5 * square * inverse * curved

    def value(self, margins: Array) -> Array:
        xp = namespace(margins)
        reached = xp.maximum(margins, scalar(0.5, like=margins))
        return 0.25 / reached + (reached - margins)
