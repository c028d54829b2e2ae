"""`MRMAClassifier`: model reversal and model averaging, the classifier of papers 000 and 001."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from dpfda._validate import ArrayLike, FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidParameter
from dpfda.estimators.local_base import (
    CurveClassifier,
    account,
    curves_and_points,
    new_features,
    plain_classes,
    stamped,
    warn_if_few,
)
from dpfda.estimators.reading import read_labels, set_classes
from dpfda.estimators.study_report import of_study
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.local.mrma.designs import MRMADesign, ReportedDesign, VoteDesign
from dpfda.local.mrma.learners.rule_learners import RuleLearner
from dpfda.local.mrma.members import DEFAULT_SPREAD
from dpfda.local.mrma.result import MRMAFindings, MRMAResult, draw
from dpfda.protocol.estimate import NON_PRIVATE
from dpfda.protocol.findings import Findings, beside_guessing, found_of
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import Entries, Groups, label_numbers
from dpfda.protocol.plan import Protects, StudyPlan
from dpfda.report import Contents
from dpfda.simulate import people_from, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = TypeVar("D", bound=ReportedDesign)


@dataclass(eq=False, repr=False)
class MRMAClassifier(CurveClassifier):
    """Model reversal and model averaging under local differential privacy (000, 001).

    `fit` simulates a study in this process; every row is a person who answers once, privately. Some
    people report their encoded curve and label with noise, and weak classifiers (members) are
    fitted to batches of these reports. Each of the other people reports, as one randomized bit,
    whether a member predicts their label. Members that are mostly wrong are reversed, and the best
    members are averaged.

    Privacy:
        ε-LDP for every row, including curve and label (`protects`). With ``random_state=None`` the
        noise is exact and from the operating system; a seed gives a simulation, and `guarantee_`
        says so.

    Args:
        epsilon: ε of every person.
        encoder: the map from a row to a vector in [-1, 1]^d; by default four cubic B-splines, which
            are scaled by the public ranges or, without ranges, by tanh.
        value_range: public (low, high) of x(t); values outside are clipped.
        domain_range: public (start, end) of t. The default is the domain of the shared grid
            points or of an FDataGrid, otherwise [0, 1]. It is required for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair per
            column, or a mapping from columns to (low, high) or to categories.
        learner: weak learner: ``conjugate_gradient``, ``logistic``, ``linear_svm``, ``dwd``, ...,
            or, not linear, ``shallow_tree`` or ``kernel_machine``.
        learner_parameters: parameters of the learner.
        n_classifiers: B, the number of weak classifiers.
        member_size: n0, the number of reports for each weak classifier.
        training_share: share of people who report; the others evaluate members.
        average: for nonlinear members, average their ``votes`` (the default) or their
            probabilities, ``chances``. For linear members, parameters are averaged.
        cutoff: r̃*, above which a member has positive weight, as in the papers; None is ½ plus
            `strictness` standard errors (C3).
        strictness: see `cutoff`; with 0, members have weights |r̃ - ½|, after reversal.
        mechanism: registered name of the mechanism for encoded curves.
        label_share: share of ε that protects the label in a report; None is 1/(d+1).
        boundary_spread: expected distance of a good boundary from the center of [-1, 1]^d; noisy
            intercepts are shrunk accordingly. None does not shrink them, as in the papers.
        protects: ``"both"``, ``"features"`` or ``"labels"``.
        classifiers_per_person: number of members that each of the other people evaluates, as in
            000, with an equal share of ε for each.
        evaluation_share: share of people who evaluate the finished classifier, which gives
            `error_estimate_` without held-out data.
        classes: the public labels; required unless `random_state` makes this a simulation. With
            more than two classes, each member separates one half of the classes from the other
            (`dpfda.local.mrma.study`), which requires many more people.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        unit: the protected unit to which a row, or all rows of one group, belong.
        random_state: None for real data; an integer, a seed sequence or a source for simulations.

    Attributes:
        model_: the public classifier, which can be saved as JSON.
        guarantee_: the privacy guarantee of every person.
        result_: `MRMAResult`: members, weights, `table()`.
        error_estimate_: error estimated by other people, or None (see `evaluation_share`).
        plan_: the public plan of the study.
        classes_: the labels.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> data = simulate_001(3000, random_state=1)
        >>> clf = MRMAClassifier(epsilon=5.0, random_state=0)
        >>> clf.fit(data.X, data.y, grid_points=data.grid_points).guarantee_.epsilon
        5.0
        >>> bool(clf.score(data.X, data.y) > 0.7)
        True
    """

    epsilon: float = 1.0
    _: KW_ONLY
    encoder: CurveEncoder | None = None
    learner: str = "conjugate_gradient"
    learner_parameters: Mapping[str, Any] | None = None
    n_classifiers: int = 50
    member_size: int = 50
    training_share: float = 1 / 6
    boundary_spread: float | None = DEFAULT_SPREAD
    average: str | None = None
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    mechanism: str = "laplace"
    label_share: float | None = None
    protects: Protects = "both"
    classifiers_per_person: int = 1
    evaluation_share: float = 0.0
    model_: Any = field(init=False)  # a `CurveModel`; for nonlinear members a `VoteModel`
    plan_: StudyPlan = field(init=False)

    def fit(
        self, X: Curves, y: Entries, *, grid_points: GridPoints = None, groups: Groups = None
    ) -> Self:
        """Run the study.

        Args:
            X: an array (n, T), or (n, T, C) for C channels, NaN where a point is missing;
                scikit-fda curves; a list of pairs (t, x); or a table.
            y: the label of each row.
            grid_points: the T points of an array, equidistant by default; or a list of grids, one
                for each curve.
            groups: the person of each row, if people have several rows; each person then
                reports one randomly chosen row, so that ε is per person.
        """
        X, grid_points = curves_and_points(self, X, grid_points)
        seed = self._public_seed()
        rows, labels = self._read_people(X, y, groups, seed=seed)
        set_classes(self, labels)
        self.grid_points_ = grid_points
        source, encoder = self._source(), self._public_encoder(rows, grid_points)
        self.plan_ = StudyPlan(
            epsilon=self.epsilon,
            n_people=len(labels),
            classes=plain_classes(self.classes_),
            encoder=encoder,
            design=self._design().to_dict(),
            protects=self.protects,
            unit=self.unit,
            seed=seed,
        )
        warn_if_few(len(labels), self.epsilon)
        people = people_from(self.plan_, rows, labels, grid_points=grid_points)
        server = simulate(self.plan_, people, source=source, **account(self))
        self.guarantee_ = self._promise(self.plan_.guarantee, source)
        self.model_ = stamped(server.model, self.guarantee_)
        findings = server.findings
        assert isinstance(findings, MRMAFindings)
        self.error_estimate_ = findings.error
        self.result_ = MRMAResult(*findings.judged, self.error_estimate_)
        self._fit_comparison(rows, labels, grid_points)
        return self

    def _design(self) -> MRMADesign:
        """The design of the study; members that are not linear vote."""
        if self.learner in RuleLearner.members():
            return mrma_design(self, VoteDesign, average=self.average or "votes")
        if self.average is not None:
            rule = f"left out with the linear learner {self.learner!r}"
            raise InvalidParameter("average", rule, self.average)
        return mrma_design(self, MRMADesign)

    def evaluate(self, X: Curves, y: Entries, *, grid_points: GridPoints = None) -> MRMAResult:
        """Compute errors of MRMA, its parts and guessing on held-out people for ``result_``."""
        features = new_features(self, X, grid_points)
        labels = read_labels(y, len(features), strict=self._is_simulation)
        self.result_.evaluate(self.model_, features, label_numbers(labels, self.classes_))
        if self._non_private is not None:
            error = self._non_private_error(X, labels, grid_points)
            self.result_.errors["non-private"] = error
            self.result_.notes.append(NON_PRIVATE)
        return self.result_

    def plot(self, *, level: float = 0.95) -> Figure:
        """Draw the slope function, and accuracies and weights of members, as a figure."""
        self._require_fitted()
        return draw(self.result_, self.model_, level=level)

    def _contents(self) -> Contents:
        found = Findings(classes=self.plan_.classes, phases=(), error=self.error_estimate_)
        return of_study(
            self.model_._contents(),
            self.plan_,
            self.result_,
            simulated=self._is_simulation,
            verdict=beside_guessing(self.plan_, found_of(found)),
            draw=self.plot,
        )

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) of the classifier at `points`; for tables, feature weights.

        Several classes have one row each.
        """
        self._require_fitted()
        if not isinstance(self.model_, CurveModel):
            rule = "a linear one: the average of others has no slope"
            raise InvalidParameter("learner", rule, self.learner)
        rows = self.model_.coefficients
        return np.asarray(self.model_.encoder.slope(rows[0] if len(rows) == 1 else rows, points))


def mrma_design(estimator: CurveClassifier, kind: type[D], **more: Any) -> D:
    """The design whose fields are the estimator's parameters of the same name, and `more`."""
    names = {field.name for field in fields(kind)}
    parameters = estimator.get_params(deep=False)
    given = {name: value for name, value in parameters.items() if name in names} | more
    given["learner_parameters"] = given["learner_parameters"] or {}
    return kind(**given)
