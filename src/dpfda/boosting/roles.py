"""Who does what: an owner answers one request of a study, once; a data user asks and learns.

Messages are plain values (dictionaries, lists, numbers, text), so any carrier can take them. In a
simulation a `Crowd` stands for many owners and answers for all owners of a round in one batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.model import BoostedModel
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests import Request
from dpfda.errors import AlreadySpent, InvalidData, ProtocolError
from dpfda.noise import SecureSource, Source
from dpfda.privacy.ledger import BaseLedger


class Owner:
    """One owner of a few rows, who answers one request of a study.

    Args:
        features: the owner's rows, shape (N, d).
        labels: their label numbers.
        epsilon: ε^h, what the owner is willing to spend.
        ledger: the owner's budget; ε^h is spent from it before the reply exists.
        rng: where randomness comes from; the operating system by default.

    Example:
        >>> from dpfda.boosting.requests.gradient import GradientRequest
        >>> from dpfda.privacy.ledger import Ledger
        >>> owner = Owner([[0.2, 0.1], [0.5, -0.3]], [0, 1], epsilon=1.0, ledger=Ledger(1.0))
        >>> message = {"study": "s1", "request": GradientRequest.example().to_dict()}
        >>> sorted(owner.reply(message))
        ['epsilon', 'rows', 'values']
        >>> owner.reply(message)
        Traceback (most recent call last):
        dpfda.errors.AlreadySpent: the key 's1' was spent before; resend the stored answer
    """

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        epsilon: float,
        ledger: BaseLedger,
        rng: Source | None = None,
    ) -> None:
        x = _validate.batch("features", features)
        self._rows = OwnerRows.grouped(x, labels, groups=np.zeros(len(x)))
        self.epsilon = _validate.positive("epsilon", epsilon)
        self.ledger = ledger
        self._rng = rng if rng is not None else SecureSource()

    def reply(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Spend, compute, randomize: the message to send back.

        A second request of the same study is refused by the ledger, whatever budget is left.
        """
        study, request = read_message(message)
        rows = request.fitting(self._rows)
        promise = request.guarantee(self.epsilon)
        self.ledger.spend(promise, label=f"boosting study {study}", key=study)
        values = request.answer(rows, epsilon=self.epsilon, rng=self._rng)
        return {
            "epsilon": self.epsilon,
            "rows": int(self._rows.sizes[0]),
            "values": values[0].tolist(),
        }

    def __repr__(self) -> str:
        return f"Owner(epsilon={self.epsilon:g})"


def read_message(message: Mapping[str, Any]) -> tuple[str, Request]:
    """Study and request of a data user's message; only registered requests exist."""
    try:
        study, request = message["study"], message["request"]
    except (KeyError, TypeError):
        raise ProtocolError("a message must have a study and a request") from None
    if not isinstance(study, str) or not study or not isinstance(request, Mapping):
        raise ProtocolError("a message must name its study and hold a request")
    return study, Request.from_dict(request)


@dataclass(frozen=True, eq=False)
class Replies:
    """The replies of a round.

    Attributes:
        values: shape (H, width).
        epsilons: ε^h of each owner.
        sizes: N^h of each owner.
    """

    values: FloatArray
    epsilons: FloatArray
    sizes: IntArray

    @classmethod
    def collected(cls, messages: Sequence[Mapping[str, Any]]) -> Self:
        """The messages of single owners as arrays."""
        try:
            values = np.array([message["values"] for message in messages], dtype=np.float64)
            epsilons = np.array([message["epsilon"] for message in messages], dtype=np.float64)
            sizes = np.array([message["rows"] for message in messages], dtype=np.int64)
        except (KeyError, TypeError, ValueError):
            raise ProtocolError("a reply must hold epsilon, rows and as many values") from None
        if values.ndim != 2 or not (np.isfinite(epsilons) & (epsilons > 0) & (sizes > 0)).all():
            raise ProtocolError("a reply must have epsilon and rows above 0 and a list of values")
        return cls(values, epsilons, sizes)

    def decoded(self, request: Request) -> FloatArray:
        """Unbiased estimates, owner by owner, whatever ε each spent."""
        parts = [
            (mask, request.decode(self.values[mask], epsilon=epsilon, sizes=self.sizes[mask]))
            for epsilon, mask in _kinds(self.epsilons)
        ]
        decoded = np.empty((len(self.values), *parts[0][1].shape[1:]))
        for mask, part in parts:
            decoded[mask] = part
        return decoded


class Crowd:
    """Many simulated owners; each answers once.

    Args:
        rows: their private rows.
        epsilon: ε of all of them, or one for each.
        rng: where randomness comes from.

    Attributes:
        spent: True for owners who have answered.
    """

    def __init__(self, rows: OwnerRows, *, epsilon: Any, rng: Source) -> None:
        given = np.asarray(epsilon, dtype=np.float64)
        if given.ndim > 1 or (given.ndim == 1 and given.shape != (len(rows),)):
            raise InvalidData("epsilon", f"one number or {len(rows)}", f"shape {given.shape}")
        for value in np.unique(given):
            _validate.positive("epsilon", value)
        self._rows = rows
        self.epsilons = np.broadcast_to(given, (len(rows),))
        self._rng = rng
        self.spent = np.zeros(len(rows), dtype=bool)

    def answer(self, request: Request, who: IntArray) -> Replies:
        """The replies of owners `who`, all perturbed in one batch for each ε."""
        if self.spent[who].any() or len(np.unique(who)) < len(who):
            raise AlreadySpent("an owner takes part at most once")
        self.spent[who] = True
        values = np.empty((len(who), request.width))
        for epsilon, mask in _kinds(self.epsilons[who]):
            rows = request.fitting(self._rows.take(who[mask]))
            values[mask] = request.answer(rows, epsilon=epsilon, rng=self._rng)
        return Replies(values, self.epsilons[who], self._rows.sizes[who])


def _kinds(numbers: FloatArray) -> list[tuple[float, Any]]:
    return [(float(value), numbers == value) for value in np.unique(numbers)]


class DataUser(ABC):
    """Asks fresh owners round by round and learns from their replies.

    Attributes:
        study: name of the study; owners spend under it once.
        history: one dictionary a round.
    """

    def __init__(self, study: str) -> None:
        self.study = study
        self.history: list[dict[str, Any]] = []

    @property
    @abstractmethod
    def wanted(self) -> int:
        """How many fresh owners the next request is for; 0 when the study is finished."""

    @property
    @abstractmethod
    def request(self) -> Request:
        """The present request."""

    @abstractmethod
    def absorb(self, replies: Replies) -> None:
        """Learn from a round's replies and prepare the next request."""

    @property
    @abstractmethod
    def model(self) -> BoostedModel:
        """The classifier as it is now."""

    def message(self) -> dict[str, Any]:
        """The present request as plain values, for a carrier."""
        return {"study": self.study, "request": self.request.to_dict()}

    def receive(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Take the messages of a round's owners."""
        if not messages:
            raise ProtocolError("a round needs at least one reply")
        self.absorb(Replies.collected(messages))


def run(user: DataUser, crowd: Crowd, *, order: IntArray) -> int:
    """Let the data user ask owners in the public `order` until finished; how many were spent."""
    position = 0
    while (wanted := user.wanted) and position + wanted <= len(order):
        user.absorb(crowd.answer(user.request, order[position : position + wanted]))
        position += wanted
    return position
