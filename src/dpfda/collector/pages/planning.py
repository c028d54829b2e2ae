"""Can the study in the form work? A light forecast, away from the event loop, and remembered."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from dpfda.collector.refusal import Refused
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.files import Handed, Reading
from dpfda.planner.apart import public_people_apart
from dpfda.planner.forecast import forecast
from dpfda.planner.words import notes
from dpfda.recipe import plan_from_facts

ERRORS = ("non_private_error", "error")
"""Further numbers that a forecast takes."""

# What one forecast may cost: some seconds of one processor, whatever is in the form.
_STUDIES, _PEOPLE, _CLASSES = 16, 2000, 20
MOST_BYTES = 4 << 20  # of a file: what a slow line brings within a server's patience
READING = ("label", "drop", "id", "columns", "grid", "fill", "sep", "decimal", "header")
_YES_OR_NO, _CHOICES = {"fill", "header"}, ("", "yes", "no")
_WAITING = 4  # forecasts at a time; the others are asked to come back
_ANY = {"n_people": 1000, "epsilon": 1.0}  # in the place of what is to be found
_worker = ThreadPoolExecutor(1, thread_name_prefix="forecast")
_under_way: set[str] = set()


@dataclass(frozen=True)
class Outlook:
    """A forecast for a page; or why there is none.

    Attributes:
        refused: why there is none.
        first: whether the study works.
        others: what else is to be said.
        studies: how many were simulated.
        read: how the file was read, if there was one.
    """

    refused: str = ""
    first: str = ""
    others: tuple[str, ...] = ()
    studies: int = 0
    read: str = ""


def reading_of(form: Mapping[str, str]) -> Reading:
    """How the form says that the file is to be read."""
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
    errors: Mapping[str, Any],
    file: Handed | None = None,
) -> Outlook:
    """The forecast; or why there is none.

    Args:
        facts: of the study, as the form has them.
        form: the family, and how to read the file.
        errors: those of `ERRORS`, as numbers.
        file: public people.
    """
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    asked = {name: value for name, value in errors.items() if value not in (None, "")}
    key = json.dumps({"facts": known, "asked": asked | {"family": form.get("family", "")}})
    work = partial(_simulated, key)
    if file is not None:
        key += secrets.token_hex(8)  # not remembered: the file would have to be
        work = partial(_from_file, known, asked, form, file)
    if len(_under_way | {key}) > _WAITING:
        raise Refused(429, "busy", "other forecasts are under way; try again", retry_after=5)
    _under_way.add(key)
    try:
        return await asyncio.get_running_loop().run_in_executor(_worker, work)
    finally:
        _under_way.discard(key)


@lru_cache(maxsize=64)
def _simulated(key: str) -> Outlook:
    given = json.loads(key)
    return _told(given["facts"], lambda: given["asked"])


def _from_file(
    facts: dict[str, Any], asked: dict[str, Any], form: Mapping[str, str], file: Handed
) -> Outlook:
    said: list[str] = []

    def sample() -> dict[str, Any]:
        if len(file.content) > MOST_BYTES:
            rule = f"at most {MOST_BYTES >> 20} MB (dpfda plan --sample takes more)"
            raise InvalidParameter(file.name, rule, f"{len(file.content) / (1 << 20):.1f} MB")
        people, how = public_people_apart(file, reading_of(form), classes=facts.get("classes"))
        said.append(how)
        return {"sample": people} | {name: asked[name] for name in asked if name == "error"}

    told = _told(facts, sample)
    return replace(told, read="".join(f"{file.name}: {how}" for how in said))


def _told(facts: dict[str, Any], people: Callable[[], dict[str, Any]]) -> Outlook:
    try:
        any_size = {"force": True} if "target_range" in facts else {}
        plan_from_facts(_ANY | facts | any_size)  # refuses what is not of its kind
        if len(facts.get("classes") or ()) > _CLASSES:
            raise InvalidParameter("classes", f"at most {_CLASSES} for a forecast", "more")
        also = ("second", "difference")
        found = forecast(**facts, **people(), studies=_STUDIES, most=_PEOPLE, also=also)
    except DpfdaError as refusal:
        return Outlook(refused=str(refusal)[:600])
    first, *others = notes(found)
    return Outlook(first=first, others=tuple(others), studies=_STUDIES)
