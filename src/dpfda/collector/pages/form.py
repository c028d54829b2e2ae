"""The form for a new study: its initial values, and the conversion to facts and settings."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from dpfda.collector.settings import StudySettings
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.local.recipe import JUDGES, plan_from_facts
from dpfda.protocol.plan import (
    INFORMATION_NEEDED,
    INFORMATION_OPTIONAL,
    StudyPlan,
    check_information,
)

PRESETS = {
    "title-0": "",
    **{f"information-{name}": "" for name in INFORMATION_NEEDED + INFORMATION_OPTIONAL},
    "information-version": "1",
    "n_people-0": "2000",
    "epsilon-0": "1.0",
    "holds": "curve",
    "columns": "",
    "classes-0": "no, yes",
    "target_range-0": "",
    "target_range-1": "",
    "value_range-0": "-1",
    "value_range-1": "1",
    "value_unit": "",
    "domain_range-0": "0",
    "domain_range-1": "1",
    "domain_unit": "",
    "target_unit": "",
    "evaluation_share-0": f"{JUDGES:g}",
    "seed-0": "0",
    "class_share-0": "",
    "open": "no",
    "deadline": "",
    "deadline_unit": "days",
    "family": "smooth",
    "non_private_error": "0.1",
    "error": "",
}
"""Initial values of the inputs; a fact of two numbers has two inputs."""

_DAY = {"domain_range-0": "0", "domain_range-1": "24", "domain_unit": "h"}
EXAMPLES: dict[str, dict[str, str]] = {
    "heart rate over a day": {
        "value_range-0": "40",
        "value_range-1": "200",
        "value_unit": "bpm",
        "classes-0": "well, ill",
        "non_private_error": "0.15",
    }
    | _DAY,
    "glucose over a day": {
        "value_range-0": "2",
        "value_range-1": "25",
        "value_unit": "mmol/L",
        "classes-0": "no diabetes, diabetes",
    }
    | _DAY,
    "steps over a day": {
        "value_range-0": "0",
        "value_range-1": "10000",
        "value_unit": "steps/h",
        "classes-0": "active, recovering",
        "family": "rough",
        "non_private_error": "0.2",
    }
    | _DAY,
    "spectra": {
        "value_range-0": "0",
        "value_range-1": "6",
        "value_unit": "absorbance",
        "domain_range-0": "850",
        "domain_range-1": "1050",
        "domain_unit": "nm",
        "classes-0": "",
        "target_range-0": "0",
        "target_range-1": "60",
        "target_unit": "% fat",
        "n_people-0": "5000",
        "family": "spectra",
    },
    "a questionnaire": {
        "holds": "row",
        "columns": "age, 18, 99\nsex: female, male, other\nhours of sleep, 0, 14\n"
        "stress, 1, 5\nmood, 1, 5",
        "non_private_error": "0.2",
    },
}
"""Initial values of the examples, by their titles."""

NAMES = {
    "title": "Title",
    "version": "Version",
    "institution": "Who asks",
    "contact": "Contact",
    "purpose": "Purpose",
    "officer": "Data protection officer",
    "approval": "Ethics approval",
    "risks": "Risks",
    "retention": "How long replies are kept",
    "results": "Results",
    "n_people": "People",
    "epsilon": "Privacy cost per person (ε)",
    "classes": "Labels",
    "target_range": "Range of the number",
    "value_range": "Lowest and highest possible value",
    "domain_range": "Time span",
    "evaluation_share": "Share of participants who evaluate",
    "seed": "Seed",
    "class_share": "How common each label is",
    "columns": "Answers or numbers",
    "deadline": "Deadline",
    "value_unit": "Unit of a curve",
    "domain_unit": "Unit of t",
    "target_unit": "Unit of the number",
    "non_private_error": "Error with full access to the data",
    "error": "Error to reach",
    "--label": "Column of classes",
    "--id": "Column that tells curves apart",
}
"""Names of the inputs in error messages."""

SECONDS = {"minutes": 60.0, "hours": 3600.0, "days": 86400.0}
_WHOLE, _NUMBERS = ("n_people", "seed"), ("epsilon", "evaluation_share")
_PAIRS = ("value_range", "domain_range", "target_range")
_CHECKS = ("spread_differs",)
_UNITS = ("domain_unit", "target_unit", "value_unit")


def facts_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The facts in the form, as `plan_from_facts` takes them."""
    facts: dict[str, Any] = {"title": form.get("title-0", "").strip()[:200]}
    facts |= {name: number(form.get(f"{name}-0")) for name in (*_WHOLE, *_NUMBERS)}
    facts |= {name: [number(form.get(f"{name}-{end}")) for end in range(2)] for name in _PAIRS}
    labels = form.get("classes-0", "").strip()
    predicted = any(form.get(f"target_range-{end}", "").strip() for end in range(2))
    if not predicted:
        del facts["target_range"]
    if labels or not predicted:
        facts["classes"] = [label.strip() for label in labels.split(",")]
    if form.get("class_share-0", "").strip():
        facts["class_share"] = _last_share(form["class_share-0"], facts.get("classes", []))
    if form.get("holds") == "row":
        del facts["value_range"], facts["domain_range"]
        facts["feature_ranges"] = _columns(form.get("columns", ""))
    return facts | _checked(form)


def _columns(text: str) -> dict[str, list[Any]]:
    r"""The columns that each participant answers, one per line; [] for an invalid line.

    Examples:
        >>> _columns("age, 18, 99\nsex: f, m\n\nwhat?")
        {'age': [18, 99], 'sex': ['f', 'm'], 'what?': []}
    """
    found: dict[str, list[Any]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, mark, rest = line.partition(":")
        if mark:
            answers: list[Any] = [one.strip() for one in rest.split(",")]
        else:
            name, *ends = line.rsplit(",", 2)
            answers = [number(end) for end in ends]
            answers = [one for one in answers if not isinstance(one, str)]
        name, whole = name.strip(), len(answers) > 1 and name.strip() not in found
        found[name] = answers if whole else []
    return found


def _last_share(text: str, labels: list[str]) -> float | str:
    """The share of the label that sorts last, from those of two labels in the form's order.

    Examples:
        >>> _last_share("95 %, 5 %", ["well", "ill"]), _last_share("0.5", ["well", "ill"])
        (0.95, '0.5')
    """
    parts = [number(one.replace("%", "")) for one in text.split(",")]
    shares = [one for one in parts if isinstance(one, int | float)]
    if not len(parts) == len(shares) == len(labels) == 2:
        return text
    whole = 100 if "%" in text else 1
    if abs(sum(shares) - whole) > 1e-9 * whole:
        return text
    return dict(zip(labels, shares, strict=True))[max(labels)] / whole


def _checked(form: Mapping[str, str]) -> dict[str, Any]:
    return {name: True for name in _CHECKS if form.get(name) == "yes"}


def check_numbers(facts: Mapping[str, Any]) -> None:
    """Check that numbers are numbers; errors use the names in the form.

    If labels and the range of a number are both filled in, an error asks for one of them.
    """
    if facts.get("classes") and "target_range" in facts:
        rule = "empty if a number is to be predicted: clear the labels or the range of the number"
        raise InvalidParameter("classes", rule, ", ".join(facts["classes"]))
    columns = facts.get("feature_ranges")
    wrong = [name for name, answers in (columns or {}).items() if not answers]
    if columns is not None and (wrong or not columns):
        rule = "one in a line: name, lowest, highest; or name: answer, answer, …"
        raise InvalidParameter("columns", rule, wrong[0] if wrong else "nothing")
    for name in (*_WHOLE, *_NUMBERS, *_PAIRS):
        for value in _both(facts.get(name, 0)):
            if isinstance(value, (str, type(None))):
                raise InvalidParameter(name, "a number", value or "nothing")
            if name in _WHOLE and not isinstance(value, int):
                raise InvalidParameter(name, "a whole number", value)
    if isinstance(facts.get("class_share"), str):
        rule = "one share for each of two labels, in their order, as 95 %, 5 %; or empty"
        raise InvalidParameter("class_share", rule, facts["class_share"].strip())


def _both(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def check_title(facts: Mapping[str, Any]) -> None:
    """Refuse a study without a title: people could not tell it from others."""
    if not facts["title"]:
        raise InvalidParameter("title", "given: people see it before they take part", None)


def information_of(form: Mapping[str, str]) -> dict[str, str]:
    """The information for participants; {} if only the version was filled in.

    Line breaks of a form become spaces.
    """
    typed = {
        name: form.get(f"information-{name}", "")
        for name in INFORMATION_NEEDED + INFORMATION_OPTIONAL
    }
    given = {name: " ".join(words.split()) for name, words in typed.items() if words.strip()}
    return check_information(given if set(given) > {"version"} else {})


def settings_of(form: Mapping[str, str], before: StudySettings | None = None) -> StudySettings:
    """The settings of a study from the form; other settings remain as in `before`."""
    long = number(form.get("deadline") or None)
    if long is not None:
        if isinstance(long, str) or form.get("deadline_unit") not in SECONDS:
            raise InvalidParameter("deadline", "a number of minutes, hours or days, or empty", long)
        long *= SECONDS[form["deadline_unit"]]
    chosen = {
        "deadline": long,
        "open": form.get("open") == "yes",
    } | {name: form.get(name, "").strip() for name in _UNITS}
    try:
        found = msgspec.convert(chosen, StudySettings)
    except msgspec.ValidationError as error:
        told = str(error)
        name = next((name for name in chosen if f"$.{name}" in told), "deadline")
        rule = "above 0, and at most 30 years" if name == "deadline" else "at most 40 characters"
        raise InvalidParameter(name, rule, str(chosen[name])) from None
    if before is None:
        return found
    return msgspec.structs.replace(before, **{name: getattr(found, name) for name in chosen})


def form_of(plan: StudyPlan, settings: StudySettings) -> dict[str, str]:
    """The form for a copy of this study, with another seed.

    Raises:
        InvalidParameter: the form has no field for a part of this plan.
    """
    form = PRESETS | {"title-0": plan.title, "n_people-0": str(plan.n_people)}
    form |= {"epsilon-0": _written(plan.epsilon), "seed-0": str(plan.seed + 1)}
    form |= {f"information-{name}": words for name, words in plan.information.items()}
    form["classes-0"] = ", ".join(map(str, plan.classes))
    design = plan.design
    form["evaluation_share-0"] = _written(design.get("evaluation_share", 0.0))
    if design.get("class_share") is not None:
        last = design["class_share"]
        form["class_share-0"] = f"{_written(1 - last)}, {_written(last)}"
    form |= {name: "yes" for name in _CHECKS if design.get(name)}
    form |= {name: getattr(settings, name) for name in _UNITS}
    form["open"] = "yes" if settings.open else "no"
    if settings.deadline is not None:
        whole = [unit for unit in SECONDS if settings.deadline % SECONDS[unit] == 0]
        unit = whole[-1] if whole else "minutes"
        form |= {"deadline": _written(settings.deadline / SECONDS[unit]), "deadline_unit": unit}
    pairs: dict[str, Any] = {"target_range": plan.target_range}
    if plan.encoder.table is not None:
        lines = [
            f"{one.key}: {', '.join(map(str, one.categories))}"
            if one.categories
            else f"{one.key}, {_written(one.low)}, {_written(one.high)}"
            for one in plan.encoder.table.columns
        ]
        form |= {"holds": "row", "columns": "\n".join(lines)}
    else:
        pairs |= _ranges(plan)
    for name, pair in pairs.items():
        form |= {f"{name}-{end}": _written(pair[end]) for end in range(2)} if pair else {}
    if _same(plan, form):
        return form
    rule = "one that this form makes: this one was planned elsewhere, with other settings"
    raise InvalidParameter("study", rule, plan.title)


def _ranges(plan: StudyPlan) -> dict[str, Any]:
    """The ranges from which `smooth_curves` has created an encoder."""
    described = plan.encoder.to_dict()
    start, end = described["basis"].get("domain_range", (0.0, 1.0))
    rescale, stretch = described["rescale"], math.sqrt(end - start)
    scale, center = rescale.get("scale"), rescale.get("center")
    if not (isinstance(scale, float) and isinstance(center, list)):
        return {}
    middle, half = center[0] / stretch, scale / stretch
    return {"value_range": (middle - half, middle + half), "domain_range": (start, end)}


def _same(plan: StudyPlan, form: Mapping[str, str]) -> bool:
    """Whether a form gives this plan, except for its seed and rounding errors."""
    try:
        again = plan_from_facts(facts_of(form))
    except DpfdaError:
        return False
    one, other = plan.to_dict(), replace(again, information=plan.information).to_dict()
    both = [json.dumps(found | {"seed": 0}) for found in (one, other)]
    numbers = [[float(text) for text in _NUMERIC.findall(found)] for found in both]
    return _NUMERIC.sub("#", both[0]) == _NUMERIC.sub("#", both[1]) and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(*numbers, strict=True)
    )


_NUMERIC = re.compile(r"(?<![\w\"])-?\d+(?:\.\d+)?(?:e-?\d+)?")


def _written(value: float) -> str:
    return f"{value:.12g}"


def in_the_forms_words(error: DpfdaError) -> str:
    """The text of an error, with the names that the form uses.

    Examples:
        >>> in_the_forms_words(InvalidParameter("n_people", "a whole number", 2.5))
        'People must be a whole number, got 2.5'
    """
    told, name = str(error), getattr(error, "name", None)
    if told.startswith("--"):  # from the file reader in another process, which names options
        name = told.partition(" ")[0]
    if name in NAMES and told.startswith(name):
        told = NAMES[name] + told.removeprefix(name)
    return told[:300]


def number(text: str | None) -> float | str | None:
    """The number in a field of a form; other text is returned unchanged.

    Examples:
        >>> number("2"), number("2.5"), number("two"), number(None)
        (2, 2.5, 'two', None)
    """
    for kind in (int, float):
        with suppress(ValueError, TypeError):
            return kind(text)  # type: ignore[arg-type]
    return text
