"""A report: what was found, what it cost people, and what stands beside it in public."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpfda._version import __version__
from dpfda.privacy.deployment import Deployment, to_yaml
from dpfda.privacy.ledger import BaseLedger
from dpfda.report import promise
from dpfda.report.contents import Contents
from dpfda.report.page import to_html

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
    """Everything public of a result, ready to be kept, printed or sent.

    Attributes:
        title: the heading.
        contents: what this kind of result has to show.
        promise: the guarantee, in plain words.
        method: a paragraph to paste into a paper.
        sources: what it cites.
        record: an entry for a public registry of deployments (YAML); none where nothing of
            anybody was released.
        about_record: what is missing in it.
        versions: of what made it.

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
        title: str = "",
        ledger: BaseLedger | None = None,
        **told: Any,
    ) -> Self:
        """Of a release.

        Args:
            facts: what is public of it.
            contents: what it shows.
            title: by default what was released.
            ledger: the budget of the data, to say how much of it is gone.
            told: of the record: `curator`, `data`, `date`, `purpose`, `contact`.
        """
        told = {name: value for name, value in told.items() if value is not None}
        needed: dict[str, Any] = dict.fromkeys(("curator", "data", "date"))
        record = facts.draft(ledger=ledger)
        if told:
            record = facts.record(**(needed | told), ledger=ledger)
        doubts = contents.doubts
        if facts.guarantee.sampler == "simulation":
            doubts = (promise.SIMULATED, *doubts)
        promised = promise.in_words(facts.guarantee)
        if ledger is not None:
            promised.append(promise.budget_in_words(ledger))
        return cls(
            title=title or facts.product[:1].upper() + facts.product[1:],
            contents=Contents(**(vars(contents) | {"doubts": doubts})),
            promise=tuple(promised),
            method=facts.method(),
            sources=facts.sources,
            record=to_yaml(record),
            about_record="" if told else _DRAFT,
            versions=software(),
        )

    @classmethod
    def measured(
        cls, contents: Contents, *, title: str, method: str, sources: tuple[str, ...] = (),
        machine: Mapping[str, Any] | None = None, promised: tuple[str, ...] = (_NOBODY,),
    ) -> Self:  # fmt: skip
        """Of a benchmark, a reproduction or a forecast: nothing of anybody was released."""
        return cls(
            title=title,
            contents=contents,
            promise=promised,
            method=method,
            sources=sources,
            versions=software() | dict(machine or {}),
        )

    def html(self) -> str:
        """The page."""
        return to_html(self)

    def write(self, path: str | Path) -> Path:
        """Write the page; its folder is made if needed."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(self.html(), encoding="utf-8")
        return place


def software() -> dict[str, str]:
    """What made a result."""
    return {
        "dpfda": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
