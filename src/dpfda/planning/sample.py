"""Populations from a public sample, and the distance between the classes of a population.

The distance is expressed as the error of a rule without privacy, or in standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from dpfda._validate import FloatArray, IntArray
from dpfda.curves.observations import GridPoints
from dpfda.errors import InvalidData
from dpfda.planning.families import Population, Seed, draw_labels
from dpfda.protocol.estimate import non_private_classifier
from dpfda.protocol.person import Entries, equal, label_numbers, one_by_one
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import folded

_FOLDS = 6
_FEWEST = 2 * _FOLDS


@dataclass(frozen=True, eq=False)
class Pilot:
    """Encoded rows of a public sample, from which the people of studies are resampled.

    The error of a rule on its own training rows is too small. On separate test rows of a small
    sample it is too large, by about the same amount. Half of the studies are therefore evaluated in
    each way, so that their mean is nearly unbiased.

    Attributes:
        features: encoded rows.
        labels: label numbers of the rows.
        shares: shares of the classes among the people of the study.
        squares: whether classes may differ in spread.
    """

    features: FloatArray
    labels: IntArray
    shares: FloatArray
    squares: bool

    @classmethod
    def of(
        cls,
        plan: StudyPlan,
        X: object,
        y: Entries,
        *,
        shares: FloatArray | None,
        grid_points: GridPoints = None,
    ) -> Pilot:
        """Encode a sample as the study would."""
        plan.encoder.check_grid(X, grid_points)
        features = plan.encoder.encode(X, grid_points, strict=False)
        labels = public_labels("sample", plan, y, rows=len(features), least=_FEWEST)
        found = np.bincount(labels)
        shares = found / found.sum() if shares is None else shares
        return cls(features, labels, shares, bool(plan.design.get("spread_differs")))

    def parts(self, count: int, *, blurred: float = 0.0) -> list[_Part]:
        """One population for each study: in turns with common rows and with separate test rows.

        Args:
            count: number of studies.
            blurred: share of people whose row is drawn independently of their class.
        """
        rank = np.empty(len(self.labels), dtype=np.int64)
        for one in range(len(self.shares)):  # every fold has its share of every class
            own = np.random.default_rng(one).permutation(np.flatnonzero(self.labels == one))
            rank[own] = np.arange(len(own))
        everything = np.ones(len(rank), dtype=bool)
        found = []
        for number in range(count):
            apart = rank % _FOLDS == (number // 2) % _FOLDS
            seen, tested = (everything, everything) if number % 2 else (~apart, apart)
            found.append(_Part(self, np.flatnonzero(seen), np.flatnonzero(tested), blurred))
        return found

    def non_private_error(self) -> float:
        """Error of a non-private classifier, averaged over both kinds of parts to reduce bias."""
        wrong = np.zeros((2, len(self.labels)))
        for part in self.parts(2 * _FOLDS):
            rule = non_private_classifier(
                self.features[part.seen], self.labels[part.seen], squares=self.squares
            )
            assert rule is not None
            missed = rule.predict(self.features[part.tested]) != self.labels[part.tested]
            wrong[int(len(part.seen) < len(self.labels)), part.tested] = missed
        weight = self.shares[self.labels] / np.bincount(self.labels)[self.labels]
        return float((wrong.mean(axis=0) * weight).sum())


def public_labels(name: str, plan: StudyPlan, y: Entries, *, rows: int, least: int) -> IntArray:
    """Label numbers of public rows; unlike for private rows, unknown labels raise an error."""
    labels = label_numbers(y, plan.classes)
    if len(labels) != rows:
        raise InvalidData(name, "as many labels as rows", f"{len(labels)} and {rows}")
    unknown = np.flatnonzero(~equal(one_by_one(y), one_by_one(plan.classes)[labels]))
    if len(unknown):
        classes = ", ".join(map(str, plan.classes))
        raise InvalidData(name, f"labelled by {classes}", f"another label in row {unknown[0] + 1}")
    rarest = int(np.bincount(labels, minlength=plan.n_classes).min())
    if rarest < least:
        raise InvalidData(name, f"{least} rows or more of each class", f"{rarest} of the rarest")
    return labels


@dataclass(frozen=True, eq=False)
class _Part:
    """A population of a study: rows of participants and rows of test people."""

    pilot: Pilot
    seen: IntArray
    tested: IntArray
    blurred: float

    def people(self, n: int, seed: Seed) -> tuple[FloatArray, IntArray]:
        return self._redrawn(self.seen, n, seed)

    def others(self, n: int, seed: Seed) -> tuple[FloatArray, IntArray]:
        return self._redrawn(self.tested, n, seed)

    def _redrawn(self, rows: IntArray, n: int, seed: Seed) -> tuple[FloatArray, IntArray]:
        first, second, third = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
        shares = self.pilot.shares
        labels, place = draw_labels(n, shares, first), second.random(n)
        of = np.where(third.random(n) < self.blurred, draw_labels(n, shares, third), labels)
        chosen = np.empty(n, dtype=np.int64)
        for one in range(len(shares)):
            own, wanted = rows[self.pilot.labels[rows] == one], of == one
            chosen[wanted] = own[(place[wanted] * len(own)).astype(np.int64)]
        return self.pilot.features[chosen], labels


_ROWS = 3000
_STEPS = 12
_FARTHEST = 64.0  # largest factor on the distance of the classes
_WIDEST = math.log(8.0)  # largest log factor on the spread of a class


def set_apart(population: Population, error: float, seed: Seed) -> Population:
    """Scale the differences of class means such that Fisher's rule has a given error.

    If the error cannot be reached, the nearest possible one is used. If classes differ in spread,
    these differences are scaled by the same factor, and Fisher's rule also uses distances from the
    center as features.
    """
    middle = population.shares @ population.means
    apart, wider = population.means - middle, np.asarray(population.stretch)

    def at(scale: float) -> Population:
        stretch = np.clip(scale * wider, -_WIDEST, _WIDEST)
        return replace(population, means=middle + scale * apart, stretch=stretch)

    return at(_solved(population, error, seed, at))


def set_wide(population: Population, error: float, seed: Seed) -> tuple[Population, float]:
    """Scale the spread around fixed class means such that Fisher's rule has a given error.

    Returns:
        The population, and the factor on its spread.
    """

    def at(scale: float) -> Population:
        return replace(population, stretch=population.stretch - math.log(scale))

    narrow = _solved(population, error, seed, at)
    return at(narrow), 1 / narrow


def _solved(
    population: Population,
    error: float,
    seed: Seed,
    at: Callable[[float], Population],
) -> float:
    """The scale at which Fisher's rule has this error; `at` returns the population of a scale."""
    labels, noise = population.parts(_ROWS, seed)
    if len(np.unique(labels)) < len(population.shares):
        return 1.0
    low, high = 1 / _FARTHEST, _FARTHEST
    for _ in range(_STEPS):
        scale = math.sqrt(low * high)
        rows = at(scale).seen(labels, noise)
        if population.spread_differs:
            rows = folded(rows, rows.mean(axis=0))
        wrong = discriminant_error(rows, labels, population.shares)
        low, high = (scale, high) if wrong > error else (low, scale)
    return math.sqrt(low * high)


def discriminant_error(features: FloatArray, labels: IntArray, shares: FloatArray) -> float:
    """Error of Fisher's rule on its training rows; for two classes with the best threshold.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(4000, 1))
        >>> y = (np.arange(4000) % 2).astype(np.int64)
        >>> round(discriminant_error(x + 2 * y[:, None], y, np.array([0.5, 0.5])), 2)
        0.16
    """
    means = np.stack([features[labels == one].mean(axis=0) for one in range(len(shares))])
    within = np.cov((features - means[labels]).T).reshape(features.shape[1], -1)
    ridge = 1e-6 * np.trace(within) / len(within) + 1e-12
    slopes = np.linalg.solve(within + ridge * np.eye(len(within)), means.T)
    if len(shares) == 2:
        order = np.argsort(features @ (slopes[:, 1] - slopes[:, 0]))
        # Start with all rows above the threshold, then update the error count row by row.
        passed = np.cumsum(np.where(labels[order] == 1, 1, -1))
        return float((np.sum(labels == 0) + min(0, passed.min())) / len(labels))
    scores = features @ slopes - (means * slopes.T).sum(axis=1) / 2 + np.log(shares)
    return float(np.mean(scores.argmax(axis=1) != labels))


def normal_error(distance: float, share: float) -> float:
    """The least error for two normal classes this many standard deviations apart.

    Examples:
        >>> round(normal_error(2.0, 0.5), 3), round(normal_error(0.1, 0.3), 3)
        (0.159, 0.3)
    """
    if distance <= 0:
        return min(share, 1 - share)
    shift = math.log(share / (1 - share)) / distance
    lower = share * ndtr(-distance / 2 - shift) + (1 - share) * ndtr(-distance / 2 + shift)
    return float(lower)


def distance_of(error: float, share: float) -> float:
    """The distance at which two normal classes give this error.

    Examples:
        >>> round(distance_of(normal_error(1.5, 0.3), 0.3), 2)
        1.5
    """
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_error(middle, share) > error else (low, middle)
    return (low + high) / 2


def expected_by_theory(error: float, share: float, *, effective: float, dimension: int) -> float:
    """Expected error of a linear rule with d slopes that are estimated from N_eff answers.

    For two normal classes, err = Φ(-h cos φ), where h is half the distance, R² = h²/(1 + h²) and
    cos² φ = R²/(R² + d(d + 1)/(0.7 N_eff)). The formula ignores ranges that are too wide and
    assumes a signal in all features, so it is a check of the simulation and not a forecast.
    """
    half = distance_of(error, share) / 2
    strength = half**2 / (1 + half**2)
    lost = dimension * (dimension + 1) / max(0.7 * effective, 1e-9)
    kept = math.sqrt(strength / (strength + lost)) if strength else 0.0
    return normal_error(2 * half * kept, share)
