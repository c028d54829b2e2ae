"""Candidates under evaluation: public classifiers and the evaluation answers about them.

In a stream, older answers are discounted and old members are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.local.mrma.averaging import (
    DEFAULT_STRICTNESS,
    Accuracies,
    Weights,
    accuracies,
    average_parameters,
    default_cutoff,
    directions,
    strengths,
    unit_norm,
    weights,
)
from dpfda.local.mrma.rules import MemberRule, votes
from dpfda.protocol.public_randomness import public_uniforms

DEFAULT_SPREAD = 0.3
"""Expected distance of a good boundary from the center of [-1, 1]^d."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """The estimates of the candidates from evaluation answers, and their weights.

    Attributes:
        accuracy: r̃ of every candidate before reversal, with standard errors.
        cutoff: r0 of every candidate.
        weight: weight of every candidate; `survived` is False if none passed its cutoff.
    """

    accuracy: Accuracies
    cutoff: FloatArray
    weight: Weights

    @property
    def direction(self) -> FloatArray:
        """-1 for reversed candidates, +1 for the others."""
        return directions(self.accuracy.value)

    @property
    def reversed(self) -> npt.NDArray[np.bool_]:
        """Which candidates are reversed."""
        return self.direction < 0

    @property
    def signed_weight(self) -> FloatArray:
        """Weights, which are negative for reversed candidates."""
        return self.weight.value * self.direction

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per candidate: accuracy before reversal with interval, reversal, and weight."""
        low, high = self.accuracy.interval(level)
        columns = {
            "accuracy": self.accuracy.value,
            "low": low,
            "high": high,
            "people": self.accuracy.people,
            "reversed": self.reversed,
            "cutoff": self.cutoff,
            "weight": self.weight.value,
        }
        return [
            {"member": b} | {name: column[b].item() for name, column in columns.items()}
            for b in range(len(self.accuracy.value))
        ]


def judge(
    totals: ArrayLike,
    people: ArrayLike,
    *,
    epsilon: float,
    cutoff: float | None = None,
    strictness: float = DEFAULT_STRICTNESS,
) -> Judgement:
    """Estimate accuracies, reverse candidates and compute weights; arrays of shape (..., B).

    Args:
        totals: sums of randomized ±1 evaluations.
        people: numbers of evaluations.
        epsilon: ε_v of an evaluation.
        cutoff: a fixed r0; None means the public default (C3).
        strictness: constant c of the default.

    Examples:
        >>> found = judge([40.0, -40.0, 1.0], [50, 50, 50], epsilon=2.0)
        >>> found.reversed.tolist(), found.weight.value.round(2).tolist()
        ([False, True, False], [0.49, 0.49, 0.01])
    """
    estimate = accuracies(totals, people, epsilon=epsilon)
    if cutoff is None:
        bar = default_cutoff(estimate.people, epsilon=epsilon, strictness=strictness)
    else:
        bar = np.full(estimate.value.shape, float(cutoff))
    return Judgement(estimate, bar, weights(strengths(estimate.value), cutoff=bar))


def intercept_shrinkage(noise_variance: float, *, size: int, spread: float | None) -> float:
    """The shrinkage factor of fitted intercepts, from public numbers alone.

    A member's boundary has distance α/|b| from the center of the box [-1, 1]^d. The noise of `size`
    reports adds the variance noise_variance/size to it. At a small ε, the boundary is then far
    outside of the box, so the member gives everybody the same label and is useless. If the expected
    distance of boundaries is `spread` = s, the best linear estimate multiplies α by
    s²/(s² + variance).

    Args:
        noise_variance: variance of the noise on one coordinate of a report.
        size: n0.
        spread: s; None means no shrinkage, as in the papers.

    Examples:
        >>> round(intercept_shrinkage(800.0, size=50, spread=0.3), 4)
        0.0056
    """
    if spread is None:
        return 1.0
    return spread**2 / (spread**2 + noise_variance / size)


@dataclass(eq=False)
class Candidates:
    """B linear classifiers of encoded curves, and the sums of their evaluations so far.

    Attributes:
        intercept: α, shape (B,).
        coefficients: b, shape (B, d).
        totals: sums of evaluations so far.
        people: numbers of evaluations so far.

    Examples:
        >>> candidates = Candidates([0.0, 0.1], [[1.0], [-1.0]])
        >>> candidates.rows(0, 3)["member"].tolist()
        [[0], [1], [0]]
    """

    intercept: FloatArray
    coefficients: FloatArray
    totals: FloatArray = None  # type: ignore[assignment]  # no evaluations
    people: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, given in self.arrays.items():
            silent = np.zeros(len(self.intercept))
            setattr(self, name, silent if given is None else np.array(given, dtype=np.float64))

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """The arrays of members and sums, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.intercept)

    def rows(self, start: int, people: int, *, each: int = 1) -> dict[str, Any]:
        """Task fields of tickets start, ..., which evaluate the candidates in turn.

        The numbers of evaluations of two candidates thus differ by at most one.

        Args:
            start: number of the first ticket.
            people: the number of tickets.
            each: the number of candidates that one person evaluates, at most B.
        """
        member = in_turn(start, people, each=each, among=len(self))
        rows = self.coefficients[member]
        return {
            "intercept": self.intercept[member],
            "coefficients": rows,
            "centers": np.zeros_like(rows),
            "scales": np.ones_like(rows),
            "member": member,
        }

    def joined_by(self, others: Candidates) -> Self:
        """The members together with new ones without evaluation answers."""
        new = type(self)(others.intercept, others.coefficients).arrays
        both = {name: np.concatenate([array, new[name]]) for name, array in self.arrays.items()}
        return type(self)(**both)

    def scores(self, features: FloatArray) -> FloatArray:
        """Scores of encoded curves by every member, shape (n, B)."""
        return np.asarray(features @ self.coefficients.T + self.intercept)

    def averaged_scores(self, features: FloatArray, weight: FloatArray) -> FloatArray:
        """Scores (n,) of the average with these weights (B,)."""
        intercept, slope = self.averaged(weight)
        return np.asarray(features @ slope + intercept)

    @cached_property
    def hyperplanes(self) -> tuple[FloatArray, FloatArray]:
        """Intercepts and coefficients at unit norm, ready to be averaged."""
        return unit_norm(self.intercept, self.coefficients)

    def averaged(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intercept (...) and coefficients (..., d) of averages of unit-norm candidates.

        Args:
            weight: weights of the candidates, shape (..., B).
        """
        return average_parameters(*self.hyperplanes, weight)

    def judged(
        self, *, epsilon: float, cutoff: float | None = None, strictness: float = DEFAULT_STRICTNESS
    ) -> Judgement:
        """Accuracies, reversals and weights from the evaluations so far."""
        return judge(
            self.totals, self.people, epsilon=epsilon, cutoff=cutoff, strictness=strictness
        )

    def state(self) -> dict[str, Any]:
        """The arrays as plain values, for storage."""
        return {name: array.tolist() for name, array in self.arrays.items()}


@dataclass(eq=False)
class RuleCandidates:
    """B nonlinear members, and the sums of their evaluations so far.

    Attributes:
        rules: the members.
        soft: whether their probabilities are averaged instead of votes.
        totals: sums of evaluations so far.
        people: numbers of evaluations so far.
    """

    rules: Sequence[MemberRule]
    soft: bool
    totals: FloatArray = None  # type: ignore[assignment]  # no evaluations
    people: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name in ("totals", "people"):
            if getattr(self, name) is None:
                setattr(self, name, np.zeros(len(self.rules)))

    def __len__(self) -> int:
        return len(self.rules)

    def joined_by(self, others: RuleCandidates) -> RuleCandidates:
        """The members together with new ones without evaluation answers."""
        more = np.zeros(len(others))
        return RuleCandidates(
            rules=(*self.rules, *others.rules),
            soft=self.soft,
            totals=np.append(self.totals, more),
            people=np.append(self.people, more),
        )

    def scores(self, features: FloatArray) -> FloatArray:
        """Votes or probabilities of every member for encoded curves, shape (n, B)."""
        return votes(self.rules, features, soft=self.soft)

    def averaged_scores(self, features: FloatArray, weight: FloatArray) -> FloatArray:
        """Scores (n,) of the average with these weights (B,)."""
        return np.asarray(self.scores(features) @ weight)

    def judged(
        self, *, epsilon: float, cutoff: float | None = None, strictness: float = DEFAULT_STRICTNESS
    ) -> Judgement:
        """Accuracies, reversals and weights from the evaluations so far."""
        return judge(
            self.totals, self.people, epsilon=epsilon, cutoff=cutoff, strictness=strictness
        )


def in_turn(start: int, people: int, *, each: int, among: int) -> IntArray:
    """Numbers of the members that each ticket from `start` on evaluates, (people, each)."""
    return np.arange(start * each, (start + people) * each).reshape(people, each) % among


def draw_members(uniforms: FloatArray, *, among: int) -> IntArray:
    """Random subsets of {0, ..., N-1} of size n0, from uniform numbers (..., n0), in that shape.

    Floyd's algorithm for all subsets at once: the j-th draw is uniform on {0, ..., N-n0+j}, and a
    repeated draw is replaced by N-n0+j. It needs no array of N numbers per subset.

    Examples:
        >>> chosen = draw_members(np.random.default_rng(0).random((1000, 5)), among=6)
        >>> bool((np.diff(np.sort(chosen, axis=1)) > 0).all()), int(chosen.max())
        (True, 5)
    """
    size = uniforms.shape[-1]
    # The first axis contains the draws, so that comparisons run over the many subsets.
    chosen = np.empty((size, *uniforms.shape[:-1]), dtype=np.int64)
    for draw in range(size):
        last = among - size + draw
        candidate = (uniforms[..., draw] * (last + 1)).astype(np.int64)
        taken = (chosen[:draw] == candidate).any(axis=0)
        chosen[draw] = np.where(taken, last, candidate)
    return np.ascontiguousarray(np.moveaxis(chosen, 0, -1))


def public_members(*, seed: int, phase: int, members: int, size: int, among: int) -> IntArray:
    """The training participants of each member, drawn from the plan's public seed."""
    uniforms = public_uniforms(seed=seed, phase=phase, start=0, people=members, width=size)
    return draw_members(uniforms, among=among)


@dataclass(eq=False)
class Memory(Candidates):
    """Members with discounted sums of evaluations: those of k rounds ago have weight λ^k.

    Attributes:
        squares: Σ λ^{2k} n_k with n_k evaluations k rounds ago, for the variance.
        halves: label numbers that each member separates from the others, (B, h); 1 of two classes.

    Examples:
        >>> memory = Memory.from_dict(None, 2).joined_by(Candidates([0.1], [[1.0, 0.0]]))
        >>> memory = memory.updated([30.0], [50], keep=0.5).updated([10.0], [50], keep=0.5)
        >>> memory.totals.tolist(), memory.effective_people.round(1).tolist()
        ([25.0], [90.0])
    """

    squares: FloatArray = None  # type: ignore[assignment]
    halves: IntArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        halves = np.ones((len(self.intercept), 1)) if self.halves is None else self.halves
        super().__post_init__()
        self.halves = np.array(halves, dtype=np.int64)

    def joined_by(self, others: Candidates, *, halves: IntArray | None = None) -> Self:
        """The members together with new ones, which are about these halves."""
        known: dict[str, Any] = {"halves": halves}
        new = type(self)(others.intercept, others.coefficients, **known).arrays
        both: dict[str, Any] = {
            name: np.concatenate([array, new[name]]) for name, array in self.arrays.items()
        }
        return type(self)(**both)

    @property
    def effective_people(self) -> FloatArray:
        """(Σ λ^k n)²/Σ λ^{2k} n: the number of equally weighted evaluations with this precision."""
        return np.asarray(self.people**2 / np.where(self.squares > 0, self.squares, 1))

    def judged(
        self, *, epsilon: float, cutoff: float | None = None, strictness: float = DEFAULT_STRICTNESS
    ) -> Judgement:
        """Accuracies, reversals and weights from the discounted sums."""
        effective = self.effective_people
        mean = self.totals / np.where(self.people > 0, self.people, 1)
        return judge(
            mean * effective, effective, epsilon=epsilon, cutoff=cutoff, strictness=strictness
        )

    def strongest(self, most: int, *, epsilon: float) -> Memory:
        """The `most` members with the largest |r̃ - ½| in standard errors, equally many per half."""
        if len(self) <= most:
            return self
        found = self.judged(epsilon=epsilon).accuracy
        evidence = (strengths(found.value) - 0.5) / found.standard_error
        order = np.argsort(-evidence, kind="stable")
        _, half = np.unique(self.halves, axis=0, return_inverse=True)
        rank = np.zeros(len(self), dtype=np.int64)  # rank of a member within its half
        for one in range(int(half.max()) + 1):
            own = order[half.ravel()[order] == one]
            rank[own] = np.arange(len(own))
        kept = np.sort(order[np.argsort(rank[order], kind="stable")][:most])
        chosen: dict[str, Any] = {name: array[kept] for name, array in self.arrays.items()}
        return Memory(**chosen)

    def updated(self, totals: ArrayLike, people: ArrayLike, *, keep: float) -> Memory:
        """Add the answers of a round; the weight of older ones is multiplied by `keep`."""
        return replace(
            self,
            totals=keep * self.totals + np.asarray(totals),
            people=keep * self.people + np.asarray(people),
            squares=keep**2 * self.squares + np.asarray(people),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None, dimension: int, *, half: int = 1) -> Self:
        """Rebuild from `state`; None is the memory before the first round."""
        memory = cls(**({"intercept": [], "coefficients": []} if data is None else data))
        memory.coefficients = memory.coefficients.reshape(-1, dimension)
        memory.halves = memory.halves.reshape(-1, half)
        return memory
