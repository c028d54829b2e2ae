"""The one recipe of a study: from public facts, known before anybody is asked, to its plan.

Estimators, the command line, the web form and the HTTP interface all call it, so that the same
facts give the same plan, with the same hash.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence, Sized
from typing import Any, get_type_hints

import msgspec

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.question_response import QuestionResponse
from dpfda.protocol.plan import Label, Protects, StudyPlan
from dpfda.protocol.server import Server
from dpfda.questions.design import QuestionDesign

_MOST_FEATURES = 8


def plan_study(
    n_people: int,
    epsilon: float,
    *,
    classes: Sequence[Label],
    value_range: tuple[float, float] | None = None,
    feature_ranges: Sequence[tuple[float, float]] | None = None,
    domain_range: tuple[float, float] = (0.0, 1.0),
    protects: Protects = "both",
    evaluation_share: float = 0.0,
    ordered: bool = False,
    center_known: bool = False,
    n_features: int | None = None,
    unit: str = "person",
    seed: int = 0,
    title: str = "",
) -> StudyPlan:
    """The study to run where this much is known of people who hold a curve, or a row, and a label.

    Args:
        n_people: how many take part.
        epsilon: what each of them spends, once.
        classes: the labels; in which order they are named changes nothing.
        value_range: of curves, the public (low, high) of x(t); values outside are clipped.
        feature_ranges: of tables, the public (low, high) of each column instead.
        domain_range: public (start, end) of t.
        protects: ``both``; ``labels`` if curves are public anyway; ``features`` if labels are.
        evaluation_share: share of people kept for an honest error estimate at the end.
        ordered: whether the first columns of a table matter most; curves' features always do.
        center_known: the middle of the public range is the middle of the data by construction.
        n_features: overrides the rule for the number of features.
        unit: whose data one report covers.
        seed: of the study's public randomness (who is asked what).
        title: for people to read.

    Example:
        >>> plan = plan_study(3000, 1.0, value_range=(-6, 6), classes=("yes", "no"))
        >>> plan.design["name"], plan.classes, plan.encoder.n_features
        ('questions', ('no', 'yes'), 8)
        >>> [(row["phase"], row["people"]) for row in phases_in_words(plan)]
        [('center', 600), ('direction', 1800), ('intercept', 600)]
    """
    if (value_range is None) == (feature_ranges is None):
        rule = "given for curves, or else feature_ranges for a table"
        raise InvalidParameter("value_range", rule, value_range)
    if feature_ranges is not None:
        if not all(isinstance(pair, Sized) for pair in feature_ranges):
            raise InvalidParameter("feature_ranges", "one (low, high) a column", feature_ranges)
        encoder = CurveEncoder("identity", feature_ranges=feature_ranges)
    else:
        encoder = _smooth_curves(value_range, domain_range)
    questions: dict[str, Any] = {
        "ordered": ordered or encoder.basis.ordered,
        "center_known": center_known,
        "evaluation_share": _validate.non_negative("evaluation_share", evaluation_share),
        "n_features": n_features,
    }
    if protects == "labels":
        for name in ("center_known", "evaluation_share", "n_features"):
            if questions[name]:
                raise InvalidParameter(name, "left out with protects='labels'", questions[name])
        design: dict[str, Any] = {"name": "noisy_labels"}
    else:
        design = QuestionDesign(**questions).settled(encoder).to_dict()
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=_in_order(classes),
        design=design,
        protects=protects,
        unit=unit,
        seed=seed,
        title=title,
    )


def _in_order(classes: Sequence[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(classes))
    except TypeError:
        raise InvalidParameter("classes", "all of them words, or all numbers", classes) from None


def _smooth_curves(value_range: Any, domain_range: Any) -> CurveEncoder:
    low, high = _validate.interval("value_range", value_range)
    start, end = _validate.interval("domain_range", domain_range)
    # |x(t)| ≤ R bounds every coefficient on an orthonormal basis by R √(end - start).
    stretch = math.sqrt(end - start)
    return CurveEncoder(
        "cosine",
        n_basis=_MOST_FEATURES,
        domain_range=(start, end),
        rescale="clip",
        center=[(low + high) / 2 * stretch] + [0.0] * (_MOST_FEATURES - 1),
        scale=(high - low) / 2 * stretch,
    )


_FACTS: Any = msgspec.defstruct(
    "Facts",
    [
        (fact.name, get_type_hints(plan_study)[fact.name])
        if fact.default is fact.empty
        else (fact.name, get_type_hints(plan_study)[fact.name], fact.default)
        for fact in inspect.signature(plan_study).parameters.values()
    ],
    kw_only=True,
    forbid_unknown_fields=True,
)


def plan_from_facts(facts: Mapping[str, Any], *, strict: bool = True) -> StudyPlan:
    """`plan_study` for facts that were sent; `strict` is False where numbers may be text.

    Example:
        >>> sent = {"n_people": "50", "epsilon": "1", "value_range": ["0", "1"]}
        >>> plan_from_facts(sent | {"classes": ["no", "yes"]}, strict=False).n_people
        50
    """
    try:
        found = msgspec.convert(dict(facts), _FACTS, strict=strict)
    except msgspec.ValidationError as error:
        raise InvalidData("facts", "those that plan_study takes", str(error)) from None
    return plan_study(**{name: getattr(found, name) for name in _FACTS.__struct_fields__})


_ASKED = {
    "center": ("stump", "is this feature of yours above this value? (without the label)"),
    "direction": ("stump", "does this feature, large or small, agree with your label?"),
    "intercept": ("calibration", "on which side does the classifier err on you?"),
    "evaluation": ("evaluation", "is the finished classifier right about you?"),
    "labels": ("vector", "what is your label? (curves are sent in clear)"),
}


def phases_in_words(plan: StudyPlan) -> list[dict[str, Any]]:
    """Who is asked what in a study of this recipe, one row a phase in which anybody is asked."""
    people: dict[str, int] = {}
    for phase in Server(plan).findings.phases:
        people[phase.kind] = people.get(phase.kind, 0) + phase.people
    rows = []
    for kind in filter(people.get, people):
        task, question = _ASKED[kind]
        k = plan.asks[task].get("k", 1)
        alpha = QuestionResponse(epsilon=plan.epsilon, questions=k).truth_probability
        rows.append(
            {
                "phase": kind,
                "people": people[kind],
                "asked": question,
                "questions each": k,
                "an answer is true with probability": round((1 + alpha) / 2, 3),
            }
        )
    return rows
