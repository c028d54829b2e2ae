"""Data owners with several rows, and requests: tasks that an owner answers for all its rows.

The rows of many simulated owners form one padded batch, so that a round takes few array operations.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import Source
from dpfda.protocol.fields import choice, flag, whole
from dpfda.protocol.person import Crowd, Person, encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.query import Answer, Query, Records, finite
from dpfda.protocol.task import Task


class OwnerRows(NamedTuple):
    """Private rows of H owners with up to N rows each, in the form that requests need.

    Attributes:
        features: shape (H, N, d); 0 for absent rows.
        labels: label numbers, shape (H, N); 0 for absent rows.
        present: False for absent rows, shape (H, N).

    Examples:
        >>> rows = OwnerRows.grouped([[0.1], [0.2], [0.3]], [1, 0, 1], groups=["a", "b", "a"])
        >>> rows.owners, rows.sizes.tolist()
        (2, [2, 1])
    """

    features: FloatArray
    labels: IntArray
    present: npt.NDArray[np.bool_]

    @classmethod
    def grouped(
        cls, features: ArrayLike, labels: ArrayLike, *, groups: ArrayLike | None = None
    ) -> OwnerRows:
        """Rows sorted by owner; without `groups` every row has its own owner.

        Owners come in the order of their sorted names.
        """
        x = _validate.batch("features", features)
        y = _validate.vector("labels", labels).astype(np.int64)
        if len(x) != len(y):
            raise InvalidData("labels", f"one for each of {len(x)} rows", f"shape {y.shape}")
        if groups is None:
            return cls(x[:, None, :], y[:, None], np.ones((len(x), 1), dtype=bool))
        owners = np.asarray(groups)
        if owners.shape != (len(x),):
            raise InvalidData("groups", f"one for each of {len(x)} rows", f"shape {owners.shape}")
        _, owner, sizes = np.unique(owners, return_inverse=True, return_counts=True)
        order = np.argsort(owner, kind="stable")
        place = np.arange(len(x)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        shape = (len(sizes), int(sizes.max()))
        padded, marks = np.zeros((*shape, x.shape[1])), np.zeros(shape, dtype=np.int64)
        present = np.zeros(shape, dtype=bool)
        padded[owner[order], place] = x[order]
        marks[owner[order], place] = y[order]
        present[owner[order], place] = True
        return cls(padded, marks, present)

    @property
    def owners(self) -> int:
        """The number of owners H."""
        return len(self.features)

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each owner, 1 for an owner without rows; private."""
        return np.asarray(np.maximum(self.present.sum(axis=1), 1), dtype=np.int64)

    def take(self, index: IntArray | slice) -> OwnerRows:
        """Some of the owners."""
        return OwnerRows(self.features[index], self.labels[index], self.present[index])

    def at(self, place: IntArray) -> OwnerRows:
        """The rows at the given positions of every owner, (H, positions)."""
        return OwnerRows(
            np.take_along_axis(self.features, place[..., None], axis=1),
            np.take_along_axis(self.labels, place, axis=1),
            np.take_along_axis(self.present, place, axis=1),
        )

    def first(self, most: int) -> OwnerRows:
        """Every owner's first `most` rows; absent rows fill the remaining positions."""
        rows = self
        if not self.present.all():  # move absent rows to the end
            rows = self.at(np.argsort(~self.present, axis=1, kind="stable"))
        lacking = max(most - rows.features.shape[1], 0)
        kept: list[Any] = [column[:, :most] for column in rows]
        if lacking:
            kept = [np.pad(c, [(0, 0), (0, lacking)] + [(0, 0)] * (c.ndim - 2)) for c in kept]
        return OwnerRows(*kept)

    def __repr__(self) -> str:
        return f"OwnerRows({self.owners} owners)"


MOST_ROWS = 1 << 12
"""Largest number of rows of an owner that are used."""
_SMALLEST_EPSILON = 1e-6
_MOST_SENT = 1e100  # far above any noise, but sums do not overflow


@dataclass(frozen=True, kw_only=True, eq=False)
class Request(Task):
    """One public question to all owners of a round.

    Privacy:
        ε-LDP for all data of an owner, including the number of rows. At most the first `n_rows`
        rows are used, and means are over the existing rows. Both their number and their values
        affect the reply only through the mechanism.

    Attributes:
        dimension: d, the number of features of a row.
        n_classes: K.
        n_rows: N, the largest number of rows of an owner that are used; public.
        own_budgets: whether owners may spend less than ε; a reply then begins with the ε spent.
    """

    boxed: ClassVar[bool] = False

    unit: str = choice(default="owner")
    dimension: int = whole(most=1 << 16)
    n_classes: int = whole(least=2, most=1 << 10)
    n_rows: int = whole(most=MOST_ROWS)
    own_budgets: bool = flag(default=False)

    @property
    @abstractmethod
    def sent(self) -> int:
        """Number of values in a reply."""

    @abstractmethod
    def decode(self, sent: FloatArray) -> FloatArray:
        """Unbiased estimates of the exact vectors, owner by owner."""

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each row is a possible output of the mechanism."""
        return np.asarray((np.abs(sent) <= _MOST_SENT).all(axis=1))

    @property
    def columns(self) -> int:
        """The number of features d."""
        return self.dimension

    @property
    def width(self) -> int:
        """The number of values in a reply, including the ε spent if it may differ."""
        return self.sent + self.own_budgets

    def at(self, epsilon: float) -> Self:
        """The same request to owners who spend `epsilon`."""
        return self if epsilon == self.epsilon else replace(self, epsilon=epsilon)

    def fitting(self, records: Records) -> OwnerRows:
        """N rows for each owner; unknown labels become 0, and large numbers are clipped."""
        features, labels, present = (np.asarray(column) for column in records)
        shape = (self.people, *features.shape[1:2])
        if features.ndim != 3 or not features.shape[:2] == labels.shape == present.shape == shape:
            raise ProtocolError(f"the request needs rows and labels of {self.people} owners")
        if features.shape[2] != self.dimension:
            raise ProtocolError(f"the request needs rows of {self.dimension} features")
        known = (labels >= 0) & (labels < self.n_classes)
        inside = finite(features.astype(np.float64, copy=False))
        numbers = np.where(known, labels, 0).astype(np.int64)
        return OwnerRows(inside, numbers, present.astype(bool)).first(self.n_rows)

    def answer(self, records: Records, source: Source) -> Answer:
        """Replies, shape (H, width)."""
        answer = super().answer(records, source)
        if not self.own_budgets:
            return answer
        cost = np.full((self.people, 1), self.epsilon)
        return replace(answer, values=np.concatenate([cost, answer.values], axis=1))

    def _sent(self, answer: Answer) -> FloatArray:
        return super()._sent(replace(answer, values=answer.values[:, int(self.own_budgets) :]))

    def spent(self, replies: FloatArray) -> FloatArray:
        """The budget that each reply spent."""
        return replies[:, 0] if self.own_budgets else np.full(len(replies), self.epsilon)

    def estimates(self, replies: FloatArray) -> FloatArray:
        """`decode` for replies with different budgets."""
        kinds = [(who, asked.decode(sent)) for asked, who, sent in self._kinds(replies)]
        decoded = np.empty((len(replies), kinds[0][1].shape[1]))
        for who, part in kinds:
            decoded[who] = part
        return decoded

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether each reply spent at most ε and is a possible output at its ε."""
        spent = self.spent(reply)
        fine = (spent >= _SMALLEST_EPSILON) & (spent <= self.epsilon)
        places = np.flatnonzero(fine)
        for asked, who, sent in self._kinds(reply[places]):
            fine[places[who]] = asked.possible(sent)
        return fine

    def _kinds(self, replies: FloatArray) -> Iterator[tuple[Self, IntArray, FloatArray]]:
        """Replies grouped by their ε: the request at that ε, their positions, and their values."""
        spent, body = self.spent(replies), replies[:, int(self.own_budgets) :]
        for epsilon in np.unique(spent):
            who = np.flatnonzero(spent == epsilon)
            yield self.at(float(epsilon)), who, body[who]

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """Artificial owners with up to N rows, with valid labels and an invalid one."""
        shape = (self.people, self.n_rows)
        features = size * generator.normal(size=(*shape, self.dimension))
        labels = generator.integers(0, self.n_classes + 1, shape)
        return OwnerRows(features, labels, generator.random(shape) < 0.8)


class Owner(Person):
    """One owner of a few rows, who answers one request of a study.

    Args:
        plan: the plan that the owner agreed to.
        epsilon: the ε that the owner is willing to spend; the plan's ε by default.
        held: arguments of `Person`: `curve` contains the owner's rows, shape (n, d), and `label`
            their labels; `grid_points` must be None.
    """

    def __init__(self, plan: StudyPlan, *, epsilon: float | None = None, **held: Any) -> None:
        self.epsilon = plan.epsilon if epsilon is None else _validate.positive("epsilon", epsilon)
        if self.epsilon < plan.epsilon and not plan.design.get("own_budgets"):
            raise BudgetExceeded(
                f"the study costs ε = {plan.epsilon:g}, which is above the owner's budget"
            )
        super().__init__(plan, **held)

    def _encoded(self, curve: Curves, label: object, grid_points: GridPoints) -> Records:
        if grid_points is not None:
            raise InvalidParameter("grid_points", "None: rows have no t", "some")
        labels = np.ravel(np.asarray(label))
        # The number of rows is private, so an owner without rows answers like any other one.
        none = not len(labels) and hasattr(curve, "__len__") and not len(curve)
        rows = np.zeros((0, self.plan.encoder.n_features)) if none else curve
        features, numbers = encode_people(self.plan, rows, labels)
        if len(features) != len(numbers):
            raise InvalidData("labels", "one for each row")
        present = np.ones((1, len(numbers)), dtype=bool)
        return OwnerRows(features[None], numbers[None], present)

    def _at_own_price(self, query: Query) -> Query:
        """The request at the ε of this owner."""
        assert isinstance(query, Request)
        return query.at(min(self.epsilon, query.epsilon)) if query.own_budgets else query

    def _spend(self, query: Query) -> None:
        super()._spend(self._at_own_price(query))

    def _respond(self, query: Query, number: int) -> Answer:
        return super()._respond(self._at_own_price(query), number)


def public_order(plan: StudyPlan) -> IntArray:
    """The order in which owners take part, drawn from the plan's public seed."""
    return np.random.default_rng([plan.seed, 2]).permutation(plan.n_people)


class Owners(Crowd):
    """Many simulated owners in a public order; each of them answers once.

    Args:
        plan: the plan that all of them agreed to.
        rows: their private rows.
        order: the order in which they take part.
        epsilons: the ε of each owner, at most the plan's ε; by default the plan's ε.
        source: the source of their randomness.
    """

    def __init__(
        self,
        plan: StudyPlan,
        rows: OwnerRows,
        *,
        source: Source,
        order: IntArray | None = None,
        epsilons: ArrayLike | None = None,
    ) -> None:
        self._order = np.arange(rows.owners) if order is None else order
        self._epsilons = np.broadcast_to(
            plan.epsilon if epsilons is None else np.asarray(epsilons), (rows.owners,)
        )
        own_budgets = bool(plan.design.get("own_budgets"))
        if np.any(self._epsilons > plan.epsilon) or (
            np.any(self._epsilons < plan.epsilon) and not own_budgets
        ):
            rule = f"{'at most ' * own_budgets}{plan.epsilon:g}, as the plan says"
            raise InvalidParameter("epsilons", rule, sorted(set(self._epsilons.tolist()))[:3])
        super().__init__(
            plan, lambda start, stop: rows.take(self._order[start:stop]), source=source
        )

    def _answers(self, query: Query, records: Records, number: int) -> Answer:
        """The replies, computed in one batch for all owners with the same ε."""
        assert isinstance(query, Request)
        rows = OwnerRows(*records)
        if not query.own_budgets:
            return super()._answers(query, records, number)
        spent = self._epsilons[self._order[number : number + query.people]]
        values = np.empty((query.people, query.width))
        for epsilon in np.unique(spent):
            who = np.flatnonzero(spent == epsilon)
            part = query.rows(who).at(float(epsilon))
            values[who] = part.answer(rows.take(who), self.source).values
        return Answer(values=values, n=query.people)
