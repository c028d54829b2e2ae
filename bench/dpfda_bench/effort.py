"""How much work a table, a figure or a benchmark may be: a quick look, or the full count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What the caller asked for.

    Attributes:
        replications: how often to repeat the study; None leaves it to the study.
        quick: a look, not a result.
        progress: is told the share that is done.

    Example:
        >>> Effort().repeats(100, quick=5), Effort(quick=True).repeats(100, quick=5)
        (100, 5)
    """

    replications: int | None = None
    quick: bool = False
    progress: Callable[[float], None] | None = None

    def repeats(self, full: int, *, quick: int) -> int:
        """How often: as asked for, or by default."""
        if self.replications is not None:
            return self.replications
        return quick if self.quick else full

    def done(self, share: float) -> None:
        """Say how far it is."""
        if self.progress is not None:
            self.progress(share)

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items one by one, saying how many are done."""
        everything = list(items)
        for number, item in enumerate(everything):
            yield item
            self.done((number + 1) / len(everything))


FULL = Effort()
QUICK = Effort(quick=True)
