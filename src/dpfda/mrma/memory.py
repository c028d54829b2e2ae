"""Members of a stream and what is still remembered of the verdicts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mrma.members import Candidates, Judgement, judge
from dpfda.mrma.reversal import strengths


@dataclass(frozen=True, eq=False)
class Memory:
    """Members with discounted sums of verdicts.

    Attributes:
        intercept: α, shape (B,).
        coefficients: b, shape (B, d).
        totals: Σ λ^k (sum of the verdicts k rounds ago).
        people: Σ λ^k (how many they were).
        squares: Σ λ^{2k} (how many they were): what the variance needs.

    Example:
        >>> memory = Memory.from_dict(None, dimension=2).joined_by(Candidates([0.1], [[1.0, 0.0]]))
        >>> memory = memory.updated([30.0], [50], keep=0.5).updated([10.0], [50], keep=0.5)
        >>> memory.totals.tolist(), memory.effective_people.round(1).tolist()
        ([25.0], [90.0])
    """

    intercept: FloatArray
    coefficients: FloatArray
    totals: FloatArray
    people: FloatArray
    squares: FloatArray

    def __len__(self) -> int:
        return len(self.intercept)

    @property
    def candidates(self) -> Candidates:
        """The members as candidates."""
        return Candidates(self.intercept, self.coefficients)

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
        return Memory(**{name: value[kept] for name, value in vars(self).items()})

    def joined_by(self, candidates: Candidates) -> Memory:
        """With new members about whom nobody said anything yet."""
        silent = np.zeros(len(candidates))
        return Memory(
            np.concatenate([self.intercept, candidates.intercept]),
            np.concatenate([self.coefficients, candidates.coefficients]),
            np.concatenate([self.totals, silent]),
            np.concatenate([self.people, silent]),
            np.concatenate([self.squares, silent]),
        )

    def updated(self, totals: Any, people: Any, *, keep: float) -> Memory:
        """With a round's verdicts added and older ones counting `keep` times as much."""
        return Memory(
            self.intercept,
            self.coefficients,
            keep * self.totals + np.asarray(totals),
            keep * self.people + np.asarray(people),
            keep**2 * self.squares + np.asarray(people),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: value.tolist() for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None, *, dimension: int) -> Memory:
        """Rebuild from `to_dict`; None is the memory before the first round."""
        if data is None:
            nothing = np.zeros(0)
            return cls(nothing, np.zeros((0, dimension)), nothing, nothing, nothing)
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in data.items()}
        arrays["coefficients"] = arrays["coefficients"].reshape(-1, dimension)
        return cls(**arrays)
