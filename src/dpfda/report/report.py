"""`Report`: a result with its guarantee in plain words, as one HTML file.

The file has a light and a dark style, needs no other file, and is readable on a phone.
"""

from __future__ import annotations

import base64
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpfda._version import __version__
from dpfda.errors import MissingExtra
from dpfda.privacy.deployment import Deployment, to_yaml
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger
from dpfda.report.contents import Contents, Picture, Table, show

_NEARLY_SURE = 0.99  # probability of a right guess from which a guarantee means almost nothing
_LARGEST = 700.0  # largest ε for which e^ε is a finite float

SIMULATED = (
    "This is a simulation: its noise was drawn from a seed, so whoever knows the seed can take it "
    "off again. It protects nobody, and is not to be published as if it did."
)
_TRUST = {
    "local": "Every {unit} added the noise before anything left their device: nobody else has to "
    "be trusted with it.",
    "central": "Whoever holds the data added the noise, and has to be trusted with them; readers "
    "of this page need not be.",
    "decentralized": "Each site holds its own data and added a share of the noise; no site and no "
    "coordinator saw the data of another.",
}


def guarantee_in_words(guarantee: Guarantee) -> list[str]:
    """A guarantee for readers who do not know ε.

    Examples:
        >>> for sentence in guarantee_in_words(Guarantee(epsilon=1.0)):
        ...     print(sentence)
        ε = 1 for each person: if all data of one person were replaced, nothing on this page would \
become more or less probable than by a factor of e^ε = 2.72.
        Somebody who knows everything else and guesses which of two cases holds for one person is \
right in 73.2 % of cases at most with this page, and in 50 % without it.
        Whoever holds the data added the noise, and has to be trusted with them; readers of this \
page need not be.
    """
    unit = guarantee.unit
    small = f" and δ = {guarantee.delta:g}" if guarantee.delta else ""
    more = f", and by δ = {guarantee.delta:g} on top" if guarantee.delta else ""
    factor = f"{math.exp(min(guarantee.epsilon, _LARGEST)):.3g}"
    right = guessing_bound(guarantee)
    sentences = [
        f"ε = {guarantee.epsilon:g}{small} for each {unit}: if all data of one {unit} were "
        "replaced, nothing on this page would become more or less probable than by a factor of "
        f"e^ε = {factor}{more}.",
        f"Somebody who knows everything else and guesses which of two cases holds for one {unit} "
        f"is right in {percent_at_most(right)} of cases at most with this page, and in 50 % "
        "without it.",
    ]
    if right >= _NEARLY_SURE:
        sentences.append("So large an ε promises next to nothing.")
    sentences.append(_TRUST[guarantee.model].format(unit=unit))
    if guarantee.assumptions:
        sentences.append(f"This holds provided that {'; that '.join(guarantee.assumptions)}.")
    return sentences


def guessing_bound(guarantee: Guarantee) -> float:
    """Upper bound on the probability of guessing which of two equally likely cases holds.

    It is (1 + TV)/2, with total variation TV ≤ (e^ε - 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath
    2015).
    """
    odds = math.exp(-guarantee.epsilon)
    return (1 + guarantee.delta * odds) / (1 + odds)


def percent_at_most(right: float) -> str:
    """A probability as a percentage, rounded up, but never to "100 %".

    Examples:
        >>> [percent_at_most(right) for right in (0.7310585, 0.5, 0.99999, 1.0)]
        ['73.2 %', '50 %', 'nearly 100 %', '100 %']
    """
    up = math.ceil(1000 * right) / 10
    return "nearly 100 %" if up == 100 and right < 1 else f"{up:g} %"


def budget_in_words(ledger: BaseLedger) -> str:
    """The spent share of a budget, and the number of releases."""
    many = len(ledger.releases)
    return (
        f"All releases of these data so far ({many}, with this one) have spent {ledger.spent} of "
        f"{ledger.limit}, which they may never exceed together."
    )


_WIDE = 5.5  # inches from which a small screen scrolls instead of shrinking
# Control characters, marks that change the direction of writing, and lone surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def to_html(report: Report) -> str:
    """The report as an HTML page; all text is escaped."""
    shown = report.contents
    parts = [
        _section("In words", _said(shown.doubts, "doubt") + _said(shown.verdict, "verdict")),
        _section("What people are promised", _paragraphs(report.promise)),
        _section(
            "Results", "".join(map(_table, shown.tables)) + "".join(map(_figure, shown.pictures))
        ),
        _section("How to read this", _list(shown.notes)),
        _section("Settings", _pairs(shown.settings)),
        _section("Method, to paste into a paper", _method(report)),
        _section("Deployment record", _record(report)),
        _section("Versions", _pairs(report.versions)),
    ]
    title = text(report.title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )


def fragment(report: Report) -> str:
    """The report for a notebook, in its colors; long parts are collapsed."""
    shown = report.contents
    folded = {
        "What people are promised": _paragraphs(report.promise),
        "How to read this": _list(shown.notes),
        "Settings": _pairs(shown.settings),
        "Method, to paste into a paper": _method(report),
    }
    parts = [
        f"<p><b>{text(report.title)}</b></p>\n",
        _said(shown.doubts, "doubt") + _said(shown.verdict, "verdict"),
        *map(_table, shown.tables),
        *map(_figure, shown.pictures),
        *(
            f"<details><summary>{heading}</summary>\n{inside}</details>\n"
            for heading, inside in folded.items()
            if inside
        ),
    ]
    return f'<div class="dpfda">\n{"".join(parts)}</div>\n'


def text(value: object) -> str:
    r"""Text that is safe in a page, escaped and without control characters.

    Examples:
        >>> text('<b onload="x">'), text("a\u202eb\x00")
        ('&lt;b onload=&quot;x&quot;&gt;', 'a�b�')
    """
    return escape(_UNSEEN.sub("\ufffd", show(value)))


def _section(heading: str, inside: str) -> str:
    return f"<section>\n<h2>{heading}</h2>\n{inside}</section>\n" if inside else ""


def _said(sentences: Sequence[str], kind: str) -> str:
    return "".join(f'<p class="{kind}">{text(one)}</p>\n' for one in sentences)


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{text(one)}</p>\n" for one in sentences)


def _list(items: Sequence[str], kind: str = "ul") -> str:
    inside = "".join(f"<li>{text(one)}</li>\n" for one in items)
    return f"<{kind}>\n{inside}</{kind}>\n" if items else ""


def _pairs(facts: Mapping[str, Any]) -> str:
    named = ((str(name).replace("_", " "), value) for name, value in facts.items())
    inside = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>\n" for name, value in named)
    return f"<dl>\n{inside}</dl>\n" if inside else ""


def _table(table: Table) -> str:
    """A table with numbers aligned right; narrow screens show each row as a card."""
    if not table.rows:
        return ""
    sides = [' class="number"' * table.of_numbers(place) for place in range(len(table.headings))]
    columns = list(zip(table.headings, sides, strict=True))
    head = "".join(f'<th scope="col"{side}>{text(name)}</th>' for name, side in columns)
    rows = []
    for row in table.rows:
        cells = zip(columns, row, strict=True)
        inside = (
            f'<td data-name="{text(name)}"{side}>{text(cell)}</td>' for (name, side), cell in cells
        )
        rows.append(f"<tr>{''.join(inside)}</tr>\n")
    caption = f"<caption>{text(table.title)}</caption>\n" if table.title else ""
    note = f'<p class="soft">{text(table.note)}</p>\n' if table.note else ""
    return (
        f'<div class="table"><table>\n{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody>\n</table></div>\n{note}"
    )


def _figure(picture: Picture) -> str:
    caption = f"<figcaption>{text(picture.caption)}</figcaption>"
    if picture.svg:
        return f"<figure>{picture.svg}{caption}</figure>\n"
    try:
        light, dark = (picture.drawn(dark=dark) for dark in (False, True))
    except MissingExtra as error:
        return f'<p class="soft">There is no picture here: {text(error)}.</p>\n'
    kind = ' class="wide"' * (light.inches > _WIDE)
    return (
        f"<figure{kind}><picture>"
        f'<source srcset="{_inline(dark.png)}" media="(prefers-color-scheme: dark)">'
        f'<img src="{_inline(light.png)}" alt="{text(picture.caption)}"></picture>'
        f"{caption}</figure>\n"
    )


def _inline(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _method(report: Report) -> str:
    if not report.method:
        return ""
    cited = f"<p>Sources</p>\n{_list(report.sources, 'ol')}" if report.sources else ""
    return f'<blockquote id="method"><p>{text(report.method)}</p></blockquote>\n{cited}'


def _record(report: Report) -> str:
    if not report.record:
        return ""
    missing = f'<p class="soft">{text(report.about_record)}</p>\n' if report.about_record else ""
    lines = text(report.record)
    return (
        '<p class="soft">In the form of public registries of deployments (YAML).</p>\n'
        f'{missing}<pre id="deployment-record"><code>{lines}</code></pre>\n'
    )


@cache
def _style() -> str:
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


_NOBODY = (
    "No budget was spent for this page: it is about public or made-up data, and promises nothing "
    "to anybody."
)
_DRAFT = (
    "Curator, data and day of publication are missing: only who holds the data knows them. A "
    "registry asks for them."
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything public about a result, to be stored, printed or sent.

    Attributes:
        title: the heading.
        contents: the contents of this kind of result.
        promise: the guarantee, in plain words.
        method: a paragraph to paste into a paper.
        sources: references of the paragraph.
        record: an entry for a public registry of deployments (YAML); empty if no private data were
            released.
        about_record: which facts are missing in it.
        versions: versions of the software.

    Examples:
        >>> from dpfda.privacy.guarantee import Guarantee
        >>> facts = Deployment(
        ...     product="the mean of curves", mechanism="adaptive", domain={},
        ...     guarantee=Guarantee(epsilon=1.0),
        ... )
        >>> page = Report.of(facts, Contents(), title="Load <b>").html()
        >>> "Load &lt;b&gt;" in page and "epsilon: 1.0" in page and "://" not in page
        True
    """

    title: str
    contents: Contents
    promise: tuple[str, ...]
    method: str
    sources: tuple[str, ...] = ()
    record: str = ""
    about_record: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        facts: Deployment,
        contents: Contents,
        *,
        ledger: BaseLedger | None = None,
        title: str = "",
        **record_fields: object,
    ) -> Self:
        """The report of a release.

        Args:
            facts: public facts about the release.
            contents: contents of the report.
            title: heading; by default the released product.
            ledger: ledger of the data set, to state how much is spent.
            record_fields: facts for the record: `curator`, `data`, `date`, `purpose`, `contact`.
        """
        record_fields = {name: value for name, value in record_fields.items() if value is not None}
        needed: dict[str, Any] = dict.fromkeys(("curator", "data", "date"))
        record = facts.draft(ledger=ledger)
        if record_fields:
            record = facts.record(**(needed | record_fields), ledger=ledger)
        doubts = contents.doubts
        if facts.guarantee.sampler == "simulation":
            doubts = (SIMULATED, *doubts)
        promised = guarantee_in_words(facts.guarantee)
        if ledger is not None:
            promised.append(budget_in_words(ledger))
        return cls(
            title=title or facts.product[:1].upper() + facts.product[1:],
            contents=Contents(**(vars(contents) | {"doubts": doubts})),
            promise=tuple(promised),
            method=facts.method(),
            sources=facts.sources,
            record=to_yaml(record),
            about_record="" if record_fields else _DRAFT,
            versions=software(),
        )

    @classmethod
    def measured(
        cls, contents: Contents, *, title: str, method: str, sources: tuple[str, ...] = (),
        machine: Mapping[str, Any] | None = None, promised: tuple[str, ...] = (_NOBODY,),
    ) -> Self:  # fmt: skip
        """The report of a benchmark, reproduction or forecast, which releases no private data."""
        return cls(
            title=title,
            contents=contents,
            promise=promised,
            method=method,
            sources=sources,
            versions=software() | dict(machine or {}),
        )

    def html(self) -> str:
        """The report as an HTML page."""
        return to_html(self)

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        return fragment(self)

    def write(self, path: str | Path) -> Path:
        """Write the page; create its folder if needed."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.html(), encoding="utf-8")
        return place


def software() -> dict[str, str]:
    """The versions of the software that computed a result."""
    return {
        "dpfda": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
