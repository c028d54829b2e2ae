"""What a person is asked, and what they send back.

A `Task` is public. It may depend on the plan, on public randomness and on *other* people's replies;
never on the data of the person who gets it. Its `answer` method is the whole of what happens to a
person's data in a study: read one file per task type to see it.

Tasks are batches: one object asks n people at once, each array having a leading axis of length n.
A simulation hands out thousands at a time; a collector hands out single rows, ``task.rows([i])``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.mechanisms import Mechanism
from dpfda.noise import Source


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(Registered, family="task"):
    """One public request to n people.

    Attributes:
        epsilon: what answering costs each of them.
        people: n.
    """

    epsilon: float
    people: int

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon)
        _validate.whole("people", self.people, least=0)
        for name, kind in self._arrays().items():
            given = getattr(self, name)
            object.__setattr__(self, name, _public_array(name, given, kind, self.people))

    @classmethod
    def _arrays(cls) -> dict[str, str]:
        """Fields that hold one row a person: name and ``whole`` or ``real``."""
        return {}

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The randomizer that every reply goes through."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers one reply holds."""

    @abstractmethod
    def answer(self, features: FloatArray, labels: IntArray, rng: Source) -> FloatArray:
        """Compute and randomize the replies, shape (n, width). Runs on the person's own device.

        Args:
            features: encoded curves z* in [-1, 1]^d, shape (n, d).
            labels: label numbers, shape (n,).
            rng: where randomness comes from.
        """

    @abstractmethod
    def allows(self, reply: FloatArray) -> npt.NDArray[np.bool_]:
        """For each row of a reply: is it a possible output? Anything else is refused by servers."""

    def rows(self, index: Any) -> Self:
        """The same request to some of the people."""
        chosen = np.asarray(index)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {name: values[name][chosen] for name in self._arrays()}
        return type(self)(**(values | {"people": len(chosen)}))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = super().to_dict()
        return plain | {name: plain[name].tolist() for name in self._arrays()}


def _public_array(name: str, given: Any, kind: str, people: int) -> npt.NDArray[Any]:
    """A field of a task as an array with a row for each person."""
    allowed, dtype = ("iu", np.int64) if kind == "whole" else ("fiu", np.float64)
    array = np.asarray(given)
    if array.size and array.dtype.kind not in allowed:
        raise InvalidParameter(name, f"an array of {kind} numbers", f"dtype {array.dtype}")
    if array.ndim == 0 or len(array) != people or (kind == "real" and not np.isfinite(array).all()):
        raise InvalidParameter(name, f"finite, with {people} rows", f"shape {array.shape}")
    return array.astype(dtype, copy=False)


def check_reply(task: Task, reply: Any) -> FloatArray:
    """A reply as a matrix of possible outputs of `task`, or a `ProtocolError`."""
    try:
        values = np.asarray(reply, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProtocolError("reply must be an array of numbers") from None
    if values.shape != (task.people, task.width):
        raise ProtocolError(
            f"reply must have shape ({task.people}, {task.width}), got {values.shape}"
        )
    if not np.all(np.isfinite(values)) or not np.all(task.allows(values)):
        raise ProtocolError("reply must be a possible output of the task's mechanism")
    return values


def check_answerer(
    task: Task, features: Any, labels: Any, *, columns: int | None = None
) -> tuple[FloatArray, IntArray]:
    """Private inputs of `Task.answer`, checked without ever being shown."""
    z = _validate.batch("features", features, columns=columns, bound=1.0)
    y = _validate.vector("labels", labels).astype(np.int64)
    if len(z) != task.people or len(y) != task.people:
        raise InvalidData("features", f"{task.people} rows with a label each")
    return z, y
