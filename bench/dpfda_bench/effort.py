"""How much work a table, a figure or a benchmark may be: a quick look, or the full count."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpfda.planning.sweep import ALONE, Sweep


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What the caller asked for.

    Attributes:
        replications: how often to repeat the study; None leaves it to the study.
        quick: a look, not a result.
        sweep: where and by how many processes, and what is kept.
        device: ``cuda`` for an accelerator, where the study can use one.
        counts: what `repeats` has answered so far.

    Examples:
        >>> Effort().repeats(100, quick=5), Effort(quick=True).repeats(100, quick=5)
        (100, 5)
    """

    replications: int | None = None
    quick: bool = False
    sweep: Sweep = ALONE
    device: str = "cpu"
    counts: list[int] = field(default_factory=list, compare=False)

    def repeats(self, full: int, *, quick: int) -> int:
        """How often: as asked for, or by default."""
        count = quick if self.quick else full
        self.counts.append(count if self.replications is None else self.replications)
        return self.counts[-1]


FULL = Effort()
