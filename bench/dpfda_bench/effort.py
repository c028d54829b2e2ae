"""How much work a table, a figure or a benchmark may be: a quick look, or the full count."""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.planning.sweep import ALONE, Sweep


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What the caller asked for.

    Attributes:
        replications: how often to repeat the study; None leaves it to the study.
        quick: a look, not a result.
        sweep: where and by how many processes, and what is kept.
        device: ``cuda`` for an accelerator, where the study can use one.

    Examples:
        >>> Effort().repeats(100, quick=5), Effort(quick=True).repeats(100, quick=5)
        (100, 5)
    """

    replications: int | None = None
    quick: bool = False
    sweep: Sweep = ALONE
    device: str = "cpu"

    def repeats(self, full: int, *, quick: int) -> int:
        """How often: as asked for, or by default."""
        if self.replications is not None:
            return self.replications
        return quick if self.quick else full


FULL = Effort()
