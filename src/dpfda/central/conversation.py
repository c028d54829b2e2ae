"""The base of all central releases: n records, one result, public bounds.

A noisy count of the records outside a public bound, or a mean at its edge, shows that the bound is
too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.cell_queries import Box
from dpfda.central.functions import FunctionBasis
from dpfda.central.queries import MOST_RECORDS, BallMean, Place
from dpfda.central.release import NOTHING, Release
from dpfda.curate import curate
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.noise import Source
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.conversation import Conversation, Questions
from dpfda.protocol.query import AdditiveQuery, Records

_COUNT_NOISE = 0.1  # target for the noise of the count, as a share of the records
_SHARES = 0.01, 0.05  # smallest and largest budget share of the count
_FEW = 0.05  # share of the records that may lie outside without a warning
_BY_CHANCE = 0.002  # probability of a warning caused by noise alone


def price_of_a_count(budget: Cost, n: int) -> Cost:
    """The price of a count of records outside a public range: a small share of the budget.

    Examples:
        >>> price_of_a_count(Cost(epsilon=1.0), 10**6).epsilon_spent
        0.01
    """
    least, most = _SHARES
    needed = _COUNT_NOISE * n * (budget.epsilon_spent / math.sqrt(2) if budget.pure else budget.mu)
    return budget.part(min(most, max(least, 1 / needed if budget.pure else 1 / needed**2)))


def more_than_a_few(outside: float, n: int, law: NoiseLaw) -> bool:
    """Whether a noisy count shows that more than a few of n records lie outside.

    Examples:
        >>> import numpy as np
        >>> law = NoiseLaw(law="gaussian", scales=np.array([10.0]))
        >>> more_than_a_few(75.0, 1000, law), more_than_a_few(85.0, 1000, law)
        (False, True)
    """
    scale = float(law.scales[0])
    # Spherical noise on one number is Laplace noise.
    tail = -ndtri(_BY_CHANCE) if law.law == "gaussian" else math.log(1 / (2 * _BY_CHANCE))
    return outside > _FEW * n + float(tail) * scale


_SMALLEST = 1e-4  # smallest ε or μ: a smaller share may not cover the cost of rounding to a lattice
EDGE = 0.95  # a mean longer than this share of the bound shows that most vectors reach the bound
_BLUR = 0.1  # no warning is given if the noise exceeds this share of the bound
_BOUNDS = 1e-25, 1e40  # range of bounds: their squares and fractions are valid query parameters

BEYOND = (
    "more than a few curves reach beyond their public bound: it is probably too small, and then "
    "the result is wrong whatever its band says"
)
AT_THE_EDGE = (
    "the mean lies at the edge of its public bound, as far as noise tells: if curves reach beyond "
    "the bound, the result is wrong whatever its band says. Check that the public range holds the "
    "curves"
)
OUTSIDE = (
    "more than a few curves lie outside their public range: it is probably too small, and what is "
    "outside was pulled into it"
)

Result = TypeVar("Result")
"""The released object, which has a guarantee."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CentralConversation(Conversation[Result]):
    """Queries about n records that end in one release, a `summary` of them.

    Parameters are checked on construction, so that no query fails after part of the budget is
    spent.
    """

    summary: ClassVar[str]

    n: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("n", self.n, least=2, most=MOST_RECORDS)
        whole = self.whole
        least = float(whole.share) * self.epsilon if whole.pure else whole.mu
        if min(self.epsilon, least) < _SMALLEST:
            rule = f"at least {_SMALLEST:g}, and so large that the noise is at most 1/{_SMALLEST:g}"
            raise InvalidParameter("epsilon", rule, self.epsilon)

    @property
    def strength(self) -> float:
        """nε."""
        return self.n * self.epsilon

    def conclude(
        self,
        basis: FunctionBasis,
        noisy: FloatArray,
        *noise: NoiseLaw,
        sensitivity: float,
        shrunk: FloatArray | None = None,
        sampling: tuple[NoiseLaw, ...] = (),
        unseen: FloatArray = NOTHING,
        warnings: tuple[str, ...] = (),
        **parameters: Any,
    ) -> Release:
        """Build the release of noisy coefficients of functions, shrunk or unchanged."""
        release = Release(
            summary=self.summary,
            coefficients=noisy if shrunk is None else shrunk,
            noisy=noisy,
            noise=noise,
            basis=basis,
            center=np.zeros(basis.weights.size),
            guarantee=self.guarantee,
            sensitivity=sensitivity,
            parameters=parameters,
            sampling=sampling,
            unseen=unseen,
        )
        doubts = self.doubts(release)  # more specific than warnings that some curves are outside
        further = tuple(
            text for text in warnings if not (doubts and text in (OUTSIDE, BEYOND, *doubts))
        )
        return replace(release, warnings=(*doubts, *further))

    def doubts(self, release: Release) -> tuple[str, ...]:
        """Warnings about the public bounds that follow from the release itself."""
        return ()

    def one_query(
        self, query: AdditiveQuery, basis: FunctionBasis, **further: Any
    ) -> Questions[Release]:
        """Ask one query and release its answer unchanged."""
        answer, noise = (yield query), query.mechanism
        assert isinstance(noise, Additive)
        sensitivity = noise.sensitivity
        return self.conclude(basis, answer.values, answer.noise, sensitivity=sensitivity, **further)

    def ask(self, records: Records, *, source: Source, ledger: BaseLedger | None = None) -> Result:
        """Release a result from a curator's records; its guarantee records the noise source."""
        result, _ = curate(self, records, source=source, ledger=ledger)
        released: Any = result
        final: Result = replace(released, guarantee=released.guarantee.drawn_from(source))
        return final


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveConversation(CentralConversation[Result]):
    """Queries about the coefficients of curves with a public bound on their norm.

    Attributes:
        bound: bound on the norm; infinity if it is unknown, which not all conversations allow.
    """

    bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.finds_bound and self.bound == math.inf):
            checked_bound(self.bound)

    @property
    def finds_bound(self) -> bool:
        """Whether its queries find a bound if none is known."""
        return False

    @property
    def reach(self) -> float:
        """The bound; 1 if there is none (for audits)."""
        return self.bound if math.isfinite(self.bound) else 1.0

    def place(self, center: FloatArray, axes: FloatArray) -> Place:
        """The center and axes of the queries."""
        return {"unit": self.unit, "n": self.n, "center": center, "axes": axes}

    def whole_ball(self, cost: Cost, size: int) -> BallMean:
        """A query of the mean, with the whole ball allowed by the bound as its region."""
        place = self.place(np.zeros(size), np.ones(size))
        return BallMean(cost=cost, **place, radius=self.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxConversation(CentralConversation[Release]):
    """Queries about points in a public box, which has a range for each variable."""

    box: Box

    @property
    def place(self) -> dict[str, Any]:
        """The fields that all queries about cells share, except for their cost."""
        low, high = np.array(self.box, dtype=np.float64).T
        return {"unit": self.unit, "n": self.n, "low": low, "high": high}

    def anywhere(self, n: int) -> FloatArray:
        """Synthetic points for audits."""
        low, high = np.array(self.box, dtype=np.float64).T
        uniform = np.random.default_rng(0).uniform(size=(n, len(self.box)))
        return np.asarray(low + (high - low) * uniform)


def checked_bound(bound: float, *, given: tuple[float, float] | None = None) -> float:
    """Check that the powers of a public bound neither over- nor underflow.

    Args:
        bound: the bound.
        given: the public range whose half-width is the bound; errors then name the range.
    """
    if not _BOUNDS[0] <= _validate.positive("bound", bound) <= _BOUNDS[1]:
        if given is not None:
            raise InvalidParameter("value_range", "of a half-width from 1e-25 to 1e40", given)
        raise InvalidParameter("bound", "from 1e-25 to 1e40", bound)
    return float(bound)


def far_apart(n: int, direction: FloatArray, reach: float) -> tuple[Records, Records]:
    """Two data sets of n rows near 0 that differ in one row, at opposite ends of a direction."""
    out = reach * direction / float(np.linalg.norm(direction))
    here = np.random.default_rng(0).normal(size=(n, direction.size))
    here *= 0.05 * reach / math.sqrt(direction.size)
    there = here.copy()
    here[0], there[0] = out, -out
    return (here,), (there,)


def reaches(values: FloatArray, variance: FloatArray, limit: float) -> bool:
    """Whether a released mean of vectors in a ball is at its edge.

    The mean of n vectors is as long as their bound only if all vectors have this length and the
    same direction. Nearly all of them were then probably clipped.
    """
    noise = float(variance.sum())
    length = float((values**2).sum()) - noise
    return noise <= (_BLUR * limit) ** 2 and length >= (EDGE * limit) ** 2


def too_small(name: str, what: str = "curves") -> str:
    """The warning about a public bound that nearly all records reach."""
    return (
        f"nearly all {what} reach {name}: that is probably far too small, and then the result is "
        "wrong whatever its band says"
    )
