"""Fitted decision rules of many simulated studies at once, and how often they are wrong.

A rule holds one classifier for each of R studies; `errors` takes test people of every study,
features (R, n, d) and labels ±1 (R, n), and returns R error rates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray, IntArray

_CHUNK = 1 << 18
"""Scores computed at once: what a core's cache holds."""


class Rule(ABC):
    """One classifier for each of R studies."""

    @abstractmethod
    def errors(self, features: FloatArray, labels: FloatArray) -> FloatArray:
        """Share of wrong decisions in each study, shape (R,)."""


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """sign(α + b·x), α of shape (R,), b of shape (R, d); 0 counts as +1."""

    intercept: FloatArray
    coefficients: FloatArray

    def errors(self, features: FloatArray, labels: FloatArray) -> FloatArray:
        """Share of wrong decisions in each study."""
        scores = (features @ self.coefficients[..., None])[..., 0] + self.intercept[:, None]
        return np.asarray(np.mean((scores >= 0) != (labels > 0), axis=1))


@dataclass(frozen=True, eq=False)
class MembersRule(Rule):
    """The mean error of B members, or with `voting` the error of their majority.

    Attributes:
        intercept: shape (R, B).
        coefficients: shape (R, B, d).
        direction: ±1, shape (R, B); -1 reverses a member.
        voting: decide together instead of one by one.
        ties_wrong: a tie of votes is an error whatever the label, instead of a vote for +1.
    """

    intercept: FloatArray
    coefficients: FloatArray
    direction: FloatArray
    voting: bool = False
    ties_wrong: bool = False

    def errors(self, features: FloatArray, labels: FloatArray) -> FloatArray:
        """Share of wrong decisions in each study, averaged over members unless they vote."""
        found = np.empty(len(features))
        size = max(1, _CHUNK // (features.shape[1] * self.intercept.shape[1]))
        for start in range(0, len(features), size):
            part = slice(start, start + size)
            scores = features[part] @ np.swapaxes(self.coefficients[part], 1, 2)
            scores += self.intercept[part, None, :]
            positive = scores * self.direction[part, None, :] >= 0
            truth = (labels[part] > 0)[:, :, None]
            if self.voting:
                lead = 2 * positive.sum(axis=2, keepdims=True) - positive.shape[2]
                wrong = ((lead >= 0) != truth) | ((lead == 0) & self.ties_wrong)
            else:
                wrong = positive != truth
            found[part] = wrong.mean(axis=(1, 2))
        return found


@dataclass(frozen=True, eq=False)
class CellRule(Rule):
    """The sign of a histogram: `table` of shape (R, splits^d) holds noisy sums of labels."""

    table: FloatArray
    splits: int

    def errors(self, features: FloatArray, labels: FloatArray) -> FloatArray:
        """Share of wrong decisions in each study."""
        cells = grid_cells(features, splits=self.splits)
        sums = np.take_along_axis(self.table, cells, axis=1)
        return np.asarray(np.mean((sums >= 0) != (labels > 0), axis=1))


@dataclass(frozen=True, eq=False)
class ConstantRule(Rule):
    """Always the class that most people of the study have."""

    positive: FloatArray

    def errors(self, features: FloatArray, labels: FloatArray) -> FloatArray:
        """Share of the other class among the test people."""
        return np.asarray(np.mean((labels > 0) != (self.positive > 0)[:, None], axis=1))


def grid_cells(features: FloatArray, *, splits: int) -> IntArray:
    """Cell numbers of points in [-1, 1]^d, shape (..., d) -> (...)."""
    z = np.asarray(features)
    along = np.clip(((z + 1) / 2 * splits).astype(np.int64), 0, splits - 1)
    return np.asarray(along @ splits ** np.arange(z.shape[-1] - 1, -1, -1), dtype=np.int64)
