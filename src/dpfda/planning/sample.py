"""Public people instead of a made-up family: rows that anybody may see, with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData
from dpfda.planning.families import draw_labels
from dpfda.protocol.comparison import non_private_classifier
from dpfda.protocol.person import equal, label_numbers, one_by_one
from dpfda.protocol.plan import StudyPlan

_FOLDS = 6
_FEWEST = 2 * _FOLDS


@dataclass(frozen=True, eq=False)
class Pilot:
    """Encoded rows of a public sample, redrawn as often as a study needs people.

    A rule that is tried on the rows it was learnt from looks better than it is, on rows that were
    kept apart from a small sample it looks worse, and by about as much: half of the studies are
    done either way, and their mean is nearly right.

    Attributes:
        features: encoded rows.
        labels: their label numbers.
        shares: how frequent each class will be among the people of the study.
        squares: whether classes may differ in spread.
    """

    features: FloatArray
    labels: IntArray
    shares: FloatArray
    squares: bool

    @classmethod
    def of(
        cls, plan: StudyPlan, X: Any, y: Any, *, shares: FloatArray | None, grid_points: Any = None
    ) -> Pilot:
        """The sample as the study would see it."""
        plan.encoder.check_grid(X, grid_points)
        features = plan.encoder.encode(X, grid_points, strict=False)
        labels = public_labels("sample", plan, y, rows=len(features), least=_FEWEST)
        found = np.bincount(labels)
        shares = found / found.sum() if shares is None else shares
        return cls(features, labels, shares, bool(plan.design.get("spread_differs")))

    def parts(self, count: int, *, blurred: float = 0.0) -> list[_Part]:
        """One population a study: all rows for both, and rows kept apart, in turns.

        Args:
            count: how many.
            blurred: share of people who hold anybody's row, whatever their class.
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
        """Of the usual classifier, as near to the truth as the sample allows: see above."""
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


def public_labels(name: str, plan: StudyPlan, y: Any, *, rows: int, least: int) -> IntArray:
    """Label numbers of public rows. People's own unknown labels are never refused; these are."""
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
    """A population: some rows for people who are asked, some for others."""

    pilot: Pilot
    seen: IntArray
    tested: IntArray
    blurred: float

    def people(self, n: int, seed: Any) -> tuple[FloatArray, IntArray]:
        return self._redrawn(self.seen, n, seed)

    def others(self, n: int, seed: Any) -> tuple[FloatArray, IntArray]:
        return self._redrawn(self.tested, n, seed)

    def _redrawn(self, rows: IntArray, n: int, seed: Any) -> tuple[FloatArray, IntArray]:
        first, second, third = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
        shares = self.pilot.shares
        labels, place = draw_labels(n, shares, first), second.random(n)
        of = np.where(third.random(n) < self.blurred, draw_labels(n, shares, third), labels)
        chosen = np.empty(n, dtype=np.int64)
        for one in range(len(shares)):
            own, wanted = rows[self.pilot.labels[rows] == one], of == one
            chosen[wanted] = own[(place[wanted] * len(own)).astype(np.int64)]
        return self.pilot.features[chosen], labels
