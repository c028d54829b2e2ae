"""Can the study in the form work? A light forecast, away from the event loop, and remembered."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from html import escape
from typing import Any

from dpfda.collector.refusal import Refused
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.files import OPTIONS, Handed, Reading
from dpfda.planner.apart import public_people_apart
from dpfda.planner.forecast import forecast
from dpfda.planner.words import notes
from dpfda.recipe import plan_from_facts

_FAMILIES = ("smooth", "rough", "spectra")
ERRORS = {
    "non_private_error": ("Error that you expect without privacy (1: that of a mean)", "0.1"),
    "error": ("Error to reach (then leave people or ε empty)", ""),
}
"""Each further number that a forecast takes, and what is in its input at first."""

# What one forecast may cost: some seconds of one processor, whatever is in the form.
_STUDIES, _PEOPLE, _CLASSES = 16, 2000, 20
MOST_BYTES = 4 << 20  # of a file: what a slow line brings within a server's patience
_READING = ("label", "drop", "id", "columns", "grid", "fill", "sep", "decimal", "header")
_YES_OR_NO, _CHOICES = {"fill", "header"}, ("", "yes", "no")
_WAITING = 4  # forecasts at a time; the others are asked to come back
_ANY = {"n_people": 1000, "epsilon": 1.0}  # in the place of what is to be found
_worker = ThreadPoolExecutor(1, thread_name_prefix="forecast")
_under_way: set[str] = set()


def inputs(form: Mapping[str, str]) -> str:
    """What a forecast needs beside the facts of a study."""
    chosen = form.get("family", _FAMILIES[0])
    options = "".join(
        f"<option{' selected' * (name == chosen)}>{name}</option>" for name in _FAMILIES
    )
    parts = (
        f'<label for="family">Curves are</label><select id="family" name="family">{options}'
        "</select>"
    )
    for name, (text, preset) in ERRORS.items():
        value = escape(form.get(name, preset))
        parts += (
            f'<label for="{name}">{escape(text)}</label><input id="{name}" name="{name}" '
            f'value="{value}" type="number" step="any">'
        )
    # People or ε may be empty here, though a study needs both.
    return (
        f"{parts}{_sample_inputs(form)}"
        '<button formaction="/forecast" formenctype="multipart/form-data" formnovalidate '
        'class="quiet">Will it work?</button>'
    )


def _sample_inputs(form: Mapping[str, str]) -> str:
    """A file of public people, and how to read it: by the names that refusals use."""
    opened = " open" * any(form.get(f"read-{name}") for name in _READING[1:])
    return (
        '<label for="sample">Or a file of public people: curves with their labels</label>'
        f'<input id="sample" name="sample" type="file" data-most="{MOST_BYTES}">'
        '<p class="soft">Only a file that anybody may see: nothing in it is protected. It is read '
        "for this one forecast and not kept, and takes the place of what curves are and of the "
        "error without privacy.</p>"
        f"{_reading_input('label', form)}<details{opened}><summary>How else to read the file"
        f"</summary>{''.join(_reading_input(name, form) for name in _READING[1:])}</details>"
    )


def _reading_input(name: str, form: Mapping[str, str]) -> str:
    part, value = f"read-{name}", form.get(f"read-{name}", "")
    text = f'<label for="{part}"><code>--{name}</code> {escape(OPTIONS[name])}</label>'
    if name not in _YES_OR_NO:
        return f'{text}<input id="{part}" name="{part}" value="{escape(value)}">'
    choices = "".join(f"<option{' selected' * (one == value)}>{one}</option>" for one in _CHOICES)
    return f'{text}<select id="{part}" name="{part}">{choices}</select>'


def reading_of(form: Mapping[str, str]) -> Reading:
    """How the form says that the file is to be read."""
    given = {name: form.get(f"read-{name}", "").strip()[:1000] for name in _READING}
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
) -> str:
    """The forecast as part of a page; or why there is none.

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
def _simulated(key: str) -> str:
    given = json.loads(key)
    return _told(given["facts"], lambda: given["asked"])


def _from_file(
    facts: dict[str, Any], asked: dict[str, Any], form: Mapping[str, str], file: Handed
) -> str:
    said: list[str] = []

    def sample() -> dict[str, Any]:
        if len(file.content) > MOST_BYTES:
            rule = f"at most {MOST_BYTES >> 20} MB (dpfda plan --sample takes more)"
            raise InvalidParameter(file.name, rule, f"{len(file.content) / (1 << 20):.1f} MB")
        people, how = public_people_apart(file, reading_of(form), classes=facts.get("classes"))
        said.append(how)
        return {"sample": people} | {name: asked[name] for name in asked if name == "error"}

    told = _told(facts, sample)
    return told + "".join(f'<p class="soft">{escape(file.name)}: {escape(how)}</p>' for how in said)


def _told(facts: dict[str, Any], people: Callable[[], dict[str, Any]]) -> str:
    try:
        any_size = {"force": True} if "target_range" in facts else {}
        plan_from_facts(_ANY | facts | any_size)  # refuses what is not of its kind
        if len(facts.get("classes") or ()) > _CLASSES:
            raise InvalidParameter("classes", f"at most {_CLASSES} for a forecast", "more")
        also = ("second", "difference")
        found = forecast(**facts, **people(), studies=_STUDIES, most=_PEOPLE, also=also)
    except DpfdaError as refusal:
        return f'<p class="error">No forecast: {escape(str(refusal)[:600])}</p>'
    first, *others = notes(found)
    more = "".join(f'<p class="soft">{escape(note)}</p>' for note in others)
    rough = f"{_STUDIES} simulated studies; <code>dpfda plan</code> does more."
    return f"<p><strong>{escape(first)}</strong></p>{more}<p class='soft'>{rough}</p>"
