"""Tasks: a query to one person, and its reply.

A `Task` is public. It may depend on the plan, on public randomness and on *other* people's replies;
never on the data of the person who gets it. Its `exact` method computes the input of the mechanism
from a person's data, and the reply is the output of the mechanism. Each type of task is defined in
`tasks/` or `local/`.

Tasks are batches: one object is for n people, and each array has a leading axis of length n. A
simulation issues thousands at a time; a collector issues single rows, ``task.rows([i])``.

A task with a field `folds` adds distances |z - m| of features from their centers m as further
features (`folded`). The same questions, vectors and linear rules can then separate classes with
equal means and different spreads. Unlike squares, distances do not give outliers a large weight.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import ArrayLike, FloatArray
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.mechanisms.base import BoxMechanism
from dpfda.noise import Source
from dpfda.protocol.fields import Array, array, declared, number, whole
from dpfda.protocol.query import Answer, Query, Records


def box_mechanisms() -> tuple[str, ...]:
    """Names of the registered mechanisms of a vector in [-1, 1]^d.

    Any vector can be clipped to that box, so that a task never refuses a person's record.

    Examples:
        >>> box_mechanisms()
        ('duchi', 'hybrid', 'laplace', 'piecewise')
    """
    return tuple(BoxMechanism.members())


def fold_centers() -> FloatArray:
    """The field `folds`, centers of the first f features; with it, a task uses `folded` features.

    Privacy:
        The map is public and applied before the task's mechanism, which accepts any features.
    """
    return array("real", "f", least=-1, most=1, default=())


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(Query):
    """One public query to n people.

    Attributes:
        epsilon: the privacy cost of an answer for each of them.
        people: n.
    """

    attained: ClassVar[float | None] = None  # a local mechanism's proof holds for any input
    boxed: ClassVar[bool] = True
    """Whether a reply consists of noisy numbers in [-1, 1], which a server may clip."""

    bits: ClassVar[bool] = False
    """Whether a reply is a pattern of ±1."""

    epsilon: float = number(least=1e-6, most=1e6)
    people: int = whole(least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        folds = self.sizes.get("f", 0)
        if folds and self.looks_at > 2 * folds:
            rule = f"left out, or enough for {self.looks_at} features and distances"
            raise InvalidParameter("folds", rule, f"{folds} of them")

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of values in one reply."""

    @property
    def looks_at(self) -> int:
        """Number of features, distances from folds included, that the task needs."""
        return self.sizes["dimension"]

    @property
    def columns(self) -> int:
        """Number of features that the task uses; encoded curves may have more."""
        return self.sizes.get("f") or self.looks_at

    @abstractmethod
    def exact(self, records: Records, source: Source) -> FloatArray:
        """The input of the mechanism, one row per person. Runs on the person's device.

        Args:
            records: encoded curves z* in [-1, 1]^d, shape (n, d), and label numbers (n,).
            source: the source of randomness, for tasks that draw before their mechanism.
        """

    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """Which rows are possible replies; servers refuse all others.

        If replies are `bits`, these are the patterns of ±1, otherwise all finite vectors, because
        the server's clipping bounds the influence of one liar. Like `width`, the result depends
        only on fields that are common to all people of a phase, so any task of the phase can check
        all its replies.
        """
        bits = np.abs(reply) == 1
        return np.asarray(bits.all(axis=1)) if self.bits else np.ones(len(reply), dtype=bool)

    def fitting(self, records: Records) -> Records:
        """Check the number of people and features, and clip features to the box."""
        if len(records) != 2:
            raise ProtocolError("a task asks for features and labels")
        features, labels = (np.asarray(column) for column in records)
        if features.ndim != 2 or features.shape[0] != self.people or len(labels) != self.people:
            raise ProtocolError(f"the task is for {self.people} people, each with one row")
        if features.shape[1] < self.columns:
            raise ProtocolError(f"the task asks about {self.columns} features")
        inside = np.clip(_finite(features.astype(np.float64, copy=False)), -1.0, 1.0)
        return inside, _finite(labels).astype(np.int64, copy=False)

    def answer(self, records: Records, source: Source) -> Answer:
        """Randomized replies, shape (n, width)."""
        exact = self._computed(self.fitting(records), source)
        values = self.mechanism.randomize(exact, source, clip=True)
        return Answer(values=np.reshape(values, (self.people, -1)), n=self.people)

    def trial(self, generator: np.random.Generator, *, size: float = 1.0) -> Records:
        """People in the box or, if `size` is above 1, at its faces; labels 0, 1 and 2."""
        features = size * generator.normal(size=(self.people, max(self.columns, 1)))
        return np.clip(features, -1.0, 1.0), generator.integers(0, 3, self.people)

    def _computed(self, records: Records, source: Source) -> FloatArray:
        """The result of `exact`; if it cannot be computed for a person, a fixed input instead.

        Refusing to reply would itself reveal something.
        """
        if self.people == 0:
            return np.repeat(self.blank, 0, axis=0)
        try:
            with np.errstate(all="ignore"):
                return np.asarray(_finite(self.exact(records, source)))
        except Exception:  # any error, because it may depend on the person's data
            if self.people == 1:
                return self.blank
        parts = [
            self.rows([person])._computed(tuple(c[person : person + 1] for c in records), source)
            for person in range(self.people)
        ]
        return np.concatenate(parts)

    @property
    def blank(self) -> FloatArray:
        """A fixed valid input of the mechanism that contains no information."""
        return self.mechanism.worst_cases()[0][1]

    def log_likelihood(self, answer: Answer, records: Records, source: Source) -> float:
        """The sum of the mechanism's log-likelihoods over people."""
        exact = self._computed(self.fitting(records), source)
        return float(self.mechanism.log_likelihood(self._sent(answer), exact).sum())

    def _sent(self, answer: Answer) -> FloatArray:
        """Replies in the shape of the mechanism's output."""
        return answer.values[:, 0] if self.blank.ndim == 1 else answer.values

    def rows(self, index: ArrayLike) -> Self:
        """The same task for some of the people."""
        chosen = np.asarray(index)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        values = {name: getattr(self, name) for name in declared(type(self))}
        for name in self.own_fields():
            values[name] = values[name][chosen]
        return type(self)(**(values | {"people": len(chosen)}))

    @classmethod
    def own_fields(cls) -> list[str]:
        """Names of the fields that have a row for each person; the others are common to all."""
        rules = {name: rule for name, (rule, _) in declared(cls).items()}
        arrays = {name: rule for name, rule in rules.items() if isinstance(rule, Array)}
        return [name for name, rule in arrays.items() if rule.shape[0] == "people"]


def _finite(numbers: FloatArray) -> FloatArray:
    """The numbers, with NaN and infinity replaced; the check is quicker than a replacement."""
    return numbers if np.isfinite(numbers).all() else np.nan_to_num(numbers)


def check_reply(task: Task, reply: ArrayLike) -> FloatArray:
    """A reply as a matrix of possible outputs of `task`; anything else is refused."""
    try:
        given = np.asarray(reply)
    except ValueError:  # rows of different lengths
        given = np.empty(0, dtype=object)
    if given.dtype.kind not in "fiu":  # refuses text that contains numbers, and complex numbers
        raise ProtocolError("reply must be an array of real numbers")
    values = given.astype(np.float64, copy=False)
    if values.shape != (task.people, task.width):
        raise ProtocolError(
            f"reply must have shape ({task.people}, {task.width}), got {values.shape}"
        )
    if not np.all(np.isfinite(values)) or not np.all(task.allows(values)):
        raise ProtocolError("reply must be a possible output of the task's mechanism")
    return values


def folded(features: FloatArray, folds: FloatArray) -> FloatArray:
    """The first f features and their distances from the folds m_1, ..., m_f; all without folds.

    Examples:
        >>> folded(np.array([[0.5, -0.2, 0.9]]), np.array([0.1, 0.0]))
        array([[ 0.5, -0.2,  0.4,  0.2]])
        >>> folded(np.array([[0.5, -0.2, 0.9]]), np.zeros(0))
        array([[ 0.5, -0.2,  0.9]])
    """
    if not len(folds):
        return features
    own = features[..., : len(folds)]
    return np.concatenate([own, np.abs(own - folds)], axis=-1)
