"""MRMA beside the methods it is compared with (methods §4), for many simulated studies at once.

Every method gets the same N people and the same ε. Reports are drawn once: methods that train on
everybody use all of them, MRMA uses the first N0 and asks the others for verdicts. This is for
simulations: together the methods ask people more than ε allows, so it is never run on a study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.learners import Learner
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.mrma.averaging import average_parameters, unit_norm, weights
from dpfda.mrma.decision_rules import CellRule, ConstantRule, LinearRule, MembersRule, Rule
from dpfda.mrma.members import draw_members, intercept_shrinkage, judge
from dpfda.noise import SimulationSource
from dpfda.protocol.tasks.cell import grid_cells

Members = tuple[FloatArray, FloatArray]
"""Intercepts (R, B) and coefficients (R, B, d)."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Public parameters of the studies.

    Attributes:
        epsilon: ε of every person.
        learner: the weak learner.
        n_classifiers: B.
        member_size: n0.
        training: N0, how many people report in MRMA.
        cutoff: a fixed r0; None is the public default.
        strictness: constant of the default.
        normalize: average members at unit norm (not in the papers).
        randomizer: registered name of the randomizer of features.
        label_share: ε_y/ε; None is 1/(d+1).
        gram: passed to the learner.
        spread: how far from the middle boundaries are expected (`intercept_shrinkage`); None
            leaves intercepts as fitted.
        verdict_share: ε_v/ε.
        protects: ``both``, ``features`` or ``labels``: what is public gets no noise, the other all
            of ε.
    """

    epsilon: float
    learner: Learner
    n_classifiers: int = 50
    member_size: int = 50
    training: int = 500
    cutoff: float | None = None
    strictness: float = 1.0
    normalize: bool = True
    randomizer: str = "laplace"
    label_share: float | None = None
    gram: FloatArray | None = None
    spread: float | None = None
    verdict_share: float = 1.0
    protects: str = "both"

    def randomizer_for(self, dimension: int) -> tuple[Mechanism, RandomizedResponse]:
        """The randomizers of features and label of one report."""
        share = 1 / (dimension + 1) if self.label_share is None else self.label_share
        parts = (1 - share, share) if self.protects == "both" else (1.0, 1.0)
        features = {"epsilon": self.epsilon * parts[0], "dimension": dimension}
        return (
            Mechanism.from_dict({"name": self.randomizer, **features}),
            RandomizedResponse(epsilon=self.epsilon * parts[1]),
        )

    @property
    def verdict_epsilon(self) -> float:
        """ε_v."""
        return self.epsilon * self.verdict_share


@dataclass(frozen=True, eq=False)
class People:
    """N people of each of R studies.

    Attributes:
        reported: encoded features in [-1, 1]^d that go into reports, shape (R, N, d).
        labels: ±1, shape (R, N).
        decided: features that classifiers are applied to; the papers' published decision rule
            differs from the one members were trained for (C2), so it may differ from `reported`.
    """

    reported: FloatArray
    labels: FloatArray
    decided: FloatArray

    @classmethod
    def plain(cls, features: Any, labels: Any) -> People:
        """People whose classifiers are applied to what they were trained on."""
        z = np.asarray(features, dtype=np.float64)
        return cls(z, np.asarray(labels, dtype=np.float64), z)


def noisy_reports(
    setting: Setting, people: People, source: SimulationSource
) -> tuple[FloatArray, FloatArray]:
    """What everybody would report: noisy features and noisy labels."""
    mechanism, answer = setting.randomizer_for(people.reported.shape[-1])
    features, labels = people.reported, people.labels
    if setting.protects != "labels":
        flat = features.reshape(-1, features.shape[-1])
        features = mechanism.randomize(flat, source).reshape(features.shape)
    if setting.protects != "features":
        labels = answer.randomize(labels, source)
    return features, labels


def fit_members(setting: Setting, features: FloatArray, labels: FloatArray) -> Members:
    """Fit a learner to (R, B, n, d) training sets."""
    studies, members, n, d = features.shape
    models = setting.learner.fit(
        features.reshape(-1, n, d), labels.reshape(-1, n), gram=setting.gram
    )
    intercept = np.asarray(models.intercept).reshape(studies, members)
    return intercept, np.asarray(models.coefficients).reshape(studies, members, d)


def weak_members(
    setting: Setting, features: FloatArray, labels: FloatArray, source: SimulationSource
) -> Members:
    """B members of each study, each from n0 of the first N0 reports, drawn without replacement."""
    studies = len(features)
    shape = (studies, setting.n_classifiers, setting.member_size)
    chosen = draw_members(source.generator.random(shape), among=setting.training)
    study = np.arange(studies)[:, None, None]
    return fit_members(setting, features[study, chosen], labels[study, chosen])


def shrunk_members(setting: Setting, members: Members) -> Members:
    """The same members with the intercepts that noise has moved shrunk, if `spread` is set."""
    intercept, slopes = members
    if setting.protects == "labels":
        return members
    mechanism, _ = setting.randomizer_for(slopes.shape[-1])
    noise = float(mechanism.variance(np.zeros((1, slopes.shape[-1])))[0, 0])
    factor = intercept_shrinkage(noise, size=setting.member_size, spread=setting.spread)
    return intercept * factor, slopes


def verdict_totals(
    setting: Setting, members: Members, people: People, source: SimulationSource
) -> tuple[FloatArray, FloatArray]:
    """Sums of randomized verdicts of those who did not report, and how many judged each member."""
    intercept, slopes = members
    judges = people.decided[:, setting.training :]
    labels = people.labels[:, setting.training :]
    groups = np.arange(judges.shape[1]) % intercept.shape[1]
    scores = np.einsum("rnd,rnd->rn", judges, slopes[:, groups]) + intercept[:, groups]
    right = np.where((scores >= 0) == (labels > 0), 1.0, -1.0)
    verdicts = RandomizedResponse(epsilon=setting.verdict_epsilon).randomize(right, source)
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups, minlength=intercept.shape[1])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    padded = np.concatenate([verdicts[:, order], np.zeros((len(verdicts), 1))], axis=1)
    totals = np.add.reduceat(padded, np.minimum(starts, len(groups)), axis=1)
    return np.where(counts > 0, totals, 0.0), counts.astype(np.float64)


def mrma_rules(
    setting: Setting, members: Members, totals: FloatArray, judges: FloatArray
) -> dict[str, Rule]:
    """Weak, MR, MA and MRMA: what evaluation, reversal and averaging add, one by one."""
    found = judge(
        totals,
        judges,
        epsilon=setting.verdict_epsilon,
        cutoff=setting.cutoff,
        strictness=setting.strictness,
    )
    only_averaged = weights(found.accuracy.value, cutoff=found.cutoff).value
    same = np.ones_like(found.direction)
    return {
        "Weak": MembersRule(*members, same),
        "MR": MembersRule(*members, found.direction),
        "MA": _averaged(setting, members, only_averaged),
        "MRMA": _averaged(setting, members, found.signed_weight),
    }


def pooled_members(
    setting: Setting, features: FloatArray, labels: FloatArray
) -> tuple[Members, Members]:
    """B members from N/B people each, and one from everybody: nobody judges."""
    studies, n, d = features.shape
    size = n // setting.n_classifiers
    shape = (studies, setting.n_classifiers, size)
    used = setting.n_classifiers * size
    members = fit_members(
        setting, features[:, :used].reshape(*shape, d), labels[:, :used].reshape(shape)
    )
    return members, fit_members(setting, features[:, None], labels[:, None])


def pooled_rules(setting: Setting, members: Members, whole: Members) -> dict[str, Rule]:
    """Voting, Averaging and All data."""
    shape = members[0].shape
    return {
        "Voting": MembersRule(*members, np.ones(shape), voting=True),
        "Averaging": _averaged(setting, members, np.full(shape, 1 / shape[1])),
        "All data": LinearRule(whole[0][:, 0], whole[1][:, 0]),
    }


def histogram_rule(
    people: People, *, epsilon: float, splits: int, handicap: float, source: SimulationSource
) -> Rule:
    """The private histogram of Berrett & Butucea: Lap(2·handicap/ε) on every cell of everybody.

    The sum of n Laplace numbers is drawn at once, as the difference of two gamma numbers.
    """
    studies, n, d = people.reported.shape
    cells = grid_cells(people.reported, splits=splits)
    size = splits**d
    flat = (np.arange(studies)[:, None] * size + cells).ravel()
    sums = np.bincount(flat, people.labels.ravel(), studies * size).reshape(studies, size)
    draw = source.generator.standard_gamma
    noise = draw(float(n), (studies, size)) - draw(float(n), (studies, size))
    return CellRule(sums + (2 * handicap / epsilon) * noise, splits)


def reference_rules(setting: Setting, people: People) -> dict[str, Rule]:
    """What any table needs beside it (C4): the majority class and the learner without noise."""
    whole = fit_members(setting, people.reported[:, None], people.labels[:, None])
    return {
        "majority class": ConstantRule(np.where(people.labels.mean(axis=1) >= 0, 1.0, -1.0)),
        "non-private": LinearRule(whole[0][:, 0], whole[1][:, 0]),
    }


def _averaged(setting: Setting, members: Members, weight: FloatArray) -> LinearRule:
    ready = unit_norm(*members) if setting.normalize else members
    return LinearRule(*average_parameters(*ready, weight))
