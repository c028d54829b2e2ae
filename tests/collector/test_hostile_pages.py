"""What somebody could put into a study, form or link to turn the dashboard against its owner."""

from __future__ import annotations

import csv
import io
import json
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from organizer import Organizer
from small_studies import answer_one, small_studies

from dpfda import plan_study
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages.routes import sums_of
from dpfda.protocol.server import Server

EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7777 * 7777 }}{% for x in ().__class__.__base__.__subclasses__() %}{% endfor %}",
    "javascript:alert(1)",
    "'); DROP TABLE study; --",
    "\u202ereversed\u0000",
)
PAGES = ("", "/live", "/report")


def ask(organizer: Organizer, path: str, **headers: str) -> Any:
    with Connection(organizer.url, timeout=60) as connection:
        return connection.ask("GET", path, headers={"Cookie": organizer.cookie} | headers)


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def harmless(page: str) -> None:
    """Nothing that was put in is markup, was computed, or leads anywhere."""
    assert str(7777 * 7777) not in page
    for tag, attributes in Seen(page).tags:
        assert tag not in ("img", "iframe", "object", "b")
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "script":
            assert attributes == {"src": "/static/script.js", "defer": None}
        for name in ("href", "src", "action", "formaction"):
            assert not (attributes.get(name) or "").strip().lower().startswith("javascript:")


@pytest.mark.parametrize("evil", EVIL[:4])
def test_titles_labels_and_units_are_text(
    organizer: Organizer, collector: CollectorProcess, evil: str
) -> None:
    plan = plan_study(
        60, 4.0, value_range=(0, 1), classes=(evil, "yes"), title=evil, evaluation_share=0.2, seed=3
    )
    study = collector.create(plan, domain_unit=evil[:40], value_unit=evil[-40:], open=True)["id"]
    harmless(ask(organizer, "/").body.decode())
    for page in PAGES:
        harmless(ask(organizer, f"/study/{study}{page}").body.decode())
    answer = ask(organizer, f"/study/{study}/export/plan")
    assert answer.status == 200
    assert json.loads(answer.body)["title"] == evil
    collector.request("DELETE", f"/api/studies/{study}")


@pytest.mark.parametrize("evil", EVIL)
def test_forms_and_previews_are_text(organizer: Organizer, evil: str) -> None:
    typed = {"title-0": evil, "classes-0": f"{evil},yes", "domain_unit": evil, "family": evil}
    status, page = organizer.forecast(**typed)
    assert status == 200
    harmless(page)
    assert evil in unescape(page) or "\u0000" in evil
    for path in ("/planned", "/outlook"):
        asked = f"{path}?classes-0=%3Cimg%20src=x%3E&family=%3Cimg%3E"
        harmless(ask(organizer, asked).body.decode())


def test_no_other_site_changes_anything(organizer: Organizer, collector: CollectorProcess) -> None:
    study = collector.create(plan_study(60, 4.0, value_range=(0, 1), classes=(0, 1), seed=4))["id"]
    form = {"sure": "yes", "count": "3", "phase": "0", "as": "file"}
    for action in ("invite", "close", "purge", "delete"):
        path = f"/study/{study}/{action}"
        for csrf in ("", "0" * 64):
            assert organizer.post(path, form | {"csrf": csrf}, organizer.cookie)[0] == 403, action
        assert organizer.post(path, form | {"csrf": organizer.csrf})[0] == 303, "signed out"
        assert ask(organizer, path).status == 405, "no link does it"
    kept = {"csrf": organizer.csrf}
    for action in ("purge", "delete"):
        assert organizer.post(f"/study/{study}/{action}", kept, organizer.cookie)[0] == 422
    for method in ("DELETE", "POST"):  # the interface takes the key, and no cookie
        with Connection(collector.url) as connection:
            path = f"/api/studies/{study}" + "/tokens" * (method == "POST")
            answer = connection.ask(method, path, headers={"Cookie": organizer.cookie}, body=b"{}")
            assert answer.status == 401, method
    assert collector.request("GET", f"/api/studies/{study}")["status"] == "open"


def test_a_study_that_is_gone_has_no_page(
    organizer: Organizer, collector: CollectorProcess
) -> None:
    study = collector.create(plan_study(60, 4.0, value_range=(0, 1), classes=(0, 1), seed=5))["id"]
    form = {"csrf": organizer.csrf, "sure": "yes", "count": "1", "phase": "0"}
    status, _, headers = organizer.post(f"/study/{study}/delete", form, organizer.cookie)
    assert (status, headers["Location"]) == (303, "/")
    for page in (*PAGES, *(f"/export/{what}" for what in ("plan", "model", "sums", "codebook"))):
        assert ask(organizer, f"/study/{study}{page}").status == 404, page
    for action in ("invite", "close", "purge", "delete"):
        path = f"/study/{study}/{action}"
        assert organizer.post(path, form, organizer.cookie)[0] == 404, action
    assert study not in ask(organizer, "/").body.decode()
    for accepted, begins in (("text/html,*/*", b"<!doctype html>"), ("application/json", b"{")):
        answer = ask(organizer, f"/study/{study}", Accept=accepted)
        assert (answer.status, answer.body[: len(begins)]) == (404, begins)
    answer = ask(organizer, f"/api/studies/{study}", Accept="text/html")
    assert (answer.status, answer.body[:1]) == (404, b"{")


def test_the_codebook_describes_every_field(
    organizer: Organizer, collector: CollectorProcess
) -> None:
    columns: Any = {"age": (18, 99), "sex": ["f", "m"]}
    number = {"value_range": (0, 3), "domain_range": (0, 24), "target_range": (0, 50)}
    plans = [
        plan_study(60, 4.0, feature_ranges=columns, classes=("ill", "well"), seed=7),
        plan_study(60, 4.0, **number, title="Grip"),
    ]
    for plan in plans:
        units = {"domain_unit": "h", "target_unit": "kg"}
        study = collector.create(plan, **units)["id"]
        told = ask(organizer, f"/study/{study}/export/codebook").body.decode()
        rows = list(csv.DictReader(io.StringIO(told, newline="")))
        assert all(row["meaning"] for row in rows)
        assert not [row for row in rows if row["meaning"].startswith("see the class")]
        for what in ("plan", "model", "sums"):
            found = json.loads(ask(organizer, f"/study/{study}/export/{what}").body)
            named = {row["field"] for row in rows if row["file"] == what}
            if what == "sums":
                found |= {f"phases.{field}": None for field in found["phases"][0]}
            assert set(found) <= named, what
        meant = {row["field"]: row["meaning"] for row in rows}
        if plan.target_range is None:
            assert meant["label 0"] == "ill"
            assert meant["feature 0"] == "age; feature 0 is 58.5, and ±1 is 40.5 from it"
        else:
            assert (meant["target"], meant["t"]) == ("from 0 to 50 kg", "from 0 to 24 h")
            assert meant["feature 0"].startswith("level; ")


def test_exports_are_for_the_organizer_and_hold_no_reply(
    organizer: Organizer, collector: CollectorProcess
) -> None:
    plan = plan_study(60, 4.0, value_range=(0, 1), classes=(0, 1), seed=6)
    study = collector.create(plan)["id"]
    for what in ("plan", "model", "sums"):
        path = f"/study/{study}/export/{what}"
        with Connection(collector.url) as connection:
            assert connection.ask("GET", path).status == 303, what
        found = json.loads(ask(organizer, path).body)
    assert found["state"] == sums_of(Server(plan).state())
    assert found["plan"] == plan.hash
    assert [phase["people"] for phase in found["phases"]] == [0]
    for what in ("seal", "state", "..%2f..%2fetc%2fpasswd", "plan.json"):
        assert ask(organizer, f"/study/{study}/export/{what}").status == 404, what


def test_of_a_state_that_holds_reports_none_is_exported() -> None:
    server = Server(small_studies()["mrma"])
    answer_one(server)
    assert server.state()["waiting"]
    assert sums_of(server.state()) == {"phases": []}
    while server.kind == "report":
        answer_one(server)
    (found,) = sums_of(server.state())["phases"]
    assert set(found) == {"intercept", "coefficients"}


def test_links_lead_where_the_organizer_is(
    organizer: Organizer, collector: CollectorProcess
) -> None:
    """And never into another page, whatever a browser calls this place."""
    plan = plan_study(60, 4.0, value_range=(0, 1), classes=(0, 1), seed=7)
    study = collector.create(plan, open=True)["id"]
    page = ask(organizer, f"/study/{study}").body.decode()
    assert f'href="{collector.url}/take-part/{plan.hash}"' in page
    for host in ('evil"><script>alert(1)</script>', "javascript:alert(1)//", "a.example/b?c#d"):
        answer = ask(organizer, f"/study/{study}", Host=host)
        if answer.status == 200:
            harmless(answer.body.decode())
