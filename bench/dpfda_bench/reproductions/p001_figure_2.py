"""001 Figure 2: seven methods, four learners, eight budgets, one server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dpfda.datasets.simulated import scores_001
from dpfda.local.mrma.learners._arrays import namespace, placed
from dpfda.local.mrma.members import Judgement
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import Sweep
from dpfda.report.contents import Outcome
from dpfda_bench import baselines
from dpfda_bench.baselines import Members, People, Setting
from dpfda_bench.decision_rules import Rule
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.reproductions import _p001_batch as batch
from dpfda_bench.verdict import Verdict, agrees_if

ACCELERATED = True
TITLE = "Error of seven methods under ε-LDP, one server, % (001 Figure 2)"
COVERS = ("000-figure-1",)
NEEDS = ()
SECONDS = 60
GUARANTEES = common.GUARANTEES
CLAIMED = common.CLAIMED
READING = str(common.READINGS["001-figure-2"])

METHODS = batch.METHODS
OLDER = ("MA 000", "MRMA 000")
NOTES = [
    "001 prints no numbers for this figure; its text says: All data, Voting and Averaging hardly "
    "improve on Weak when ε is small; MR and MA improve every learner; MRMA further improves SVM "
    "and CG substantially. `claims_*` are the shares of (learner, ε ≤ 1) at which this is so.",
    "As published: members decide on raw curves (C2), cutoff 0.8, members averaged as they are. "
    "Corrected: members decide on what they were trained on, unit norm, no cutoff (weights ∝ "
    "|r̃ - ½|, C3). Default: corrected, and intercepts that noise has moved are shrunk.",
    "Readings: SVM coefficients for standardized features applied to raw ones (a slip of e1071 "
    "users; with the right scaling SVM members are constant at small ε and MRMA stays at 47 % at "
    "ε = 0.5, against the text); CG with one step (five steps: 45 % at ε = 0.5, and not the spread "
    "of 10 to 90 % that Appendix A.1 describes); DWD as in Table A.1.",
    "Every method has the same 3000 people; MRMA uses 500 reports and 2500 verdicts. MA 000 and "
    "MRMA 000: with the cutoff 0.4 that 000 states, which lies outside its own range (0.5, 1).",
]

_PEOPLE, _TEST, _DIMENSION = 3000, 500, 4
_CHUNK = 25
_THREADS = 4  # more of them wait for each other
Errors = dict[tuple[str, float, str, str], Any]
"""Errors of replications by (learner, ε, rule, method)."""


def run(effort: Effort = FULL) -> Outcome:
    """Repeat the experiment, 500 times by default, all of them in batches."""
    studies = effort.repeats(500, quick=10)
    means, spread = measure(studies, effort=effort)
    percent = {key: 100 * mean for key, mean in means.items()}
    rows = common.rule_rows(percent, (*METHODS, *OLDER, "majority class", "non-private"))
    widest = 100 * max(spread.values()) / studies**0.5
    return Outcome(
        rows=rows,
        figures=_claims(means),
        notes=[f"{studies} replications; standard errors up to {widest:.2f} points.", *NOTES],
        plot=partial(common.plot_rules, rows, METHODS),
    )


def verdict(outcome: Outcome) -> Verdict:
    """The paper's sentences, at the learners and small budgets that they speak of."""
    said = ("mr_below_weak", "ma_below_weak", "mrma_best_svm_cg")
    shares = {claim: outcome.figures[f"claims_{claim}"] for claim in said}
    told = ", ".join(f"{claim.replace('_', ' ')} {100 * v:.0f} %" for claim, v in shares.items())
    return agrees_if(
        min(shares.values()) >= 0.75,
        f"No numbers are printed. Shares of learners and budgets up to 1 at which the text's "
        f"claims hold: {told}.",
    )


def measure(
    studies: int,
    *,
    rules: tuple[str, ...] = common.RULES,
    epsilons: tuple[float, ...] = common.EPSILONS,
    effort: Effort = FULL,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Mean errors and their standard deviations over replications, for every combination."""
    starts = range(0, studies, _CHUNK)
    names = [(start, min(_CHUNK, studies - start), epsilons, rules) for start in starts]
    if effort.device == "cpu":
        joined = common.collected(effort, _chunk, names)
    else:
        # Chance decides on the CPU, by the code and the seeds of any other run: exact noise, and
        # the same. An accelerator is done before processes would have started; nothing is kept.
        threads = Sweep(jobs=_THREADS, backend="threading", tell=effort.sweep.tell)
        drawn = threads.run(_drawn, names)
        joined = _found(_at_once(drawn, effort.device), epsilons, rules)
    return (
        {key: float(errors.mean()) for key, errors in joined.items()},
        {key: float(errors.std()) for key, errors in joined.items()},
    )


def _chunk(start: int, studies: int, epsilons: tuple[float, ...], rules: tuple[str, ...]) -> Errors:
    """Errors of all methods and learners in some replications; the same people at every budget."""
    return _found(_drawn(start, studies, epsilons, rules), epsilons, rules)


def _at_once(parts: Iterable[dict[Any, Any]], on: str) -> dict[Any, Any]:
    """What was drawn for several replications, together on an accelerator."""
    there = [{key: placed(array, on) for key, array in part.items()} for part in parts]
    xp = namespace(there[0]["labels",])
    return {key: xp.concat([part[key] for part in there]) for key in there[0]}


def _cases(rules: tuple[str, ...]) -> Iterator[tuple[str, str, Setting]]:
    """Learners, rules and what both make of a study, but for its ε."""
    code = common.encoding(_DIMENSION)
    for name, rule in product(common.LEARNERS, rules):
        learner = common.noisy_learner(name, rule, code)
        base = Setting(common.SIMULATED, epsilon=1.0, learner=learner, gram=code.gram)
        yield name, rule, common.under_rule(base, rule, cutoff=0.8)


def _drawn(
    start: int, studies: int, epsilons: tuple[float, ...], rules: tuple[str, ...]
) -> dict[Any, Any]:
    """What chance decides in some replications: people, reports, who trains what, coins."""
    code = common.encoding(_DIMENSION)
    source = SimulationSource(np.random.SeedSequence((2, start)))
    scores, labels = scores_001((studies, _PEOPLE), source.generator)
    test, truth = scores_001((studies, _TEST), source.generator)
    cases = list(_cases(rules))
    kinds = {"encoded", *(common.seen_as(name, rule) for name, rule, _ in cases)}
    found: dict[Any, Any] = {("labels",): labels, ("truth",): truth}
    for kind in sorted(kinds):
        found["people", kind] = common.seen(scores, code, kind)
        found["test", kind] = common.seen(test, code, kind)
    people = People.plain(found["people", "encoded"], labels)
    for epsilon in epsilons:
        reports = baselines.noisy_reports(replace(cases[0][2], epsilon=epsilon), people, source)
        found["features", epsilon] = reports[0]
        found["noisy labels", epsilon] = reports[1].astype(np.int8)
        for name, rule, base in cases:
            setting = replace(base, epsilon=epsilon)
            members = "members", epsilon, base.learner
            if members not in found:  # rules that share a learner share its members
                who = batch.chosen(setting, labels.shape, source)
                found[members] = who.astype(np.int16)
            told = batch.coins(setting, labels.shape, source)
            found["coins", epsilon, name, rule] = told.astype(np.int8)
    return found


def _found(drawn: dict[Any, Any], epsilons: tuple[float, ...], rules: tuple[str, ...]) -> Errors:
    """Errors of all methods where `drawn` is: in memory, or on an accelerator."""
    labels, truth = drawn["labels",], drawn["truth",]
    cases, found = list(_cases(rules)), Errors()
    beside: dict[Any, dict[str, Rule]] = {}
    for name, rule, base in cases:
        if base.learner not in beside:
            people = People(drawn["people", "encoded"], labels, None)
            beside[base.learner] = baselines.reference_rules(base, people)
        features = drawn["test", common.seen_as(name, rule)]
        for method, decision in beside[base.learner].items():
            errors = decision.errors(features, truth)
            found |= {(name, epsilon, rule, method): errors for epsilon in epsilons}
    fitted = {base.learner: _members(base, drawn, epsilons) for _, _, base in cases}
    for (name, rule, base), (place, epsilon) in product(cases, enumerate(epsilons)):
        setting, kind = replace(base, epsilon=epsilon), common.seen_as(name, rule)
        weak, *pooled = (
            (intercept[place], slopes[place]) for intercept, slopes in fitted[base.learner]
        )
        members = batch.shrunk_members(setting, weak)
        people = People(drawn["people", "encoded"], labels, drawn["people", kind])
        told = drawn["coins", epsilon, name, rule]
        totals, judges = batch.verdict_totals(setting, members, people, told)
        methods: dict[str, Rule] = batch.mrma_rules(setting, members, totals, judges)
        methods |= baselines.pooled_rules(setting, *pooled)
        if rule == "as published":
            methods |= _older(setting, members, batch.judgement(setting, totals, judges))
        for method, decision in methods.items():
            found[name, epsilon, rule, method] = decision.errors(drawn["test", kind], truth)
    return found


def _older(setting: Setting, members: Members, found: Judgement) -> dict[str, Rule]:
    """With the cutoff that 000 states, which no estimator takes: all reversed members count."""
    right = found.accuracy.value
    above = [np.maximum(value - 0.4, 0) for value in (right, np.maximum(right, 1 - right))]
    shares = [each / np.maximum(each.sum(axis=1, keepdims=True), 1e-9) for each in above]
    weights = (shares[0], shares[1] * found.direction)
    return {
        name: setting.averaged(members, weight) for name, weight in zip(OLDER, weights, strict=True)
    }


def _members(setting: Setting, drawn: dict[Any, Any], epsilons: tuple[float, ...]) -> list[Members]:
    """Weak members, those of everybody's parts and of everybody, with a first axis for ε.

    All budgets are fitted together: an accelerator takes as long for many members as for few.
    """
    xp = namespace(drawn["labels",])
    studies = drawn["labels",].shape[0]

    def all_of(*key: Any) -> Any:
        return xp.concat([drawn[key[0], epsilon, *key[1:]] for epsilon in epsilons])

    features, labels = all_of("features"), all_of("noisy labels")
    labels = xp.astype(labels, xp.float64)
    weak = batch.weak_members(setting, features, labels, all_of("members", setting.learner))
    parts = [weak, *baselines.pooled_members(setting, features, labels)]
    shape = (len(epsilons), studies)
    return [
        (intercept.reshape(*shape, -1), slopes.reshape(*shape, *slopes.shape[1:]))
        for intercept, slopes in parts
    ]


def _claims(means: dict[Any, float]) -> dict[str, float]:
    """How many of the paper's sentences hold: share of (learner, ε ≤ 1) for each."""
    small = [epsilon for epsilon in common.EPSILONS if epsilon <= 1]

    def share(names: tuple[str, ...], better: str, worse: tuple[str, ...], by: float) -> float:
        holds = [
            means[name, epsilon, "as published", better]
            <= min(means[name, epsilon, "as published", other] for other in worse) - by
            for name in names
            for epsilon in small
        ]
        return float(np.mean(holds))

    pooled = ("Voting", "Averaging", "All data")
    return {
        "claims_mr_below_weak": share(common.LEARNERS, "MR", ("Weak",), 0.0),
        "claims_ma_below_weak": share(common.LEARNERS, "MA", ("Weak",), 0.0),
        "claims_mrma_below_pooled": share(common.LEARNERS, "MRMA", pooled, 0.0),
        "claims_mrma_best_svm_cg": share(("SVM", "CG"), "MRMA", ("MR", "MA", "Weak", *pooled), 0.0),
    }
