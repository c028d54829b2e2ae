"""What studies of several scores share: one for two classes, else one a class against the rest."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpfda._validate import IntArray
from dpfda.protocol.progress import Progress


class ScoredProgress(Progress):
    """A study whose people help the scores in turn; all it keeps is arrays of sums."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the arrays."""

    @property
    def n_scores(self) -> int:
        """m: 1 for two classes, K otherwise."""
        return self.plan.n_scores

    def _positive(self, start: int, people: int) -> IntArray:
        """The class that counts as +1: label 1 of two; else each class in turn."""
        if self.n_scores == 1:
            return np.ones(people, dtype=np.int64)
        return np.arange(start, start + people, dtype=np.int64) % self.n_scores

    def _score(self, positive: IntArray) -> IntArray:
        """The score that is helped where this class counts as +1."""
        return positive if self.n_scores > 1 else np.zeros_like(positive)

    def _learn(self) -> None:
        """The sums say everything."""

    def state(self) -> dict[str, Any]:
        """Phase and sums."""
        return {"phase": self.phase} | {name: getattr(self, name).tolist() for name in self.kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.phase = state["phase"]
        for name in self.kept:
            setattr(self, name, np.asarray(state[name]))
