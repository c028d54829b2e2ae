"""Whether reports of different people, or noise on different coordinates, go together.

Each report alone may have the right law and the guarantee still be void: two people who got the
same noise are told apart by the difference of their reports, and so are two coordinates of one
person. Over repeats of one input, independent reports have uncorrelated ranks.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy import stats

from dpfda._validate import FloatArray

DEPENDENT = 6.0
"""Standard errors: exceeded by chance once in 10^7 audits of a few dozen correlations each."""
_COLUMNS = 8  # of a report that are looked at
_FEWEST = 100  # reports that ranks are compared of


class Dependence:
    """Rank correlations over reports about one input at a time.

    People are rows: each is compared with the next one, the one after that, and the one half a
    batch later.

    Args:
        added: how many coordinates noise was added to, which are then uncorrelated; reports of
            another width are looked at row by row only.

    Examples:
        >>> noise = np.random.default_rng(0).normal(size=(1000, 3))
        >>> alone, shared = Dependence(added=3), Dependence(added=3)
        >>> alone.add(noise)
        >>> shared.add(noise[:, [0, 1, 1]])
        >>> alone.largest < DEPENDENT < shared.largest
        True
    """

    def __init__(self, *, added: int = 0) -> None:
        self._added = added
        self._sums: dict[str, float] = {}
        self._pairs: dict[str, int] = {}

    def add(self, reports: FloatArray) -> None:
        """Reports about one input, in the order in which they were drawn."""
        size = len(reports)
        if size < _FEWEST:
            return
        columns = [_ranks(column) for column in reports[:, :_COLUMNS].T]
        for number, column in enumerate(columns):
            for name, lag in (("next", 1), ("next but one", 2), ("far", size // 2)):
                self._note(f"people {name}, {number}", column[lag:], column[:-lag])
        alike = reports.shape[1] == self._added
        for one, other in combinations(range(len(columns)) if alike else (), 2):
            self._note(f"coordinates {one}, {other}", columns[one], columns[other])

    def _note(self, what: str, one: FloatArray, other: FloatArray) -> None:
        self._sums[what] = self._sums.get(what, 0.0) + float(one @ other)
        self._pairs[what] = self._pairs.get(what, 0) + len(one)

    @property
    def largest(self) -> float:
        """The largest correlation, in standard errors; 0 where too little was drawn."""
        found = (abs(total) / math.sqrt(self._pairs[what]) for what, total in self._sums.items())
        return max(found, default=0.0)


def _ranks(column: FloatArray) -> FloatArray:
    """Ranks of mean 0 and variance 1; 0 where all are alike."""
    ranks = stats.rankdata(column)
    ranks -= ranks.mean()
    return np.asarray(ranks / max(float(ranks.std()), 1e-9))
