"""Addresses of the form for a new study."""

from __future__ import annotations

from litestar import get, post
from litestar.di import NamedDependency

from dpfda.collector.pages import planning, session, views
from dpfda.collector.pages.asked import SMALL, Asked, Page, go, own_form
from dpfda.collector.pages.form import (
    PRESETS,
    check_numbers,
    check_title,
    facts_of,
    in_the_forms_words,
    settings_of,
)
from dpfda.collector.pages.posted import posted
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector
from dpfda.errors import DpfdaError
from dpfda.local.recipe import plan_from_facts

_AT_ONCE = 2  # forecasts that are under way when another is made while somebody types


@get("/new", include_in_schema=False)
async def new_form(csrf: NamedDependency[str]) -> Page:
    """The form for a new study."""
    return views.new_page(PRESETS, csrf=csrf)


@get("/planned", include_in_schema=False)
async def show_plan(request: Asked, csrf: NamedDependency[str]) -> Page:
    """What people would be asked if the form were sent like this."""
    return views.planned_part(_typed(request))


@get("/outlook", include_in_schema=False)
async def show_outlook(request: Asked, csrf: NamedDependency[str]) -> Page:
    """What the study would be worth, quickly, while somebody types."""
    form = _typed(request)
    found = await planning.outlook(facts_of(form), form, quick=True, waiting=_AT_ONCE)
    return views.outlook_part(found)


@post("/new", include_in_schema=False, request_max_body_size=SMALL)
async def create_study(
    request: Asked, collector: NamedDependency[Collector], csrf: NamedDependency[str]
) -> Page:
    """Create a study from the form; one that cannot work must be meant."""
    form = await own_form(request, csrf)
    facts = facts_of(form)
    try:
        check_numbers(facts)
        check_title(facts)
        how, plan = settings_of(form), plan_from_facts(facts)
        if form.get("anyway") != "yes":
            found = await planning.outlook(facts, form | {"error": ""}, quick=True)
            if found.prospect == "cannot work":
                told = f"{found.first} Nothing was created."
                return views.new_page(form, csrf=csrf, complaint=told, outlook=found, hopeless=True)
        record = await collector.create(plan.to_dict(), how)
    except DpfdaError as error:
        return views.new_page(form, csrf=csrf, complaint=in_the_forms_words(error))
    return go(f"/study/{record.id}")


@post("/forecast", include_in_schema=False, request_max_body_size=SMALL + 4 * planning.MOST_BYTES)
async def forecast_study(request: Asked, csrf: NamedDependency[str]) -> Page:
    """The form again, with what the study in it would be worth."""
    form, file = posted(await request.body(), request.headers.get("content-type", ""))
    session.check_form(csrf, form, request)
    outlook = await planning.outlook(facts_of(form), form, file)
    return views.new_page(form, csrf=csrf, outlook=outlook)


def _typed(request: Asked) -> dict[str, str]:
    form = {key: str(value) for key, value in request.query_params.items()}
    if sum(map(len, form.values())) > SMALL:
        raise Refused(413, "too_large", "more than a form holds")
    return form


HANDLERS = [new_form, show_plan, show_outlook, create_study, forecast_study]
