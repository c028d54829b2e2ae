"""`LocalCurveClassifier`: classify curves that never leave their owners."""

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
    """Classify curves that never leave their owners: everybody answers one question, once.

    What they are asked follows from the number of people, ε, public ranges and earlier people's
    answers, by the recipe `plan_study`: yes-or-no questions about features and label, or with
    enough people, on tables and for several classes, a vector.

    Args:
        epsilon: what each person spends.
        value_range: public (low, high) of x(t), or one pair a channel; values outside are clipped.
            Must be given for curves.
        domain_range: public (start, end) of t; by default that of the shared grid points, [0, 1]
            without any, and an FDataGrid's own; must be given for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair a
            column, or a mapping from column to (low, high) or to its categories.
        ordered: whether the first features of a table matter most; curves' features always do.
        center_known: the center of the public range is the center of the data by construction.
        evaluation_share: share of people set aside to estimate the error, see `error_estimate_`.
        temperature_share: share of people who say how sure the finished model may be, for
            `predict_proba`.
        protects: ``both``; ``labels`` if curves are public anyway; ``features`` if labels are.
        classes: the public label set; must be given unless a seed makes this a simulation.
        n_features: overrides the rule for the number of features.
        spread_differs: classes may differ in the distance of people from the center of a feature,
            not only in where they are: distances are asked for, too.
        class_share: of two classes, the public share of ``classes_[1]``, if it is known.
        unit: whose data a row is, or all rows of one group.
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer, a seed sequence or a source
            makes a simulation.

    Privacy:
        ε-LDP for curve and label of one person, by k-question randomized response or by one
        codeword. With ``protects="features"`` the same study runs: it protects the label as well.

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
            groups: the person behind each row, where people have several; then each person
                reports one of their rows, chosen at random, so that ε is per person.
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
        """Errors on held-out people, beside the majority class and the non-private error.

        The non-private classifier is fitted to raw curves, so it exists in simulations only.
        """
        return evaluate_classifier(self, X, y, grid_points)

    @property
    def error_estimate_(self) -> Estimate | None:
        """The server's own estimate of the error, from people who answered after the model stood.

        None unless people were set aside for it (``evaluation_share``).
        """
        return self.server_.findings.error

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) at `points`, one row a score; for vectors, feature weights.

        It describes the score where no feature is clipped.
        """
        return self.model_.slope(points)

    def plot(self) -> Figure:
        """Slope function, what was learnt with intervals, and who was asked what."""
        return draw_study(self.model_, self.server_.findings)

    def _contents(self) -> Contents:
        return study_contents(self)
