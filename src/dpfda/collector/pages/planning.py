"""Can the study in the form work? A light forecast, away from the event loop, and remembered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from html import escape
from typing import Any

from dpfda.collector.refusal import Refused
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.planner.forecast import forecast
from dpfda.planner.words import notes
from dpfda.recipe import plan_from_facts

_FAMILIES = ("smooth", "rough", "spectra")
_PRESETS = {"family": "smooth", "non_private_error": "0.1"}

# What one forecast may cost: about a second of one processor, whatever is in the form.
_STUDIES, _PEOPLE, _CLASSES = 16, 2000, 20
_WAITING = 4  # forecasts at a time; the others are asked to come back
_worker = ThreadPoolExecutor(1, thread_name_prefix="forecast")
_under_way: set[str] = set()


def inputs(form: Mapping[str, str]) -> str:
    """What a forecast needs beside the facts of a study."""
    chosen = form.get("family", _PRESETS["family"])
    options = "".join(
        f"<option{' selected' * (name == chosen)}>{name}</option>" for name in _FAMILIES
    )
    error = escape(form.get("non_private_error", _PRESETS["non_private_error"]))
    return (
        f'<label for="family">Curves are</label><select id="family" name="family">{options}'
        '</select><label for="non_private_error">Error that you expect without privacy</label>'
        f'<input id="non_private_error" name="non_private_error" value="{error}" type="number" '
        'step="any"><button formaction="/forecast" class="quiet">Will it work?</button>'
    )


async def outlook(facts: Mapping[str, Any], form: Mapping[str, str], error: Any) -> str:
    """The forecast as part of a page; or why there is none."""
    asked = {"facts": dict(facts), "family": form.get("family", ""), "error": error}
    key = json.dumps(asked, sort_keys=True)
    if len(_under_way | {key}) > _WAITING:
        raise Refused(429, "busy", "other forecasts are under way; try again", retry_after=5)
    _under_way.add(key)
    try:
        return await asyncio.get_running_loop().run_in_executor(_worker, _simulated, key)
    finally:
        _under_way.discard(key)


@lru_cache(maxsize=64)
def _simulated(key: str) -> str:
    asked = json.loads(key)
    facts = asked["facts"]
    try:
        plan_from_facts(facts)  # refuses what is not of its kind
        if len(facts["classes"]) > _CLASSES:
            raise InvalidParameter("classes", f"at most {_CLASSES} for a forecast", "more")
        found = forecast(
            **facts,
            family=asked["family"],
            non_private_error=asked["error"],
            studies=_STUDIES,
            most=_PEOPLE,
            also=(),
        )
    except DpfdaError as refusal:
        return f'<p class="error">No forecast: {escape(str(refusal)[:300])}</p>'
    first, *others = notes(found)
    more = "".join(f'<p class="soft">{escape(note)}</p>' for note in others)
    rough = f"{_STUDIES} simulated studies; <code>dpfda plan</code> does more."
    return f"<p><strong>{escape(first)}</strong></p>{more}<p class='soft'>{rough}</p>"
