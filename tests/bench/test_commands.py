"""``dpfda bench`` and ``dpfda reproduce``: found, run, shown."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import dpfda
from dpfda.cli._group import dpfda as command_line
from dpfda.datasets.catalogue import CATALOGUE
from dpfda.report.contents import Outcome
from dpfda_bench import catalog
from dpfda_bench.effort import Effort
from dpfda_bench.files import to_csv
from dpfda_bench.goals import at_least, at_most
from dpfda_bench.verdict import agrees_if


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(command_line, list(arguments), catch_exceptions=False)


def halved(x: int) -> float:
    return x / 2


def drawing() -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot([0, 1], [0, 1])
    return figure


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A benchmark and a reproduction that are known exactly."""
    calls: list[dict[str, Any]] = []

    def bench(quick: bool = False) -> Outcome:
        calls.append({"quick": quick})
        return Outcome(figures={"speed": 30.0, "wait": 9.0, "free": float("nan")}, notes=["[b]x"])

    def reproduce(effort: Effort) -> Outcome:
        calls.append({"replications": effort.replications, "quick": effort.quick})
        assert effort.sweep.run(halved, [(7,)]) == [3.5]
        rows = [{"method": "one", "error": 0.125}, {"method": "two", "error": None}]
        return Outcome(rows=rows, figures={"gap": 0.25}, notes=["a note"], plot=drawing)

    def load(family: str, name: str, modules: dict[str, str]) -> Any:
        if family == "benchmark":
            return SimpleNamespace(GOALS={"speed": at_least(20), "wait": at_most(5)}, run=bench)
        return SimpleNamespace(
            TITLE="Table 9",
            NEEDS=("growth",),
            SECONDS=7,
            GUARANTEES={"one": "ε-LDP for one person"},
            CLAIMED="ε/2",
            READING="As printed.",
            run=reproduce,
            verdict=lambda outcome: agrees_if(outcome.figures["gap"] < 0.5, "A gap of 0.25."),
        )

    monkeypatch.setattr(catalog, "_load", load)
    monkeypatch.setattr(catalog, "reproduction", lambda name: load("reproduction", name, {}))
    return SimpleNamespace(calls=calls)


def test_refusals_are_one_clean_line() -> None:
    done = invoke("bench", "nothing")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert re.fullmatch(r"Error: unknown benchmark 'nothing'; .*\n", done.stderr)


def test_the_installed_command_shows_no_traceback() -> None:
    command = Path(sys.executable).with_name("dpfda")
    done = subprocess.run([command, "bench", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: unknown benchmark 'x'")
    assert "Traceback" not in done.stderr


def test_bench_lists() -> None:
    assert "noise" in invoke("bench", "--list").output.split()
    assert "noise" in json.loads(invoke("bench", "--list", "--json").stdout)


def test_bench_without_a_name_is_a_usage_error() -> None:
    assert invoke("bench").exit_code == 2


def test_bench_as_json(planted: SimpleNamespace) -> None:
    done = invoke("bench", "any", "--quick", "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert set(report) == {"name", "figures", "goals", "missed", "machine"}
    assert report["missed"] == ["wait is 9; its goal is at most 5."]
    assert report["figures"] == {"speed": 30.0, "wait": 9.0, "free": None}
    assert report["goals"] == {"speed": 20, "wait": 5}
    assert set(report["machine"]) == {"python", "numpy", "cpus", "platform"}
    assert planted.calls == [{"quick": True}]


@pytest.mark.usefixtures("planted")
def test_bench_as_table() -> None:
    done = invoke("bench", "any")
    assert done.exit_code == 1  # a goal is missed
    lines = done.stdout.splitlines()
    speed, wait, free = (next(x for x in lines if key in x) for key in ("speed", "wait", "free"))
    assert "at least 20" in speed
    assert "yes" in speed
    assert "at most 5" in wait
    assert "NO" in wait
    assert free.split("│")[2].strip() == "–"  # not a number
    assert "[b]x" in lines[-1]  # notes are text, not markup


@pytest.mark.usefixtures("planted")
def test_bench_all_is_a_list() -> None:
    done = invoke("bench", "--all", "--json")
    assert done.exit_code == 1
    reports = json.loads(done.stdout)
    assert [report["name"] for report in reports] == catalog.benchmark_names()


def test_bench_succeeds_where_goals_are_met(
    planted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = SimpleNamespace(GOALS={"speed": at_least(20)}, run=catalog.benchmark("any").run)
    monkeypatch.setattr(catalog, "_load", lambda *given: met)
    assert invoke("bench", "any").exit_code == 0
    assert invoke("bench", "--all").exit_code == 0
    assert planted.calls


def test_the_noise_benchmark_runs() -> None:
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    report = json.loads(invoke("bench", "noise", "--quick", "--json").stdout)
    assert set(report["goals"]) == {"ratio_vs_opendp", "report_ms", "import_ms"}
    assert set(report["goals"]) <= set(report["figures"])
    assert all(value > 0 for value in report["figures"].values())


def test_reproduce_as_json_and_files(planted: SimpleNamespace, tmp_path: Path) -> None:
    out = tmp_path / "made" / "here"
    done = invoke("reproduce", "009-x", "--replications", "3", "--json", "--out", str(out))
    report = json.loads(done.stdout)
    assert report["name"] == "009-x"
    assert report["rows"] == [
        {"method": "one", "error": 0.125},
        {"method": "two", "error": None},
    ]
    assert report["figures"] == {"gap": 0.25}
    assert (report["verdict"], report["why"]) == ("quick look, no verdict", "")
    assert (report["claimed"], report["reading"]) == ("ε/2", "As printed.")
    assert report["guarantees"] == {"one": "ε-LDP for one person"}
    assert report["replications"] is None
    assert (report["needs"], report["seconds"], report["full"]) == (["growth"], 7, False)
    assert json.loads((out / "009-x.json").read_text(encoding="utf-8")) == report
    assert planted.calls == [{"replications": 3, "quick": False}]
    with (out / "009-x.csv").open(encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["method", "error"], ["one", "0.125"], ["two", ""]]
    assert (out / "009-x.png").read_bytes().startswith(b"\x89PNG")


def test_rows_of_a_file_need_not_have_the_same_columns() -> None:
    rows: list[dict[str, Any]] = [{"a": 1}, {"b": 2.5}]
    assert to_csv(Outcome(rows=rows)) == "a,b\n1,\n,2.5\n"


@pytest.mark.parametrize("few", [("--quick",), ("--replications", "2")])
@pytest.mark.usefixtures("planted")
def test_few_replications_have_no_verdict(few: tuple[str, ...], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    output = invoke("reproduce", "009-x", *few, "--report", str(page)).stdout
    assert "quick look, no verdict." in output
    assert "A gap of 0.25." not in output
    assert "A gap of 0.25." not in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("planted")
def test_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.delenv("DPFDA_SWEEPS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    done = invoke("reproduce", "009-x")
    assert done.exit_code == 0
    assert done.stderr.startswith(
        f"nothing is kept for later: {file}/dpfda/sweeps: Not a directory"
    )
    done = invoke("reproduce", "009-x", "--store", str(file / "here"))
    assert done.exit_code == 2
    assert "--store must be a folder that may be written (Not a directory)" in done.stderr


@pytest.mark.usefixtures("planted")
def test_reproduce_as_table(tmp_path: Path) -> None:
    output = invoke("reproduce", "009-x", "--out", str(tmp_path)).stdout
    assert "Table 9" in output
    assert "0.125" in output
    assert "a note" in output
    assert "reading: As printed." in output
    assert "claimed guarantee: ε/2" in output
    assert "true guarantee, one: ε-LDP for one person" in output
    assert "nothing is repeated, " in output
    assert "agrees: A gap of 0.25." in output
    assert f"wrote {tmp_path}/009-x.csv" in output


def test_reproduce_lists_what_an_entry_needs() -> None:
    listed = json.loads(invoke("reproduce", "--list", "--json").stdout)
    assert set(listed) == set(catalog.reproduction_names())
    lines = invoke("reproduce", "--list").stdout.splitlines()
    for (name, facts), line in zip(listed.items(), lines, strict=True):
        assert set(facts["needs"]) <= set(CATALOGUE), name
        assert line.startswith(name)
        assert all(other in line for other in facts["covers"])
        assert facts["title"] in line
        assert f" {facts['seconds']} s " in line
        module = catalog.reproduction(name)
        assert module.GUARANTEES, name
        assert len(module.READING) > 20, name
        assert len(module.CLAIMED) > 3, name
        assert callable(module.verdict), name


def test_reproduce_lists_which_data_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPFDA_DATA", str(tmp_path))
    (tmp_path / CATALOGUE["dti"].file).touch()
    lines = invoke("reproduce", "--list").stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("003-table-2 "))
    assert " dti, adelaide_demand (missing) " in line


@pytest.mark.parametrize(
    "arguments", [(), ("x", "--replications", "0"), ("003-table-1", "--device", "cuda")]
)
def test_bad_calls_of_reproduce(arguments: tuple[str, ...]) -> None:
    assert invoke("reproduce", *arguments).exit_code == 2


def test_names_of_papers_begin_with_digits(tmp_path: Path) -> None:
    package = ModuleType("package")
    package.__path__ = [str(tmp_path)]
    for name in ("p003_table_2", "power", "_helper"):
        (tmp_path / f"{name}.py").touch()
    assert catalog._modules(package) == {
        "003-table-2": "package.p003_table_2",
        "power": "package.power",
    }


def test_both_packages_have_one_version(root: Path) -> None:
    project = tomllib.loads((root / "bench" / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == dpfda.__version__
    assert project["project"]["dependencies"] == [f"dpfda[full]=={dpfda.__version__}"]
