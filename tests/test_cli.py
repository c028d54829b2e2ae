"""The command line: finding files, clean errors, JSON, reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dpfda import __version__
from dpfda.cli import demo
from dpfda.cli._group import CommandFiles, dpfda
from dpfda.errors import BudgetExceeded
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger_file import FileLedger
from dpfda.report.contents import Outcome

COMMANDS = dpfda.list_commands(click.Context(dpfda))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(dpfda, list(arguments), catch_exceptions=False)


def test_version() -> None:
    assert invoke("--version").output.strip() == f"dpfda, version {__version__}"


def test_help_lists_every_command() -> None:
    output = invoke("--help").output
    assert {"bench", "demo", "reproduce"} <= set(COMMANDS)
    assert [name for name in COMMANDS if f"\n  {name} " not in output] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_a_command_says_of_itself(name: str) -> None:
    told = invoke(name, "--help").output.split("\n\n")[1].strip()
    assert re.search(rf"\n  {name} +{re.escape(told)}\n", invoke("--help").output)


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("3", "3")])
def test_commands_multiply_small_matrices_in_one_thread(given: str | None, used: str) -> None:
    """NumPy is not loaded before, so that it reads the variables; what a user sets stays."""
    code = (
        "import os, sys; from dpfda.cli import main; assert 'numpy' not in sys.modules\n"
        "sys.argv = ['dpfda', '--version']\ntry: main()\nexcept SystemExit: pass\n"
        "print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    if given:
        environment["OPENBLAS_NUM_THREADS"] = given
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == used


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    done = invoke(name, "--help")
    assert done.exit_code == 0
    assert f"dpfda {name}" in done.output.replace("Usage: root", "Usage: dpfda")


@pytest.mark.parametrize("asked", [["ledger", "--help"], ["--help"]])
def test_a_command_imports_no_other_command(asked: list[str]) -> None:
    code = (
        f"import sys; from dpfda.cli._group import dpfda; dpfda({asked}, standalone_mode=False); "
        "others = {'dpfda.cli.demo', 'dpfda_bench.commands.bench', 'sklearn'}; "
        "print([m for m in sys.modules if m in others])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_a_usage_error() -> None:
    done = invoke("nothing")
    assert done.exit_code == 2
    assert "unknown command 'nothing'; known: audit, " in done.stderr


def test_without_the_second_package_one_line_says_where_benchmarks_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpfda.cli._group.entry_points", lambda group: [])
    assert "bench" not in invoke("--help").stdout
    for name in ("bench", "reproduce"):
        done = invoke(name, "--list")
        assert done.exit_code == 2
        assert done.stdout == ""
        expected = f"Error: {name} is in the package dpfda-bench: pip install dpfda-bench, "
        expected += "or pip install ./bench in a checkout\n"
        assert done.stderr == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("release", "maen", "x.csv"), "SUMMARY must be one of mean, covariance, "),
        (("release", "maen", "x.csv"), "got 'maen'; did you mean 'mean'?"),
        (("plan", "--people", "many"), "--people must be a whole number, got 'many'"),
        (("plan", "--epsilon", "x"), "--epsilon must be a number, got 'x'"),
        (("plan", "--epsilom", "1"), "--epsilon"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_may_be_meant(given: Any, told: str) -> None:
    done = invoke(*given)
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_any_error_of_the_package_is_one_line() -> None:
    group = CommandFiles("dpfda")

    @click.command()
    def overdraw() -> None:
        raise BudgetExceeded("first line\n  second line")

    group.get_command = lambda ctx, name: overdraw  # type: ignore[method-assign]
    done = CliRunner().invoke(group, ["overdraw"])
    assert done.exit_code == 2
    assert done.stderr == "Error: first line second line\n"


def test_errors_of_other_kinds_are_not_hidden() -> None:
    group = CommandFiles("dpfda")

    @click.command()
    def stumble() -> None:
        raise ZeroDivisionError

    group.get_command = lambda ctx, name: stumble  # type: ignore[method-assign]
    assert isinstance(CliRunner().invoke(group, ["stumble"]).exception, ZeroDivisionError)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """Two studies over HTTP, once."""
    return demo.run(people=100)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> list[int]:
    """The command gets it, and says of how many people."""
    asked: list[int] = []

    def run(tell: Any = None, *, people: int) -> Outcome:
        asked.append(people)
        return outcome

    monkeypatch.setattr(demo, "run", run)
    return asked


def test_demo_ends_with_a_table_and_a_report(tmp_path: Path, held: list[int]) -> None:
    done = invoke("demo", "--people", "200", "--out", str(tmp_path / "report"))
    assert done.exit_code == 0
    assert held == [200]
    path = Path(done.stdout.splitlines()[-1].removeprefix("report: "))
    page = path.read_text(encoding="utf-8")
    assert path == tmp_path / "report" / "demo.html"
    assert "Guarantee" in page
    assert page.count("data:image/png;base64,") == 2  # light and dark
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"(src|href|url)\s*[=(]\s*[\"']?https?:", page)


@pytest.mark.usefixtures("held")
def test_demo_as_json(tmp_path: Path) -> None:
    report = json.loads(invoke("demo", "--people", "100", "--json", "--out", str(tmp_path)).stdout)
    assert report["name"] == "demo"
    assert report["rows"]
    assert Path(report["report"]).is_file()


def test_ledger_shows_what_was_spent_and_what_it_rests_on(tmp_path: Path) -> None:
    path = tmp_path / "budget"
    event = PureEvent(epsilon=0.25)
    ledger = FileLedger(path, limit_epsilon=1.0)
    ledger.spend(event, label="mean", key="k", assumptions=["n is public"])
    shown = invoke("ledger", str(path))
    assert shown.exit_code == 0
    assert shown.stdout.startswith("ε = 0.25 of ε = 1 spent")
    assert "mean: PureEvent(epsilon=0.25), assuming n is public" in shown.stdout
    (entry,) = json.loads(invoke("ledger", str(path), "--json").stdout)
    assert entry["key"] == "k"
    assert entry["assumptions"] == ["n is public"]
    (tmp_path / "budget.mark").unlink()
    damaged = invoke("ledger", str(path))
    assert damaged.exit_code == 2
    assert "budget.mark is missing or empty" in damaged.stderr


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_plan_says_what_releases_would_leave_and_spends_nothing(
    tmp_path: Path, delta: float
) -> None:
    path = tmp_path / "budget"
    ledger = FileLedger(path, limit_epsilon=2.0, limit_delta=delta)
    ledger.spend(PureEvent(epsilon=0.5), label="mean")
    before = path.read_bytes()
    pure = ("ledger", "plan", str(path), "--delta", "0")
    planned = invoke(*pure, "--epsilon", "0.25", "--times", "2", "--json")
    told = json.loads(planned.stdout)
    assert told["fits"]
    assert invoke(*pure, "--epsilon", "9").exit_code == 2
    by_default = invoke("ledger", "plan", str(path), "--epsilon", "0.25")
    assert by_default.exit_code == (0 if delta else 2)
    assert ("--delta must be 0: budget has no δ" in by_default.stderr) == (not delta)
    assert path.read_bytes() == before
    for _ in range(2):
        ledger.spend(PureEvent(epsilon=0.25), label="mean")
    assert told["left_pure"] == pytest.approx(ledger.remaining_pure, rel=1e-6)
    assert told["left"]["epsilon"] == pytest.approx(ledger.remaining.epsilon, rel=1e-6)
    assert invoke(*pure, "--epsilon", "1.5").exit_code == 2


def test_parts_of_a_budget_are_charged_before_they_exist(tmp_path: Path) -> None:
    path, one, two = (tmp_path / name for name in ("all", "one", "two"))
    FileLedger(path, limit_epsilon=1.0)
    refused = invoke("ledger", "split", str(path), f"{one}=0.5", f"{two}=0.6")
    assert refused.exit_code == 2
    assert "nothing was split" in refused.stderr
    assert not one.exists()
    assert not FileLedger(path).entries
    done = invoke("ledger", "split", str(path), f"{one}=0.5", f"{two}=0.3")
    assert done.exit_code == 0
    assert FileLedger(path).remaining.epsilon == pytest.approx(0.2)
    assert FileLedger(one).limit.epsilon == 0.5
    assert "80% of the budget" in FileLedger(path).warning
    assert (
        "a file that does not exist yet"
        in invoke("ledger", "split", str(path), f"{one}=0.1").stderr
    )
    again = FileLedger(one)
    again.analysis = "paper 1"
    assert again.spend(PureEvent(epsilon=0.1), label="mean").label == "paper 1 / mean"
    assert not again.warning
