"""The planner of studies: it makes a plan from public facts.

Estimators, the command line, the web form and the HTTP interface all call it, so that the same
facts give the same plan, with the same hash.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Mapping, Sequence, Sized
from typing import Any, get_type_hints

import msgspec

from dpfda import _validate
from dpfda.curves import CurveEncoder
from dpfda.curves.ranges import FeatureRanges
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.study.beliefs import SLOPES
from dpfda.local.study.design import AnswersDesign, NumberDesign, VectorDesign
from dpfda.local.study.moments import effective_people
from dpfda.mechanisms.randomized_response import QuestionResponse, best_questions, information
from dpfda.protocol.plan import MOST_PEOPLE, Label, Protects, StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.tasks.questions import verdict_epsilon


def smooth_curves(value_range: Any, domain_range: object, *, features: int) -> CurveEncoder:
    """Encode curves by cosine coefficients, scaled by the public range of x(t), for each channel.

    Args:
        value_range: public (low, high) of x(t), or one pair per channel.
        domain_range: public (start, end) of t.
        features: the number of coefficients.

    Examples:
        >>> smooth_curves((40, 200), (0, 24), features=8).n_features
        8
    """
    if len(value_range) and all(isinstance(one, Sized) for one in value_range):
        each = [smooth_curves(one, domain_range, features=features) for one in value_range]
        return each[0] if len(each) == 1 else CurveEncoder.side_by_side(each)
    low, high = _validate.interval("value_range", value_range)
    start, end = _validate.interval("domain_range", domain_range)
    # |x(t)| ≤ R bounds every coefficient on an orthonormal basis by R √(end - start).
    stretch = math.sqrt(end - start)
    return CurveEncoder(
        "cosine",
        n_basis=features,
        domain_range=(start, end),
        rescale="clip",
        center=[(low + high) / 2 * stretch] + [0.0] * (features - 1),
        scale=(high - low) / 2 * stretch,
    )


_MOST_FEATURES = 8
_FEATURES = 12
"""Number of features of curves of two classes; the answers show which of them matter."""
JUDGES = 0.15
"""Default `evaluation_share` of the web form and of `dpfda plan`.

The organizer of a study has no other data on which to evaluate the model. Without evaluation
participants, its error would be unknown. Estimators can hold out rows, and use 0 by default."""


def plan_study(
    n_people: int,
    epsilon: float,
    *,
    classes: Sequence[Label] | None = None,
    target_range: tuple[float, float] | None = None,
    value_range: Sequence[float | tuple[float, float]] | None = None,
    feature_ranges: FeatureRanges | None = None,
    domain_range: tuple[float, float] = (0.0, 1.0),
    protects: Protects = "both",
    evaluation_share: float = 0.0,
    temperature_share: float = 0.0,
    ordered: bool = False,
    center_known: bool = False,
    n_features: int | None = None,
    class_share: float | None = None,
    spread_differs: bool = False,
    unit: str = "person",
    seed: int = 0,
    title: str = "",
) -> StudyPlan:
    """The plan of a study, from public facts about people with a curve, or a row, and a label.

    If people have a number instead of a label, the study is a regression.

    Args:
        n_people: the number of participants.
        epsilon: the ε that each participant spends, once.
        classes: the labels; their order does not matter.
        target_range: public (low, high) of a number that is predicted instead of a label.
        value_range: for curves, the public (low, high) of x(t), or one pair for each channel;
            values outside are clipped.
        feature_ranges: for tables, (low, high) of each column in order, or a mapping from column to
            (low, high) or to its categories (each becomes a feature with values 0 and 1).
        domain_range: public (start, end) of t.
        protects: ``both``; ``labels`` if curves are public anyway; ``features`` if labels are.
        evaluation_share: share of people who only evaluate the finished model, so that its error
            estimate is unbiased (the form and `dpfda plan` propose `JUDGES`).
        temperature_share: share of people who calibrate the probabilities of the finished
            classifier; useful from about 1000 people.
        ordered: whether the first columns of a table matter most; features of curves always do.
        center_known: whether the center of the public range is the center of the data by
            construction.
        n_features: overrides the rule for the number of features.
        class_share: of two classes, the public share of the one whose label sorts last, such as a
            disease's prevalence; otherwise some people are asked for it.
        spread_differs: whether the classes may differ in the spread of features. Questions are then
            also asked about distances from the center. If the classes differ only in means, this
            costs up to six percentage points of accuracy at small ε.
        unit: the unit of protection: what one report covers, such as a person.
        seed: seed of the study's public randomness, which assigns questions to people.
        title: title for readers.

    Examples:
        >>> plan = plan_study(3000, 1.0, value_range=(-6, 6), classes=("yes", "no"))
        >>> plan.design["name"], plan.classes, plan.encoder.n_features
        ('answers', ('no', 'yes'), 12)
        >>> [(row["phase"], row["people"]) for row in in_words(plan)[0]]
        [('answers', 3000)]
    """
    if (classes is None) == (target_range is None):
        raise InvalidParameter("classes", "given, or else target_range for a number", classes)
    if _validate.whole("n_people", n_people) > MOST_PEOPLE:
        raise InvalidParameter("n_people", f"at most {MOST_PEOPLE}", "more")
    if (value_range is None) == (feature_ranges is None):
        rule = "given for curves, or else feature_ranges for a table"
        raise InvalidParameter("value_range", rule, value_range)
    if feature_ranges is not None:
        named = isinstance(feature_ranges, Mapping)
        if not named and not any(isinstance(one, Collection) for one in feature_ranges):
            raise InvalidParameter("feature_ranges", "one pair for each column", feature_ranges)
        encoder = CurveEncoder("identity", feature_ranges=feature_ranges)
    else:
        answered = classes is not None and len(classes) == 2
        features = _FEATURES if answered and protects != "labels" else _MOST_FEATURES
        encoder = smooth_curves(value_range, domain_range, features=features)
    known: dict[str, Any] = {
        "ordered": ordered or encoder.basis.ordered,
        "center_known": center_known,
        "evaluation_share": _validate.non_negative("evaluation_share", evaluation_share),
        "n_features": n_features,
        "class_share": class_share,
        "temperature_share": _validate.non_negative("temperature_share", temperature_share),
        "spread_differs": spread_differs,
    }
    kind: type[AnswersDesign | VectorDesign | NumberDesign] = VectorDesign
    if classes is None:
        kind = NumberDesign
        classes_alone = ("class_share", "temperature_share", "spread_differs")
        left_out = {name: known.pop(name) for name in classes_alone}
        for name in filter(left_out.get, left_out):
            raise InvalidParameter(name, "left out with target_range", left_out[name])
        if protects == "labels":
            raise InvalidParameter("protects", "'both' or 'features' with target_range", protects)
    elif len(classes) == 2:
        # Vector reports err by their noise, answers by the error of the working model.
        noise = 1 / effective_people(n_people, _validate.positive("epsilon", epsilon))
        curves = encoder.basis.functional
        if noise > (SLOPES.off_for_curves if curves else SLOPES.off_for_columns):
            kind = AnswersDesign
    if protects == "labels":
        for name in filter(known.get, known):
            if name != "ordered":
                raise InvalidParameter(name, "left out with protects='labels'", known[name])
        design: dict[str, Any] = {"name": "noisy_labels"}
    else:
        design = kind(**known).settled(encoder).to_dict()
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=() if classes is None else _in_order(classes),
        target_range=target_range,
        design=design,
        protects=protects,
        unit=unit,
        seed=seed,
        title=title,
    )


def plan_averaging(
    n_people: int,
    epsilon: float,
    *,
    classes: Sequence[Label],
    value_range: tuple[float, float] | None = None,
    feature_ranges: FeatureRanges | None = None,
    domain_range: tuple[float, float] = (0.0, 1.0),
    protects: Protects = "both",
    evaluation_share: float = 0.0,
    classifiers_per_person: int = 1,
    unit: str = "person",
    seed: int = 0,
    title: str = "",
) -> StudyPlan:
    """The plan of an MRMA study (papers 000 and 001), from the same facts as `plan_study`.

    Some people report their features and label. Others evaluate classifiers that are fitted to the
    reports, `classifiers_per_person` each. Other arguments are as for `plan_study`.

    Examples:
        >>> plan = plan_averaging(3000, 1.0, value_range=(-6, 6), classes=("yes", "no"))
        >>> [(row["phase"], row["people"]) for row in in_words(plan)[0]]
        [('report', 500), ('evaluate', 2500)]
    """
    if (value_range is None) == (feature_ranges is None):
        rule = "given for curves, or else feature_ranges for a table"
        raise InvalidParameter("value_range", rule, value_range)
    if value_range is not None:
        ranges = _validate.interval("value_range", value_range)
        encoder = CurveEncoder(
            "bspline", n_basis=4, domain_range=domain_range, feature_ranges=ranges
        )
    else:
        encoder = CurveEncoder("identity", feature_ranges=feature_ranges)
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=encoder,
        classes=_in_order(classes),
        design=MRMADesign(
            evaluation_share=evaluation_share, classifiers_per_person=classifiers_per_person
        ).to_dict(),
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


def plan_from_facts(facts: Mapping[str, Any]) -> StudyPlan:
    """`plan_study` for received facts, by name.

    Examples:
        >>> sent = {"n_people": 50, "epsilon": 1, "value_range": [0, 1], "classes": ["no", "yes"]}
        >>> plan_from_facts(sent).hash == plan_study(**sent).hash
        True
    """
    try:
        found = msgspec.convert(dict(facts), _FACTS)
    except msgspec.ValidationError as error:
        raise InvalidData("facts", "arguments of plan_study", str(error)) from None
    return plan_study(**{name: getattr(found, name) for name in _FACTS.__struct_fields__})


_ASKED = {
    "answers": (
        "stump",
        "is this feature of yours above this value (alone or combined with your label)? "
        "or: what is your label?",
    ),
    "temperature": (
        "confidence",
        "is the finished classifier right about you, and too sure?",
    ),
    "evaluation": ("evaluation", "is the finished classifier right about you?"),
    "labels": ("vector", "what is your label? (curves are sent in clear)"),
    "location": ("stump", "is this feature of yours above this value? (without the label)"),
    "spread": ("summary", "where are your features, and how far from the center? (no label)"),
    "correlation": ("summary", "which of your features go together? (without the label)"),
    "vectors": ("summary", "what are your features, together with your label?"),
}
_ASKED_OF_MEMBERS = {
    "report": ("vector", "what are your features, and your label?"),
    "evaluate": ("member", "is this classifier, made of others' reports, right about you?"),
    "check": ("evaluation", "is the finished classifier right about you?"),
}
_DISTANCES = "Questions with labels also use the distance of each feature from its center."
_ASKED_OF_NUMBERS = {
    "location": ("stump", "is your target, or this feature of yours, above this value?"),
    "spread": ("summary", "where are your target and features, and how far from the center?"),
    "correlation": ("summary", "which of your features go together? (without the target)"),
    "vectors": ("summary", "in which direction does the prediction err on you?"),
    "evaluation": ("evaluation", "is the finished prediction this near to your target?"),
}


def protection(plan: StudyPlan) -> str:
    """The guarantee in a sentence for people who do not know the terms.

    Examples:
        >>> print(protection(plan_study(2000, 1.0, value_range=(0, 10), classes=("no", "yes"))))
        Each person is protected with ε = 1: noise is added on their own device.
    """
    told = f"Each {plan.unit} is protected with ε = {plan.epsilon:g}: noise is added on their own "
    told += "device"
    return f"{', '.join([told, *(f'assuming {one}' for one in plan.guarantee.assumptions)])}."


def in_words(plan: StudyPlan) -> tuple[list[dict[str, Any]], list[str]]:
    """A plan in words: one row per phase with its question, and sentences on the guarantee."""
    asked = _ASKED if plan.target_range is None else _ASKED_OF_NUMBERS
    asked = asked | _ASKED_OF_MEMBERS
    people: dict[str, int] = {}
    for phase in Server(plan).run.steps:
        people[phase.kind] = people.get(phase.kind, 0) + phase.people
    rows, worth = [], 0.0
    for kind in filter(people.get, people):
        task, question = asked[kind]
        row: dict[str, Any] = {"phase": kind, "people": people[kind], "asked": question}
        if kind == "report":  # all features at once, with noise on each
            rows.append(row | {"answers": 1, "true": "–"})
            continue
        if task == "summary":  # one codeword of many
            # One reply informs about all features, but about each at most as much as a true answer.
            clear = min(effective_people(1, plan.epsilon), plan.encoder.n_features)
            worth += people[kind] * clear
            rows.append(row | {"answers": 1, "true": "–"})
            continue
        if kind == "answers":  # the number of questions depends on earlier answers
            most = QuestionResponse(epsilon=plan.epsilon, questions=1).truth_probability
            k = best_questions(plan.epsilon, most=plan.encoder.n_features)
            worth += people[kind] * information(plan.epsilon, questions=k)
            rows.append(row | {"answers": "1 or more", "true": f"≤ {(1 + most) / 2:.3f}"})
            continue
        if task == "member":  # separate answers, each with a part of ε
            k = int(plan.asks[task]["m"])
            each = verdict_epsilon(plan.epsilon, k)
            truth = QuestionResponse(epsilon=each, questions=1).truth_probability
            rows.append(row | {"answers": k, "true": f"{(1 + truth) / 2:.3f}"})
            continue
        k = plan.asks[task].get("k", 1)
        k = k if isinstance(k, int) else max(k)
        truth = QuestionResponse(epsilon=plan.epsilon, questions=k).truth_probability
        worth += people[kind] * information(plan.epsilon, questions=k)
        rows.append(row | {"answers": k, "true": f"{(1 + truth) / 2:.3f}"})
    promise = f"Everybody answers once. {protection(plan)}"
    if plan.protects == "labels":
        return rows, [promise]
    distances = [_DISTANCES] * bool(plan.design.get("spread_differs"))
    told = (
        f"Replies together are worth {worth:.0f} answers without noise; an answer is true with the "
        "probability shown."
    )
    if "report" in people:
        told = "A verdict is true with the probability shown; a report has noise on every number."
    elif any(row["true"] == "–" for row in rows):
        told += (
            " Where no probability is shown, each person sends one of many random directions: more "
            "probably one that is close to their own data."
        )
    return rows, [
        promise,
        told,
        *distances,
        "Whatever somebody's data are, each reply is at most "
        f"e^ε = {math.exp(min(plan.epsilon, 700)):.3g} times as likely as for anybody else's.",
    ]
