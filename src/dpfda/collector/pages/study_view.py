"""The page of one study, and its report, from the stored state."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from dpfda.collector.pages import charts
from dpfda.collector.pages.templating import (
    drawn,
    feature_name,
    moment,
    phase_name,
    score_name,
    status_name,
)
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import ModelRecord, StudyRecord
from dpfda.collector.summary import link, standing
from dpfda.estimators.study_report import errors
from dpfda.estimators.study_report import settings as plan_settings
from dpfda.local.recipe import protection
from dpfda.privacy.deployment import Deployment
from dpfda.protocol.estimate import as_share
from dpfda.protocol.plan import StudyPlan
from dpfda.report import Contents, Picture, Report, Table

_LINES = 12  # slope functions on a page
_NOISE = (
    "Noise: the standard error from the randomization of replies alone. It does not give a "
    "confidence interval for the population."
)
_AGREEMENT = (
    "Agreement: the mean of +1 for people whose label a threshold at the feature's center would "
    "guess, and −1 for the others. It is a correlation only if that center was found and all "
    "labels are equally frequent. "
)
_BAND = (
    "The band is 1.96 standard errors of the noise in replies to either side. It does not include "
    "the bias from shrinkage."
)
_FLAT = "The band holds 0 everywhere: this curve may be noise alone."
_NO_SIGNAL = "The replies have not shown a signal: this curve may be noise alone."
_NO_BAND = (
    "There is no band: not every feature was selected, and the contribution of the others to the "
    "line is not known."
)
_LIMIT = 5.0  # proposed limit on the total ε of all studies, as on the participant page


def settings(record: StudyRecord) -> StudySettings:
    """The settings of a study on this collector."""
    return msgspec.json.decode(record.settings, type=StudySettings)


_REMINDERS = {
    "English": (
        "You received a personal link to the study “{title}”. If you have already taken part, "
        "please ignore this message, which goes to everybody who was invited.\n\nIf you have not, "
        "please open your link. It takes about two minutes. Your data stay on your device; only an "
        "answer with noise leaves it. Taking part is voluntary.",
        "Questions: {contact}",
    ),
    "Deutsch": (
        "Sie haben einen persönlichen Link zur Studie „{title}“ erhalten. Wenn Sie schon "
        "teilgenommen haben, ist diese Nachricht für Sie gegenstandslos: Sie geht an alle "
        "Eingeladenen.\n\nWenn nicht, öffnen Sie bitte Ihren Link. Es "
        "dauert etwa zwei Minuten. Ihre Daten bleiben auf Ihrem Gerät; nur eine verrauschte "
        "Antwort verlässt es. Die Teilnahme ist freiwillig.",
        "Fragen: {contact}",
    ),
}


def reminders(record: StudyRecord) -> dict[str, str]:
    """Reminders to all invited people, by language; they do not depend on who has replied."""
    known = json.loads(record.plan).get("information", {})
    found = {}
    for language, (words, contact) in _REMINDERS.items():
        lines = [words.replace("{title}", record.title or record.id)]
        lines += [contact.replace("{contact}", known["contact"])] if "contact" in known else []
        lines += [known["institution"]] if "institution" in known else []
        found[language] = "\n\n".join(lines)
    return found


def join_command(record: StudyRecord, plan: StudyPlan, here: str, *, invited: bool) -> str:
    """The command for a new participant, with limits on ε for this study and in total."""
    words = ["dpfda", "join", here, record.hash, "--most-epsilon", f"{plan.epsilon:g}"]
    words += ["--limit-epsilon", f"{max(_LIMIT, plan.epsilon):g}"]
    words += [word for one in plan.guarantee.assumptions for word in ("--accept", one)]
    return shlex.join([*words, *(["--invitation", "FILE"] if invited else [])])


def study(
    record: StudyRecord,
    answered: int,
    history: list[ModelRecord],
    *,
    here: str,
    elsewhere: str | None = None,
) -> dict[str, Any]:
    """The values for the templates of a study.

    Args:
        record: the study.
        answered: number of replies in its current phase.
        history: records of its models.
        here: address of this collector for participants.
        elsewhere: host of a separate participant page.
    """
    found = json.loads(history[-1].summary)
    how, plan = settings(record), StudyPlan.from_dict(json.loads(record.plan))
    done = {entry.phase: entry.people for entry in history}
    finished = record.status == "finished"
    phases = _phases(record, answered, found["phases"], done)
    verdict = standing(record, answered, history)
    return {
        "title": record.title or record.id,
        "record": record,
        "status_name": status_name(record.status),
        "now": "" if finished else phase_name(record.kind),
        "plan": plan,
        "how": how,
        "protection": protection(plan),
        "join": join_command(record, plan, here or "ADDRESS", invited=not how.open),
        "link": link(record, here, elsewhere=elsewhere),
        "phases": phases,
        "wanted": verdict["wanted"],
        "people": verdict["people"],
        "found": found,
        "verdict": verdict,
        "growth": _growth(record, answered, history),
        "members": _members(found["members"]),
        "slopes": _slopes(plan, found["slope"], how.domain_unit, doubted=verdict["nothing"]),
        "estimates": _estimates(plan, found),
    }


def _phases(
    record: StudyRecord, answered: int, phases: list[dict[str, Any]], done: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Rows of the phases; consecutive phases of one kind are combined."""
    rows: list[dict[str, Any]] = []
    for number, phase in enumerate(phases):
        if not phase["people"]:
            continue
        here = number == record.phase and record.status != "finished"
        came = answered if here else done.get(number, 0)
        name = phase_name(phase["kind"])
        if not rows or rows[-1]["name"] != name:
            rows.append({"name": name, "people": 0, "came": 0, "here": False})
        row = rows[-1]
        row["people"] += phase["people"]
        row["came"] += came
        row["here"] = row["here"] or here
    return rows


def _growth(
    record: StudyRecord, answered: int, history: list[ModelRecord]
) -> dict[str, Any] | None:
    """Replies over time at the ends of phases, because arrival times are not stored."""
    counts, total = [(record.created, 0)], 0
    for entry in history:
        if entry.phase >= 0:
            total += entry.people
            counts.append((entry.created, total))
    if record.status != "finished" and answered:
        counts.append((max(time.time(), counts[-1][0]), total + answered))
    if len(counts) < 3:
        return None
    ends = moment(counts[0][0]), moment(counts[-1][0])
    return charts.steps("people who answered, at the end of each phase", counts, ends)


def _members(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not rows:
        return None
    cells = []
    for place, row in enumerate(rows, start=1):
        turned = "reversed" if row["reversed"] else ""
        shown = row | {"people": int(row["people"]), "reversed": turned}
        known = {end: row[end] for end in ("accuracy", "low", "high") if row[end] is not None}
        shown |= dict(zip(known, as_share(known.values()), strict=True))
        names = ("accuracy", "low", "high", "people", "reversed", "weight")
        cells.append([place, *(shown[name] for name in names)])
    title = "accuracy of each member, reversed ones marked, weights below"
    return {"chart": charts.members(title, rows), "rows": cells}


def _slopes(
    plan: StudyPlan, slopes: list[dict[str, Any]], unit: str, *, doubted: bool
) -> list[dict[str, Any]]:
    """A chart of each slope function, with the class that it indicates, a note and a doubt."""
    shown = []
    for one in slopes[:_LINES]:
        named = score_name(plan, one["score"])
        if plan.encoder.channels > 1:
            named += f", channel {one['channel'] + 1}"
        drawn = charts.curve(
            f"slope function for {named}", one["t"], one["beta"], one["error"], units=(unit, "β(t)")
        )
        note, doubt = _NO_BAND, _NO_SIGNAL if doubted else ""
        if one["error"] is not None:
            pairs = zip(one["beta"], one["error"], strict=True)
            flat = all(abs(beta) <= charts.WIDE * error for beta, error in pairs)
            note, doubt = _BAND, _FLAT if flat else ""
        shown.append({"name": named, "chart": drawn, "note": note, "doubt": doubt})
    return shown


def _estimates(plan: StudyPlan, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The table of estimates; features that the model does not use have no numbers."""
    if not found["estimates"]:
        return None
    several = plan.n_scores > 1
    headings = ["feature", found["learnt"] or "estimate", "noise", "people"]
    rows, spans = [], []
    for row in found["estimates"]:
        numbers = [row["value"], row["standard_error"]]
        if not any(numbers):
            numbers = [None, None]
        # with noise, the estimate of a mean of signs may exceed 1
        elif found["learnt"] == "agreement":
            numbers[0] = min(max(numbers[0], -1.0), 1.0)
        spans.append(None if numbers[0] is None else (numbers[0], numbers[1]))
        named = feature_name(plan.encoder, row["feature"], folded=found["folded"])
        cells = [named, *numbers, row["people"]]
        rows.append([score_name(plan, row["score"]), *cells] if several else cells)
    note = _AGREEMENT + _NOISE if found["learnt"] == "agreement" else _NOISE
    headings = ["speaks for", *headings] if several else headings
    return {"headings": headings, "rows": rows, "bars": charts.bars(spans), "note": note}


_COMPUTED = "Everything here is computed from randomized replies, one of each person."
_FORGOTTEN = "Older replies are no longer used, because newer replies contradict them."


def study_report(shown: Mapping[str, Any]) -> Report:
    """The report of a study; `shown` is the result of `study`."""
    plan, found, verdict = shown["plan"], shown["found"], shown["verdict"]
    bad = verdict["nothing"]
    doubts = found["notes"] + [verdict["told"]] * bool(bad and verdict["told"])
    doubts += [
        f"Slope for {one['name']}: {one['doubt']}" for one in shown["slopes"] if one["doubt"]
    ]
    contents = Contents(
        verdict=() if bad else (verdict["told"],),
        doubts=tuple(doubts),
        tables=tuple(_tables(shown)),
        pictures=tuple(_pictures(shown)),
        settings=plan_settings(plan) | _units(shown["how"]),
        notes=(_FORGOTTEN,) * bool(found["drifted"]),
    )
    facts = Deployment(
        product=_product(plan),
        mechanism=f"randomized replies (design {plan.design['name']})",
        guarantee=plan.guarantee,
        records=shown["people"],
        domain=_domain(plan),
        computed=f"{_COMPUTED} {verdict['told']}".strip(),
    )
    return Report.of(facts, contents, title=str(shown["title"]))


def _product(plan: StudyPlan) -> str:
    rows = "curves" if plan.encoder.basis.functional else "rows of numbers"
    if plan.target_range is not None:
        return f"a rule that predicts a number from {rows}"
    return f"a rule that assigns one of the labels {', '.join(map(str, plan.classes))} to {rows}"


def _tables(shown: Mapping[str, Any]) -> list[Table]:
    tables = []
    if shown["verdict"]["rows"]:
        judged = shown["found"]["error"]["people"]
        note = f"95 % intervals from {judged:,} evaluation participants' noisy answers."
        tables.append(errors(shown["plan"], shown["verdict"]["rows"], note))
    phases = [
        {"asked": one["name"], "answered": one["came"], "wanted": one["people"]}
        for one in shown["phases"]
    ]
    tables.append(Table.of(phases, title="Who was asked what"))
    if shown["members"]:
        headings = ("model", "accuracy", "low", "high", "evaluated by", "reversed", "weight")
        told = tuple(map(tuple, shown["members"]["rows"]))
        title = "First models, with 95 % intervals"
        tables.append(Table(headings=headings, rows=told, title=title))
    if shown["estimates"]:
        learnt, named = shown["estimates"]["rows"], tuple(shown["estimates"]["headings"])
        rows = tuple(map(tuple, learnt))
        note, title = shown["estimates"]["note"], "Estimates for each feature"
        tables.append(Table(headings=named, rows=rows, title=title, note=note))
    return tables


def _pictures(shown: Mapping[str, Any]) -> list[Picture]:
    pictures = []
    for one in shown["slopes"]:
        told = f"Slope function β(t): where it is above 0, larger x(t) speaks for {one['name']}."
        told += f" {one['note']}"
        pictures.append(Picture(caption=told, svg=drawn("curve", one["chart"])))
    if shown["members"]:
        told = "First models: accuracy with interval; reversed ones in another color; weights."
        pictures.append(Picture(caption=told, svg=drawn("members", shown["members"]["chart"])))
    if shown["growth"]:
        told = "People who answered, counted at the end of each phase (UTC)."
        pictures.append(Picture(caption=told, svg=drawn("curve", shown["growth"])))
    return pictures


def _domain(plan: StudyPlan) -> dict[str, Any]:
    if plan.target_range is not None:
        return {"target_range": plan.target_range}
    return {"classes": plan.classes}


def _units(how: StudySettings) -> dict[str, str]:
    units = {"unit of t": how.domain_unit, "unit of values": how.value_unit}
    units |= {"unit of the number": how.target_unit}
    return {name: unit for name, unit in units.items() if unit}
