"""001 Figures A.1 and A.2: how errors of one classifier scatter when everybody reports noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.datasets.simulated import scores_001
from dpfda.local.mrma.designs import MRMADesign
from dpfda.noise import SimulationSource
from dpfda.report.contents import Outcome
from dpfda_bench import baselines
from dpfda_bench.baselines import People, Setting
from dpfda_bench.decision_rules import LinearRule
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions import _p001 as common
from dpfda_bench.reproductions import _p001_batch as batch
from dpfda_bench.verdict import Verdict, agrees_if

RESCALED: dict[str, Callable[[FloatArray], FloatArray]] = {"Tanh": np.tanh, "MAN": common.max_abs}
QUANTILES = (5, 25, 50, 75, 95)
NOTES = [
    "001 and 000 print no numbers. Quantiles and means in % over replications; columns without a "
    "rule are as published (C2). Corrected: classifiers decide on what they were trained on. "
    "Default: corrected, and intercepts that noise has moved are shrunk.",
    "000 calls its second rescaling Min-Max (C1); its numbers are those of Max-Abs.",
]
_TEST, _DIMENSION, _CHUNK = 500, 4, 25


def spread(kinds: tuple[str, ...], people: int, effort: Effort = FULL) -> Outcome:
    """Quantiles of errors by rescaling, learner and ε (None: no noise), 200 replications."""
    studies = effort.repeats(200, quick=10)
    names = [
        (kinds, people, start, min(_CHUNK, studies - start)) for start in range(0, studies, _CHUNK)
    ]
    errors = common.collected(effort, chunk, names)
    published, *others = common.RULES
    rows = []
    for kind, name, epsilon in dict.fromkeys(key[:3] for key in errors if len(key) == 4):
        place = (kind, name, epsilon)
        own = 100 * errors[(*place, published)]
        rows.append(
            {"features": kind, "learner": name, "epsilon": epsilon, "mean": float(own.mean())}
            | {f"{q} %": float(np.percentile(own, q)) for q in QUANTILES}
            | {f"mean {rule}": 100 * float(errors[(*place, rule)].mean()) for rule in others}
            | {"majority class": 100 * float(errors["majority class",].mean())}
            | {"non-private": 100 * float(errors[kind, name, None, published].mean())}
        )
    return Outcome(
        rows=rows,
        notes=[f"{studies} replications of {people} people.", *NOTES],
        plot=partial(plot, rows),
    )


def chunk(kinds: tuple[str, ...], people: int, start: int, studies: int) -> dict[Any, FloatArray]:
    """Errors in some replications, by rescaling, learner, ε and rule."""
    code, found = common.encoding(_DIMENSION), dict[Any, FloatArray]()
    source = SimulationSource(np.random.SeedSequence((7, people, start)))
    scores, labels = scores_001((studies, people), source.generator)
    test, truth = scores_001((studies, _TEST), source.generator)
    design = MRMADesign(member_size=people, boundary_spread=None)
    reading = common.READINGS["001-figure-a1"]
    for kind in kinds:
        told = RESCALED[kind](scores @ code.coefficients)
        plain = RESCALED[kind](test @ code.coefficients)
        for epsilon in (*common.EPSILONS, None):
            crowd = People.plain(told, labels)
            base = Setting(design, epsilon=epsilon or 1.0, learner=common.learner("Logistic"))
            reports = baselines.noisy_reports(base, crowd, source) if epsilon else (told, labels)
            for name in common.LEARNERS:
                for rule in common.RULES:
                    learner = common.noisy_learner(name, rule, code, reading)
                    own = Setting(design, epsilon=epsilon or 1.0, learner=learner, gram=code.gram)
                    setting = common.under_rule(own, rule, cutoff=0.8)
                    whole = setting.fit(reports[0][:, None], reports[1][:, None])
                    if epsilon and rule == "default":
                        whole = batch.shrunk_members(setting, whole)
                    raw = common.published_features(test, code, name)
                    decided = raw if rule == "as published" else plain
                    rule_of = LinearRule(whole[0][:, 0], whole[1][:, 0])
                    found[kind, name, epsilon, rule] = rule_of.errors(decided, truth)
    references = baselines.reference_rules(base, crowd)
    found["majority class",] = references["majority class"].errors(plain, truth)
    return found


def plot(rows: list[dict[str, Any]]) -> Any:
    """A panel for each rescaling and learner: boxes from 25 to 75 %, whiskers from 5 to 95 %."""
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(row["features"] for row in rows))
    figure, axes = pyplot.subplots(
        len(kinds), 4, figsize=(16, 3.6 * len(kinds)), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for line, kind in zip(axes, kinds, strict=True):
        for axis, name in zip(line, common.LEARNERS, strict=True):
            own = [row for row in rows if (row["features"], row["learner"]) == (kind, name)]
            keys = ("whislo", "q1", "med", "q3", "whishi")
            boxes = [
                dict(zip(keys, (row[f"{q} %"] for q in QUANTILES), strict=True))
                | {"mean": row["mean"], "label": f"{row['epsilon'] or '∞'}"}
                for row in own
            ]
            axis.bxp(boxes, showfliers=False, showmeans=True)
            axis.axhline(50, color="0.7", linewidth=0.8, zorder=0)
            axis.set(title=f"{name}, {kind}", xlabel="ε (∞: no noise)")
        line[0].set_ylabel("error, % (5, 25, 50, 75, 95 %; ▲ mean)")
    return figure


def _spans(rows: list[dict[str, Any]]) -> tuple[bool, str]:
    """Whether CG alone stays scattered at ε ≤ 1, as the text says, and by how much each does.

    The text has no numbers: CG spans more than 60 points, every other less than half as many.
    """
    small = [row for row in rows if row["epsilon"] is not None and row["epsilon"] <= 1]
    span = {
        name: max(row["95 %"] - row["5 %"] for row in small if row["learner"] == name)
        for name in common.LEARNERS
    }
    others = max(value for name, value in span.items() if name != "CG")
    told = ", ".join(f"{name} {value:.0f}" for name, value in span.items())
    return span["CG"] > 60 and others < span["CG"] / 2, (
        f"at ε ≤ 1 the middle 90 % of errors span up to {told} points, where the text has CG "
        "scattered and the others near 50 %"
    )


def both_verdict(outcome: Outcome) -> Verdict:
    """Errors tend to 50 % as ε falls, CG's stay from 10 to 90 %, rescalings are alike."""
    centre = max(abs(row["mean"] - 50) for row in outcome.rows if row["epsilon"] == 0.1)
    found = {(r["features"], r["learner"], r["epsilon"]): r["mean"] for r in outcome.rows}
    pairs = [(m, found["MAN", *key[1:]]) for key, m in found.items() if key[0] == "Tanh"]
    apart = float(np.mean([abs(one - other) for one, other in pairs]))
    alone, told = _spans(outcome.rows)
    return agrees_if(
        centre < 5 and apart < 3 and alone,
        f"No numbers are printed. At ε = 0.1 means are within {centre:.1f} points of 50 %; Tanh "
        f"and Max-Abs differ by {apart:.1f} points in the mean; {told}.",
    )


def large_verdict(outcome: Outcome) -> Verdict:
    """Noise harms DWD most and CG least, and CG stays dispersed as ε falls."""
    noisy = [row for row in outcome.rows if row["epsilon"] is not None]
    order = sorted(
        common.LEARNERS, key=lambda name: -sum(r["mean"] for r in noisy if r["learner"] == name)
    )
    alone, told = _spans(outcome.rows)
    return agrees_if(
        order[0] == "DWD" and order[-1] == "CG" and alone,
        f"No numbers are printed. From most to least harmed by noise: {', '.join(order)} (in the "
        f"text DWD, then Logistic and SVM, then CG); {told}.",
    )


_SHARED: dict[str, Any] = {
    "NEEDS": (),
    "SECONDS": 15,
    "GUARANTEES": common.GUARANTEES,
    "CLAIMED": common.CLAIMED,
}
ENTRIES = {
    "001-figure-a1": SimpleNamespace(
        TITLE="Scatter of errors of a classifier of 500 people, Tanh, Max-Abs, % (001 Figure A.1)",
        COVERS=("000-figure-3",),
        READING=str(common.READINGS["001-figure-a1"]),
        run=partial(spread, ("Tanh", "MAN"), 500),
        verdict=both_verdict,
        **_SHARED,
    ),
    "001-figure-a2": SimpleNamespace(
        TITLE="Scatter of errors of a classifier of 3000 people, Tanh, % (001 Figure A.2)",
        COVERS=("000-figure-4",),
        READING=str(common.READINGS["001-figure-a2"]),
        run=partial(spread, ("Tanh",), 3000),
        verdict=large_verdict,
        **_SHARED,
    ),
}
