"""The form for a new study: what is in it at first, and which facts and settings it states."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from dpfda.collector.settings import StudySettings
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.local.recipe import JUDGES
from dpfda.protocol.plan import INFORMATION_NEEDED, INFORMATION_OPTIONAL, check_information

PRESETS = {
    "title-0": "",
    **{f"information-{name}": "" for name in INFORMATION_NEEDED + INFORMATION_OPTIONAL},
    "information-version": "1",
    "n_people-0": "2000",
    "epsilon-0": "1.0",
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
"""What is in each input at first; a fact of two numbers has two of them."""

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
    "class_share": "Share of the last label",
    "deadline": "Deadline",
    "value_unit": "Unit of a curve",
    "domain_unit": "Unit of t",
    "target_unit": "Unit of the number",
    "non_private_error": "Error with full access to the data",
    "error": "Error to reach",
}
"""What each input is called where something is wrong with it."""

SECONDS = {"minutes": 60.0, "hours": 3600.0, "days": 86400.0}
_WHOLE, _NUMBERS = ("n_people", "seed"), ("epsilon", "evaluation_share")
_PAIRS = ("value_range", "domain_range", "target_range")
_CHECKS = ("spread_differs",)


def facts_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The facts in the form, as `plan_from_facts` takes them."""
    facts: dict[str, Any] = {"title": form.get("title-0", "").strip()[:200]}
    facts |= {name: number(form.get(f"{name}-0")) for name in (*_WHOLE, *_NUMBERS)}
    facts |= {name: [number(form.get(f"{name}-{end}")) for end in range(2)] for name in _PAIRS}
    if form.get("class_share-0", "").strip():
        facts["class_share"] = number(form["class_share-0"])
    labels = form.get("classes-0", "").strip()
    predicted = any(form.get(f"target_range-{end}", "").strip() for end in range(2))
    if not predicted:
        del facts["target_range"]
    if labels or not predicted:
        facts["classes"] = [label.strip() for label in labels.split(",")]
    return facts | _checked(form)


def _checked(form: Mapping[str, str]) -> dict[str, Any]:
    return {name: True for name in _CHECKS if form.get(name) == "yes"}


def check_numbers(facts: Mapping[str, Any]) -> None:
    """Refuse what is no number where one is needed, by the name that the form gives it.

    Labels and a number to predict are two studies: whoever fills in both is asked which.
    """
    if facts.get("classes") and "target_range" in facts:
        rule = "empty if a number is to be predicted: clear the labels or the range of the number"
        raise InvalidParameter("classes", rule, ", ".join(facts["classes"]))
    for name in (*_WHOLE, *_NUMBERS, *_PAIRS, "class_share"):
        for value in _both(facts.get(name, 0)):
            if isinstance(value, (str, type(None))):
                raise InvalidParameter(name, "a number", value or "nothing")
            if name in _WHOLE and not isinstance(value, int):
                raise InvalidParameter(name, "a whole number", value)


def _both(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def check_title(facts: Mapping[str, Any]) -> None:
    """Refuse a study without a title: people could not tell it from others."""
    if not facts["title"]:
        raise InvalidParameter("title", "given: people see it before they take part", None)


def information_of(form: Mapping[str, str]) -> dict[str, str]:
    """What the organizer tells participants; {} where nothing but the version was filled in.

    Line breaks of a form become spaces.
    """
    typed = {
        name: form.get(f"information-{name}", "")
        for name in INFORMATION_NEEDED + INFORMATION_OPTIONAL
    }
    given = {name: " ".join(words.split()) for name, words in typed.items() if words.strip()}
    return check_information(given if set(given) > {"version"} else {})


def settings_of(form: Mapping[str, str]) -> StudySettings:
    """How the form says that the study is to be run."""
    long = number(form.get("deadline", ""))
    if long == "":
        long = None
    elif isinstance(long, str) or form.get("deadline_unit") not in SECONDS:
        raise InvalidParameter("deadline", "a number of minutes, hours or days, or empty", long)
    else:
        long *= SECONDS[form["deadline_unit"]]
    chosen = {
        "deadline": long,
        "open": form.get("open") == "yes",
        "domain_unit": form.get("domain_unit", "").strip(),
        "target_unit": form.get("target_unit", "").strip(),
        "value_unit": form.get("value_unit", "").strip(),
    }
    try:
        return msgspec.convert(chosen, StudySettings)
    except msgspec.ValidationError as error:
        told = str(error)
        name = next((name for name in chosen if f"$.{name}" in told), "deadline")
        rule = "above 0, and at most 30 years" if name == "deadline" else "at most 40 characters"
        raise InvalidParameter(name, rule, str(chosen[name])) from None


def in_the_forms_words(error: DpfdaError) -> str:
    """An error for whoever has filled in the form.

    Examples:
        >>> in_the_forms_words(InvalidParameter("n_people", "a whole number", 2.5))
        'People must be a whole number, got 2.5'
    """
    told, name = str(error), getattr(error, "name", None)
    if name in NAMES and told.startswith(name):
        told = NAMES[name] + told.removeprefix(name)
    return told[:300]


def number(text: str | None) -> Any:
    """What a number in a form is worth; as it is where it is none.

    Examples:
        >>> number("2"), number("2.5"), number("two"), number(None)
        (2, 2.5, 'two', None)
    """
    for kind in (int, float):
        with suppress(ValueError, TypeError):
            return kind(text)  # type: ignore[arg-type]
    return text
