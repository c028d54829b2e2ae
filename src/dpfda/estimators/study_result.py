"""What a study found, as a table: the server's estimates, and errors on held-out people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpfda.protocol.comparison import HELD_OUT
from dpfda.protocol.estimate import Estimate, wilson


@dataclass(repr=False)
class StudyResult:
    """Rows for people to read; every number with its interval.

    Attributes:
        estimates: what the server learnt from replies alone, by name.
        errors: error on held-out people, by method: the share of wrong labels, or an estimate of
            the root mean squared error of a number; filled by the estimator's `evaluate`.
        held_out: how many people those were.
        notes: what a reader must know.
        shares: names of those estimates that are parts of a whole.
    """

    estimates: dict[str, Estimate] = field(default_factory=dict)
    errors: dict[str, float | Estimate] = field(default_factory=dict)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)
    shares: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"StudyResult({len(self.estimates)} estimates, {len(self.errors)} errors)"

    def __str__(self) -> str:
        """The notes: what the numbers mean, in words."""
        return "\n".join(self.notes) or repr(self)

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a number: value, interval, and the people behind it."""
        rows = [
            (name, found.shown(level, share=name in self.shares), found.people, "private replies")
            for name, found in self.estimates.items()
        ]
        people = self.held_out
        for name, error in self.errors.items():
            numbers = (
                error.shown(level)
                if isinstance(error, Estimate)
                else (error, *wilson(error, people, level))
            )
            rows.append((f"error, {name}", numbers, people, HELD_OUT))
        names = ("quantity", "value", "low", "high", "people", "from")
        return [
            dict(zip(names, (quantity, *numbers, count, source), strict=True))
            for quantity, numbers, count, source in rows
        ]
