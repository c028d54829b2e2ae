"""The people of a study: each of them holds a curve and a label, and answers one task.

`Crowd` simulates many people; `Scattered` is a crowd whose members are in several places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from dpfda._validate import AnyArray, ArrayLike, FloatArray, IntArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import AlreadySpent, ProtocolError
from dpfda.noise import SecureSource, Source
from dpfda.privacy.cost import limit
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.holder import Holder
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.query import Answer, Query, Records
from dpfda.protocol.task import Task, check_reply

Entries = ArrayLike | Sequence[object]
"""Labels, or targets, of any type."""
Groups = ArrayLike | None
"""The person of each row; None if every row belongs to a different person."""
People = Callable[[int, int], Records]
"""Returns encoded curves and label numbers of people start, ..., stop - 1, once per person."""


class Person(Holder):
    """One person, who answers one task of a study.

    Args:
        plan: the plan that the person agreed to.
        curve: the private curve; it never leaves this object.
        label: the private label.
        grid_points: the points at which the curve was observed.
        ledger: the person's budget; the study's ε is spent from it before the reply exists.
        accepts: assumptions that the person agreed to, beyond the plan's ε.
        source: the source of randomness; the operating system by default.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.privacy.ledger import Ledger
        >>> from dpfda.protocol.tasks.vector import MomentTask
        >>> plan = StudyPlan(epsilon=1.0, n_people=1, encoder=CurveEncoder(n_basis=4),
        ...                  classes=("no", "yes"), design={"name": "moments"})
        >>> person = Person(plan, curve=[0.1, 0.4, 0.2], label="yes", ledger=Ledger(1.0))
        >>> task = MomentTask(epsilon=1.0, people=1, dimension=4, positive=[1])
        >>> person.answer(task).values.shape
        (1, 4)
    """

    def __init__(
        self,
        plan: StudyPlan,
        *,
        curve: Curves,
        label: object,
        grid_points: GridPoints = None,
        ledger: BaseLedger,
        accepts: Iterable[str] = (),
        source: Source | None = None,
    ) -> None:
        super().__init__(
            most=limit(epsilon=plan.epsilon, delta=0.0),
            source=source,
            unit=plan.unit,
            accepts=accepts,
            ledger=ledger,
            label=f"study {plan.hash}",
        )
        self.plan = plan
        self.__records = self._encoded(curve, label, grid_points)

    def _encoded(self, curve: Curves, label: object, grid_points: GridPoints) -> Records:
        """The records in the form that tasks need."""
        batch = one_curve(curve, channels=self.plan.encoder.channels)
        return encode_people(self.plan, batch, [label], grid_points=grid_points)

    def answer(self, query: Query, *, number: int = 0) -> Answer:
        """Spend, compute and randomize; return the reply to send, shape (1, width).

        This object and the ledger refuse a second task of the same study, even if budget is left.
        """
        return super().answer(query, number=number)

    def _check(self, query: Query) -> None:
        if not isinstance(query, Task) or query.people != 1:
            raise ProtocolError("a person answers tasks for one person")
        self.plan.check_accepted(self._accepts)
        self.plan.check(query)
        query.fitting(self.__records)

    def _pay(self, query: Query) -> None:
        assert self._ledger is not None
        self._ledger.spend(
            query.event,
            label=self._label,
            key=self.plan.hash,
            assumptions=self.plan.guarantee.assumptions,
        )

    def _respond(self, query: Query, number: int) -> Answer:
        return _replies(query, query.answer(self.__records, self.source))


class Crowd(Holder):
    """Many simulated people in the order in which they take part; each of them answers once.

    Args:
        plan: the plan that all of them agreed to, including its assumptions.
        people: returns their encoded curves and label numbers.
        source: the source of their randomness.
    """

    draws_here: ClassVar[bool] = True
    """Whether the noise comes from `source`; otherwise the places that answer draw it."""

    def __init__(self, plan: StudyPlan, people: People, *, source: Source) -> None:
        super().__init__(
            most=limit(epsilon=plan.epsilon, delta=0.0),
            source=source,
            unit=plan.unit,
            accepts=plan.guarantee.assumptions,
        )
        self.plan = plan
        self.asked = 0  # only increases, so that nobody is asked twice
        self.__people = people

    def answer(self, query: Query, *, number: int | None = None) -> Answer:
        """The replies of the next ``query.people`` people."""
        with self._lock:
            if number is not None and number != self.asked:
                raise AlreadySpent("every simulated person answers once")
            self._agree(query)
            self._afford(query)
            return self._respond(query, self.asked)

    def _check(self, query: Query) -> None:
        if not isinstance(query, Task):
            raise ProtocolError("people answer only tasks, not queries to a data set")
        if self.asked + query.people > self.plan.n_people:
            raise ProtocolError(f"the plan is for {self.plan.n_people} people")
        self.plan.check(query)

    def _respond(self, query: Query, number: int) -> Answer:
        assert isinstance(query, Task)
        records = self.__people(number, number + query.people)
        self.asked += query.people
        return _replies(query, self._answers(query, records, number))

    def _answers(self, query: Query, records: Records, number: int) -> Answer:
        """The replies of people number, number + 1, ..., who have these records."""
        return query.answer(records, self.source)


def _replies(query: Query, answer: Answer) -> Answer:
    """The answer, after a check of its shape, because a server would store it."""
    assert isinstance(query, Task)
    check_reply(query, answer.values)
    return answer


def encode_people(
    plan: StudyPlan, X: Curves, y: Entries, *, grid_points: GridPoints = None
) -> tuple[FloatArray, IntArray]:
    """Encoded curves and label numbers, in the form that tasks need.

    Curves that cannot be encoded become 0, and an unknown label becomes number 0, because a refusal
    to report would itself reveal something. A target number, scaled from its public range to
    [-1, 1], is the first feature; all labels are then 0.
    """
    features = plan.encoder.encode(X, grid_points, strict=False)
    if plan.target_range is None:
        return features, label_numbers(y, plan.classes)
    targets = target_places(y, plan.target_range)
    return np.column_stack([targets, features]), np.zeros(len(targets), dtype=np.int64)


def target_places(targets: Entries, target_range: tuple[float, float]) -> FloatArray:
    """Targets scaled to [-1, 1] by their public range; missing ones are 0.

    Examples:
        >>> target_places([0, 5.0, "many", 99], (0, 10)).tolist()
        [-1.0, 0.0, 0.0, 1.0]
    """
    low, high = target_range
    # Computed from halves and never 0, so that no public range causes overflow or division by 0.
    middle, half = low / 2 + high / 2, max(high / 2 - low / 2, np.finfo(np.float64).tiny)
    values = one_by_one(targets)
    if values.dtype.kind in "fiub":
        with np.errstate(over="ignore"):  # of long doubles
            numbers = values.astype(np.float64)
    else:
        numbers = np.array([_number(one) for one in values])
    inside = np.where(np.isnan(numbers), middle, np.clip(numbers, low, high))
    return np.asarray(np.clip((inside - middle) / half, -1.0, 1.0))


def _number(target: Any) -> float:
    try:
        return float(target)
    except Exception:  # any error, because it depends on the person's target
        return math.nan


def label_numbers(labels: Entries, classes: Entries) -> IntArray:
    """The index of each label among the public classes; 0 for any other label."""
    same = equal(one_by_one(labels)[:, None], one_by_one(classes)[None, :])
    return np.asarray(same.argmax(axis=1), dtype=np.int64)


def equal(labels: AnyArray, others: AnyArray) -> npt.NDArray[np.bool_]:
    """Which labels are equal; a label that cannot be compared is not."""
    try:
        return np.asarray(labels == others, dtype=bool)
    except Exception:  # such as a missing value, which is neither equal nor different
        return np.asarray(np.frompyfunc(_same, 2, 1)(labels, others), dtype=bool)


def _same(label: object, other: object) -> bool:
    try:
        return bool(label == other)
    except Exception:  # any error, because it depends on the person's label
        return False


def one_by_one(labels: Entries) -> npt.NDArray[Any]:
    """Labels as separate objects; a common dtype would let one label change another one."""
    if isinstance(labels, np.ndarray) or hasattr(labels, "to_numpy"):
        values = np.asarray(labels)
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    listed = cast("Sequence[object]", labels)
    values = np.empty(len(listed), dtype=object)
    for place, label in enumerate(listed):  # assigning the list would unpack sequences
        values[place] = label
    return values


def one_curve(curve: Curves, *, channels: int = 1) -> Curves:
    """A single curve as a batch of one; an invalid curve becomes a curve without values.

    A curve is given as values (T,), as a pair (t, x), or as values (T, channels). A record of a
    table is a mapping from its columns.
    """
    if isinstance(curve, Mapping):
        return {name: [value] for name, value in curve.items()}
    if isinstance(curve, tuple) and len(curve) == 2 and np.ndim(curve[0]) == 1:
        return [curve]
    try:
        values = np.asarray(curve, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        known = hasattr(curve, "grid_points") or hasattr(curve, "columns")
        return curve if known else np.full((1, 1), np.nan)
    return values[None] if values.ndim == (1 if channels == 1 else 2) else curve


AskPlaces = Callable[[Mapping[int, Task], int, int], Mapping[int, FloatArray]]
"""A function of the tasks by place and of the range start, stop of the people who are asked. It
returns the replies of the places that answered."""


class Scattered(Crowd):
    """People in a public order, in several places; each place draws the noise of its people.

    Args:
        plan: the plan that all of them agreed to.
        places: the place of each person, in the order in which they take part.
        ask: sends tasks to places, in this process or elsewhere.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.noise import SimulationSource
        >>> from dpfda.simulate import ask_everybody
        >>> plan = StudyPlan(epsilon=1.0, n_people=4, encoder=CurveEncoder(n_basis=4),
        ...                  classes=("no", "yes"), design={"name": "moments"})
        >>> here = {}
        >>> for place in (0, 1):
        ...     people = lambda start, stop: (np.zeros((stop - start, 4)), np.zeros(stop - start))
        ...     here[place] = Crowd(plan, people, source=SimulationSource(place))
        >>> def ask(tasks, start, stop):
        ...     return {place: here[place].answer(task).values for place, task in tasks.items()}
        >>> crowd = Scattered(plan, np.array([0, 1, 0, 1]), ask)
        >>> ask_everybody(plan, crowd, source=SimulationSource(2)).finished, here[0].asked
        (True, 2)
    """

    draws_here: ClassVar[bool] = False

    def __init__(self, plan: StudyPlan, places: IntArray, ask: AskPlaces) -> None:
        if len(places) != plan.n_people:
            raise ProtocolError(f"the plan is for {plan.n_people} people")
        super().__init__(plan, _nobody, source=SecureSource())  # not used: places draw the noise
        self._places, self._ask = places, ask
        self._silent = np.zeros(plan.n_people, dtype=bool)

    def answered(self, people: IntArray) -> npt.NDArray[np.bool_]:
        """Whether each person who received a task replied."""
        return np.asarray(~self._silent[people])

    def _respond(self, query: Query, number: int) -> Answer:
        assert isinstance(query, Task)
        stop = number + query.people
        here = self._places[number:stop]
        rows = {int(place): np.flatnonzero(here == place) for place in np.unique(here)}
        tasks = {place: query.rows(who) for place, who in rows.items()}
        self.asked = stop  # before the request, so that nobody is asked twice even after an error
        replies = self._ask(tasks, number, stop)
        values = np.zeros((query.people, query.width))
        for place, who in rows.items():
            if place in replies:
                values[who] = check_reply(tasks[place], replies[place])
            else:
                self._silent[number + who] = True
        return Answer(values=values, n=query.people)


def _nobody(start: int, stop: int) -> tuple[FloatArray, IntArray]:
    raise ProtocolError("this crowd has no curves: they were left out")
