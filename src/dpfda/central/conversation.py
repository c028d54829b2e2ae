"""The base of all central releases: n records, one result, public bounds.

A public bound that is too small is noticed by a noisy count of the records outside it, or by a mean
at its edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.stats import norm

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

_TOLD = 0.1  # of the records: what the noise of the count may be
_SHARES = 0.01, 0.05  # of a budget, for the count
_FEW = 0.05  # of the records: so many may lie outside
_BY_CHANCE = 0.002  # probability of a warning that noise alone makes


def price_of_a_count(budget: Cost, n: int) -> Cost:
    """The price of a count of records outside a public range: a small share of the budget.

    Examples:
        >>> price_of_a_count(Cost(epsilon=1.0), 10**6).epsilon_spent
        0.01
    """
    least, most = _SHARES
    needed = _TOLD * n * (budget.epsilon_spent / math.sqrt(2) if budget.pure else budget.mu)
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
    # Of one number, spherical noise is Laplace noise.
    tail = norm.isf(_BY_CHANCE) if law.law == "gaussian" else math.log(1 / (2 * _BY_CHANCE))
    return outside > _FEW * n + float(tail) * scale


_SMALLEST = 1e-4  # ε, or μ: below, a share of it may not pay for rounding to a lattice
EDGE = 0.95  # of a bound: a mean as long as that is made of vectors that reach it
_BLUR = 0.1  # of a bound: with more noise no warning is given
_BOUNDS = 1e-25, 1e40  # squares, and parts of them, stay within what queries allow

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
    """Questions to n records that end in one release, a `summary` of them.

    Whatever could be refused later, with a part of the budget gone, is refused here.
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
        """The release of noisy coefficients of functions, shrunk or unchanged."""
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
        doubts = self.doubts(release)  # which say more than that some curves are outside
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
        """Ask one question and release its answer as it is."""
        answer, noise = (yield query), query.mechanism
        assert isinstance(noise, Additive)
        sensitivity = noise.sensitivity
        return self.conclude(basis, answer.values, answer.noise, sensitivity=sensitivity, **further)

    def ask(self, records: Records, *, source: Source, ledger: BaseLedger | None = None) -> Result:
        """The release of a curator's records, stamped with where its noise came from."""
        released, _ = curate(self, records, source=source, ledger=ledger)
        kept: Any = released
        stamped: Result = replace(kept, guarantee=kept.guarantee.drawn_from(source))
        return stamped


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveConversation(CentralConversation[Result]):
    """Questions about curves with a public bound on their norm, by their coefficients.

    Attributes:
        bound: on the norm; infinity where nothing is known, which not all conversations allow.
    """

    bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.finds_bound and self.bound == math.inf):
            checked_bound(self.bound)

    @property
    def finds_bound(self) -> bool:
        """Whether its questions find a bound where none is known."""
        return False

    @property
    def reach(self) -> float:
        """The bound; 1 for audits without a bound."""
        return self.bound if math.isfinite(self.bound) else 1.0

    def place(self, center: FloatArray, axes: FloatArray) -> Place:
        """The center and axes of the queries."""
        return {"unit": self.unit, "n": self.n, "center": center, "axes": axes}

    def whole_ball(self, cost: Cost, size: int) -> BallMean:
        """The mean of all that the bound allows."""
        place = self.place(np.zeros(size), np.ones(size))
        return BallMean(cost=cost, **place, radius=self.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxConversation(CentralConversation[Release]):
    """Questions about points in a public box, a range for each variable."""

    box: Box

    @property
    def place(self) -> dict[str, Any]:
        """The fields that all queries about cells share, besides their cost."""
        low, high = np.array(self.box, dtype=np.float64).T
        return {"unit": self.unit, "n": self.n, "low": low, "high": high}

    def anywhere(self, n: int) -> FloatArray:
        """Points made up for audits."""
        low, high = np.array(self.box, dtype=np.float64).T
        uniform = np.random.default_rng(0).uniform(size=(n, len(self.box)))
        return np.asarray(low + (high - low) * uniform)


def checked_bound(bound: float, *, given: tuple[float, float] | None = None) -> float:
    """A public bound whose powers are numbers.

    Args:
        bound: the bound.
        given: the public range whose half-width it is, which an error then names.
    """
    if not _BOUNDS[0] <= _validate.positive("bound", bound) <= _BOUNDS[1]:
        if given is not None:
            raise InvalidParameter("value_range", "of a half-width from 1e-25 to 1e40", given)
        raise InvalidParameter("bound", "from 1e-25 to 1e40", bound)
    return float(bound)


def far_apart(n: int, direction: FloatArray, reach: float) -> tuple[Records, Records]:
    """n rows near 0, of which one is as far out along a direction as allowed, on either side."""
    out = reach * direction / float(np.linalg.norm(direction))
    here = np.random.default_rng(0).normal(size=(n, direction.size))
    here *= 0.05 * reach / math.sqrt(direction.size)
    there = here.copy()
    here[0], there[0] = out, -out
    return (here,), (there,)


def reaches(values: FloatArray, variance: FloatArray, limit: float) -> bool:
    """Whether a released mean of vectors in a ball lies at its edge: nearly all were pulled there.

    Of n vectors no longer than a limit the mean is as long only if all are, and in one direction.
    """
    noise = float(variance.sum())
    length = float((values**2).sum()) - noise
    return noise <= (_BLUR * limit) ** 2 and length >= (EDGE * limit) ** 2


def too_small(name: str, what: str = "curves") -> str:
    """The warning about a public bound that nearly everything reaches."""
    return (
        f"nearly all {what} reach {name}: that is probably far too small, and then the result is "
        "wrong whatever its band says"
    )
