"""Boosting by gradient reports: one Bayesian Newton step for the posterior of θ per round.

See docs/methods/gradient-boosting.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.boosting.design import BoostingDesign, known
from dpfda.local.boosting.gradient_requests import (
    FeatureMap,
    GradientRequest,
    information,
    mean_variance,
    most_likely,
    prior_precision,
    probabilities,
    report_gain,
)
from dpfda.local.boosting.model import LogisticModel
from dpfda.protocol.fields import array, number, part, whole
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan, Terms
from dpfda.protocol.study import Phase, Result, Study, Summary, study

_FLOOR = 1e-3  # curvature added to every direction, so that F can be inverted
_SIMULATED_OWNERS = 1500


@dataclass
class Posterior:
    """A Gaussian distribution of θ, by its precision matrix and precision times mean.

    Attributes:
        precision: shape (P, P), P = (K - 1) D.
        shift: precision times mean, shape (P,).
        classes: K.
    """

    precision: FloatArray
    shift: FloatArray
    classes: int

    @property
    def coefficients(self) -> FloatArray:
        """The mean of θ, shape (K - 1, D)."""
        mean = np.linalg.solve(self.precision, self.shift)
        return np.asarray(mean.reshape(self.classes - 1, -1))


@dataclass(frozen=True, eq=False)
class View:
    """The k directions of the whitened gradient that are reported in a round.

    Attributes:
        projection: F^{-½} Q, shape (P, k); owners apply it to their gradient.
        design: Qᵀ F^{½}, shape (k, P); a report's mean is A times design @ (θ* - θ).
        doubt: posterior variance along each direction, shape (k,).
    """

    projection: FloatArray
    design: FloatArray
    doubt: FloatArray


@dataclass(frozen=True)
class Hostile:
    """The influence of hostile owners on the mean report, if at most this share of them is hostile.

    A report has length √k/m for any codeword, and all hostile owners can choose the same direction.
    The effect of noise decreases with the number of rounds. The shift by hostile owners does not,
    because they can choose the same direction in all rounds; about `rounds` · k/P rounds estimate a
    given direction.

    Attributes:
        share: largest share of hostile owners.
        gain: mean gain m of reports.
        rounds: the number of rounds of the study.
        size: P, the number of parameters.

    Examples:
        >>> Hostile(share=0.1, gain=0.5, rounds=10, size=10).shift(np.array([1, 2])).round(2)
        array([0.04, 0.16])
    """

    share: float
    gain: float
    rounds: int
    size: int

    def shift(self, directions: IntArray) -> FloatArray:
        """The largest squared shift, along one of k directions, of a mean of reports."""
        often = np.maximum(1.0, self.rounds * directions / self.size)
        return np.asarray(often * directions * (self.share / self.gain) ** 2)


def best_view(
    belief: Posterior, features: FloatArray, *, owners: int, rows: float, hostile: Hostile
) -> View:
    """The k directions in which reports of `owners` owners with `rows` rows are most informative.

    Args:
        belief: the current posterior.
        features: φ of the data user's own rows, shape (n, D).
        owners: H.
        rows: N.
        hostile: the influence of hostile owners, and the gain m of reports.
    """
    theta = belief.coefficients
    fisher = information(features, probabilities(features, theta))
    fisher += _FLOOR * np.eye(len(fisher))
    values, vectors = np.linalg.eigh(fisher)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse_root = (vectors / np.sqrt(values)) @ vectors.T
    doubt, axes = np.linalg.eigh(root @ np.linalg.solve(belief.precision, root))
    doubt, axes = np.maximum(doubt[::-1], 0.0), axes[:, ::-1]
    number = _directions(doubt, owners=owners, rows=rows, hostile=hostile)
    chosen = axes[:, :number]
    return View(inverse_root @ chosen, chosen.T @ root, doubt[:number])


def _directions(doubt: FloatArray, *, owners: int, rows: float, hostile: Hostile) -> int:
    """The best k: more directions are more informative, but each has more noise and shift."""
    k = np.arange(1, len(doubt) + 1)
    noise = (k / hostile.gain**2 + 1) / (owners * rows)
    # A round's slope is about √(N/k), by which a shift of the mean report is divided to get θ.
    samples = 1 / (noise + hostile.shift(k) * k / rows)  # equivalent rows without noise
    below = np.tril(np.ones((len(k), len(k)), dtype=bool))
    worth = doubt**2 * samples[:, None] / (1 + doubt * samples[:, None])
    best = int(np.argmax(np.where(below, worth, 0.0).sum(axis=1))) + 1
    fewest = 1 if hostile.share else 2
    return max(min(fewest, len(doubt)), best)


def absorb(
    belief: Posterior,
    view: View,
    *,
    mean: FloatArray,
    variance: float,
    slope: float,
) -> Posterior:
    """The posterior after a round, from the mean of its reports and the variance of this mean.

    While θ is uncertain, the curvature of the model is uncertain too. The mean posterior variance
    is therefore added to the noise, so that early rounds do not get too much weight.
    """
    weight = 1 / (variance / slope**2 + float(view.doubt.mean()))
    theta = belief.coefficients.ravel()
    seen = view.design @ theta + mean / slope
    return Posterior(
        belief.precision + weight * view.design.T @ view.design,
        belief.shift + weight * view.design.T @ seen,
        belief.classes,
    )


def report_slope(
    request: GradientRequest,
    features: FloatArray,
    *,
    sizes: IntArray,
    generator: np.random.Generator,
) -> float:
    """A, the derivative of the mean report by θ*, from simulated owners under the model.

    A shortened gradient v with covariance I/N around its mean has slope N E[G·v]/k (Stein).
    """
    draws = generator.choice(sizes, _SIMULATED_OWNERS)
    most = int(draws.max())
    picked = features[generator.integers(0, len(features), (_SIMULATED_OWNERS, most))]
    chances = probabilities(picked, request.coefficients)
    uniform = generator.random((*chances.shape[:2], 1))
    above = np.cumsum(chances, axis=2)
    hit = (uniform < above) & (uniform >= above - chances)
    residual = (hit - chances) * (np.arange(most) < draws[:, None])[..., None]
    gradient = np.einsum("hnk,hnd->hkd", residual, picked, optimize=True)
    projected = gradient.reshape(_SIMULATED_OWNERS, -1) @ request.projection / draws[:, None]
    length = np.linalg.norm(projected, axis=1)
    shortened = np.minimum(length / request.longest(draws), 1.0)
    return float(np.mean(draws * length * shortened)) / request.directions


_LEAST_SLOPE = 1e-50  # smallest slope whose square does not underflow
_MANY = 64  # directions; reports in fewer directions are slightly more informative


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientDesign(BoostingDesign, name="gradient_boosting"):
    """Fits a logistic model to one codeword per owner, without labeled rows.

    Attributes:
        features: maps a row to φ.
        reference: the data user's own rows without labels; they are not protected.
        owners_per_round: the number of owners per round; by default, rounds share all owners
            evenly.
        radius: gradients are shortened to length radius · √(k/n).
        typical_rows: assumed mean number of rows per owner; N by default.
        typical_epsilon: assumed ε that an owner spends; the plan's ε by default.
        hostile_share: the share of owners who may send the most harmful replies. The model then
            changes less per round, and in fewer directions.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(50, 2))
        >>> GradientDesign(features=FeatureMap.learnt(rows), reference=rows, n_rows=4).columns
        2
    """

    features: FeatureMap = part(lambda: FeatureMap)
    reference: FloatArray = array("real", "reference", "columns")
    owners_per_round: int | None = whole(optional=True, default=None)
    radius: float = number(least=1e-6, most=1e6, default=0.5)
    typical_rows: float | None = number(least=1e-3, most=1e6, optional=True, default=None)
    typical_epsilon: float | None = number(least=1e-6, most=1e6, optional=True, default=None)
    hostile_share: float = number(least=0.0, most=0.5, default=0.0)

    @property
    def columns(self) -> int:
        """The number of features d."""
        return int(np.shape(self.reference)[1])

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """One codeword near a gradient, in any number of directions."""
        slopes = (plan.n_classes - 1) * self.features.size
        lengths = {"scores": plan.n_classes - 1, "size": self.features.size, "slopes": slopes}
        directions = range(1, slopes + 1)
        terms = self.terms(plan, radius=self.radius, directions=directions, **lengths)
        return {"gradient": terms}


@study("gradient_boosting")
def gradient_boosting(design: GradientDesign, plan: StudyPlan) -> Study:
    """Update the posterior of θ by the mean report of each round."""
    rows = design.n_rows if design.typical_rows is None else design.typical_rows
    epsilon = plan.epsilon if design.typical_epsilon is None else design.typical_epsilon
    reference, belief = design.features(design.reference), _prior(design, plan)
    hostile = Hostile(
        share=design.hostile_share,
        gain=report_gain(epsilon, directions=_MANY),
        rounds=design.n_rounds,
        size=len(belief.shift),
    )
    generator = np.random.default_rng(plan.seed)
    history: list[dict[str, Any]] = []

    def so_far() -> Result:
        """The model at the posterior mean."""
        mean = LogisticModel(features=design.features, coefficients=belief.coefficients)
        return known(plan, mean, history)

    used = plan.n_people
    if design.owners_per_round is not None:
        used = min(used, design.owners_per_round * design.n_rounds)
    shares = np.diff(np.linspace(0, used, design.n_rounds + 1).astype(np.int64))
    steps = [Step("gradient", int(share)) for share in shares if share]
    for place, step in enumerate(steps):
        view = best_view(belief, reference, owners=step.people, rows=rows, hostile=hostile)
        asked = _Asked(design, plan, belief.coefficients, view)
        summary = yield Phase(
            "gradient",
            step.people,
            asked.tasks,
            _mean_report,
            so_far,
            at_once=True,
            then=steps[place + 1 :],
        )
        owners, mean = int(summary["owners"]), summary["mean"]
        if not owners:
            continue
        # One Newton step, weighted by the precision of the reports.
        sizes = _sizes(rows, owners)
        slope = report_slope(asked.tasks(0, 1), reference, sizes=sizes, generator=generator)
        said = slope > _LEAST_SLOPE  # public; a smaller slope means that reports are uninformative
        if said:
            shift = float(hostile.shift(np.array(len(mean))))
            variance = float(summary["variance"]) + shift
            belief = absorb(belief, view, mean=mean, variance=variance, slope=slope)
        history.append(
            {
                "round": len(history) + 1,
                "owners": owners,
                "directions": len(mean),
                "step": float(np.linalg.norm(mean) / slope) if said else 0.0,
            }
        )
    return so_far()


def _prior(design: GradientDesign, plan: StudyPlan) -> Posterior:
    """The prior from the data user's labeled rows, if there are any."""
    classes = plan.n_classes
    precision = prior_precision(design.features.prior_variance, classes=classes)
    theta = np.zeros((classes - 1) * design.features.size)
    if len(design.labels):
        phi = design.features(design.labeled)
        fit = most_likely(phi, design.labels, precision=precision, classes=classes)
        theta, precision = fit[0].ravel(), fit[1]
    return Posterior(precision, precision @ theta, classes)


class _Asked(NamedTuple):
    """The request of a round, the same for all owners."""

    design: GradientDesign
    plan: StudyPlan
    coefficients: FloatArray
    view: View

    def tasks(self, start: int, people: int) -> GradientRequest:
        asked = self.plan.ask(
            "gradient",
            people,
            features=self.design.features,
            coefficients=self.coefficients,
            projection=self.view.projection,
        )
        assert isinstance(asked, GradientRequest)
        return asked


def _mean_report(request: GradientRequest, replies: FloatArray) -> Summary:
    """The weighted mean of a round's reports, and its variance along one direction."""
    if not len(replies):
        nothing = np.zeros(request.directions)
        return {"mean": nothing, "variance": np.array(0.0), "owners": np.array(0.0)}
    estimates = request.estimates(replies)
    # Reports with gain m have a variance of about 1/m², so their weight is m².
    epsilons, kind = np.unique(request.spent(replies), return_inverse=True)
    gains = [report_gain(float(each), directions=request.directions) for each in epsilons]
    weights = np.array(gains)[kind] ** 2
    weights /= weights.sum()
    mean = weights @ estimates
    # The known law is used, because the empirical variance of few reports is imprecise.
    variance = mean_variance(mean, weights, epsilons, kind)
    return {"mean": mean, "variance": np.array(variance), "owners": np.array(float(len(replies)))}


def _sizes(rows: float, owners: int) -> IntArray:
    """Integer numbers of rows whose mean is the typical number."""
    low = int(rows)
    return np.asarray(np.maximum(low + (np.arange(owners) < (rows - low) * owners), 1))
