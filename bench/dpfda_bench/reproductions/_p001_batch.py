"""MRMA for many simulated studies at once, beside the methods of `dpfda_bench.baselines`.

Reports are drawn once: methods that train on everybody use all of them, MRMA uses the first N0 and
asks the others for verdicts.
"""

from __future__ import annotations

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.learners._arrays import Array, device, namespace, to_numpy
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.mrma.averaging import weights
from dpfda.mrma.members import Judgement, draw_members, intercept_shrinkage, judge
from dpfda.noise import SimulationSource
from dpfda_bench.baselines import Members, People, Setting
from dpfda_bench.decision_rules import MembersRule, Rule, beside


def chosen(setting: Setting, shape: tuple[int, int], source: SimulationSource) -> IntArray:
    """Who trains which member, of (R, N) people: n0 of the first N0, without replacement."""
    studies, n = shape
    drawn = (studies, setting.design.n_classifiers, setting.design.member_size)
    return draw_members(source.generator.random(drawn), among=setting.design.n_reports(n))


def weak_members(setting: Setting, features: Array, labels: Array, who: Array) -> Members:
    """The members of each study, from the reports of those who are `chosen` for them."""
    studies, n, d = features.shape
    xp = namespace(features)
    first = n * xp.arange(studies, dtype=xp.int64, device=device(features))
    rows = xp.reshape(xp.astype(who, xp.int64) + first[:, None, None], (-1,))
    shape = tuple(who.shape)
    return setting.fit(
        xp.reshape(xp.take(xp.reshape(features, (-1, d)), rows, axis=0), (*shape, d)),
        xp.reshape(xp.take(xp.reshape(labels, (-1,)), rows, axis=0), shape),
    )


def shrunk_members(setting: Setting, members: Members) -> Members:
    """The same members with the intercepts that noise has moved shrunk, if the design says so."""
    intercept, slopes = members
    d, design = slopes.shape[-1], setting.design
    noise = float(setting.report(1, d).mechanism.parts[0].variance(np.zeros((1, d)))[0, 0])
    factor = intercept_shrinkage(noise, size=design.member_size, spread=design.boundary_spread)
    return intercept * factor, slopes


def coins(setting: Setting, shape: tuple[int, int], source: SimulationSource) -> FloatArray:
    """1 where a verdict is told, -1 where the opposite is, by those of (R, N) who do not report."""
    studies, n = shape
    true = np.ones((studies, n - setting.design.n_reports(n)))
    return RandomizedResponse(epsilon=_verdict_epsilon(setting)).randomize(true, source)


def verdict_totals(
    setting: Setting, members: Members, people: People, told: Array
) -> tuple[FloatArray, FloatArray]:
    """Sums of randomized verdicts of those who did not report, and how many judged each member.

    Everybody judges one member, in turn; `told` are their `coins`.
    """
    first = setting.design.n_reports(people.labels.shape[1])
    judges, labels = people.decided[:, first:, :], people.labels[:, first:]
    intercept, slopes = beside(judges, *members)
    xp, (studies, n, d), size = namespace(judges), judges.shape, intercept.shape[1]
    groups = xp.arange(n, device=device(judges)) % size
    scores = xp.take(intercept, groups, axis=1)
    for feature in range(d):
        scores = scores + judges[:, :, feature] * xp.take(slopes[:, :, feature], groups, axis=1)
    right = (scores >= 0) == (labels > 0)
    verdicts = xp.astype(told, xp.float64) * xp.where(
        right, xp.ones_like(scores), -xp.ones_like(scores)
    )
    rest = xp.zeros((studies, -n % size), dtype=xp.float64, device=device(judges))
    turns = xp.reshape(xp.concat([verdicts, rest], axis=1), (studies, -1, size))
    counts = np.bincount(np.arange(n) % size, minlength=size)
    return to_numpy(xp.sum(turns, axis=1)), counts.astype(np.float64)


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
