"""MRMA for many simulated studies at once, beside the methods of `dpfda_bench.baselines`.

Reports are drawn once: methods that train on everybody use all of them, MRMA uses the first N0 and
asks the others for verdicts.
"""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.mrma.averaging import weights
from dpfda.mrma.members import Judgement, draw_members, intercept_shrinkage, judge
from dpfda.noise import SimulationSource
from dpfda_bench.baselines import Members, People, Setting
from dpfda_bench.decision_rules import MembersRule, Rule


def weak_members(
    setting: Setting, features: FloatArray, labels: FloatArray, source: SimulationSource
) -> Members:
    """B members of each study, each from n0 of the first N0 reports, drawn without replacement."""
    studies, n = labels.shape
    shape = (studies, setting.design.n_classifiers, setting.design.member_size)
    chosen = draw_members(source.generator.random(shape), among=setting.design.n_reports(n))
    study = np.arange(studies)[:, None, None]
    return setting.fit(features[study, chosen], labels[study, chosen])


def shrunk_members(setting: Setting, members: Members) -> Members:
    """The same members with the intercepts that noise has moved shrunk, if the design says so."""
    intercept, slopes = members
    d, design = slopes.shape[-1], setting.design
    noise = float(setting.report(1, d).mechanism.parts[0].variance(np.zeros((1, d)))[0, 0])
    factor = intercept_shrinkage(noise, size=design.member_size, spread=design.boundary_spread)
    return intercept * factor, slopes


def verdict_totals(
    setting: Setting, members: Members, people: People, source: SimulationSource
) -> tuple[FloatArray, FloatArray]:
    """Sums of randomized verdicts of those who did not report, and how many judged each member."""
    intercept, slopes = members
    first = setting.design.n_reports(people.labels.shape[1])
    judges, labels = people.decided[:, first:], people.labels[:, first:]
    groups = np.arange(judges.shape[1]) % intercept.shape[1]
    scores = np.einsum("rnd,rnd->rn", judges, slopes[:, groups]) + intercept[:, groups]
    right = np.where((scores >= 0) == (labels > 0), 1.0, -1.0)
    verdicts = RandomizedResponse(epsilon=_verdict_epsilon(setting)).randomize(right, source)
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups, minlength=intercept.shape[1])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    padded = np.concatenate([verdicts[:, order], np.zeros((len(verdicts), 1))], axis=1)
    totals = np.add.reduceat(padded, np.minimum(starts, len(groups)), axis=1)
    return np.where(counts > 0, totals, 0.0), counts.astype(np.float64)


def judgement(setting: Setting, totals: FloatArray, judges: FloatArray) -> Judgement:
    """What verdicts say about the members of each study."""
    design = setting.design
    return judge(
        totals,
        judges,
        epsilon=_verdict_epsilon(setting),
        cutoff=design.cutoff,
        strictness=design.strictness,
    )


def mrma_rules(
    setting: Setting, members: Members, totals: FloatArray, judges: FloatArray
) -> dict[str, Rule]:
    """Weak, MR, MA and MRMA: what evaluation, reversal and averaging add, one by one."""
    found = judgement(setting, totals, judges)
    only_averaged = weights(found.accuracy.value, cutoff=found.cutoff).value
    return {
        "Weak": MembersRule(*members, np.ones_like(found.direction)),
        "MR": MembersRule(*members, found.direction),
        "MA": setting.averaged(members, only_averaged),
        "MRMA": setting.averaged(members, found.signed_weight),
    }


def _verdict_epsilon(setting: Setting) -> float:
    return setting.epsilon * setting.design.verdict_share
