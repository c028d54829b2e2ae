"""`LocalCurveClassifier`: the classifier people will use."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpfda.estimators.study_base import StudyClassifier
from dpfda.local.recipe import plan_study
from dpfda.protocol.plan import StudyPlan


@dataclass(eq=False, repr=False)
class LocalCurveClassifier(StudyClassifier):
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
        center_known: the middle of the public range is the middle of the data by construction.
        evaluation_share: share of people set aside to estimate the error, see `error_estimate_`.
        temperature_share: share of people who say how sure the finished model may be, for
            `predict_proba`.
        protects: ``both``; ``labels`` if curves are public anyway; ``features`` if labels are.
        classes: the public label set; must be given unless a seed makes this a simulation.
        n_features: overrides the rule for the number of features.
        spread_differs: classes may differ in how far people are from the middle of a feature, not
            only in where they are: distances are asked for, too.
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
    n_features: int | None = None
    class_share: float | None = None
    spread_differs: bool = False

    def _plan(self, X: Any, grid_points: Any, **known: Any) -> StudyPlan:
        return plan_study(
            ordered=self.ordered,
            center_known=self.center_known,
            evaluation_share=self.evaluation_share,
            temperature_share=self.temperature_share,
            n_features=self.n_features,
            class_share=self.class_share,
            spread_differs=self.spread_differs,
            **self._range_facts(X, grid_points),
            **known,
        )
