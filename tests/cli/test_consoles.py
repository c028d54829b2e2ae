"""Consoles, outputs, ports and extras that are not there: one line, nothing spent, nothing lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from byte_console import Console
from click.testing import CliRunner

import dpfda
from dpfda.cli import _output
from dpfda.cli._group import dpfda as command_line
from dpfda.errors import MissingExtra
from dpfda.privacy.ledger_file import FileLedger

RUN = [sys.executable, "-m", "dpfda.cli"]


def run(*arguments: Any, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RUN, *map(str, arguments)],
        capture_output=True,
        cwd=cwd,
        env=os.environ | environment,
        check=False,
    )


@pytest.fixture
def curves(tmp_path: Path) -> Path:
    path = tmp_path / "curves.csv"
    rows = 0.5 + 0.1 * np.random.default_rng(0).normal(size=(400, 9))
    np.savetxt(path, rows, delimiter=",", fmt="%.4f")
    return path


RELEASE = ("release", "mean", "curves.csv", "--epsilon", 1, "--delta", 0, "--range", 0, 1)


@pytest.mark.parametrize("encoding", ["cp1252", "cp437"])
def test_consoles_without_greek_letters(
    curves: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Console(monkeypatch, curves.parent)
    for call in (("--help",), ("release", "--help")):
        code, out, _ = here(*call, encoding=encoding)
        assert code == 0
    assert "epsilon" in out
    budget = curves.with_name("budget.jsonl")
    code, out, err = here(*RELEASE, "--ledger", budget, "--ledger-limit", 2, 0, encoding=encoding)
    assert code == 0, err
    assert "psilon = 1" in out or "ε = 1" in out
    assert FileLedger(budget).spent.epsilon == pytest.approx(1, rel=1e-12)


def test_a_process_with_a_console_of_ascii(curves: Path) -> None:
    known = {"cwd": curves.parent, "PYTHONIOENCODING": "ascii"}
    for call in (("--help",), ("release", "--help")):
        done = run(*call, **known)
        assert done.returncode == 0, done.stderr
    assert b"epsilon" in done.stdout
    budget = curves.with_name("budget.jsonl")
    done = run(*RELEASE, "--ledger", budget, "--ledger-limit", 2, 0, **known)
    assert done.returncode == 0, done.stderr
    assert b"psilon = 1" in done.stdout
    assert FileLedger(budget).spent.epsilon == pytest.approx(1, rel=1e-12)


def test_what_cannot_be_printed_is_kept(
    curves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpfda.cli._output.print_release", full)
    call = ["release", "mean", str(curves), "--epsilon", "1", "--range", "0", "1"]
    done = CliRunner().invoke(command_line, call)
    assert done.exit_code == 2
    kept = done.stderr.split("what was released is in ")[1].strip()
    assert dpfda.load(kept).guarantee.epsilon == 1
    done = CliRunner().invoke(command_line, [*call, "--out", "mean.json"])
    assert "what was released is in mean.json" in done.stderr
    assert dpfda.load("mean.json").guarantee.epsilon == 1


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device without room")
def test_output_without_room_is_one_line(curves: Path, tmp_path: Path) -> None:
    calls = [
        ["--help"],
        ["plan", "--people", "9", "--epsilon", "1", "--classes", "a,b", "--range", "0", "1"],
        ["release", "mean", str(curves), "--epsilon", "1", "--range", "0", "1"],
    ]
    for call in calls:
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*RUN, *call], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False
            )
        assert done.returncode == 2
        last = done.stderr.decode().splitlines()[-1]
        assert last.startswith("Error: "), last
        assert len(done.stderr.splitlines()) == 1 + (call[0] == "release")  # how the file was read
    assert dpfda.load(tmp_path / last.split(" is in ")[1]).guarantee.epsilon == 1
    # What cannot be replaced by a document is refused before anything is spent.
    done = CliRunner().invoke(command_line, [*calls[2], "--out", "/dev/full"])
    assert "--out must be a file" in done.stderr
    assert Path("/dev/full").is_char_device()


def test_a_disk_that_fills_up_loses_nothing(
    curves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = dpfda.PrivateMean(1.0, bound=1.0, random_state=0)
    release = release.fit(np.loadtxt(curves, delimiter=",")).release_
    (tmp_path / "taken").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.ClickException, match=r"taken was not written .* is in dpfda-rel"):
        _output.publish(release, tmp_path / "taken", False, lambda _: None)
    (kept,) = tmp_path.glob("dpfda-release-*.json")
    assert dpfda.load(kept).sensitivity == release.sensitivity
    monkeypatch.setattr(
        type(release), "save", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    with pytest.raises(click.ClickException, match=r"this line alone: {"):
        _output.publish(release, tmp_path / "taken", False, lambda _: None)


def test_a_pipe_stays_a_pipe(curves: Path, tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with a name")
    release = dpfda.PrivateMean(1.0, bound=1.0, random_state=0)
    release = release.fit(np.loadtxt(curves, delimiter=",")).release_
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    release.save(pipe)
    assert os.read(reader, 20).startswith(b'{\n  "format": 1')
    os.close(reader)
    assert pipe.is_fifo()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real.json")
    release.save(link)
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "curves.csv", "link.json", "pipe", "real.json",
    ]  # fmt: skip


def test_it_is_written_before_it_is_printed(tmp_path: Path, curves: Path) -> None:
    seen: list[bool] = []
    release = dpfda.PrivateMean(1.0, bound=1.0, random_state=0)
    release.fit(np.loadtxt(curves, delimiter=","))
    _output.publish(release.release_, tmp_path / "a.json", False,
        lambda _: seen.append((tmp_path / "a.json").exists()))  # fmt: skip
    assert seen == [True]


@pytest.mark.parametrize("option", ["--out", "--plot", "--ledger"])
def test_outputs_are_checked_before_anything_is_spent(
    curves: Path, tmp_path: Path, option: str
) -> None:
    budget = FileLedger(tmp_path / "budget.jsonl", limit_epsilon=9.0)
    call = ["release", "mean", str(curves), "--epsilon", "1", "--range", "0", "1"]
    spend = [] if option == "--ledger" else ["--ledger", str(budget.path)]
    for wrong in (tmp_path / "nowhere" / "a.png", tmp_path):
        done = CliRunner().invoke(command_line, [*call, *spend, option, str(wrong)])
        assert done.exit_code == 2
        assert option in done.stderr
        assert done.stdout == ""
    assert not budget.entries


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("litestar")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--port", port, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        f"Error: --port must be free at 127.0.0.1: Address already in use, got {port}"
    ]


BLOCK = """
import sys
from importlib.abc import MetaPathFinder
class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocker())
from dpfda.cli import main
for arguments in {calls}:
    sys.argv = ["dpfda", *arguments]
    try:
        main()
    except SystemExit as ended:
        print("ended with", ended.code)
"""
CALLS = {
    ("sklearn", "learn"): [
        ["release", "mean", "curves.csv", "--epsilon", "1"],
        ["classify", "curves.csv", "--epsilon", "1"],
        ["regress", "curves.csv", "--epsilon", "1"],
    ],
    ("litestar", "service"): [["serve"]],
    ("pyarrow", "files"): [["release", "mean", "c.parquet", "--epsilon", "1", "--bound", "1"]],
    ("openpyxl", "files"): [["release", "mean", "c.xlsx", "--epsilon", "1", "--bound", "1"]],
    ("matplotlib", "plot"): [
        ["release", "mean", "curves.csv", "--epsilon", "1", "--bound", "1", "--plot", "a.png"]
    ],
}


def without(*packages: str, calls: list[list[str]], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Commands in a process of their own, where nothing of these packages is loaded yet."""
    code = BLOCK.format(blocked=set(packages), calls=calls)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=True
    )


@pytest.mark.parametrize(("package", "extra"), CALLS)
def test_missing_extras_are_one_line(
    package: str, extra: str, curves: Path, tmp_path: Path
) -> None:
    for name in ("c.parquet", "c.xlsx"):
        (tmp_path / name).write_bytes(b"")
    calls = CALLS[package, extra]
    done = without(package, calls=calls, cwd=tmp_path)
    assert done.stdout.splitlines() == ["ended with 2"] * len(calls)
    lines = done.stderr.splitlines()
    assert len(lines) == len(calls), done.stderr
    assert all(f"pip install 'dpfda[{extra}]'" in line for line in lines)


def test_help_needs_no_extra(tmp_path: Path) -> None:
    done = without(*(package for package, _ in CALLS), calls=[["--help"]], cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "ended with 0"
    assert "\n  release " in done.stdout


def test_python_says_it_too() -> None:
    with pytest.raises(AttributeError, match="did you mean 'LocalCurveClassifier'"):
        dpfda.LocalCurveClassifer  # noqa: B018
    with pytest.raises(AttributeError, match=r"'nothing_like_it'$"):
        dpfda.nothing_like_it  # noqa: B018
    with pytest.raises(TypeError, match=r'choose a member, like Mechanism.named\("laplace"\)'):
        dpfda.Mechanism("laplace")  # type: ignore[misc]
    assert dpfda.Guarantee(1.0).epsilon == 1
    assert MissingExtra.of(ModuleNotFoundError(name="numpy.linalg")) is None
    assert "dpfda[fda]" in str(MissingExtra.of(ModuleNotFoundError(name="skfda.misc")))


def test_other_troubles_with_files_are_one_line(
    curves: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(curves))

    monkeypatch.setattr("dpfda.report.documents.Path.read_bytes", denied)
    done = CliRunner().invoke(command_line, ["show", str(curves)])
    assert done.exit_code == 2
    assert done.stderr == f"Error: {curves}: Permission denied\n"


def test_json_is_whole_on_any_console(curves: Path, tmp_path: Path) -> None:
    done = run(*RELEASE, "--json", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["kind"] == "release"
