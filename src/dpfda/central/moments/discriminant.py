"""Linear discriminant analysis from one joint query: class means, class sizes, one covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, whole
from dpfda.central.conversation import CurveConversation
from dpfda.central.moments.joint_answer import JointAnswer
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.moments.moments_release import ClippingSchedule, far_apart_in_groups, joint
from dpfda.central.regression.base import Fitted
from dpfda.curves.matrices import floored
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC
from dpfda.protocol.conversation import Questions
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records

_BELIEVED = 6.0  # eigenvalue floor of the covariance, in noise deviations
_NARROWED = 0.5  # share of the radius that contains most rows: less noise, the same directions
_ONE_DIRECTION = 0.5  # squared length: at most one eigenvalue for rows in the unit ball is larger
MOST_FEATURES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Discriminant(CurveConversation[Fitted], name="discriminant"):
    """Discriminant analysis of rows with ‖x‖ ≤ bound, from class means and a common covariance.

    Privacy:
        The budgets of all queries (center, steps of a search for a radius, the joint one) add up.

    Attributes:
        groups: names of the classes; with fewer than two, rows have no label.
        features: length of a row.
        found_classes: whether the labels were not given but read from the data.
    """

    summary: ClassVar[str] = "discriminant"

    groups: tuple[Label, ...] = ()
    features: int
    found_classes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("features", self.features, most=MOST_FEATURES)

    @property
    def finds_bound(self) -> bool:
        """True: a search finds a center and a radius."""
        return True

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The number of rows is public, and so are labels that were read from the data."""
        return (*super().assumptions, *(CLASSES_ARE_PUBLIC,) * self.found_classes)

    def questions(self) -> Questions[Fitted]:
        """Queries for a center and a radius, and the joint query."""
        clipping = ClippingSchedule(widened=_NARROWED, tilt=0.0)
        found = yield from joint(
            self,
            clipping,
            clipping.axes(self.features),
            most=self.features,
            groups=max(1, len(self.groups)),
            adjusted=_with_products,
            second=self.features,
            separate=False,
            emphasis="covariances",
        )
        return _solved(found.answer, found.warnings)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Data sets that differ in one row, at opposite ends of the ball and in another class."""
        groups = len(self.groups)
        return far_apart_in_groups(n, width=self.features, reach=self.reach, groups=groups)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Three classes, with a bound on the rows and without one."""
        names = ("a", "b", "c")
        known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n": n, "groups": names}
        return [cls(**known, bound=bound, features=3) for bound in (1.0, math.inf)]


def _with_products(query: JointMoments) -> JointMoments:
    """The query, without products if noise would hide them, so that means have less noise.

    For rows in the unit ball, at most one eigenvalue of a covariance is above ½. If the floor of
    the eigenvalues is above ½, products could show at most one direction.
    """
    noise = JointAnswer(query=query, noisy=np.zeros(len(query.noise_axes))).product_noise()
    if _BELIEVED * noise <= _ONE_DIRECTION:
        return query
    return replace(query, second=1, emphasis="means")


def _solved(found: JointAnswer, warnings: tuple[str, ...]) -> Fitted:
    """Scores m_kᵀΣ⁻¹u - m_kᵀΣ⁻¹m_k/2 + log p_k, where u is a row over the radius, clipped.

    For two classes, the difference of their scores: the log-odds of the second class. Eigenvalues
    of Σ are raised above the noise. Without products, Σ is the identity, an upper bound of the
    covariance of rows in the unit ball.
    """
    size = found.shift.shape[1]
    within, floor = np.eye(size), _BELIEVED * found.product_noise()
    if found.query.second == size:
        within = floored(found.products[0], floor)
    inverse = floored(within, inverted=True)
    slope = found.shift @ inverse
    share = found.sizes / found.sizes.sum()
    offset: Any = np.log(share) - (slope * found.shift).sum(axis=1) / 2
    explained, clarity = _between(found, within, inverse, share)
    spread = None
    if len(slope) == 2:  # one score: the difference of theirs
        slope, offset = slope[1] - slope[0], float(offset[1] - offset[0])
        spread = math.sqrt(float(slope @ within @ slope))
    return Fitted(
        slope=slope / found.query.radius,
        offset=offset,
        center=np.asarray(found.query.center),
        radius=found.query.radius,
        clips=True,
        explained=explained,
        clarity=clarity,
        spread=spread,
        warnings=warnings,
    )


def _between(
    found: JointAnswer, within: FloatArray, inverse: FloatArray, share: FloatArray
) -> tuple[float, float]:
    """The share of the variance between classes, and its significance in standard deviations.

    The variance between classes is Σ p_k |m_k - m|² in the metric of Σ⁻¹, where m is the common
    mean. Noise and sampling error of m_k, and the noise of the class sizes, increase it; their
    expected contribution is subtracted.
    """
    metric = np.diag(inverse)
    apart = found.shift - share @ found.shift
    weight = share * (1 - share)
    own = found.shift_variance + np.diag(within) / found.sizes[:, None]
    by_size = weight * found.variances.shares / share**2 * (found.shift**2 @ metric)
    own = weight[:, None] * own * metric
    seen = float(share @ np.einsum("ki,ij,kj->k", apart, inverse, apart))
    beyond = seen - float(own.sum() + by_size.sum())
    deviation = math.sqrt(2 * float((own**2).sum() + (by_size**2).sum()))
    return beyond / (1 + max(beyond, 0.0)), beyond / max(deviation, 1e-300)
