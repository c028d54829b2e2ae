"""Boosting by weak rules from perturbed shares, combined by SAMME (004, Algorithms 4 and 7).

An owner either sends a share, such as the coefficients of its own logistic regression, or evaluates
the new rule on one of its rows. These evaluations replace a validation set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, repeat
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.design import MOST_ROUNDS, BoostingDesign, known
from dpfda.local.boosting.ensemble import Ensemble, LinearRule, StumpRule, WeakRule
from dpfda.local.boosting.request import OwnerRows, Request
from dpfda.local.boosting.shares import (
    SampleRequest,
    StatisticRequest,
    box_mechanism,
    example_fields,
    largest_variance,
    require_vote_for,
    scores,
)
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.randomized_response import CategoricalResponse
from dpfda.noise import Source
from dpfda.noise.uniform import below
from dpfda.protocol.fields import array, choice, number, part, whole
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan, Terms
from dpfda.protocol.query import Records
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task, box_mechanisms

_COIN = 1 << 30


@dataclass(frozen=True, kw_only=True, eq=False)
class FeedbackRequest(Request, name="feedback"):
    """An owner draws one of its rows and answers right, wrong, or (with probability 1 - w) neither.

    Over many owners, P(wrong)/(P(right) + P(wrong)) is the weighted error of the rule.

    Privacy:
        ε-LDP for all data of the owner: one of three answers through randomized response.

    Attributes:
        ensemble: the current ensemble, which determines the weights of an owner's rows.
        cap: weights are divided by this public number and clipped at 1.
        rule: the new weak rule.
    """

    sent = 1  # one category

    ensemble: Ensemble = part(lambda: Ensemble)
    cap: float = number(least=1e-12, most=1.0, default=1.0)
    rule: WeakRule = part(lambda: WeakRule)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_vote_for(self, self.ensemble)
        if not self.rule.fits(columns=self.dimension, classes=self.n_classes):
            raise InvalidParameter(
                "rule", f"for {self.dimension} columns and {self.n_classes} classes", "others"
            )

    @cached_property
    def mechanism(self) -> CategoricalResponse:
        """Randomized response on three categories."""
        return CategoricalResponse(epsilon=self.epsilon, categories=3)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """0: wrong, 1: right, 2: the row is not counted."""
        rows = OwnerRows(*records)
        inside, weights = self.ensemble.prepared(rows, cap=self.cap)
        right = self.rule.decide(inside) == rows.labels
        # Privacy holds for any choice of the row; a word modulo N is uniform up to 2^-60.
        chosen = (source.words(rows.owners) % rows.sizes.astype(np.uint64)).astype(np.int64)
        weight = np.take_along_axis(weights, chosen[:, None], axis=1)[:, 0]
        counts = below(_COIN, rows.owners, source) < (weight * _COIN).astype(np.uint64)
        verdict = np.take_along_axis(right, chosen[:, None], axis=1)[:, 0].astype(np.float64)
        return np.where(counts, verdict, 2.0)

    def possible(self, sent: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the reply is one of three categories."""
        return np.isin(sent[:, 0], (0.0, 1.0, 2.0))

    def decode(self, sent: FloatArray) -> FloatArray:
        """Unbiased estimates of the indicators of wrong, right and not counted, shape (H, 3)."""
        return self.mechanism.debias(sent[:, 0])

    @classmethod
    def examples(cls) -> list[Self]:
        """A rule that is often wrong."""
        rule = StumpRule(feature=1, threshold=0.0, below=1, above=0)
        return [cls(**example_fields(rule=rule))]


_STEPS, _CHUNK = 12, 500


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierRequest(Request, name="classifier"):
    """Each owner fits a ridge logistic regression and sends its coefficients, clipped to a box.

    With more than two classes, each class is compared with the rest. The intercept is one of the
    coefficients. The loss is -y log σ - (1 - y) log(1 - σ) (C17). The penalty is never small and
    the number of Newton steps is fixed, so the fit cannot fail on any rows.

    Privacy:
        ε-LDP for all data of the owner.

    Attributes:
        ensemble: the current ensemble, which determines the weights of an owner's rows.
        cap: weights are divided by this public number and clipped at 1.
        mechanism_name: registered name of the mechanism of the box.
        bound: coefficients are clipped to ±bound.
        ridge: weight of the penalty ½‖θ‖² of an owner's fit.
    """

    room: ClassVar[float] = 2.0
    """Recommended `cap` in units of the mean weight; larger weights are clipped."""

    ensemble: Ensemble = part(lambda: Ensemble)
    cap: float = number(least=1e-12, most=1.0, default=1.0)
    mechanism_name: str = choice(box_mechanisms, default="piecewise")
    bound: float = number(least=1e-6, most=1e6, default=1.0)
    ridge: float = number(least=1e-3, most=1e6, default=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_vote_for(self, self.ensemble)

    @property
    def sent(self) -> int:
        """The number of coefficients and intercepts of all scores."""
        return scores(self.n_classes) * (self.dimension + 1)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The box mechanism for the whole share, with the whole budget."""
        name = self.mechanism_name
        return box_mechanism(name, epsilon=self.epsilon, dimension=self.sent)

    def exact(self, records: Records, source: Source) -> FloatArray:
        """The share, computed from weighted rows."""
        rows = OwnerRows(*records)
        inside, weights = self.weighted(rows)
        return np.clip(self.share(inside, rows.labels, weights), -1.0, 1.0)

    def weighted(self, rows: OwnerRows) -> tuple[FloatArray, FloatArray]:
        """Scaled rows, and weights with which the share is inside the box."""
        return self.ensemble.prepared(rows, cap=self.cap)

    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """Coefficients divided by the bound; `exact` clips them to ±1."""
        z = np.concatenate([inside, np.ones((*labels.shape, 1))], axis=2)
        wanted = [1] if self.n_classes == 2 else range(self.n_classes)
        fits = []
        for start in range(0, len(z), _CHUNK):
            part = slice(start, start + _CHUNK)
            each = [
                local_logistic(z[part], labels[part] == k, weights[part], ridge=self.ridge)
                for k in wanted
            ]
            fits.append(np.concatenate(each, axis=1))
        return np.asarray(np.concatenate(fits) / self.bound)

    def decode(self, sent: FloatArray) -> FloatArray:
        """The replies, because box mechanisms are unbiased."""
        return sent

    @property
    def noise_variance(self) -> float:
        """Variance of a number in `decode` whose true value is 0."""
        return largest_variance(self.mechanism, self.sent)

    def evidence(self, mean: FloatArray, variance: float) -> tuple[float, float]:
        """The smallest length of a score's coefficients, and their noise (004 §IV-C).

        If the noise is larger, it determines the sign of the score. The noise increases squared
        lengths, and its expectation is subtracted.
        """
        table = mean.reshape(scores(self.n_classes), -1)
        noise = table.shape[1] * variance
        squares = (table**2).sum(axis=1) - noise
        return math.sqrt(max(float(squares.min()), 0.0)), math.sqrt(noise)

    def base_learner(self, mean: FloatArray) -> LinearRule:
        """The linear rule with the mean coefficients."""
        table = mean.reshape(scores(self.n_classes), -1)
        return LinearRule(coefficients=table[:, :-1], intercepts=table[:, -1])

    @classmethod
    def examples(cls) -> list[Self]:
        """One instance for each mechanism."""
        return [cls(**example_fields(mechanism_name=name)) for name in box_mechanisms()]


COMPARED = {
    "sample": "smallest distance of two centroids",
    "statistic": "φ of the best feature less that of the second",
    "classifier": "length of the coefficients",
}
"""For each rule, the quantity that must exceed its noise for boosting to converge (004 §IV)."""

ShareRequest = SampleRequest | StatisticRequest | ClassifierRequest
"""Each owner sends one perturbed share, a vector in [-1, 1]^s (004, Algorithm 4)."""


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


# After a round, the weighted error of its own rule is exactly 1/2. If the same rule is found again,
# it has α = 0 up to rounding, and this bound excludes it.
_LEAST_ALPHA = 1e-9
_EVALUATION_ROOM = 3.0
"""In evaluations, weights are clipped at this many times their mean, with little effect."""
_UP_TO_ONE = range(0, 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class SammeDesign(BoostingDesign, name="samme"):
    """Boosts weak rules; a rule no better than chance is dropped, and new owners are asked.

    The weight of a rule is estimated from the data user's labeled rows, or by `judges` other
    owners.

    Attributes:
        rule: the kind of shares: ``sample``, ``statistic`` or ``classifier``.
        mechanism: registered name of the mechanism of shares.
        feature_ranges: public (low, high) of each feature, shape (d, 2).
        owners_per_round: H.
        judges: the number of owners who evaluate each rule; 0 if labeled rows are used.
        retries: how many times a round may be repeated with new owners.
        thresholds: thresholds of the scaled features, shape (d, T), for ``statistic``.
        coefficient_bound: public box of local coefficients, for ``classifier``.

    Examples:
        >>> half = {"owners_per_round": 9, "judges": 9}
        >>> SammeDesign(rule="classifier", feature_ranges=[[0, 1]], **half).columns
        1
    """

    rule: str = choice("sample", "statistic", "classifier")
    mechanism: str = choice(box_mechanisms, default="piecewise")
    feature_ranges: FloatArray = array("real", "columns", 2)
    owners_per_round: int = whole()
    judges: int = whole(least=0, default=0)
    retries: int = whole(least=0, most=1 << 10, default=3)
    thresholds: FloatArray = array("real", "columns", "cuts", least=-2, most=2, default=())
    coefficient_bound: float = number(least=1e-6, most=1e6, default=1.0)

    def __post_init__(self) -> None:
        if not len(self.thresholds):
            object.__setattr__(self, "thresholds", np.zeros((self.columns, 1)))
        super().__post_init__()
        if self.n_rounds * (self.retries + 1) > MOST_ROUNDS:
            rule = f"so few that there are at most {MOST_ROUNDS} rounds with all retries"
            raise InvalidParameter("retries", rule, self.retries)
        if not self.judges and not len(self.labels):
            raise InvalidParameter("judges", "above 0 without labeled rows", self.judges)

    @property
    def columns(self) -> int:
        """The number of features d."""
        return len(self.feature_ranges)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Shares, and evaluations if there are `judges`."""
        own: dict[str, Any] = {
            "sample": {"protects": plan.protects},
            "statistic": {"cuts": self.thresholds.shape[1]},
            "classifier": {"bound": self.coefficient_bound},
        }[self.rule]
        terms = self.terms(plan, cap=_UP_TO_ONE)
        asks = {self.rule: {**terms, "mechanism_name": self.mechanism, **own}}
        return asks | ({"feedback": terms} if self.judges else {})

    def shares(
        self, plan: StudyPlan, start: int, people: int, *, vote: Ensemble, cap: float
    ) -> ShareRequest:
        """The request to the owners of a round, which is the same for all."""
        free = {"thresholds": self.thresholds} if self.rule == "statistic" else {}
        asked = plan.ask(self.rule, people, ensemble=vote, cap=cap, **free)
        assert isinstance(asked, ShareRequest)
        return asked

    def first(self, plan: StudyPlan) -> ShareRequest:
        """The public request to an owner of the first round."""
        vote = Ensemble.empty(self.feature_ranges, classes=plan.n_classes)
        return self.shares(plan, 0, 1, vote=vote, cap=1.0)


@study("samme")
def samme(design: SammeDesign, plan: StudyPlan) -> Study:
    """Fit a weak rule to shares in each round, estimate its weight, and add it to the ensemble.

    A rule that is not better than chance is dropped, and the round is repeated with other owners,
    up to the number of retries.
    """
    vote = Ensemble.empty(design.feature_ranges, classes=plan.n_classes)
    cap = mean_weight = 1.0
    rounds, attempt = 0, 1
    history: list[dict[str, Any]] = []
    left = _steps(design, plan.n_people)

    def so_far() -> Result:
        return known(plan, vote, history)

    while left and rounds < design.n_rounds:
        step, left = left[0], left[1:]
        ask = partial(design.shares, plan, vote=vote, cap=cap)
        shares = yield _phase(step, ask, _mean_share, so_far, left)
        asked = ask(0, 1)
        rule = asked.base_learner(shares["mean"])
        compared, noise = asked.evidence(shares["mean"], float(shares["variance"]))
        if not design.judges:
            error, margin = _validated(design, vote, rule)
            owners = int(shares["owners"])
        elif left:
            step, left = left[0], left[1:]
            room = min(1.0, _EVALUATION_ROOM * mean_weight)
            judge = partial(_about_rule, plan, ensemble=vote, rule=rule, cap=room)
            summary = yield _phase(step, judge, _mean_evaluation, so_far, left)
            error, margin = float(summary["error"]), float(summary["margin"])
            owners = int(summary["owners"]) + design.owners_per_round
        else:  # too few owners remain to evaluate it
            break
        error = min(max(error, margin), 1 - margin)
        alpha = math.log((1 - error) / error) + math.log(vote.classes - 1)
        kept = alpha > _LEAST_ALPHA
        history.append(
            {
                "round": rounds + 1,
                "attempt": attempt,
                "owners": owners,
                "error": error,
                "alpha": alpha,
                "kept": kept,
                "compared": compared,
                "noise": noise,
            }
        )
        if kept:
            # The new mean weight follows from the weighted error, without further data.
            mean_weight *= error + (1 - error) * math.exp(-alpha)
            vote = vote.joined(rule, alpha=alpha)
            cap = max(min(1.0, asked.room * mean_weight), 1e-12)
        if kept or attempt > design.retries:
            rounds, attempt = rounds + 1, 1
        else:
            attempt += 1
    return so_far()


def _steps(design: SammeDesign, owners: int) -> list[Step]:
    """The largest number of attempts, limited by the number of owners."""
    one = [Step(design.rule, design.owners_per_round)]
    if design.judges:
        one.append(Step("feedback", design.judges))
    steps = []
    for step in chain.from_iterable(repeat(one, design.n_rounds * (design.retries + 1))):
        if step.people > owners:
            break
        owners -= step.people
        steps.append(step)
    return steps


def _phase(
    step: Step,
    ask: Callable[[int, int], Task],
    count: Callable[[Any, FloatArray], Summary],
    so_far: Callable[[], Result],
    then: list[Step],
) -> Phase:
    return Phase(step.kind, step.people, ask, count, so_far, at_once=True, then=then)


def _about_rule(plan: StudyPlan, start: int, people: int, **free: Any) -> Task:
    """The request to evaluate the candidate, which is the same for all owners."""
    return plan.ask("feedback", people, **free)


def _mean_share(request: ShareRequest, replies: FloatArray) -> Summary:
    """The weighted mean of the shares in a round."""
    mean, variance = np.zeros(request.decode(np.zeros((1, request.sent))).shape[1]), 0.0
    if len(replies):
        # Reports with a smaller ε are noisier; at small ε their precision is proportional to ε².
        spent = request.spent(replies)
        shares = spent**2 / (spent**2).sum()
        mean = shares @ request.estimates(replies)
        prices, at = np.unique(spent, return_inverse=True)
        variances = np.array([request.at(float(price)).noise_variance for price in prices])
        variance = float(shares**2 @ variances[at])
    owners = np.array(float(len(replies)))
    return {"mean": mean, "variance": np.array(variance), "owners": owners}


def _mean_evaluation(request: FeedbackRequest, replies: FloatArray) -> Summary:
    """The weighted error of a rule, its standard error, and the number of owners."""
    error, margin = _error_and_margin(request.estimates(replies)) if len(replies) else (1.0, 0.01)
    owners = float(len(replies))
    return {"error": np.array(error), "margin": np.array(margin), "owners": np.array(owners)}


def _validated(design: SammeDesign, vote: Ensemble, rule: WeakRule) -> tuple[float, float]:
    """The weighted error on the data user's rows (w^u is updated like the others, C17).

    Returns:
        The error, and its margin.
    """
    rows, labels = vote.scaled(design.labeled), design.labels
    weights = vote.weights(rows, labels)
    wrong = rule.decide(rows) != labels
    return float(weights @ wrong / weights.sum()), 1 / (2 * len(labels))


def _error_and_margin(indicators: FloatArray) -> tuple[float, float]:
    """The weighted error from unbiased indicators (wrong, right, not counted), and its margin."""
    wrong, right, _ = indicators.mean(axis=0)
    spread = math.sqrt(float(indicators[:, :2].var(axis=0).sum()) / len(indicators))
    counted = max(wrong + right, spread, 1e-9)
    # The margin is at least half the standard error, and at least that of exact labels.
    margin = min(max(spread / counted / 2, 1 / (2 * len(indicators))), 0.49)
    return float(wrong / counted), float(margin)
