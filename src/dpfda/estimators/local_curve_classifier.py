"""`LocalCurveClassifier`: classification of curves under local differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Self

from dpfda._validate import ArrayLike, FloatArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.estimators.local_base import (
    CurveClassifier,
    account,
    curves_and_points,
    evaluate_classifier,
    plain_classes,
    range_facts,
    stamped,
    warn_if_few,
)
from dpfda.estimators.reading import set_classes
from dpfda.estimators.study_report import StudyResult, draw_study, study_contents
from dpfda.local.recipe import plan_study
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.person import Entries, Groups
from dpfda.protocol.plan import Protects, StudyPlan
from dpfda.protocol.server import Server
from dpfda.report import Contents
from dpfda.simulate import people_from, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class LocalCurveClassifier(CurveClassifier):
    """Classify curves under local differential privacy; each person answers one query, once.

    The study planner `plan_study` determines the queries from the number of people, ε and public
    ranges; later queries also depend on earlier answers. People answer yes/no questions about
    features and label. In larger studies, on tables and with several classes they report a noisy
    vector instead.

    Args:
        epsilon: ε of each person.
        value_range: public (low, high) of x(t), or one pair per channel; values outside are
            clipped. It is required for curves.
        domain_range: public (start, end) of t. The default is the domain of the shared grid
            points or of an FDataGrid, otherwise [0, 1]. It is required for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair per
            column, or a mapping from columns to (low, high) or to categories.
        ordered: whether the features of a table are in order of importance; those of curves are.
        center_known: whether the center of the public range is that of the data by construction.
        evaluation_share: share of people reserved to estimate the error, see `error_estimate_`.
        temperature_share: share of people whose answers calibrate `predict_proba`.
        protects: ``both``; ``labels`` if curves are public; ``features`` if labels are public.
        classes: the public labels; required unless `random_state` makes this a simulation.
        n_features: number of features, instead of that of the study planner.
        spread_differs: whether classes may differ in spread, and not only in location; the study
            then also queries distances from the center of each feature.
        class_share: for two classes, the public share of ``classes_[1]``, if it is known.
        unit: the protected unit to which a row, or all rows of one group, belong.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        random_state: None for noise of the operating system; an integer, a seed sequence or a
            source for a simulation.

    Privacy:
        ε-LDP for the curve and the label of one person, by randomized response on k questions or by
        one codeword. With ``protects="features"`` the study is the same, so it also protects the
        label.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> study = simulate_001(3000, 0)
        >>> classifier = LocalCurveClassifier(
        ...     epsilon=1.0, value_range=(-6, 6), classes=(-1, 1), random_state=0
        ... )
        >>> classifier = classifier.fit(study.X, study.y, grid_points=study.grid_points)
        >>> print(classifier.guarantee_)
        ε = 1, local, unit = person, sampler = simulation (seeded)
        >>> test = simulate_001(3000, 1)
        >>> bool(classifier.score(test.X, test.y) > 0.85)
        True
    """

    epsilon: float = 1.0
    _: KW_ONLY
    ordered: bool = False
    center_known: bool = False
    evaluation_share: float = 0.0
    temperature_share: float = 0.0
    protects: Protects = "both"
    n_features: int | None = None
    class_share: float | None = None
    spread_differs: bool = False
    plan_: StudyPlan = field(init=False)
    server_: Server = field(init=False)

    def fit(
        self, X: Curves, y: Entries, *, grid_points: GridPoints = None, groups: Groups = None
    ) -> Self:
        """Simulate the study: every person answers once, privately.

        Args:
            X: an array (n, T), or (n, T, C) for C channels; scikit-fda curves; a list of pairs
                (t, x); or a table.
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
        source = self._source()
        self.grid_points_ = grid_points
        self.plan_ = plan_study(
            n_people=len(labels),
            epsilon=self.epsilon,
            classes=plain_classes(self.classes_),
            ordered=self.ordered,
            center_known=self.center_known,
            evaluation_share=self.evaluation_share,
            temperature_share=self.temperature_share,
            protects=self.protects,
            n_features=self.n_features,
            class_share=self.class_share,
            spread_differs=self.spread_differs,
            unit=self.unit,
            seed=seed,
            **range_facts(self, rows, grid_points),
        )
        warn_if_few(len(labels), self.epsilon)
        people = people_from(self.plan_, rows, labels, grid_points=grid_points)
        self.server_ = simulate(self.plan_, people, source=source, **account(self))
        self.guarantee_ = self._promise(self.plan_.guarantee, source)
        self.model_ = stamped(self.server_.model, self.guarantee_)
        self.result_ = StudyResult.of(self.server_.findings)
        self._fit_comparison(rows, labels, grid_points)
        return self

    def evaluate(self, X: Curves, y: Entries, *, grid_points: GridPoints = None) -> StudyResult:
        """Errors on held-out people, with those of the majority class and of no privacy.

        The non-private classifier is fitted to raw curves, so it is available in simulations only.
        """
        return evaluate_classifier(self, X, y, grid_points)

    @property
    def error_estimate_(self) -> Estimate | None:
        """The private estimate of the error, from people who evaluate the finished model.

        None unless people were reserved for it (``evaluation_share``).
        """
        return self.server_.findings.error

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) at `points`, one row for each score; for tables, feature weights.

        It describes the score if no feature is clipped.
        """
        return self.model_.slope(points)

    def plot(self) -> Figure:
        """Draw the slope function, the estimates with intervals, and the people of each phase."""
        return draw_study(self.model_, self.server_.findings)

    def _contents(self) -> Contents:
        return study_contents(self)
