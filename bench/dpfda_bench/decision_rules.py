"""Fitted decision rules of many simulated studies at once, and how often they are wrong.

A rule holds one classifier for each of R studies; `errors` takes test people of every study,
features (R, n, d) and labels ±1 (R, n) of one array library, and returns R error rates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.mrma.learners._arrays import Array, as_double, namespace, on_cpu, to_numpy

_CHUNK = 1 << 18
"""Scores computed at once: what a core's cache holds."""
_DEVICE = 1 << 28
"""The same on an accelerator, where launching a kernel costs more than memory."""


class Rule(ABC):
    """One classifier for each of R studies."""

    @abstractmethod
    def errors(self, features: Array, labels: Array) -> FloatArray:
        """Share of wrong decisions in each study, shape (R,)."""


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """sign(α + b·x), α of shape (R,), b of shape (R, d); 0 counts as +1."""

    intercept: FloatArray
    coefficients: FloatArray

    def errors(self, features: Array, labels: Array) -> FloatArray:
        """Share of wrong decisions in each study."""
        intercept, slopes = beside(features, self.intercept, self.coefficients)
        scores = (features @ slopes[..., None])[..., 0] + intercept[:, None]
        return _share((scores >= 0) != (labels > 0))


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

    def errors(self, features: Array, labels: Array) -> FloatArray:
        """Share of wrong decisions in each study, averaged over members unless they vote."""
        studies = features.shape[0]
        found = np.empty(studies)
        xp, limit = namespace(features), _CHUNK if on_cpu(features) else _DEVICE
        size = max(1, limit // (features.shape[1] * self.intercept.shape[1]))
        own = beside(features, self.intercept, self.coefficients, self.direction)
        for start in range(0, studies, size):
            part = slice(start, min(start + size, studies))
            intercept, slopes, direction = (array[part, ...] for array in own)
            scores = features[part, ...] @ xp.matrix_transpose(slopes)
            scores += intercept[:, None, :]
            positive = scores * direction[:, None, :] >= 0
            truth = (labels[part, :] > 0)[:, :, None]
            if self.voting:
                votes = xp.count_nonzero(positive, axis=2, keepdims=True)
                lead = 2 * votes - positive.shape[2]
                wrong = ((lead >= 0) != truth) | ((lead == 0) & self.ties_wrong)
            else:
                wrong = positive != truth
            found[part] = _share(wrong)
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

    def errors(self, features: Array, labels: Array) -> FloatArray:
        """Share of the other class among the test people."""
        (positive,) = beside(labels, self.positive)
        return _share((labels > 0) != (positive > 0)[:, None])


def beside(array: Array, *values: FloatArray) -> tuple[Array, ...]:
    """The values in the library and on the device of an array."""
    return tuple(as_double("values", value, like=array) for value in values)


def _share(wrong: Array) -> FloatArray:
    """Of what is true, in all but the first axis."""
    xp = namespace(wrong)
    axes = tuple(range(1, wrong.ndim))
    return np.asarray(to_numpy(xp.count_nonzero(wrong, axis=axes)) / math.prod(wrong.shape[1:]))


def grid_cells(features: FloatArray, *, splits: int) -> IntArray:
    """Cell numbers of points in [-1, 1]^d, shape (..., d) -> (...)."""
    z = np.asarray(features)
    along = np.clip(((z + 1) / 2 * splits).astype(np.int64), 0, splits - 1)
    return np.asarray(along @ splits ** np.arange(z.shape[-1] - 1, -1, -1), dtype=np.int64)
