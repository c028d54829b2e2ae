"""Short forecasts of the study in the form, computed in a thread and cached."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from dpfda.collector.pages import charts
from dpfda.collector.pages.form import check_numbers, in_the_forms_words, number
from dpfda.collector.refusal import Refused
from dpfda.curves.files import Handed, Reading
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.local.recipe import plan_from_facts
from dpfda.planning.forecast import Forecast, forecast
from dpfda.planning.people_file import public_people_in_subprocess
from dpfda.planning.words import guess, notes, prospect
from dpfda.protocol.plan import StudyPlan

ERRORS = ("non_private_error", "error")
"""Further numbers that a forecast uses."""

# Limits of one forecast: some seconds of one processor, for any form.
_STUDIES, _PEOPLE, _CLASSES = 16, 2000, 20
# Limits while the form is edited: about one second of one processor for every design.
_QUICK_STUDIES, _QUICK_PEOPLE, _QUICK_PEOPLE_OTHERS = 12, 1000, 600
_QUICK_COEFFICIENTS, _QUICK_LEAST = 500, 4
"""Largest number of coefficients in all simulated models, and smallest number of studies."""
# of a file; a slow connection can send this within the time limit of a request
MOST_BYTES = 4 << 20
READING = ("label", "drop", "id", "columns", "grid", "fill", "sep", "decimal", "header")
_YES_OR_NO, _CHOICES = {"fill", "header"}, ("", "yes", "no")
_WAITING = 4  # forecasts at a time; further requests are refused
_ANY = {"n_people": 1000, "epsilon": 1.0}  # placeholders for the quantity to be computed
_worker = ThreadPoolExecutor(1, thread_name_prefix="forecast")
_under_way: set[str] = set()


@dataclass(frozen=True)
class Outlook:
    """A forecast for a page, or the reason why there is none.

    Attributes:
        refused: why there is none.
        prospect: whether the study can work, in two words.
        first: the same in a sentence.
        chart: chart of the expected error, with guessing and no privacy for comparison.
        others: further sentences.
        studies: number of simulated studies.
        quick: whether a longer forecast would be more precise.
        read: how the file was read, if there was one.
    """

    refused: str = ""
    prospect: str = ""
    first: str = ""
    chart: dict[str, Any] | None = None
    others: tuple[str, ...] = ()
    studies: int = 0
    quick: bool = False
    read: str = ""


def reading_of(form: Mapping[str, str]) -> Reading:
    """The options for reading the file, from the form."""
    given = {name: form.get(f"read-{name}", "").strip()[:1000] for name in READING}
    how: dict[str, Any] = {name: text for name, text in given.items() if text}
    for name in _YES_OR_NO & how.keys():
        if how[name] not in _CHOICES:
            raise InvalidParameter(f"--{name}", "yes or no", how[name])
        how[name] = how[name] == "yes"
    return Reading(**how)


async def outlook(
    facts: Mapping[str, Any],
    form: Mapping[str, str],
    file: Handed | None = None,
    *,
    quick: bool = False,
    waiting: int = _WAITING,
) -> Outlook:
    """Compute the forecast, or the reason why there is none.

    Args:
        facts: facts of the study from the form.
        form: the family, errors, and how to read the file.
        file: public people.
        quick: simulate only few studies, and only the error.
        waiting: largest number of forecasts at a time; further ones are refused.
    """
    # Title and seed do not affect the forecast.
    known = {k: v for k, v in facts.items() if v not in (None, "") and k not in ("title", "seed")}
    errors = {name: number(form.get(name)) for name in ERRORS}
    asked = {name: value for name, value in errors.items() if value not in (None, "")}
    asked |= {"family": "table" if "feature_ranges" in known else form.get("family", "")}
    key = json.dumps({"facts": known, "asked": asked, "quick": quick})
    work = partial(_simulated, key)
    if file is not None:
        key += secrets.token_hex(8)  # a unique key: forecasts from files are not cached
        work = partial(_from_file, known, asked, form, file)
    if len(_under_way | {key}) > waiting:
        raise Refused(429, "busy", "other forecasts are under way; try again", retry_after=5)
    _under_way.add(key)
    try:
        return await asyncio.get_running_loop().run_in_executor(_worker, work)
    finally:
        _under_way.discard(key)


@lru_cache(maxsize=256)
def _simulated(key: str) -> Outlook:
    given = json.loads(key)
    return _told(given["facts"], lambda: given["asked"], quick=given["quick"])


def _from_file(
    facts: dict[str, Any], asked: dict[str, Any], form: Mapping[str, str], file: Handed
) -> Outlook:
    said: list[str] = []

    def sample() -> dict[str, Any]:
        if "feature_ranges" in facts:
            rule = "a file of curves (dpfda plan --sample takes tables)"
            raise InvalidParameter(file.name, rule, "answers or numbers")
        if len(file.content) > MOST_BYTES:
            rule = f"at most {MOST_BYTES >> 20} MB (dpfda plan --sample takes more)"
            raise InvalidParameter(file.name, rule, f"{len(file.content) / (1 << 20):.1f} MB")
        people, how = public_people_in_subprocess(
            file, reading_of(form), classes=facts.get("classes")
        )
        said.append(how)
        return {"sample": people} | {name: asked[name] for name in asked if name == "error"}

    told = _told(facts, sample)
    return replace(told, read="".join(f"{file.name}: {how}" for how in said))


def _told(
    facts: dict[str, Any], people: Callable[[], dict[str, Any]], *, quick: bool = False
) -> Outlook:
    try:
        check_numbers(_ANY | facts)
        plan = plan_from_facts(_ANY | facts)  # raises an error for invalid facts
        if len(facts.get("classes") or ()) > _CLASSES:
            raise InvalidParameter("classes", f"at most {_CLASSES} for a forecast", "more")
        effort: dict[str, Any] = {"studies": _STUDIES, "most": _PEOPLE}
        effort["also"] = ("second", "difference")
        if quick:
            most = _QUICK_PEOPLE if plan.n_classes == 2 else _QUICK_PEOPLE_OTHERS
            effort = {"studies": quick_studies(plan), "most": most, "also": ()}
        found = forecast(**facts, **people(), **effort)
    except DpfdaError as refusal:
        return Outlook(refused=in_the_forms_words(refusal)[:600])
    first, *others = notes(found)
    return Outlook(
        prospect=prospect(found),
        first=first,
        chart=_chart(found),
        others=tuple(others),
        studies=effort["studies"],
        quick=quick,
    )


def quick_studies(plan: StudyPlan) -> int:
    """Number of simulated studies while the form is edited; smaller for large models."""
    coefficients = max(plan.n_scores, 1) * (plan.encoder.n_features + 1)
    return min(_QUICK_STUDIES, max(_QUICK_LEAST, _QUICK_COEFFICIENTS // coefficients))


def _chart(found: Forecast) -> dict[str, Any]:
    expected = found.expected
    return charts.interval(
        "expected error, and where nine of ten such studies lie",
        (expected.low, expected.error, expected.high),
        {"no privacy": found.non_private, guess(found): found.guessing},
    )
