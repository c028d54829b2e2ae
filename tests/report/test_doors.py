"""``--report`` of every command that releases or measures something."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from pages import MARKUP, checked, record

from dpfda.cli._group import dpfda as command_line
from dpfda.privacy.ledger_file import FileLedger
from dpfda.report import Picture
from dpfda.report.contents import Drawn, Outcome
from dpfda.report.report import SIMULATED
from dpfda_bench import catalog
from dpfda_bench.goals import at_least, at_most

TOLD = ("--curator", "A & B", "--data", MARKUP, "--date", "2026-01-31")
COLUMN = "<i>level</i>"


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(command_line, [str(part) for part in arguments])


@pytest.fixture(autouse=True)
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Picture, "drawn", lambda picture, *, dark=False: Drawn(b"", 4.0))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Curves, a label and a column of numbers."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    rng = np.random.default_rng(0)
    level = rng.normal(0, 0.4, 700)
    lines = [f"ill,{COLUMN},0,0.5,1"]
    for one in level:
        curve = ",".join(f"{value:.3f}" for value in one + rng.normal(0, 0.1, 3))
        lines.append(f"{'yes' if one > 0 else 'no'},{one:.3f},{curve}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


CURVES = ("--columns", "0,0.5,1")
DOORS: dict[str, tuple[Any, ...]] = {
    "mean": ("release", "mean", "FILE", "--range", -2, 2, *CURVES),
    "groups": ("release", "groups", "FILE", "--range", -2, 2, *CURVES, "--label", "ill",
        "--classes", "no,yes"),
    "fpca": ("release", "fpca", "FILE", "--range", -2, 2, *CURVES),
    "classify": ("classify", "FILE", "--range", -2, 2, *CURVES, "--label", "ill", "--classes",
        "no,yes"),
    "regress": ("regress", "FILE", "--target", "1", "--target-range", -2, 2,
        "--feature-ranges", f"{COLUMN}=-2:2"),
    "curves": ("regress", "FILE", "--target", COLUMN, "--target-range", -2, 2, "--range", -2, 2,
        *CURVES),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_a_command_reports_what_it_spent(door: str, file: Path, tmp_path: Path) -> None:
    page, out, budget = (tmp_path / name for name in ("r.html", "out.json", "budget"))
    asked = [file if part == "FILE" else part for part in DOORS[door]]
    spend = ("--epsilon", 0.8, "--ledger", budget)
    limit = ("--ledger-limit", 1, 1e-6)
    done = invoke(*asked, *spend, *limit, "--report", page, *TOLD, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert f"report written to {page}" in done.stderr
    seen = checked(page.read_text(encoding="utf-8"))
    found, ledger = record(seen), FileLedger(budget)
    spent = ledger.spent
    assert spent.epsilon == pytest.approx(0.8)
    assert spent.delta in (0.0, 1e-6)  # noise is pure where that is smaller, and says so
    assert (found["privacy"]["epsilon"], found["privacy"]["delta"]) == (0.8, spent.delta)
    released = json.loads(out.read_text(encoding="utf-8"))["guarantee"]
    assert (released["epsilon"], released["delta"]) == (0.8, spent.delta)
    assert f"(1, with this one) have spent {ledger.spent} of {ledger.limit}" in seen.words
    assert found["deployment"]["data"] == MARKUP
    assert SIMULATED not in seen.words
    assert found["implementation"]["other_releases"] == [one.label for one in ledger.entries]
    if door == "regress":
        assert COLUMN in seen.words
    again = tmp_path / "again.html"
    assert invoke("show", out, "--report", again).exit_code == 0
    kept = checked(again.read_text(encoding="utf-8"))
    assert record(kept)["privacy"] == found["privacy"]
    assert "Curator, data and day of publication are missing" in kept.words


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--record", "r.yaml"), "--curator must be given with --record: who holds the data"),
        (("--report", "r.html", "--data", "x"), "--curator must be given with --data"),
        (("--report", "r.html", *TOLD[:4]), "--date must be given with --curator: the day"),
        (("--purpose", "x"), "--purpose must be left out without --record or --report"),
        (("--report", "no/such/folder/r.html"), "--report must be a file in a folder"),
        (("--report", "one", "--out", "one"), "--report must be a file of its own"),
        (("--report", "one", "--record", "one", *TOLD), "--report must be a file of its own"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_spent(
    file: Path, tmp_path: Path, given: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    budget = ("--ledger", "budget", "--ledger-limit", 1, 0)
    done = invoke(
        "release", "mean", file, "--epsilon", 1, "--range", -2, 2, *CURVES, *budget, *given
    )
    assert done.exit_code == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_benchmarks_and_reproductions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"method": MARKUP, "error": 0.125, "published": None}]
    found = Outcome(rows=rows, figures={"speed": 3.0, "wait": 9.0}, notes=[MARKUP], plot=lambda: 0)
    goals = {"speed": at_least(20), "wait": at_most(10)}
    module = SimpleNamespace(GOALS=goals, TITLE="Table 9 <b>", run=lambda *given, **how: found)
    module.verdict = lambda outcome: SimpleNamespace(word="differs", why=MARKUP)
    module.GUARANTEES, module.NEEDS, module.SECONDS = {"as printed": "no ε at all"}, (), 1
    module.CLAIMED, module.READING = "ε", "As printed."
    monkeypatch.setattr(catalog, "_load", lambda *given: module)
    for command in (("bench", "noise"), ("reproduce", "003-table-2", "--quick")):
        page = tmp_path / f"{command[0]}.html"
        done = invoke(*command, "--report", page)
        assert done.exit_code == (command[0] == "bench"), done.output  # a goal is missed
        seen = checked(page.read_text(encoding="utf-8"))
        assert "speed is 3; its goal is at least 20." in seen.words
        assert "its goal is at most" not in seen.words
        assert "speed is 3; its goal is at least 20." in " ".join(done.output.split())
        assert "No budget was spent" in seen.words
        assert "deployment-record" not in seen.named
        assert ("a look, not a result" in seen.words) is ("--quick" in command)
        assert "dpfda" in seen.named["method"]
        assert ("as printed: no ε at all" in seen.words) is (command[0] == "reproduce")
        assert ("Laplace-like Process" in seen.words) is (command[0] == "reproduce")
    several = invoke("bench", "noise", "mean", "--report", tmp_path / "x.html")
    assert "--report must be left out for several benchmarks" in several.stderr
