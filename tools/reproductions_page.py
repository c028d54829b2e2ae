"""The pages of `reproductions.py`: an overview, and the results of each paper on its own page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dpfda.report.contents import show
from dpfda_bench.measured import PAPERS
from dpfda_bench.reproductions._p001 import READINGS

READINGS_TEXT = """\
## Readings

The text leaves three settings of learners open, and no one setting gives every statement. *slip*:
the coefficients for standardized features are applied to raw ones. *line*: a roughness penalty so
large that the slope function is a line; *ridge*: weight 0.01. All were chosen after the text was
known."""
BASELINES = {
    "majority class": "majority class",
    "majority": "majority class",
    "trivial": "trivial predictor",
    "non-private": "non-private",
    "not private": "non-private",
}
MOST_ROWS = 60  # of a table on the page; longer ones are in the JSON file

HEAD = """\
# Reproductions

Every table and figure of [the papers](../corrections.md) that dpfda builds on was computed again
and compared with the printed values. *As published* is the printed method, with its true
guarantee. *Corrected* is the same method without [its mistakes](../corrections.md). *Default* or
*sound* is the default of this package. Every error is shown next to two baselines: the majority
class (or the mean) and a fair non-private result.
"""
PAPER = """\
# {paper}: {title}

Results for the tables and figures of this paper. [The overview](index.md) explains the versions
and shows all verdicts.
"""
TAIL = """\
## How it was made

`make reproductions` wrote these pages. It runs `dpfda reproduce NAME --json` for every name of
`dpfda reproduce --list`, with {settings}. The results are in
[reproductions.json](reproductions.json), rounded to four digits. [Data](../../reference/data.md)
describes the sources of the data sets.
"""


_STANDARD = "DWD has the ridge of the package and the SVM is fitted to standardized features."
_AUTHORS = "The parameters are those of the authors' public code; before, they were guessed."
_RIVALS = (
    "Objectives are minimized in the box of the authors' public code, noisy gradients take the "
    "1000 steps that the text names, and wins are counted for each set of rivals."
)
REVISED = {
    "001-figure-3": ("differs", _STANDARD),
    "001-figure-a1": (
        "differs",
        _STANDARD + " Others count as not scattered if they span less than half of what CG spans, "
        "which was 30 points: the SVM now spans 30.",
    ),
    "001-figure-a2": ("differs", _STANDARD),
    "001-table-2": ("differs", "One of 48 errors may miss its three standard errors by chance."),
    "002-figure-1": ("differs", _RIVALS),
    "002-figure-2": ("differs", _RIVALS),
    "002-figure-3": ("differs", _RIVALS),
    "002-figure-4": ("differs", _RIVALS),
    "002-figure-5": ("agrees", "The panels of twitter and kdd were added."),
    "002-figure-a3": ("differs", "The data are drawn as in the authors' code. " + _RIVALS),
    "003-figure-1": ("differs", _AUTHORS),
    "003-figure-2": ("differs", _AUTHORS),
    "003-figure-5": ("differs", _AUTHORS),
    "003-figure-6": ("differs", _AUTHORS + " Figures 7 to 9 have entries of their own."),
    "003-figure-10": ("differs", "The figure shows single draws, and the text claims nothing."),
    "003-table-2": ("differs", _AUTHORS),
}
"""Verdicts before readings were compared with public programs of the authors, and what changed."""
REVISIONS = """\
## Verdicts that were read again

Before, 15 of 43 entries agreed, 23 differed and 5 were not comparable. Then settings that the
papers leave open were compared with public programs of their authors, and rules with what chance
allows."""


def pages(entries: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, str]:
    """The text of every page, by file name: an overview and one page for each paper.

    Args:
        entries: the results of the runs, by name.
        titles: the title of every reproduction that exists.
    """
    overview = [HEAD, "## At a glance", _count(entries, titles), _glance(entries, titles)]
    overview += [_revisions(entries)]
    papers = {}
    for paper, title in PAPERS.items():
        names = [name for name in titles if name.startswith(paper)]
        parts = [PAPER.format(paper=paper, title=title), _elsewhere(paper, entries)]
        parts += [_readings()] * (paper == "001")
        parts += [_entry(name, titles[name], entries.get(name)) for name in names]
        if names or parts[1]:
            papers[f"{paper}.md"] = _joined(parts)
    listed = [f"* [{paper}]({paper}.md): {PAPERS[paper]}" for paper in map(_paper, papers)]
    overview += ["## Papers", "\n".join(listed), TAIL.format(settings=_settings(entries))]
    return {"index.md": _joined(overview), **papers}


def _revisions(entries: Mapping[str, Any]) -> str:
    """What entries were found to be before, what they are now, and why."""
    rows = [
        [_link(name), before, _verdict(entries.get(name)), text(why)]
        for name, (before, why) in REVISED.items()
        if name in entries
    ]
    return f"{REVISIONS}\n\n{table(['entry', 'before', 'now', 'reason'], rows)}" if rows else ""


def _readings() -> str:
    """What 001 leaves open, entry by entry."""
    rows = [
        [_link(name), one.svm, one.dwd, str(one.steps), text(one.agreement)]
        for name, one in READINGS.items()
    ]
    head = ["entry", "SVM features", "DWD", "CG steps", "what comes out so"]
    return f"{READINGS_TEXT}\n\n{table(head, rows)}"


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _paper(name: str) -> str:
    """The paper of an entry or of a page."""
    return name[:3]


def _link(name: str) -> str:
    """A link to an entry."""
    return f"[{name}]({_paper(name)}.md#{name})"


def _elsewhere(paper: str, entries: Mapping[str, Any]) -> str:
    """Links to tables and figures of this paper that entries of other papers cover."""
    held = {
        other: name
        for name, entry in entries.items()
        for other in entry["covers"]
        if other.startswith(paper) and not name.startswith(paper)
    }
    links = [
        f"{other} ([{name}]({_paper(name)}.md#{name}))" for other, name in sorted(held.items())
    ]
    return f"Repeated by a later paper and shown there: {', '.join(links)}." if links else ""


def _settings(entries: Mapping[str, Any]) -> str:
    quick = sum(not entry["full"] for entry in entries.values())
    versions = sorted({tuple(entry["machine"].values()) for entry in entries.values()})
    told = " and ".join(f"Python {python} and numpy {numpy}" for python, numpy in versions)
    full = "the replications that each entry names in its notes"
    if quick:
        full += f" ({quick} of them for a quick look only, and marked so)"
    return f"{full}, {told}" if told else full


def _count(entries: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    counts = Counter(_verdict(entries.get(name)) for name in titles)
    several = {"agrees": "agree", "differs": "differ"}
    numbers = ", ".join(
        f"{n} {several.get(word, word) if n > 1 else word}" for word, n in counts.most_common()
    )
    return f"{len(titles)} entries: {numbers}."


def _verdict(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return "not run"
    return str(entry["verdict"])


def _glance(entries: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    rows = []
    for name, title in titles.items():
        entry = entries.get(name)
        also = "".join(f", {other}" for other in entry["covers"]) if entry else ""
        why = entry["why"] if entry else "–"
        cells = [
            f"[{name}]({_paper(name)}.md#{name}){also}",
            text(title),
            f"**{_verdict(entry)}**",
            text(why),
        ]
        rows.append(cells)
    return table(["entry", "what", "verdict", "why"], rows)


def _entry(name: str, title: str, entry: Mapping[str, Any] | None) -> str:
    parts = [f"## {name}", f"{title}."]
    if entry is None:
        parts.append(
            f"**Not run** since it was added or changed: `dpfda reproduce {name}` runs it."
        )
        return "\n\n".join(parts)
    if entry["covers"]:
        parts.append(f"Also covers: {', '.join(entry['covers'])}.")
    parts.append(f"**{_verdict(entry).capitalize()}.** {text(entry['why'])}")
    parts.append(f"*Reading.* {text(entry['reading'])}")
    if entry["picture"]:
        picture = f"![{title.replace('[', '(').replace(']', ')')}]({name}.png)"
        parts.append(f"[{picture}]({name}.png)")
    beside = _beside(entry)
    if beside:
        parts.append(table(["beside it", ""], [[text(cell) for cell in row] for row in beside]))
    if entry["figures"]:
        goals = entry["goals"]
        numbers = [[f"`{k}`", show(v), goals.get(k, "–")] for k, v in entry["figures"].items()]
        parts.append(_folded("Figures", table(["figure", "measured", "goal"], numbers)))
    rows = [[text(show(cell)) for cell in row] for row in entry["rows"]]
    if rows and len(rows) <= MOST_ROWS:
        whole = table([text(name) for name in entry["columns"]], rows)
        parts.append(_folded(f"The table: {len(rows)} rows", whole, shown=not entry["picture"]))
    elif rows:
        parts.append(f"The {len(rows)} rows are in [reproductions.json](reproductions.json).")
    if entry["notes"]:
        parts.append(_folded("Notes", "\n".join(f"* {text(note)}" for note in entry["notes"])))
    return "\n\n".join(parts)


def _beside(entry: Mapping[str, Any]) -> list[list[str]]:
    """The true guarantee, and what everything is to be compared with."""
    rows = [["claimed guarantee", entry["claimed"]]]
    for version, guarantee in entry["guarantees"].items():
        rows.append([f"true guarantee, {version}", guarantee])
    for name, values in _baselines(entry).items():
        low, high = show(min(values)), show(max(values))
        rows.append([name, low if low == high else f"{low} to {high}"])
    if entry["needs"]:
        rows.append(["data", ", ".join(entry["needs"])])
    if "commit" in entry:  # older results do not say
        times = entry["replications"]
        run = "nothing is repeated" if times is None else f"up to {times} replications"
        took = f"{show(entry['took_seconds'])} seconds beside other work"
        if "core_seconds" in entry:
            took = f"{show(entry['core_seconds'])} seconds of a core"
        rows.append(["run", f"{run}, {took}, commit {entry['commit']}"])
    return rows


def _baselines(entry: Mapping[str, Any]) -> dict[str, list[float]]:
    """Columns of their own, or rows whose method is one; for each data set."""
    columns, found = entry["columns"], dict[str, list[float]]()
    for row in entry["rows"]:
        cells = dict(zip(columns, row, strict=True))
        named = {key: value for key, value in cells.items() if key in BASELINES}
        method = cells.get("method")
        if method in BASELINES:
            numbers = [value for value in row if isinstance(value, (int, float))]
            named[method] = numbers[-1]  # scores come last
        for key, value in named.items():
            if isinstance(value, (int, float)):
                place = f", {cells['data']}" if "data" in cells else ""
                found.setdefault(BASELINES[key] + place, []).append(value)
    return found


def _folded(title: str, inside: str, *, shown: bool = False) -> str:
    mark = "???+" if shown else "???"
    indented = "\n".join(f"    {line}" if line else "" for line in inside.splitlines())
    return f'{mark} note "{title}"\n\n{indented}'


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown, of cells that are Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(value: str) -> str:
    """Markdown that shows it as it is; what stands between backquotes stays code."""
    value = value.replace("|", "\\|").replace("\n", " ")
    parts = value.split("`")
    plain = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    parts[::2] = plain if len(parts) % 2 else parts[::2]
    return "`".join(parts)
