"""The pages themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from typing import Any
from urllib.parse import quote

import msgspec

from dpfda.collector.pages import planning
from dpfda.collector.pages.charts import curve, members
from dpfda.collector.pages.html import Markup, card, hidden, link, page, show, status_mark, table
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import ModelRecord, StudyLine, StudyRecord
from dpfda.errors import DpfdaError
from dpfda.protocol.plan import StudyPlan
from dpfda.recipe import in_words, plan_from_facts

FIELDS = {
    "title": ("Title", [""]),
    "n_people": ("People", ["2000"]),
    "epsilon": ("ε of one person", ["1.0"]),
    "classes": ("Labels, separated by commas", ["no, yes"]),
    "target_range": ("Or the least and largest value of a number to predict instead", ["", ""]),
    "value_range": ("Least and largest value of a curve x(t), public", ["-1", "1"]),
    "domain_range": ("First and last t", ["0", "1"]),
    "evaluation_share": ("Share of people who judge the finished model", ["0.15"]),
    "seed": ("Seed of the public randomness (who is asked what)", ["0"]),
    "deadline": ("Seconds until a phase ends without the missing (optional)", [""]),
}
"""Each fact that is asked for, and what is in its inputs at first."""

MOST_INVITED = 10_000  # at once, on one page
_OPTIONAL = ("title", "classes", "target_range", "deadline")
_CHECKS = {
    "range_is_loose": "Curves may lie anywhere in their range: ask first where",
    "spread_differs": "Classes may differ in how far people are from the middle: ask for it",
    "open": "Anybody may take part, not only those whom you invite",
}
_FACTS = ("range_is_loose", "spread_differs")  # those of the checks that `plan_study` takes
PRESETS = {f"{name}-{end}": text for name in FIELDS for end, text in enumerate(FIELDS[name][1])}


def login_page(*, wrong: bool = False) -> str:
    """Asks for the key."""
    complaint = '<p class="error" role="alert">This is not the key.</p>' if wrong else ""
    return page(
        "Sign in",
        f'{complaint}<form method="post" action="/login" class="card">'
        '<label for="key">Administrator’s key</label>'
        '<input id="key" name="key" type="password" autocomplete="current-password" required>'
        "<button>Sign in</button></form>",
    )


def list_page(
    studies: list[StudyLine], *, csrf: str, older: str | None = None, newest: bool = True
) -> str:
    """Studies with their progress; `older` is the cursor of the next page."""
    rows = [
        (
            link(f"/study/{one.id}", one.title or one.id),
            status_mark(one.status),
            one.kind,
            f"{one.answered} / {one.quota}",
            one.enrolled,
            one.epsilon,
        )
        for one in studies
    ]
    headings = ("study", "status", "phase", "answered", "enrolled", "ε")
    body = table(headings, rows) if rows else '<p class="soft">There is no study yet.</p>'
    turns = [link("/", "Newest studies")] * (not newest)
    if older is not None:
        turns.append(link(f"/?after={quote(older)}", "Older studies"))
    body += f"<nav><p>{' '.join(turns)}</p></nav>" * bool(turns)
    body += '<p><a class="button" href="/new">New study</a></p>'
    return page("Studies", body, session=True, csrf=csrf)


def study_page(record: StudyRecord, answered: int, history: list[ModelRecord], *, csrf: str) -> str:
    """One study."""
    title = record.title or record.id
    parts = study_parts(record, answered, history)
    body = "".join(f'<p class="error">{escape(one)}</p>' for one in _how(record).warnings())
    body += f'<div data-live="/study/{escape(record.id)}/live">{parts}</div>'
    address = f"/api/studies/{escape(record.id)}"
    body += (
        f'<p><a class="button" href="{address}/model" download="model.json">Download model</a>'
        f'<a class="button quiet" href="/study/{escape(record.id)}/report">Download report</a></p>'
    )
    if record.status != "finished":
        body += (
            f'<form method="post" action="/study/{escape(record.id)}/invite">{hidden(csrf)}'
            '<label for="count">Invite so many people</label>'
            f'<input id="count" name="count" type="number" min="1" max="{MOST_INVITED}" '
            f'value="{min(record.quota, MOST_INVITED)}" required>'
            '<button class="quiet">Make invitations</button></form>'
        )
    if record.status == "open":
        body += (
            f'<form method="post" action="/study/{escape(record.id)}/close">{hidden(csrf)}'
            f'<input type="hidden" name="phase" value="{record.phase}">'
            '<button class="quiet">End this phase now</button></form>'
        )
    body += _forget_card(record, csrf)
    return page(title, body, session=True, csrf=csrf)


def invitations_page(record: StudyRecord, tokens: list[str], *, csrf: str) -> str:
    """New invitations, for the only time."""
    body = (
        "<p>Give one line to each person. It is good for one reply, and shown this once.</p>"
        '<textarea readonly rows="20" cols="46" aria-label="Invitations">'
        f"{escape(chr(10).join(tokens))}</textarea><p>They take part on {_joining(record)}</p>"
        f"<p>{link(f'/study/{record.id}', 'Back to the study')}</p>"
    )
    return page("Invitations", body, session=True, csrf=csrf)


def _how(record: StudyRecord) -> StudySettings:
    return msgspec.json.decode(record.settings, type=StudySettings)


def _joining(record: StudyRecord) -> str:
    """Where people take part with a browser, and what others type."""
    invited = "" if _how(record).open else " --invitation FILE"
    by_link = link(f"/take-part/{record.hash}", "this page")
    with_token = "" if _how(record).open else " (with #invitation=TOKEN after its address)"
    typed = f"dpfda join URL {escape(record.hash)}{invited}"
    return f"{by_link}{with_token}, or by <code>{typed}</code>"


def _forget_card(record: StudyRecord, csrf: str) -> str:
    """What can be forgotten, for those who are sure."""
    forms = ""
    for action, text in (
        ("purge", "Forget the replies of concluded phases; models and receipts stay"),
        ("delete", "Delete this study for good: people, replies, models, receipts"),
    ):
        forms += (
            f'<form method="post" action="/study/{escape(record.id)}/{action}">{hidden(csrf)}'
            f'<p><label><input type="checkbox" name="sure" value="yes" required> {text}</label> '
            f'<button class="quiet">{action.capitalize()}</button></p></form>'
        )
    return f'<details class="card"><summary>Forget</summary>{forms}</details>'


def unreadable_page(record: StudyRecord, *, csrf: str) -> str:
    """A study of which only this much is known."""
    told = (
        '<p class="error" role="alert">What is stored of this study cannot be read by this release.'
        " The log says where it failed; nothing was lost, and no other study waits for it.</p>"
        f"<p>{status_mark(record.status)} hash <code>{escape(record.hash)}</code></p>"
    )
    body = card("Unreadable", told) + (_forget_card(record, csrf) if csrf else "")
    return page(record.title or record.id, body, session=bool(csrf), csrf=csrf)


def study_parts(record: StudyRecord, answered: int, history: list[ModelRecord]) -> str:
    """What changes while a study runs."""
    newest = json.loads(history[-1].summary)
    plan = StudyPlan.from_dict(json.loads(record.plan))
    done = {entry.phase: entry.people for entry in history}
    boxes = [
        _progress_card(record, answered, newest, done),
        _privacy_card(plan, answered + sum(done.values())),
        _error_card(newest),
    ]
    if newest["members"]:
        boxes.append(_members_card(newest["members"]))
    if newest["slope"]:
        boxes.append(_slope_card(newest["slope"][0]))
    if newest["estimates"]:
        boxes.append(_estimates_card(newest["estimates"]))
    boxes.append(_plan_card(record, plan))
    return f'<div class="grid">{"".join(boxes)}</div>'


def _progress_card(
    record: StudyRecord, answered: int, newest: Mapping[str, Any], done: Mapping[int, int]
) -> str:
    rows = []
    for number, phase in enumerate(newest["phases"]):
        if phase["people"] == 0:
            continue
        here = number == record.phase and record.status != "finished"
        came = answered if here else done.get(number, 0)
        bar = f'<progress max="{phase["people"]}" value="{came}">{came}</progress>'
        rows.append((phase["kind"], Markup(bar), f"{came} / {phase['people']}"))
    return card(
        "Progress by role",
        f"<p>{status_mark(record.status)} <span class='soft'>{record.issued} tasks handed out in "
        f"this phase, {record.enrolled} people enrolled</span></p>"
        + table(("role", "", "answered"), rows),
    )


def _privacy_card(plan: StudyPlan, people: int) -> str:
    return card(
        "Privacy spent",
        f'<p class="figure">ε = {plan.epsilon:g}</p><p>by each of <strong>{people}</strong> people '
        f"who answered, once.</p><p class='soft'>{escape(str(plan.guarantee))}</p>",
    )


def _error_card(newest: Mapping[str, Any]) -> str:
    error = newest["error"]
    if error is None:
        text = '<p class="soft">No people have judged the finished model yet.</p>'
    else:
        text = (
            f'<p class="figure">{show(error["value"])}</p><p>95 % interval '
            f"[{show(error['low'])}, {show(error['high'])}], from {error['people']} people’s "
            "randomized verdicts. No held-out data were used.</p>"
        )
    said = "".join(f"<p>{escape(note)}</p>" for note in newest["notes"])
    return card("Error estimate", said + text)


def _members_card(rows: list[dict[str, Any]]) -> str:
    drawn = members("accuracy of each member, reversed ones marked, weights below", rows)
    headings = ("member", "accuracy", "low", "high", "judged by", "reversed", "weight")
    names = ("accuracy", "low", "high", "people", "reversed", "weight")
    cells = []
    for place, row in enumerate(rows, start=1):
        turned = "reversed" if row["reversed"] else ""
        shown = row | {"people": int(row["people"]), "reversed": turned}
        cells.append((place, *(shown[name] for name in names)))
    return card(
        "Members: accuracy with interval, reversal, weight",
        '<p class="soft"><span class="key"></span>as made <span class="key warm"></span>reversed '
        '<span class="key flat"></span>weight</p>'
        f"{drawn}<details><summary>As a table</summary>{table(headings, cells)}</details>",
        wide=True,
    )


def _slope_card(slope: Mapping[str, Any]) -> str:
    drawn = curve("slope function", slope["t"], slope["beta"])
    return card(
        "Slope function β(t)", drawn + '<p class="soft">t from left to right</p>', wide=True
    )


def _estimates_card(rows: list[dict[str, Any]]) -> str:
    headings = ("score", "feature", "estimate", "low", "high", "people")
    names = ("score", "feature", "value", "low", "high", "people")
    cells = [[row[name] for name in names] for row in rows]
    return card("What was learnt about each feature", table(headings, cells), wide=True)


def _plan_card(record: StudyRecord, plan: StudyPlan) -> str:
    follow = (
        ""
        if record.successor is None
        else f"<p>{link('/study/' + record.successor, 'next round')}</p>"
    )
    return card(
        "Plan",
        f"<p>hash <code>{escape(record.hash)}</code></p>"
        f"<p>design <code>{escape(str(plan.design.get('name')))}</code>, basis "
        f"<code>{escape(plan.encoder.basis.name)}</code> with {plan.encoder.n_features} features, "
        f"{escape(plan.what_is_learnt)}, {plan.n_people} people</p>{follow}"
        f"<p class='soft'>People take part on {_joining(record)}</p>",
        wide=True,
    )


def new_page(form: Mapping[str, str], *, csrf: str, complaint: str = "", outlook: str = "") -> str:
    """The form for a new study, beside what people would be asked in it, and its forecast."""
    fields = ""
    for name, (text, presets) in FIELDS.items():
        kind = 'text"' if name in ("title", "classes") else 'number" step="any"'
        need = "" if name in _OPTIONAL else " required"
        need += ' class="pair"' if len(presets) > 1 else ""
        fields += f'<label for="{name}-0">{escape(text)}</label>'
        for part in (f"{name}-{end}" for end in range(len(presets))):
            value = f'value="{escape(form.get(part, ""))}" aria-label="{escape(text)}"'
            fields += f'<input id="{part}" name="{part}" {value} type="{kind}{need}>'
    for name, text in _CHECKS.items():
        fields += (
            f'<label class="check"><input type="checkbox" name="{name}" value="yes"'
            f"{' checked' * (form.get(name) == 'yes')}> {text}</label>"
        )
    said = f'<p class="error" role="alert">{escape(complaint)}</p>' if complaint else ""
    told = f"<h2>Will it work?</h2>{outlook}" if outlook else ""
    body = (
        f'{said}<div class="grid">'
        '<form method="post" action="/new" class="card" data-planned="/planned">'
        f"{hidden(csrf)}{fields}{planning.inputs(form)}<button>Create</button></form>"
        '<section class="card"><h2>What people would be asked</h2>'
        f'<div id="planned" aria-live="polite">{planned(form)}</div>'
        f'<div id="outlook" aria-live="polite">{told}</div></section></div>'
    )
    return page("New study", body, session=True, csrf=csrf)


def facts_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The facts in the form, as `plan_from_facts` takes them."""
    facts: dict[str, Any] = {"title": form.get("title-0", "")[:200]}
    facts["classes"] = [label.strip() for label in form.get("classes-0", "").split(",")]
    for name in FIELDS.keys() - {*facts, "deadline"}:
        given = [number(form.get(f"{name}-{end}")) for end in range(len(FIELDS[name][1]))]
        facts[name] = given if len(given) > 1 else given[0]
    if not any(form.get(f"target_range-{end}", "").strip() for end in range(2)):
        del facts["target_range"]
    else:
        del facts["classes"]
    return facts | {name: True for name in _FACTS if form.get(name) == "yes"}


def number(text: str | None) -> Any:
    """What a number in a form is worth; as it is where it is none."""
    for kind in (int, float):
        with suppress(ValueError, TypeError):
            return kind(text)  # type: ignore[arg-type]
    return text


def planned(form: Mapping[str, str]) -> str:
    """Who would be asked what, and what they are promised; or why there is no study yet."""
    try:
        rows, notes = in_words(plan_from_facts(facts_of(form)))
    except DpfdaError as error:
        return f'<p class="error">No study yet: {escape(str(error)[:300])}</p>'
    words = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return table(list(rows[0]), [list(row.values()) for row in rows]) + words


def interface_page(document: Mapping[str, Any], *, csrf: str) -> str:
    """The HTTP interface, from its OpenAPI document."""
    rows = [
        (method.upper(), path, operation.get("description") or operation.get("summary", ""))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if path.startswith("/api") or path in ("/health", "/metrics")
    ]
    body = (
        '<p>The document for tools is <a href="/openapi/openapi.json">openapi.json</a>.</p>'
        + table(("method", "path", "what it does"), rows)
    )
    return page("Interface", body, session=True, csrf=csrf)


def report_page(record: StudyRecord, answered: int, history: list[ModelRecord], style: str) -> str:
    """A study in one file, to keep."""
    whole = page(record.title or record.id, study_parts(record, answered, history))
    whole = whole.replace(
        '<link rel="stylesheet" href="/static/style.css">', f"<style>{style}</style>"
    )
    return whole.replace('<script src="/static/script.js" defer></script>\n', "")
