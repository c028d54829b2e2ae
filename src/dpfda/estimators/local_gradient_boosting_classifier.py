"""`LocalGradientBoostingClassifier`: a logistic model, fitted with gradients reported by owners."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.estimators.boosting_base import REFERENCE_ROWS, BoostingClassifier, PublicFacts
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign


@dataclass(eq=False, repr=False)
class LocalGradientBoostingClassifier(BoostingClassifier):
    """Gradient boosting with owners of a few rows, each of whom sends one private report, once.

    Each round queries new owners; no owner takes part twice. An owner sends the index of a public
    codeword near the gradient of a logistic model on the owner's rows. The data user needs no
    labels (docs/methods/gradient-boosting.md).

    Args:
        epsilon: ε of each owner: one number, one for each owner (in the order of the sorted
            owners), or a dictionary from owner to ε.
        n_rounds: number of rounds.
        owners_per_round: H; by default all owners are divided evenly among the rounds.
        products: number of leading whitened features whose pairwise products are features, too.
        radius: gradients of N rows are clipped at radius · √(k/N); 0.5 was better than 2 even if
            every owner has rows of one class only.
        hostile_share: upper bound on the share of owners who send worst-case reports, for example
            0.1. Each round then uses fewer directions and has less weight. The guarantee does not
            change.
        rows_per_owner: N, the largest number of rows of an owner that are used. By default the
            largest number of rows of any owner, which is then public.
        feature_ranges: public (low, high) of all columns, one pair a column, or a mapping from
            column to (low, high) or to its categories; by default the range of the data
            user's rows, or [-1, 1] in a simulation without such rows.
        classes: the public labels; required unless `random_state` makes this a simulation. By
            default the labels that occur, which are then public.
        unit: the protected unit to which all rows of one group belong.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        random_state: None for noise of the operating system; an integer, a seed sequence or a
            source for a simulation.

    Privacy:
        ε-LDP for all rows and labels of one owner. The data user's own rows are not protected.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(8000, 3))
        >>> y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
        >>> owners = np.repeat(np.arange(2000), 4)
        >>> classifier = LocalGradientBoostingClassifier(epsilon=2.0, random_state=0)
        >>> classifier = classifier.fit(X, y, groups=owners, reference=rng.normal(size=(500, 3)))
        >>> bool(classifier.score(X, y) > 0.9)
        True
        >>> print(classifier.guarantee_)  # doctest: +ELLIPSIS
        ε = 2, local, unit = owner, sampler = simulation (seeded), assuming ...
    """

    epsilon: Any = 1.0
    _: KW_ONLY
    products: int | None = None
    radius: float = 0.5
    hostile_share: float = 0.0

    def _design(self, facts: PublicFacts) -> GradientDesign:
        return GradientDesign(
            features=FeatureMap.learnt(facts.reference, products=self.products),
            reference=facts.reference[:REFERENCE_ROWS],
            owners_per_round=self.owners_per_round,
            radius=self.radius,
            typical_rows=facts.typical_rows,
            typical_epsilon=float(np.median(facts.epsilons)),
            hostile_share=self.hostile_share,
            **self._shared_terms(facts),
        )

    def predict_proba(self, X: Curves, *, grid_points: GridPoints = None) -> FloatArray:
        """Probabilities (n, K) in the order of ``classes_``: the softmax of the scores.

        They are the probabilities of the logistic model. They are not calibrated: a model that does
        not fit the data gives too extreme probabilities. Expected calibration errors at ε = 2 and
        10 000 owners (`tools/calibration.py`): 0.04 on a logistic model, 0.18 on four columns of
        Adult.
        """
        return super().predict_proba(X, grid_points=grid_points)
