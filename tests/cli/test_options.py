"""Every command that reads a file knows every option for reading one, or says why it has none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hostile_files import HOSTILE

from dpfda.cli._group import dpfda
from dpfda.curves.files import OPTIONS
from dpfda.errors import DpfdaError

pytest.importorskip("openpyxl")
ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("release", "classify", "predict", "plan", "regress", "simulate", "submit")
WITHOUT = {
    "release": {"label"},
    "classify": set(),
    "predict": {"groups", "drop_empty"},
    "plan": {"groups"},
    "regress": {"label", "grid"},
    "simulate": set(),
    "submit": {"id", "groups", "grid", "fill", "drop_empty"},
}
SEPARATORS = {"german.csv": ";", "tabs.tsv": "tab", "units.csv": ";", "ragged.csv": ";",
              "gaps.csv": "|", "one.txt": " "}  # fmt: skip


HARMLESS = [name for name in HOSTILE if name.startswith(("rubbish", "a claim", "a pickle"))]
"""Somebody's own file may be large: the others are read as far as there is memory."""


@pytest.fixture(scope="module")
def messy() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("messy")


@pytest.fixture(autouse=True)
def no_studies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is simulated after a file has been read is another test's."""

    def read(*_: Any, **more: Any) -> None:
        raise DpfdaError("the file must be read by now")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpfda.cli.plan.forecast", read)
    monkeypatch.setattr("dpfda.cli.simulate.run", read)


def given(option: str, command: str, file: str) -> list[str]:
    """The option with a value that makes sense for this file."""
    curves = command in ("release", "classify", "predict", "plan", "simulate")
    columns = {"submit": "@1", "regress": "age" if file != "german.csv" else "Größe"}
    value = {
        "sep": SEPARATORS.get(file, ","),
        "decimal": "," if file == "german.csv" or (command, file) == ("submit", "one.csv") else ".",
        "columns": columns.get(command, "@4..@5" if file != "long.csv" else "t,x"),
        "drop": {"units.csv": "weight", "income.csv": "income"}.get(file, "@2" if curves else "@1"),
        "id": "Name" if (command, file) == ("regress", "german.csv") else "@1",
        "label": "sex",
        "groups": "@1",
        "grid": "0:2",
    }
    flag = f"--{option.replace('_', '-')}"
    return [flag] if option in ("fill", "drop_empty", "header") else [flag, value[option]]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_every_command_on_the_messiest_files(
    messy: Any, command: str, option: str
) -> None:
    call, files = messy.COMMANDS[command]
    messy.save_model()
    read = 0
    for one in files:
        file = one.write()
        for tried in (one.tries[0], one.tries[-1]):
            more = [*tried.split(), *given(option, command, file.name)]
            parts = [part.format(file=file) for part in call.split()]
            done = CliRunner().invoke(dpfda, [*parts, *more], prog_name="dpfda")
            lines = done.stderr.splitlines()
            print(command, *more, file, "->", done.exit_code, *lines[:2], sep=" ")
            assert done.exit_code in (0, 2), (more, done.exception)
            assert done.exception is None or isinstance(done.exception, SystemExit)
            errors = [line for line in lines if line.startswith("Error: ")]
            assert len(errors) == (done.exit_code == 2)
            assert "No such option" not in done.stderr
            flag = f"--{option.replace('_', '-')}"
            refused = f"Error: {flag} must be left out: "
            if option in WITHOUT[command]:
                assert errors[0].startswith(refused), errors
            else:
                assert refused not in done.stderr
                if (option, command) != ("label", "submit"):
                    assert flag in _help(command)
            read += any(line.startswith("read ") for line in lines)
    assert (read > 0) == (option not in WITHOUT[command])


def _help(command: str) -> str:
    return CliRunner().invoke(dpfda, [command, "--help"], prog_name="dpfda").output


def test_no_command_that_reads_a_table_was_forgotten() -> None:
    context = click.Context(dpfda)
    found = set()
    for name in dpfda.list_commands(context):
        command = dpfda.get_command(context, name)
        assert command is not None
        options = {option for part in command.params for option in part.opts}
        if "--sep" in options:
            found.add(name)
            assert {f"--{option.replace('_', '-')}" for option in OPTIONS} <= options, name
    assert found == set(COMMANDS)


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.xlsx"])
@pytest.mark.parametrize("option", ["--sep=;", "--decimal=,", "--header"])
def test_what_has_no_text_has_no_delimiters(name: str, option: str) -> None:
    Path(name).write_bytes(b"")
    call = ["release", "mean", name, "--epsilon", "1", "--range", "0", "1", option]
    done = CliRunner().invoke(dpfda, call, prog_name="dpfda")
    assert done.exit_code == 2
    cells = name == "a.xlsx" and option != "--sep=;"  # these may be words
    rule = f"must be left out for a {name[1:]} file"
    assert (f"Error: {option.partition('=')[0]} {rule}" in done.stderr) != cells


@pytest.mark.parametrize("name", HARMLESS)
def test_files_that_claim_more_than_there_is(name: str) -> None:
    file, make = HOSTILE[name]
    Path(file).write_bytes(make())
    call = ["release", "mean", file, "--epsilon", "1", "--range", "0", "1"]
    done = CliRunner().invoke(dpfda, call, prog_name="dpfda")
    assert done.exit_code == 2, done.exception
    (line,) = done.stderr.splitlines()
    assert line.startswith(("Error: there is not enough memory", f"Error: {file} must be"))
    assert "a pickle was run" not in done.output
