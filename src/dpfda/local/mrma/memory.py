"""Members of a stream and what is still remembered of the verdicts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.mrma.evaluation import strengths
from dpfda.local.mrma.members import Candidates, Judgement, judge


@dataclass(eq=False)
class Memory(Candidates):
    """Members with discounted sums of verdicts: those of k rounds ago count λ^k in all sums.

    Attributes:
        squares: Σ λ^{2k} (how many verdicts k rounds ago): what the variance needs.

    Examples:
        >>> memory = Memory.from_dict(None, dimension=2).joined_by(Candidates([0.1], [[1.0, 0.0]]))
        >>> memory = memory.updated([30.0], [50], keep=0.5).updated([10.0], [50], keep=0.5)
        >>> memory.totals.tolist(), memory.effective_people.round(1).tolist()
        ([25.0], [90.0])
    """

    squares: FloatArray = None  # type: ignore[assignment]

    @property
    def effective_people(self) -> FloatArray:
        """(Σ λ^k n)²/Σ λ^{2k} n: as many equal verdicts would be as precise."""
        return np.asarray(self.people**2 / np.where(self.squares > 0, self.squares, 1))

    def judged(
        self, *, epsilon: float, cutoff: float | None = None, strictness: float = 1.0
    ) -> Judgement:
        """Accuracies, reversals and weights from the discounted sums."""
        effective = self.effective_people
        mean = self.totals / np.where(self.people > 0, self.people, 1)
        return judge(
            mean * effective, effective, epsilon=epsilon, cutoff=cutoff, strictness=strictness
        )

    def strongest(self, most: int, *, epsilon: float) -> Memory:
        """The `most` members whose r̃ lies furthest from ½ in standard errors."""
        if len(self) <= most:
            return self
        found = self.judged(epsilon=epsilon).accuracy
        evidence = (strengths(found.value) - 0.5) / found.standard_error
        kept = np.sort(np.argsort(-evidence, kind="stable")[:most])
        return Memory(**{name: array[kept] for name, array in self.arrays.items()})

    def updated(self, totals: Any, people: Any, *, keep: float) -> Memory:
        """With a round's verdicts added and older ones counting `keep` times as much."""
        return replace(
            self,
            totals=keep * self.totals + np.asarray(totals),
            people=keep * self.people + np.asarray(people),
            squares=keep**2 * self.squares + np.asarray(people),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None, *, dimension: int) -> Self:
        """Rebuild from `state`; None is the memory before the first round."""
        memory = cls(**({"intercept": [], "coefficients": []} if data is None else data))
        memory.coefficients = memory.coefficients.reshape(-1, dimension)
        return memory
