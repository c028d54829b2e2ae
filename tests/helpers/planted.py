"""A source of given words, for tests that follow a sampler by hand."""

from __future__ import annotations

import numpy as np


class Words:
    """Hands out the words it was given, then fails."""

    sampler = "simulation"

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "more words asked for than planted"
        return np.array(taken, dtype=np.uint64)
