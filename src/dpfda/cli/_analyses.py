"""A recorded analysis plan: a TOML file of commands about one data set and one ledger.

    title = "Sleep and activity"
    ledger = "budget.jsonl"
    limit = [3.0, 1e-6]

    [data]
    file = "activity.csv"
    people = 500

    [[analysis]]
    name = "mean activity"
    command = "release mean"
    epsilon = 1
    range = [0, 1000]

Each analysis is a call of `dpfda release`, `regress` or `classify`; its entries are options of the
command.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from dpfda import _validate
from dpfda.cli import classify, regress, release
from dpfda.curves.files import OPTIONS
from dpfda.errors import InvalidData, InvalidParameter, UnknownName

_COMMANDS = {
    "release": release.command,
    "regress": regress.command,
    "classify": classify.command,
}
_HEAD = {"title", "ledger", "limit", "results", "data", "record", "analysis"}
_DATA = {"file", "people", "unit", *OPTIONS} - {"label"}  # a label belongs to one analysis
_RECORD = ("curator", "data", "date", "purpose")
_OWN = {*_RECORD, "out", "report", "record", "plot", "csv", "json", "seed", "ledger",
        "ledger_limit", "analysis"}  # fmt: skip
"""Options that the plan determines for all of its analyses."""
_NAME = re.compile(r"\w[\w ._-]{0,60}")  # used as a file name


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One command of a plan.

    Attributes:
        name: name of the analysis in the ledger and of its result files.
        words: the command, such as ``("release", "mean")``.
        file: a file, folder, pattern or address.
        options: options of the command, by name.
    """

    name: str
    words: tuple[str, ...]
    file: str
    options: Mapping[str, Any]

    @property
    def command(self) -> click.Command:
        """The command of click that runs it."""
        return _COMMANDS[self.words[0]]

    @property
    def stem(self) -> str:
        """The file name of its results, without suffix."""
        return self.name.replace(" ", "-")

    def arguments(self, files: Sequence[str], **more: Any) -> list[str]:
        """The arguments after the name of the command; options that are None are left out."""
        known = _options(self.command)
        words: list[str] = []
        for name, value in {**self.options, **more}.items():
            if value is not None:
                words += _as_words(known[name], name, value)
        return [*words, "--", *self.words[1:], *files]


@dataclass(frozen=True, kw_only=True)
class AnalysisPlan:
    """A plan as its file states it.

    Attributes:
        path: path of the plan; other paths are relative to its folder.
        title: public name of the plan.
        ledger: file with the budget of the data set.
        limit: ε and δ of all releases together; None for an existing ledger.
        results: folder of results.
        people: how many people the data are about, for the rehearsal.
        record: facts for a deployment record.
        analyses: the analyses, in order.
        code: short hash of the content of the file, without its comments.
    """

    path: Path
    title: str
    ledger: Path
    limit: tuple[float, float] | None
    results: Path
    people: int
    record: Mapping[str, str]
    analyses: tuple[Analysis, ...]
    code: str

    @classmethod
    def read(cls, path: Path) -> AnalysisPlan:
        """Read and check the file."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, OSError) as error:
            raise InvalidData(path.name, "a TOML file", str(error)) from None
        _known("entry of the plan", content, _HEAD)
        data, record = _table(content, "data"), _table(content, "record")
        _known("entry of [data]", data, _DATA)
        _known("entry of [record]", record, _RECORD)
        told = {name: str(value) for name, value in record.items()}
        people = _validate.whole("people", data.pop("people", None), least=2)
        analyses = content.get("analysis")
        if not isinstance(analyses, list) or not analyses:
            raise InvalidParameter("analysis", "given: one table [[analysis]] or more", None)
        found = tuple(_analysis(one, data, path.parent) for one in analyses)
        stems = [one.stem.lower() for one in found]
        if len({*stems, "index"}) <= len(stems):
            rule = "different for each analysis, and not index: it names their results"
            raise InvalidParameter("name", rule, [one.name for one in found])
        return cls(
            path=path,
            title=_text(content, "title", path.stem),
            ledger=path.parent / _text(content, "ledger", None),
            limit=_limit(content.get("limit")),
            results=path.parent / _text(content, "results", f"{path.stem}-results"),
            people=people,
            record=told,
            analyses=found,
            code=hashlib.blake2b(_canonical(content).encode(), digest_size=4).hexdigest(),
        )

    @property
    def label_start(self) -> str:
        """The start of the labels of all its analyses in the ledger; a changed plan has another."""
        return f"{self.title.replace(':', ' ')} {self.code}, "

    def label(self, analysis: Analysis) -> str:
        """The label of an analysis in the ledger."""
        return f"{self.label_start}{analysis.name}"

    def at(self, other: AnalysisPlan) -> AnalysisPlan:
        """This plan with the ledger and the folder of results of another plan."""
        return replace(self, ledger=other.ledger, results=other.results)


def _analysis(given: object, shared: Mapping[str, Any], folder: Path) -> Analysis:
    """One analysis of the plan, completed by the entries of [data] that its command accepts."""
    if not isinstance(given, dict):
        raise InvalidParameter("analysis", "a table [[analysis]]", given)
    own = {name.replace("-", "_"): value for name, value in given.items()}
    name = own.pop("name", None)
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        rule = "given: letters, digits, spaces, '.', '_' and '-', 61 at most, with a letter first"
        raise InvalidParameter("name of an analysis", rule, name)
    words = tuple(str(own.pop("command", "")).split())
    if not words or words[0] not in _COMMANDS or len(words) != 1 + (words[0] == "release"):
        rule = "like 'release mean', 'regress' or 'classify'"
        raise InvalidParameter(f"command of {name!r}", rule, " ".join(words))
    known = _options(_COMMANDS[words[0]])
    taken = sorted(set(own) & _OWN)
    if taken:
        rule = "left out: the plan has one ledger and one folder of results for all analyses"
        raise InvalidParameter(f"{taken[0]} of {name!r}", rule, own[taken[0]])
    options = {key: value for key, value in shared.items() if key in known and key not in own}
    file = own.pop("file", options.pop("file", shared.get("file")))
    if not isinstance(file, str) or not file:
        raise InvalidParameter("file", "given in [data], or in each analysis", file)
    _known(f"option of {words[0]}", own, set(known) - _OWN)
    place = file if "://" in file else str(folder / file)
    return Analysis(name=name, words=words, file=place, options=options | own)


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by the names that users know, with '_' for '-'."""
    return {
        flag.lstrip("-").replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
        for flag in option.opts
    }


def _as_words(option: click.Option, name: str, value: Any) -> list[str]:
    """An option and its value as on the command line."""
    flag = f"--{name.replace('_', '-')}"
    if option.is_flag:
        if not isinstance(value, bool):
            raise InvalidParameter(name, "true or false", value)
        return [flag] if value else option.secondary_opts[:1]
    if option.nargs > 1:
        if not isinstance(value, list | tuple) or len(value) != option.nargs:
            raise InvalidParameter(name, f"a list of {option.nargs} numbers", value)
        return [flag, *map(str, value)]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [flag, ",".join(value)]
    return [flag, json.dumps(value) if isinstance(value, list | dict) else str(value)]


def _table(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise InvalidParameter(name, f"a table [{name}]", found)
    return {key.replace("-", "_"): value for key, value in found.items()}


def _text(content: Mapping[str, Any], name: str, otherwise: str | None) -> str:
    found = content.get(name, otherwise)
    if not isinstance(found, str) or not found:
        raise InvalidParameter(name, "given: text", found)
    return found


def _limit(given: object) -> tuple[float, float] | None:
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != 2:
        raise InvalidParameter("limit", "a list of ε and δ, like [3.0, 1e-6]", given)
    return _validate.positive("limit", given[0]), _validate.delta("limit", given[1])


def _known(what: str, given: Mapping[str, object], known: Sequence[str] | set[str]) -> None:
    for name in given:
        if name not in known:
            raise UnknownName(what, name, known)


def _canonical(content: object) -> str:
    """A text that does not depend on comments and the order of entries."""
    return json.dumps(content, sort_keys=True, default=str)
