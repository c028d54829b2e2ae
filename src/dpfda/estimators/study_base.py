"""What the study estimators share: fit runs a simulated study, the rest reads its result."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpfda._validate import FloatArray
from dpfda.curves.observations import with_own_grids
from dpfda.estimators.local_base import CurveClassifierBase, CurveEstimator, plain_classes
from dpfda.estimators.study_report import StudyResult, draw_study, of_study
from dpfda.noise import Source
from dpfda.protocol.comparison import (
    NON_PRIVATE,
    WITH_SQUARES,
    in_words,
    majority_error,
)
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import ERROR, beside_guessing, found_of
from dpfda.protocol.plan import Protects, StudyPlan
from dpfda.protocol.server import Server
from dpfda.report import Contents
from dpfda.simulate import people_from, simulate


@dataclass(eq=False, repr=False, kw_only=True)
class StudyEstimator(CurveEstimator):
    """Everybody behind the rows of `fit` reports once; what the server learnt is kept."""

    plan_: StudyPlan = field(init=False)
    server_: Server = field(init=False)

    def _hold(self, rows: Any, y: Any, grid_points: Any, *, source: Source) -> None:
        """Hold the study of the plan with these people."""
        people = people_from(self.plan_, rows, y, grid_points=grid_points)
        self.server_ = simulate(self.plan_, people, source=source, **self._account)
        self._conclude(source)

    def _conclude(self, source: Source) -> None:
        """What the server knows now."""
        self.guarantee_ = self._promise(self.plan_.guarantee, source)
        self.model_ = replace(self.server_.model, guarantee=self.guarantee_)
        findings = self.server_.findings
        self.result_ = StudyResult(
            estimates=findings.estimates(),
            notes=findings.said,
            shares=frozenset([ERROR] if findings.classes else []),
        )

    @property
    def error_estimate_(self) -> Estimate | None:
        """The server's own estimate of the error, from people who answered after the model stood.

        None unless people were set aside for it (``evaluation_share``).
        """
        check_is_fitted(self)
        return self.server_.findings.error

    def plot(self) -> Any:
        """Slope function, what was learnt with intervals, and who was asked what."""
        check_is_fitted(self)
        return draw_study(self.model_, self.server_.findings)

    def _contents(self) -> Contents:
        found = self.server_.findings
        return of_study(
            self.model_._contents(),
            self.plan_,
            self.result_,
            simulated=self._is_simulation,
            verdict=beside_guessing(self.plan_, found_of(found)),
            draw=self.plot,
            replies=found.notes,
        )

    def slope(self, points: Any = None) -> FloatArray:
        """The slope function β(t) at `points`, one row a score; for vectors, feature weights.

        It describes the score where no feature is clipped.
        """
        check_is_fitted(self)
        return np.asarray(self.model_.slope(points))


@dataclass(eq=False, repr=False, kw_only=True)
class StudyClassifier(StudyEstimator, CurveClassifierBase):
    """A classifier that is learnt in a study: everybody behind the rows of `fit` reports once.

    Subclasses say in `_plan` what the study looks like, from public parameters and the public
    number of people alone.
    """

    protects: Protects = "both"

    def fit(self, X: Any, y: Any, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Simulate the study: every person answers once, privately.

        Args:
            X: an array (n, T), or (n, T, C) for C channels; scikit-fda curves; a list of pairs
                (t, x); or a table.
            y: the label of each row.
            grid_points: the T points of an array, equidistant by default; or a list of grids, one
                for each curve.
            groups: the person behind each row, where people have several; then each person
                reports one of their rows, chosen at random, so that ε is per person.
        """
        X, grid_points = with_own_grids(X, grid_points)
        seed = self._public_seed()
        rows, y = self._read(X, y, groups, seed=seed)
        self._set_classes(y)
        self._ask(rows, y, grid_points, seed=seed, source=self._source())
        self._fit_comparison(rows, y, grid_points)
        return self

    def _ask(self, rows: Any, y: Any, grid_points: Any, *, seed: int, source: Source) -> None:
        """Ask these people, and keep what comes of it."""
        self.grid_points_ = grid_points
        self.plan_ = self._plan(
            rows,
            grid_points,
            epsilon=self.epsilon,
            n_people=len(y),
            classes=plain_classes(self.classes_),
            protects=self.protects,
            unit=self.unit,
            seed=seed,
        )
        self._warn_if_few(len(y))
        self._hold(rows, y, grid_points, source=source)

    def evaluate(self, X: Any, y: Any, *, grid_points: Any = None) -> StudyResult:
        """Errors on held-out people, beside the majority class and the non-private error.

        The non-private classifier looks at raw curves, so it exists for simulations only.
        """
        decided = self.model_.decide(self._features(X, grid_points))
        y = self._read_labels(y, len(decided))
        error, guessing = float(np.mean(self.classes_[decided] != y)), majority_error(y)
        result = self.result_
        result.errors = {"private": error, "majority class": guessing}
        result.held_out = len(y)
        result.notes = [*self.server_.findings.said, in_words(error, guessing, len(y))]
        if self._non_private is not None:
            result.errors["non-private"] = self._non_private_error(X, y, grid_points)
            result.notes.append(WITH_SQUARES if len(self.model_.folds) else NON_PRIVATE)
        return result

    @abstractmethod
    def _plan(self, X: Any, grid_points: Any, **known: Any) -> StudyPlan:
        """The public contract of the study; of X only its shape and domain are looked at."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags
