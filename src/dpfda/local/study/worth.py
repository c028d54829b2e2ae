"""The choice of questions that reduce the expected loss most per participant.

The loss is the variance of the log odds that the classifier gives people; it depends on the
variances of d, m (in widths), log s, r and logit π. To first order, answers reduce these as in a
normal model. The loss refers to the end of the study, because later answers reduce the variances
further.

A center must be known before d is estimated, because answers about d at a wrong threshold contain
little information.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.study.answers import Questions, above, farther
from dpfda.local.study.design import most_questions
from dpfda.local.study.posterior import Posterior
from dpfda.mechanisms.randomized_response import QuestionResponse, best_questions

_OFFSETS = np.array([-1.3, -0.7, 0.0, 0.7, 1.3])
"""Candidate thresholds, in standard deviations from the estimated center."""
_DISTANCES = np.array([0.5, 0.9, 1.3, 1.7, 2.2])
"""Candidate distances from the center, in standard deviations, if classes may differ in spread."""
CANDIDATES = len(_OFFSETS)
_GRID = 2.0**-20  # thresholds are multiples of it, so that rounding does not change a question
_STEPS = 8  # greedy steps for a batch
_PEAK = 0.64  # 4 φ(0)²: information on d, or m in widths, in a noiseless answer at the center
_TARGETS = 4  # d, m, log s, r
_EVEN = {"plain": 0.3, "labelled": 0.5, "label": 0.2}  # shares of the evenly spread questions
_FOR_WIDTH, _FOR_DIFFERENCE = np.array([[0.0, 0.4, 0.2, 0.4, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
"""Shares of the candidates for information on center and width, and on the difference."""


class Batch(NamedTuple):
    """The questions of a batch of participants.

    Attributes:
        per_person: k, questions in one reply.
        alpha: probability that a reply is true.
        questions: all candidates: about the label, then `CANDIDATES` about each feature and, if
            classes may differ in spread, as many about its distance from the center.
        shares: shares of participants with each plain and each labelled question, shape (n, 2); if
            k > 1, shares of the k - 1 plain questions of every participant.
        expected: predicted means of true answers, shape (n, 2).
    """

    per_person: int
    alpha: float
    questions: Questions
    shares: FloatArray
    expected: FloatArray

    @property
    def folds(self) -> FloatArray:
        """The centers of distances, if there are any."""
        center = self.questions.center
        return center[np.isfinite(center)][::CANDIDATES]


class _Belief(NamedTuple):
    """Joint posterior moments of targets and answers.

    Attributes:
        questions: as in `Batch`.
        means: means of true answers, plain and labelled, shape (features, 2, candidates).
        covariance: covariance of targets and mean answers, shape (features, 4 + 2 candidates,
            same).
        differs: (E d)² + 4 (E r)² by feature, to which the importance of the center is
            proportional.
        share: mean of π.
        log_odds: variance of logit π.
    """

    questions: Questions
    means: FloatArray
    covariance: FloatArray
    differs: FloatArray
    share: float
    log_odds: float


def best_batch(posterior: Posterior, people: int, *, left: int, epsilon: float) -> Batch:
    """The questions for `people` participants, if `left` others come after them."""
    belief, features, even = (
        _belief(posterior),
        posterior.prior.features,
        posterior.prior.beliefs.even,
    )
    expected = _listed(belief.means, 2 * belief.share - 1)
    # An even share of later answers, for each feature and the label.
    later = _truth(epsilon, 1) ** 2 * left / (features + 1)

    def batch(k: int) -> tuple[float, Batch]:
        """The best questions if every participant gets k, and their reduction of the loss."""
        alpha = _truth(epsilon, k)
        worth, counts = _chosen(belief, people / _STEPS, per_person=k, alpha=alpha, later=later)
        spread = _evenly(belief, k)
        shares = (1 - even) * counts / counts.sum() + even * spread / spread.sum()
        return worth, Batch(k, alpha, belief.questions, shares, expected)

    most = most_questions(features)
    k = best_questions(epsilon, most=most)  # the start of the search; optimal for equal questions
    worth, best = batch(k)
    for neighbors in (range(k + 1, most + 1), range(k - 1, 0, -1)):
        for other in neighbors:
            its_worth, its_batch = batch(other)
            if its_worth <= worth:
                break
            worth, best = its_worth, its_batch
    return best


def _truth(epsilon: float, questions: int) -> float:
    """The probability that a reply to so many questions is true."""
    return QuestionResponse(epsilon=epsilon, questions=questions).truth_probability


def _belief(posterior: Posterior) -> _Belief:
    particles, features = posterior.particles, posterior.prior.features
    center, log_width, d, r = np.moveaxis(particles.points, 2, 0)
    width = np.exp(log_width)
    mean_center, mean_width = particles.mean(center), np.sqrt(particles.mean(width**2))
    reach = np.sqrt(mean_width**2 + particles.variance(center))[:, None]
    thresholds = _rounded(mean_center[:, None] + reach * _OFFSETS)
    law = [values[:, None] for values in (center, width, d, r)]
    ones, others = above(thresholds[..., None], *law)
    centers = np.full_like(thresholds, np.nan)
    if posterior.prior.spread_differs:
        folds, distances = _rounded(mean_center)[:, None], _rounded(reach * _DISTANCES)
        far = farther(distances[..., None], folds[..., None], *law)
        thresholds = np.concatenate([thresholds, distances], axis=1)
        centers = np.concatenate([centers, np.broadcast_to(folds, distances.shape)], axis=1)
        ones, others = (
            np.concatenate(pair, axis=1) for pair in zip((ones, others), far, strict=True)
        )
    share, doubt = posterior.share
    plain, labelled = share * ones + (1 - share) * others, share * ones - (1 - share) * others
    off_center = (center - mean_center[:, None]) / mean_width[:, None]
    targets = np.stack([d, off_center, log_width, r], axis=1)
    values, weights = np.concatenate([targets, plain, labelled], axis=1), particles.weights[:, None]
    means = (values * weights).sum(axis=2)
    off = values - means[..., None]
    covariance = (off * weights) @ np.swapaxes(off, 1, 2)
    # The uncertainty of π makes answers less certain.
    slope = np.concatenate([0 * targets, ones - others, ones + others], axis=1)
    slope = (slope * weights).sum(axis=2)
    covariance += doubt * slope[:, :, None] * slope[:, None]
    feature = np.repeat(np.arange(features), thresholds.shape[1])
    answers = means[:, _TARGETS:].reshape(features, 2, -1)
    return _Belief(
        questions=Questions(
            np.insert(feature, 0, 0),
            np.insert(thresholds.ravel(), 0, -np.inf),
            np.insert(centers.ravel(), 0, np.nan),
        ),
        means=answers,
        covariance=covariance,
        differs=particles.mean(d) ** 2 + 4 * particles.mean(r) ** 2,
        share=share,
        log_odds=0.0 if posterior.prior.class_share is not None else posterior.log_odds[1] ** 2,
    )


def _chosen(
    belief: _Belief, step: float, *, per_person: int, alpha: float, later: float
) -> tuple[float, FloatArray]:
    """A greedy choice: in each step, `step` participants get the question with the largest gain.

    Returns:
        The reduction of the loss, and the numbers of participants with each question, as in
        `Batch.shares`.
    """
    covariance, log_odds, share = belief.covariance.copy(), belief.log_odds, belief.share
    noise = (1 - (alpha * belief.means) ** 2) / (alpha**2 * step)
    # Noise of a plain and a labelled answer; infinite noise means that only the other one is given.
    options = noise[None]
    if per_person == 1:
        options = np.stack([noise, noise])
        options[0, :, 1] = options[1, :, 0] = np.inf
    reaction = 2 * share * (1 - share)  # derivative of the mean label answer by logit π
    label_noise = (1 - (alpha * (2 * share - 1)) ** 2) / (alpha**2 * step)

    def loss(variances: FloatArray) -> FloatArray:
        return _loss(variances, belief.differs, later)

    def whole() -> float:
        of_features = loss(np.einsum("jtt->jt", covariance)[:, :_TARGETS]).sum()
        return float(of_features + of_share(log_odds))

    def of_share(variance: float) -> float:
        return float(remaining(np.array(variance), later * reaction**2))

    def gains() -> FloatArray:
        """The reduction of the loss by each answer, shape (options, features, candidates)."""
        now = np.einsum("jtt->jt", covariance)[:, :_TARGETS, None]
        at_present = loss(now)
        return np.stack([at_present - loss(now - _falls(covariance, one)) for one in options])

    counts, label, at_first = np.zeros_like(noise), 0.0, whole()
    for _ in range(_STEPS):
        gain = gains()
        log_odds_after = log_odds / (1 + log_odds * reaction**2 / label_noise)
        with_label = per_person > 1 or of_share(log_odds) - of_share(log_odds_after) > gain.max()
        if with_label:
            label, log_odds = label + step, log_odds_after
        # A participant gets questions about different features, whose gains add up.
        best = np.argsort(-gain.max(axis=(0, 2)), kind="stable")[: per_person - with_label]
        own_gains = np.swapaxes(gain, 0, 1).reshape(gain.shape[1], -1)[best]
        option, place = np.divmod(own_gains.argmax(axis=1), gain.shape[2])
        for kind in (0, 1):
            answer = _TARGETS + kind * gain.shape[2] + place
            own = options[option, best, kind, place]
            column = covariance[best, :, answer]
            total = np.take_along_axis(column, answer[:, None], axis=1) + own[:, None]
            fall = column[:, :, None] * column[:, None]
            covariance[best] -= fall / total[..., None]
            counts[best, kind, place] += step * np.isfinite(own)
    if per_person > 1:
        counts[:, 1] = label = 0.0  # every participant answers about the label
    return at_first - whole(), _listed(counts, label)


def _loss(variances: FloatArray, differs: FloatArray, later: float) -> FloatArray:
    """The loss by feature, given variances of the targets, shape (features, 4, ...).

    The log odds of a person z widths from the center contain 2 r (z² - 1), whose variance is 8
    times that of r.
    """
    differs = differs.reshape((-1,) + (1,) * (variances.ndim - 2))
    variances = np.maximum(variances, 0)
    information = np.full_like(variances, _PEAK * later)
    # If the center has variance v, answers about d have (1 + 2 v)^-½ of their information.
    information[:, 0] /= np.sqrt(1 + 2 * variances[:, 1])
    d, center, width, wider = np.moveaxis(remaining(variances, information), 1, 0)
    loss = 4 * (1 + differs) * d + 4 * differs * (center + (1 + differs) * width) + 8 * wider
    return np.asarray(loss)


def remaining(variance: FloatArray, information: FloatArray | float) -> FloatArray:
    """The expected variance after information that is uniform between 0 and this amount.

    Examples:
        >>> remaining(np.array([4.0]), 0.0), remaining(np.array([4.0]), 2.0).round(2)
        (array([4.]), array([1.1]))
    """
    product = np.maximum(variance * information, 1e-9)
    return np.asarray(variance * np.log1p(product) / product)


def _falls(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """Reductions of the targets' variances by plain and labelled answers together.

    Shape (features, 4, candidates); an answer with infinite noise is not given.
    """
    half = noise.shape[2]
    plain, labelled = slice(_TARGETS, _TARGETS + half), slice(_TARGETS + half, None)
    total = np.einsum("jqq->jq", covariance[:, plain, plain]) + noise[:, 0]
    between = np.einsum("jqq->jq", covariance[:, plain, labelled])
    second = np.einsum("jqq->jq", covariance[:, labelled, labelled]) + noise[:, 1]
    second = second - between**2 / total
    cross = covariance[:, :_TARGETS, plain]
    rest = covariance[:, :_TARGETS, labelled] - cross * (between / total)[:, None]
    return np.asarray(cross**2 / total[:, None] + rest**2 / second[:, None])


def _evenly(belief: _Belief, per_person: int) -> FloatArray:
    """Evenly spread questions for some participants, as in `Batch.shares`."""
    plain = np.zeros((len(belief.means), belief.means.shape[2] // CANDIDATES, CANDIDATES))
    labelled = plain + _FOR_DIFFERENCE
    plain = labelled.copy()
    plain[:, 0] = _FOR_WIDTH
    parts = [part.reshape(len(part), -1) / part.sum() for part in (plain, labelled)]
    shares = np.stack(parts, axis=1) * np.array([_EVEN["plain"], _EVEN["labelled"]])[:, None]
    if per_person > 1:
        shares[:, 1] = 0
    return _listed(shares, _EVEN["label"] * (per_person == 1 and belief.log_odds > 0))


def _listed(values: FloatArray, label: float) -> FloatArray:
    """Values of the label, and of features, kinds and candidates, in the order of `Batch`."""
    return np.concatenate([[[0.0, label]], np.moveaxis(values, 1, 2).reshape(-1, 2)])


def _rounded(thresholds: FloatArray) -> FloatArray:
    """Thresholds on the grid, inside the range of a feature."""
    return np.asarray(np.round(np.clip(thresholds, -1, 1 - _GRID) / _GRID) * _GRID)
