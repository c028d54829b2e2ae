"""The form for a new study: what is in it at first, and which facts it states."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

PRESETS = {
    "title-0": "",
    "n_people-0": "2000",
    "epsilon-0": "1.0",
    "classes-0": "no, yes",
    "target_range-0": "",
    "target_range-1": "",
    "value_range-0": "-1",
    "value_range-1": "1",
    "domain_range-0": "0",
    "domain_range-1": "1",
    "evaluation_share-0": "0.15",
    "seed-0": "0",
    "deadline-0": "",
    "family": "smooth",
    "non_private_error": "0.1",
    "error": "",
}
"""What is in each input at first; a fact of two numbers has two of them."""

_NUMBERS = ("n_people", "epsilon", "evaluation_share", "seed")
_PAIRS = ("value_range", "domain_range", "target_range")
_CHECKS = ("range_is_loose", "spread_differs")


def facts_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The facts in the form, as `plan_from_facts` takes them."""
    facts: dict[str, Any] = {"title": form.get("title-0", "")[:200]}
    facts |= {name: number(form.get(f"{name}-0")) for name in _NUMBERS}
    facts |= {name: [number(form.get(f"{name}-{end}")) for end in range(2)] for name in _PAIRS}
    if any(form.get(f"target_range-{end}", "").strip() for end in range(2)):
        return facts | _checked(form)
    del facts["target_range"]
    facts["classes"] = [label.strip() for label in form.get("classes-0", "").split(",")]
    return facts | _checked(form)


def _checked(form: Mapping[str, str]) -> dict[str, Any]:
    return {name: True for name in _CHECKS if form.get(name) == "yes"}


def number(text: str | None) -> Any:
    """What a number in a form is worth; as it is where it is none.

    Example:
        >>> number("2"), number("2.5"), number("two"), number(None)
        (2, 2.5, 'two', None)
    """
    for kind in (int, float):
        with suppress(ValueError, TypeError):
            return kind(text)  # type: ignore[arg-type]
    return text
