"""MRMA for many studies at once, beside the methods of `dpfda_bench.baselines`.

Reports are drawn once: methods that train on everybody use all of them, MRMA uses the first N0 and
asks the others for verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.local.mrma.averaging import weights
from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.mrma.learners._arrays import Array, device, namespace, to_numpy
from dpfda.local.mrma.members import Judgement, draw_members, intercept_shrinkage, judge
from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.noise import SimulationSource
from dpfda_bench import baselines
from dpfda_bench.baselines import Members, People, Setting
from dpfda_bench.decision_rules import MembersRule, Rule, beside
from dpfda_bench.reproductions import _p001 as common


class Study(NamedTuple):
    """What one experiment came to: members, what verdicts say of them, and rules by method."""

    members: Members
    judgement: Judgement
    rules: dict[str, Rule]


def one_study(setting: Setting, people: People, source: SimulationSource) -> Study:
    """All methods on the same people: weak ones, MRMA's steps, pooled ones, and references."""
    reports, shape = baselines.noisy_reports(setting, people, source), people.labels.shape
    weak = weak_members(setting, *reports, chosen(setting, shape, source))
    members = shrunk_members(setting, weak)
    told = coins(setting, shape, source)
    totals, judges = verdict_totals(setting, members, people, told)
    rules = mrma_rules(setting, members, totals, judges)
    rules |= baselines.pooled_rules(setting, *baselines.pooled_members(setting, *reports))
    rules |= baselines.reference_rules(setting, people)
    return Study(members, judgement(setting, totals, judges), rules)


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


STEPS = ("Weak", "MR", "MA", "MRMA")
METHODS = (*STEPS, "Voting", "Averaging", "All data")
REFERENCES = ("majority class", "non-private")


@dataclass(frozen=True, eq=False)
class Crowd:
    """R studies of N people, and those they are tested on.

    Attributes:
        people: by kind of features (see `common.seen`), shape (R, N, d).
        labels: ±1, shape (R, N).
        test: the same kinds for test people.
        truth: their labels.
        code: the encoding, for learners that fit slope functions.
        reported: which kind people report under a rule; ``encoded`` where it does not say.
    """

    people: Mapping[str, FloatArray]
    labels: FloatArray
    test: Mapping[str, FloatArray]
    truth: FloatArray
    code: common.Encoding
    reported: Mapping[str, str] = field(default_factory=dict)


def errors_of(
    crowd: Crowd,
    design: MRMADesign,
    *,
    epsilon: float,
    cutoff: float,
    source: SimulationSource,
    learners: Sequence[str] = common.LEARNERS,
    pooled: bool = True,
) -> Iterator[tuple[tuple[str, str, str], FloatArray]]:
    """Errors by learner, rule and method; reports are drawn once for all that ask for the same.

    Args:
        crowd: the people.
        design: who reports and who judges.
        epsilon: ε of everybody.
        cutoff: r0 as published.
        source: of everything random.
        learners: which.
        pooled: also the methods that train on everybody's reports.
    """
    reports: dict[str, tuple[FloatArray, FloatArray]] = {}
    for name in learners:
        fitted: dict[Any, Any] = {}
        for rule in common.RULES:
            told = crowd.reported.get(rule, "encoded")
            kind = common.seen_as(name, rule) if rule == common.RULES[0] else told
            learner = common.noisy_learner(name, rule, crowd.code)
            base = Setting(design, epsilon=epsilon, learner=learner, gram=crowd.code.gram)
            people = People(crowd.people[told], crowd.labels, crowd.people[kind])
            if told not in reports:
                reports[told] = baselines.noisy_reports(base, people, source)
            if (learner, told) not in fitted:
                who = chosen(base, crowd.labels.shape, source)
                parts = baselines.pooled_members(base, *reports[told]) if pooled else ()
                fitted[learner, told] = (
                    weak_members(base, *reports[told], who),
                    parts,
                    baselines.reference_rules(base, people),
                )
            weak, parts, references = fitted[learner, told]
            setting = common.under_rule(base, rule, cutoff=cutoff)
            members = shrunk_members(setting, weak)
            told_coins = coins(setting, crowd.labels.shape, source)
            totals, judges = verdict_totals(setting, members, people, told_coins)
            rules: dict[str, Rule] = mrma_rules(setting, members, totals, judges)
            rules |= baselines.pooled_rules(setting, *parts) if pooled else {}
            for method, decision in (rules | references).items():
                yield (name, rule, method), decision.errors(crowd.test[kind], crowd.truth)
