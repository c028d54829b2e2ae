"""``dpfda run``: a recorded analysis plan, first on made-up data, then once on the real data.

The ledger is the memory of what was run: its entries name plan and analysis, and an analysis with
an entry is never computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dpfda.cli._analyses import Analysis, AnalysisPlan
from dpfda.cli._group import Complaint, dpfda, one_line
from dpfda.cli._made_up import made_up_files
from dpfda.cli._output import check_writable, print_document
from dpfda.cli._reading import read_ranges
from dpfda.curves.files import Opened, tables_at
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.planning.releases import Summary, forecast_release
from dpfda.privacy.durable import keep, locked
from dpfda.privacy.ledger import Entry
from dpfda.privacy.ledger_file import FileLedger, locked_mark
from dpfda.report import Report, documents
from dpfda.report.contents import Contents, Table
from dpfda.report.report import budget_in_words
from dpfda.report.terminal import rich_table

_FORECASTS: dict[str, Summary] = {
    "mean": "mean",
    "groups": "groups",
    "fpca": "components",
    "density": "density",
    "regress": "regression",
}
_REPEATS = 10  # simulated releases of a forecast
_FEWEST = 100  # people of a forecast
_SEED = 0  # of the rehearsal
_PART = 1 << 20  # bytes that are read at once


@click.command(name="run")
@click.argument(
    "path", metavar="PLAN", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--confirm", metavar="CODE",
    help="Run for real. CODE is printed by the rehearsal of this plan.")  # fmt: skip
def command(path: Path, confirm: str | None) -> None:
    """Rehearse a recorded analysis plan, and run it once for real.

    PLAN is a TOML file that names a data file, a ledger and analyses (`dpfda release`, `regress`
    and `classify` with their options). Without --confirm the analyses are run on rows made up from
    public ranges, and the command states what they will spend; of the data file only its format and
    the names of its columns are used. With --confirm they are run on the data, against one ledger,
    exactly once. Later calls print the stored results and spend nothing.
    """
    plan = AnalysisPlan.read(path)
    if confirm is None and _earlier(plan) is None:
        _rehearse(plan)
        return
    if confirm not in (None, plan.code):
        rule = f"the code of this plan, which its rehearsal prints (dpfda run {path})"
        raise InvalidParameter("--confirm", rule, confirm)
    refusals: dict[str, str] = {}
    if confirm is not None:
        with _alone(plan):
            stored, refusals = _run(plan)
    else:
        _check_unchanged(plan)
        stored = _with_result(plan)
    for one in stored:
        click.echo(f"\n{one.name} (stored; nothing was spent now)")
        print_document(documents.load(_result(plan, one)))
    pending = _pending(plan)
    if pending and confirm is None:
        names = ", ".join(one.name for one in pending)
        click.echo(f"not run yet: {names} (dpfda run {path} --confirm {plan.code})", err=True)
    click.echo(f"results are in {plan.results}", err=True)
    if lacking := [*refusals.values(), *_interrupted(plan)]:
        done = f"{len(_with_result(plan))} of {len(plan.analyses)} analyses have results"
        raise Complaint(f"{'; '.join(lacking)} ({done} in {plan.results})")


def _rehearse(plan: AnalysisPlan) -> None:
    """Run all analyses on made-up data; print what they will spend, and the expected errors."""
    console = Console(markup=False)
    rows, left = _rehearsed(plan, _pending(plan))
    heading = ("analysis", "command", "guarantee", "spent after it")
    console.print(rich_table(Table(headings=heading, rows=tuple(rows), title=plan.title)))
    console.print(f"left in {plan.ledger.name} after all of them: {left}", markup=False)
    for one in plan.analyses:
        if said := _forecast(one, plan.people):
            console.print(f"\n{one.name}: {' '.join(said)}", markup=False)
    click.echo(
        f"\nThis was a rehearsal with {plan.people:,} made-up people. No row of the data was used, "
        "and nothing was spent. To run the plan on the data, once:\n"
        f"  dpfda run {plan.path} --confirm {plan.code}"
    )


def _rehearsed(
    plan: AnalysisPlan, analyses: Sequence[Analysis]
) -> tuple[list[tuple[str, ...]], str]:
    """Run analyses on made-up data, charged to a copy of the ledger.

    Returns:
        Name, command, guarantee and the spent budget of each, and the budget that is left.
    """
    found: list[tuple[str, ...]] = []
    left = ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied, out = folder / "ledger.jsonl", folder / "result.json"
        if plan.ledger.exists():
            with locked_mark(plan.ledger):
                for end in ("", ".mark"):
                    shutil.copyfile(f"{plan.ledger}{end}", f"{copied}{end}")
        elif plan.limit is None:
            rule = f"given, like [3.0, 1e-6]: {plan.ledger.name} does not exist"
            raise InvalidParameter("limit", rule, None)
        for one in analyses:
            with _named(one), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                options = _options(one)
                files, how = made_up_files(
                    folder, one.words[0], options, people=plan.people, seed=_SEED
                )
                _call(plan, one, list(map(str, files)), copied, seed=_SEED, out=out, **how)
            ledger = FileLedger(copied)
            left = ledger.left()
            guarantee = documents.load(out).guarantee
            delta = f", δ = {guarantee.delta:g}" if guarantee.delta else ""
            promised = f"ε = {guarantee.epsilon:g}{delta}"
            found.append((one.name, " ".join(one.words), promised, str(ledger.spent)))
    return found, left


def _run(plan: AnalysisPlan) -> tuple[list[Analysis], dict[str, str]]:
    """Run for real what was not run before; a refusal of one analysis does not stop the others.

    Returns:
        What has a result of an earlier run, and refusals by the name of their analysis.
    """
    _check_unchanged(plan)
    stored, pending, refusals = _with_result(plan), _pending(plan), dict[str, str]()
    if not pending:
        return stored, refusals
    check_writable("results", plan.results / "index.html")
    check_writable("ledger", plan.ledger)
    _rehearsed(plan, pending)  # what the plan or the budget does not allow is refused here
    if not _entries_of(plan):
        keep(_copy(plan), plan.path.read_bytes())
        _keep_fingerprint(plan)
    for one in pending:
        click.echo(f"\n{one.name}")
        words: dict[str, Any] = {"report": plan.results / f"{one.stem}.html"}
        if plan.record:
            words |= {"record": plan.results / f"{one.stem}.yaml", **plan.record}
        try:
            with _named(one):
                _call(plan, one, [one.file], plan.ledger, out=_result(plan, one), **words)
        except Complaint as error:
            state = "its budget is spent" if _entries_of(plan, one) else "it spent nothing"
            refusals[one.name] = f"{error.message} ({state})"
    _write_index(plan)
    return stored, refusals


def _call(
    plan: AnalysisPlan, one: Analysis, files: Sequence[str], ledger: Path, **more: Any
) -> None:
    """Run the command of an analysis, charged to a ledger."""
    if plan.limit is not None:
        more["ledger_limit"] = plan.limit
    words = one.arguments(files, ledger=ledger, analysis=plan.label(one), **more)
    dpfda.main([one.words[0], *words], prog_name="dpfda", standalone_mode=False)


def _options(one: Analysis) -> dict[str, Any]:
    """The options of an analysis as its command reads them."""
    context = one.command.make_context(one.words[0], one.arguments([one.file]))
    return dict(context.params)


@contextmanager
def _named(one: Analysis) -> Iterator[None]:
    """Refusals inside name the analysis."""
    try:
        yield
    except click.UsageError as error:
        raise Complaint(f"{one.name}: {one_line(error, one.words[0]).message}") from error
    except click.ClickException as error:
        raise Complaint(f"{one.name}: {error.message}") from error
    except DpfdaError as error:
        raise Complaint(f"{one.name}: {error}") from error


def _forecast(one: Analysis, people: int) -> tuple[str, ...]:
    """The expected error in words, where `dpfda plan release` forecasts this analysis."""
    options, kind = _options(one), one.words[-1]
    value_range, known = options.get("value_range"), {}
    if kind in ("density", "regress") and options["feature_ranges"] is not None:
        ranges = read_ranges(options["feature_ranges"])
        columns = PublicColumns.of(ranges, width=1).columns
        known = {"features": len(columns)} if kind == "regress" else {}
        alone = (columns[0].low, columns[0].high) if len(columns) == 1 else None
        value_range = alone if kind == "density" else options["target_range"]
    elif kind == "regress":
        return ()
    usual = options.get("mechanism") in (None, "moments") and options.get("design") != "sparse"
    two = kind != "groups" or (options["classes"] or "").count(",") == 1
    if kind not in _FORECASTS or value_range is None or people < _FEWEST or not (usual and two):
        return ()
    how: dict[str, Any] = {"delta": options["delta"], "repeats": _REPEATS, **known}
    return forecast_release(
        _FORECASTS[kind], people, options["epsilon"], value_range=value_range, **how
    ).sentences


def _result(plan: AnalysisPlan, one: Analysis) -> Path:
    """The file with what an analysis released."""
    return plan.results / f"{one.stem}.json"


def _copy(plan: AnalysisPlan) -> Path:
    """The copy of the plan that was run, beside its results."""
    return plan.results / "plan.toml"


def _entries(ledger: FileLedger, plan: AnalysisPlan, one: Analysis | None = None) -> list[Entry]:
    """What an analysis, or the whole plan, has spent."""
    start = plan.label(one) + " / " if one is not None else plan.label_start
    return [entry for entry in ledger.entries if entry.label.startswith(start)]


def _entries_of(plan: AnalysisPlan, one: Analysis | None = None) -> list[Entry]:
    return _entries(FileLedger(plan.ledger), plan, one) if plan.ledger.exists() else []


def _with_result(plan: AnalysisPlan) -> list[Analysis]:
    return [one for one in plan.analyses if _result(plan, one).exists()]


def _pending(plan: AnalysisPlan) -> list[Analysis]:
    """The analyses that have neither a result nor a charge."""
    stored = _with_result(plan)
    return [one for one in plan.analyses if one not in stored and not _entries_of(plan, one)]


def _interrupted(plan: AnalysisPlan) -> list[str]:
    """What to do about each analysis that was charged and has no result; it is not run again."""
    if len(_pending(plan)) + len(_with_result(plan)) == len(plan.analyses):
        return []
    with _alone(plan):  # it may be running now, in another process
        stored = _with_result(plan)
        lacking = [(one, _entries_of(plan, one)) for one in plan.analyses if one not in stored]
    return [
        f"{one.name} was charged on {entries[0].when} and stored no result. The charge stands, so "
        f"it is not run again: if a message named another file for it, move that to "
        f"{_result(plan, one)}; otherwise write a new plan for it, with `results` of its own"
        for one, entries in lacking
        if entries
    ]


def _earlier(plan: AnalysisPlan) -> AnalysisPlan | None:
    """The plan that was run with this folder of results, if any of it was."""
    if not _copy(plan).exists():
        return None
    ran = AnalysisPlan.read(_copy(plan)).at(plan)
    stored = any(_result(ran, one).exists() for one in ran.analyses)
    return ran if stored or _entries_of(ran) else None


def _check_unchanged(plan: AnalysisPlan) -> None:
    """Refuse a plan or data that differ from those that were run."""
    ran = _earlier(plan)
    if ran is None:
        return
    if ran.code != plan.code:
        raise Complaint(
            f"{plan.path} has changed since it was run: {_copy(plan)} is the plan of the results "
            f"in {plan.results}. Put it back to read them, or write a plan for further analyses, "
            "with `results` of its own; the same ledger pays for both"
        )
    place = _fingerprint_file(plan)
    if not place.exists() or not _entries_of(plan):
        return
    stored = json.loads(place.read_bytes())
    try:
        found = _fingerprint(plan, bytes.fromhex(stored["salt"]))
    except OSError:  # data may be removed after the analyses: reading results needs none
        return
    if found != stored["digest"]:
        raise Complaint(
            f"the data of {plan.path} have changed since it was run: put the former file back, or "
            "write a plan for the new data, with `results` of its own; what was spent stays spent"
        )


def _fingerprint_file(plan: AnalysisPlan) -> Path:
    """A hash of private data is private: it stays beside the ledger, readable by its owner.

    Each plan has a file of its own, because several may run at once on one ledger.
    """
    return plan.ledger.with_name(f"{plan.ledger.name}.{plan.code}.data")


def _keep_fingerprint(plan: AnalysisPlan) -> None:
    salt = secrets.token_bytes(16)
    known = {"salt": salt.hex(), "digest": _fingerprint(plan, salt)}
    keep(_fingerprint_file(plan), json.dumps(known).encode())


def _fingerprint(plan: AnalysisPlan, salt: bytes) -> str:
    """A keyed hash of all files of the plan."""
    whole = hashlib.blake2b(key=salt)
    for place in sorted({one.file for one in plan.analyses}):
        for file in tables_at(place):
            assert not isinstance(file, Opened)  # which frames become, not places
            one = hashlib.blake2b(key=salt)
            with file.open("rb") as stream:
                while part := stream.read(_PART):
                    one.update(part)
            whole.update(one.digest())
    return whole.hexdigest()


@contextmanager
def _alone(plan: AnalysisPlan) -> Iterator[None]:
    """Shut out other runs of the plan; the second one then finds results."""
    plan.results.mkdir(exist_ok=True)
    descriptor = os.open(plan.results / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with locked(descriptor):
            yield
    finally:
        os.close(descriptor)


def _write_index(plan: AnalysisPlan) -> None:
    """A page of all analyses: guarantee, verdict and file of each, and the budget."""
    rows = []
    for one in plan.analyses:
        if not _result(plan, one).exists():
            spent = "charged" if _entries_of(plan, one) else "not charged"
            rows.append((one.name, " ".join(one.words), "", f"no result, {spent}", ""))
            continue
        loaded = documents.load(_result(plan, one))
        said = " ".join(loaded.verdict.sentences[:1])
        rows.append(
            (one.name, " ".join(one.words), str(loaded.guarantee), said, f"{one.stem}.html")
        )
    headings = ("analysis", "command", "guarantee", "finding", "report")
    table = Table(headings=headings, rows=tuple(rows))
    page = Report.measured(
        Contents(tables=(table,), settings={"plan": plan.code, "day": time.strftime("%Y-%m-%d")}),
        title=plan.title,
        method="",
        promised=(budget_in_words(FileLedger(plan.ledger)),),
    )
    page.write(plan.results / "index.html")
