"""`LocalCurveClassifier`: the classifier people will use."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.estimators.base import StudyClassifier

_MOST_FEATURES = 8


@dataclass(eq=False, repr=False)
class LocalCurveClassifier(StudyClassifier):
    """Classify curves that never leave their owners: everybody answers k yes/no questions, once.

    The study's design follows from the number of people, ε and public ranges alone (methods 8.2):
    find the middle of each feature, ask which stumps are right, calibrate the intercept.

    Args:
        epsilon: what each person spends.
        value_range: public (low, high) of x(t), (-1, 1) by default; values outside are clipped.
        domain_range: public (start, end) of t; [0, 1] by default, an FDataGrid brings its own.
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair a
            column, or a mapping from column to (low, high) or to its categories.
        ordered: whether the first features of a table matter most; curves' features always do.
        center_known: the middle of the public range is the middle of the data by construction.
        evaluation_share: share of people set aside to estimate the error, see `error_estimate_`.
        protects: ``both``; ``labels`` if curves are public anyway; ``features`` if labels are.
        classes: the public label set; must be given unless a seed makes this a simulation.
        n_features: overrides the rule for the number of features.
        unit: whose data a row is, or all rows of one group.
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer, a seed sequence or a source
            makes a simulation.

    Privacy:
        ε-LDP for curve and label of one person, by k-question randomized response. With
        ``protects="features"`` the same study runs: it protects the label as well.

    Example:
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
    n_features: int | None = None

    def _curve_encoder(self, value_range: Any, domain: tuple[float, float]) -> CurveEncoder:
        low, high = _validate.interval(
            "value_range", (-1, 1) if value_range is None else value_range
        )
        start, end = domain
        # |x(t)| ≤ R bounds every coefficient on an orthonormal basis by R √(end - start).
        stretch = math.sqrt(end - start)
        center = np.zeros(_MOST_FEATURES)
        center[0] = (low + high) / 2 * stretch
        return CurveEncoder(
            "cosine",
            n_basis=_MOST_FEATURES,
            domain_range=(start, end),
            rescale="clip",
            center=center.tolist(),
            scale=(high - low) / 2 * stretch,
        )

    def _design(self, encoder: CurveEncoder) -> dict[str, Any]:
        if self.protects == "labels":
            return {"name": "noisy_labels"}
        if self.feature_ranges is None:
            # Smooth curves: the j-th cosine coefficient shrinks like 1/j.
            scales = [1 / (3 * max(j, 1)) for j in range(encoder.n_features)]
            ordered = True
        else:
            scales, ordered = [1.0] * encoder.n_features, self.ordered
        if self.n_features is not None and self.n_features > len(scales):
            raise InvalidParameter("n_features", f"at most {len(scales)}", self.n_features)
        return {
            "name": "questions",
            "scales": scales,
            "ordered": ordered,
            "center_known": self.center_known,
            "evaluation_share": self.evaluation_share,
            "n_features": self.n_features,
        }
