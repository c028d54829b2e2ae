"""Servers that share classifiers: what can be shared, and the study in which people judge it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.local.mrma.designs import ExchangeDesign
from dpfda.local.mrma.members import Candidates
from dpfda.local.mrma.result import MRMAFindings, classifier
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan


def same_recipe(model: CurveModel, other: CurveModel) -> bool:
    """Whether two classifiers have the same encoder and the same labels."""
    mine, others = (model.encoder, model.classes), (other.encoder, other.classes)
    return mine[0].to_dict() == others[0].to_dict() and mine[1] == others[1]


def plain_linear(model: CurveModel) -> bool:
    """Whether it is one hyperplane, which reversal and averaging need."""
    one = len(model.intercept) == 1 and not len(model.folds) and not model.clipped
    whole = model.coefficients.shape[1] == model.encoder.n_features
    return bool(one and whole and not model.centers.any())


def exchange_plan(
    models: Sequence[CurveModel],
    *,
    epsilon: float,
    people: int,
    cutoff: float | None = None,
    strictness: float = DEFAULT_STRICTNESS,
    evaluation_share: float = 0.0,
    **more: Any,
) -> StudyPlan:
    """The contract of one server's people who judge all models.

    Args:
        models: plain linear ones of one recipe, in an order that all servers know.
        epsilon: of a verdict.
        people: how many of this server's judge.
        cutoff: r0; None is the public rule (C3).
        strictness: its constant.
        evaluation_share: share of people who only judge the finished classifier.
        more: seed, title and unit of the plan.
    """
    with np.errstate(over="ignore"):  # refused by the design
        slopes = [(model.coefficients / model.scales)[0].tolist() for model in models]
    design = ExchangeDesign(
        intercepts=tuple(float(model.intercept[0]) for model in models),
        coefficients=tuple(map(tuple, slopes)),
        cutoff=cutoff,
        strictness=strictness,
        evaluation_share=evaluation_share,
    )
    first = models[0]
    return StudyPlan(
        epsilon=epsilon,
        n_people=people,
        encoder=first.encoder,
        classes=first.classes,
        design=design.to_dict(),
        **more,
    )


def verdict_sums(findings: Findings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sums of randomized evaluations (±1) of each model, and their numbers."""
    assert isinstance(findings, MRMAFindings)
    found, _ = findings.judged
    return tuple(map(int, found.totals)), tuple(map(int, found.people))


def concluded(plan: StudyPlan, totals: Sequence[int], people: Sequence[int]) -> CurveModel:
    """A server's own classifier, from its people's verdicts: models reversed, and averaged.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> design = ExchangeDesign(intercepts=(0.0, 0.0), coefficients=((1.0,), (-1.0,)))
        >>> plan = StudyPlan(
        ...     epsilon=2.0, n_people=100, classes=("no", "yes"), design=design.to_dict(),
        ...     encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)]),
        ... )
        >>> concluded(plan, [35, -35], [50, 50]).coefficients.tolist()  # the second one, reversed
        [[1.0]]
    """
    design = plan.built_design
    assert isinstance(design, ExchangeDesign)
    slopes = np.array(design.coefficients)
    judged = Candidates(np.array(design.intercepts), slopes, np.array(totals), np.array(people))
    judgement = judged.judged(
        epsilon=plan.epsilon, cutoff=design.cutoff, strictness=design.strictness
    )
    return classifier(judged, judgement, plan=plan)
