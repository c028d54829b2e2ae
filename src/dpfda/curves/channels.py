"""Curves of several channels, each with its own basis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves.bases import CosineBasis, IdentityBasis
from dpfda.curves.basis import Basis, frozen
from dpfda.errors import InvalidParameter

_MOST_CHANNELS = 1 << 10


@dataclass(frozen=True, kw_only=True)
class ChannelBasis(Basis, name="channels"):
    """Functions of one channel each, in turns: the first of every channel, then the second ones.

    So the functions that matter most come first, whatever the number of channels.

    Args:
        parts: the basis of each channel.

    Examples:
        >>> basis = ChannelBasis(parts=(CosineBasis(n_basis=2), CosineBasis(n_basis=1)))
        >>> basis.in_turns([np.array([1.0, 2.0]), np.array([10.0])]).tolist()
        [1.0, 10.0, 2.0]
    """

    parts: tuple[Basis, ...] = ()
    n_basis: int = field(init=False)
    domain_range: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        read = [Basis.from_dict(one) if isinstance(one, Mapping) else one for one in self.parts]
        if not 1 <= len(read) <= _MOST_CHANNELS:
            raise InvalidParameter("parts", f"1 to {_MOST_CHANNELS} bases", len(read))
        for one in read:
            if not isinstance(one, Basis) or isinstance(one, (IdentityBasis, ChannelBasis)):
                raise InvalidParameter("parts", "bases of one channel's curves", type(one).__name__)
        if len({one.domain_range for one in read}) > 1:
            raise InvalidParameter("parts", "bases on the same domain", "several domains")
        self._settle(
            parts=tuple(read),
            n_basis=sum(one.n_basis for one in read),
            domain_range=read[0].domain_range,
        )

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether the first functions of every channel matter most."""
        return all(one.ordered for one in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The bases, ready for JSON."""
        return {"name": self.name, "parts": [one.to_dict() for one in self.parts]}

    def in_turns(self, channels: Sequence[FloatArray]) -> FloatArray:
        """The first number of every channel, then the second ones."""
        return np.concatenate(channels, axis=-1)[..., self._turns]

    def apart(self, numbers: FloatArray) -> list[FloatArray]:
        """The numbers of each channel."""
        side_by_side = np.empty_like(numbers)
        side_by_side[..., self._turns] = numbers
        return np.split(side_by_side, np.cumsum([p.n_basis for p in self.parts])[:-1], axis=-1)

    def gram(self) -> FloatArray:
        """Functions of different channels are orthogonal."""
        blocks = [one.gram() for one in self.parts]
        rows = [
            np.hstack(
                [
                    block if k == j else np.zeros((len(block), len(other)))
                    for j, other in enumerate(blocks)
                ]
            )
            for k, block in enumerate(blocks)
        ]
        return frozen(np.vstack(rows)[np.ix_(self._turns, self._turns)])

    @property
    def _turns(self) -> IntArray:
        """The function at each place, numbered channel by channel."""
        sizes = [one.n_basis for one in self.parts]
        place = np.concatenate([np.arange(size) for size in sizes])
        return np.argsort(place, kind="stable")

    @classmethod
    def examples(cls) -> list[Self]:
        """Two channels of different size."""
        return [cls(parts=(CosineBasis(n_basis=2), CosineBasis(n_basis=1)))]

    def evaluate(self, points: object) -> FloatArray:
        """Refused: ask each of `parts`, whose functions are those of one channel."""
        raise InvalidParameter("basis", "of one channel to be evaluated", self.name)

    def _functions(self, t: FloatArray) -> FloatArray:
        return self.evaluate(t)
