"""Feedback: was the new rule right on one of your rows? It replaces a clean validation set.

Local classifier: the coefficients of a logistic regression of each owner (004, Algorithm 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.ensemble import LinearRule, StumpRule, WeakRule
from dpfda.local.boosting.requests.base import OwnerRows
from dpfda.local.boosting.requests.shares import ShareRequest, VoteRequest
from dpfda.mechanisms.randomized_response import CategoricalResponse
from dpfda.noise import Source
from dpfda.noise.uniform import below
from dpfda.protocol.fields import number, part
from dpfda.protocol.query import Records

_COIN = 1 << 30


@dataclass(frozen=True, kw_only=True, eq=False)
class FeedbackRequest(VoteRequest, name="feedback"):
    """An owner draws one of their rows; it counts with probability w: right, wrong or not counted.

    Of many owners, P(wrong)/(P(right) + P(wrong)) is the weighted error of the rule.

    Privacy:
        ε-LDP for everything the owner holds: one of three answers through randomized response.

    Attributes:
        rule: the new weak rule.
    """

    sent = 1  # one category

    rule: WeakRule = part(lambda: WeakRule)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rule.fits(columns=self.dimension, classes=self.n_classes):
            raise InvalidParameter("rule", "about these features and classes", "others")

    @cached_property
    def mechanism(self) -> CategoricalResponse:
        """Randomized response on three categories."""
        return CategoricalResponse(epsilon=self.epsilon, categories=3)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """0: wrong, 1: right, 2: the row did not count."""
        rows = OwnerRows(*records)
        inside, weights = self.ensemble.prepared(rows, cap=self.cap)
        right = self.rule.decide(inside) == rows.labels
        # Any choice of the row is private; a word modulo N is uniform to one part in 2^60.
        chosen = (source.words(rows.owners) % rows.sizes.astype(np.uint64)).astype(np.int64)
        weight = np.take_along_axis(weights, chosen[:, None], axis=1)[:, 0]
        counts = below(_COIN, rows.owners, source) < (weight * _COIN).astype(np.uint64)
        verdict = np.take_along_axis(right, chosen[:, None], axis=1)[:, 0].astype(np.float64)
        return np.where(counts, verdict, 2.0)

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """One of three categories."""
        return np.isin(sent[:, 0], (0.0, 1.0, 2.0))

    def decode(self, sent: FloatArray) -> FloatArray:
        """Unbiased indicators of wrong, right and not counted, shape (H, 3)."""
        return self.mechanism.debias(sent[:, 0])

    @classmethod
    def examples(cls) -> list[Self]:
        """A rule that is often wrong."""
        rule: Any = StumpRule(feature=1, threshold=0.0, below=1, above=0)
        return [cls(**cls.example_fields(rule=rule))]


_STEPS, _CHUNK = 12, 500


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierRequest(ShareRequest, name="classifier"):
    """Each owner fits a ridge logistic regression and sends its coefficients, cut to a public box.

    One class against the rest where there are more than two; the intercept is one of the
    coefficients. The loss is -y log σ - (1 - y) log(1 - σ) (C17). A fixed number of Newton steps
    with a penalty that is never small: it cannot fail on some rows and work on others.

    Privacy:
        ε-LDP for everything the owner holds.

    Attributes:
        bound: coefficients are cut at ±bound.
        ridge: weight of the penalty ½‖θ‖² of an owner's fit.
    """

    bound: float = number(least=1e-6, most=1e6, default=1.0)
    ridge: float = number(least=1e-3, most=1e6, default=1.0)

    @property
    def sent(self) -> int:
        """Coefficients and intercept of every score."""
        return self.scores * (self.dimension + 1)

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Coefficients over the bound; `exact` cuts them at ±1."""
        z = np.concatenate([inside, np.ones((*labels.shape, 1))], axis=2)
        wanted = [1] if self.n_classes == 2 else range(self.n_classes)
        fits = []
        for start in range(0, len(z), _CHUNK):
            part = slice(start, start + _CHUNK)
            scores = [
                local_logistic(z[part], labels[part] == k, weights[part], ridge=self.ridge)
                for k in wanted
            ]
            fits.append(np.concatenate(scores, axis=1))
        return np.asarray(np.concatenate(fits) / self.bound)

    def base_learner(self, mean: FloatArray) -> LinearRule:
        """The averaged coefficients."""
        table = mean.reshape(self.scores, -1)
        return LinearRule(coefficients=table[:, :-1], intercepts=table[:, -1])


def local_logistic(
    rows: FloatArray, positive: FloatArray, weights: FloatArray, *, ridge: float
) -> FloatArray:
    """Weighted ridge logistic fits of many owners at once, (H, N, p) → (H, p), by Newton steps.

    Examples:
        >>> rows = np.array([[[-1.0, 1.0], [1.0, 1.0]]])
        >>> local_logistic(rows, np.array([[False, True]]), np.ones((1, 2)), ridge=1.0).round(2)
        array([[0.67, 0.  ]])
    """
    n, _, size = rows.shape
    theta = np.zeros((n, size))
    penalty = ridge * np.eye(size)
    for _ in range(_STEPS):
        chance = expit(np.einsum("hnd,hd->hn", rows, theta))
        downhill = np.einsum("hn,hnd->hd", weights * (chance - positive), rows) + ridge * theta
        curved = rows * (weights * chance * (1 - chance))[..., None]
        hessian = np.matmul(rows.transpose(0, 2, 1), curved) + penalty
        theta -= np.linalg.solve(hessian, downhill[..., None])[..., 0]
    return theta
