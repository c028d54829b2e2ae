"""Methods that MRMA is compared with, for many studies (docs/methods/model-averaging.md).

Every method gets the same N people and the same ε. Together they ask people more than ε allows, so
this is for simulations and never run on a study.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.mrma.averaging import average_parameters, unit_norm
from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.mrma.learners import Learner
from dpfda.local.mrma.learners._arrays import Array, namespace, to_numpy
from dpfda.noise import SimulationSource
from dpfda.protocol.tasks.vector import VectorTask
from dpfda_bench.decision_rules import (
    CellRule,
    ConstantRule,
    LinearRule,
    MembersRule,
    Rule,
    grid_cells,
)

_HISTOGRAM_SPLITS = 4

Members = tuple[FloatArray, FloatArray]
"""Intercepts (R, B) and coefficients (R, B, d)."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Public parameters of the studies.

    Attributes:
        design: as in one study; its learner is not used, `learner` is.
        epsilon: ε of every person.
        learner: the weak learner.
        gram: passed to the learner.
        protects: ``both``, ``features`` or ``labels``: what is public gets no noise.
        normalize: average members at unit norm (not in the papers).
    """

    design: MRMADesign
    _: KW_ONLY
    epsilon: float
    learner: Learner
    gram: FloatArray | None = None
    protects: str = "both"
    normalize: bool = True

    def report(self, people: int, dimension: int) -> VectorTask:
        """What people are asked who report."""
        return VectorTask(
            epsilon=self.epsilon,
            people=people,
            dimension=dimension,
            mechanism_name=self.design.mechanism,
            label_share=self.design.label_share,
            protects=self.protects,
        )

    def fit(self, features: Array, labels: Array) -> Members:
        """Fit the learner to (R, B, n, d) training sets, where these are."""
        studies, members, n, d = features.shape
        xp = namespace(features)
        rows, signs = xp.reshape(features, (-1, n, d)), xp.reshape(labels, (-1, n))
        models = self.learner.fit(rows, signs, gram=self.gram)
        intercept = to_numpy(models.intercept).reshape(studies, members)
        return intercept, to_numpy(models.coefficients).reshape(studies, members, d)

    def averaged(self, members: Members, weight: FloatArray) -> LinearRule:
        """The weighted average of the members of each study."""
        ready = unit_norm(*members) if self.normalize else members
        return LinearRule(*average_parameters(*ready, weight))


@dataclass(frozen=True, eq=False)
class People:
    """N people of each of R studies.

    Attributes:
        reported: encoded features in [-1, 1]^d that go into reports, shape (R, N, d).
        labels: ±1, shape (R, N).
        decided: features that classifiers are applied to; the papers' published decision rule
            differs from the one members were trained for (C2), so it may differ from `reported`.
    """

    reported: Array
    labels: Array
    decided: Array

    @classmethod
    def plain(cls, features: Any, labels: Any) -> People:
        """People whose classifiers are applied to what they were trained on."""
        z = np.asarray(features, dtype=np.float64)
        return cls(z, np.asarray(labels, dtype=np.float64), z)


def noisy_reports(
    setting: Setting, people: People, source: SimulationSource
) -> tuple[FloatArray, FloatArray]:
    """What everybody would report: noisy features and noisy labels."""
    shape = people.reported.shape
    rows, numbers = people.reported.reshape(-1, shape[-1]), (people.labels > 0).ravel()
    reply = setting.report(*rows.shape).answer((rows, numbers), source).values
    return reply[:, :-1].reshape(shape), reply[:, -1].reshape(shape[:-1])


def pooled_members(setting: Setting, features: Array, labels: Array) -> tuple[Members, Members]:
    """B members from N/B people each, and one from everybody: nobody judges."""
    studies, n, d = features.shape
    members = min(setting.design.n_classifiers, n // 2)
    shape = (studies, members, n // members)
    used, xp = members * shape[2], namespace(features)
    parts = setting.fit(
        xp.reshape(features[:, :used, :], (*shape, d)), xp.reshape(labels[:, :used], shape)
    )
    return parts, setting.fit(features[:, None, :, :], labels[:, None, :])


def pooled_rules(setting: Setting, members: Members, whole: Members) -> dict[str, Rule]:
    """Voting, Averaging and All data."""
    shape = members[0].shape
    return {
        "Voting": MembersRule(*members, np.ones(shape), voting=True),
        "Averaging": setting.averaged(members, np.full(shape, 1 / shape[1])),
        "All data": LinearRule(whole[0][:, 0], whole[1][:, 0]),
    }


def histogram_rule(
    people: People, *, epsilon: float, handicap: float = 1.0, source: SimulationSource
) -> Rule:
    """The private histogram of Berrett & Butucea: Lap(2·handicap/ε) on every cell of everybody.

    One cell of a person's report is ±1 and the others are 0, so that two people differ by at most
    2 in ℓ1 and Lap(2/ε) suffices; the published Lap(2^{d+1}/ε) is a handicap of 2^d.
    The sum of n Laplace numbers is drawn at once, as the difference of two gamma numbers.
    """
    studies, n, d = people.reported.shape
    cells = grid_cells(people.reported, splits=_HISTOGRAM_SPLITS)
    size = _HISTOGRAM_SPLITS**d
    flat = (np.arange(studies)[:, None] * size + cells).ravel()
    sums = np.bincount(flat, people.labels.ravel(), studies * size).reshape(studies, size)
    draw = source.generator.standard_gamma
    noise = draw(float(n), (studies, size)) - draw(float(n), (studies, size))
    return CellRule(sums + (2 * handicap / epsilon) * noise, _HISTOGRAM_SPLITS)


def reference_rules(setting: Setting, people: People) -> dict[str, Rule]:
    """What any table needs beside it (C4): the majority class and the learner without noise."""
    intercept, slopes = setting.fit(people.reported[:, None, :, :], people.labels[:, None, :])
    balance = to_numpy(namespace(people.labels).mean(people.labels, axis=1))
    return {
        "majority class": ConstantRule(np.where(balance >= 0, 1.0, -1.0)),
        "non-private": LinearRule(intercept[:, 0], slopes[:, 0]),
    }
