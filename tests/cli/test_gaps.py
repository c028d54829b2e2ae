"""Rows without data: refused by their row, left out publicly, or answered as the public middle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dpfda.cli._group import dpfda
from dpfda.curves.files import Handed, Reading
from dpfda.privacy.guarantee import EMPTY_RECORDS_ARE_PUBLIC
from dpfda.privacy.ledger_file import FileLedger

ROWS = 40
EMPTY = (3, 17)  # rows of the file, counted from 1


def run(*words: str) -> Result:
    return CliRunner().invoke(dpfda, list(words), prog_name="dpfda")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves, a target, a label and two features; each lacks something in two rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["sex,age,bmi,0,0.5,1"]
    for row in range(1, ROWS + 1):
        sex, age, bmi = "fm"[row % 2], f"{rng.uniform(20, 80):.1f}", f"{rng.uniform(18, 40):.1f}"
        curve = ",".join(f"{value:.3f}" for value in rng.uniform(0, 10, size=3))
        lines.append(f"{sex},{age},{bmi},{curve}")
    whole = list(lines)
    Path("whole.csv").write_text("\n".join(whole) + "\n")
    Path("kept.csv").write_text("\n".join(
        line for row, line in enumerate(whole) if row not in EMPTY) + "\n")  # fmt: skip
    for name, place in (("curve", slice(3, 6)), ("bmi", slice(2, 3)), ("sex", slice(0, 1)),
                        ("age", slice(1, 2))):  # fmt: skip
        gaps = [line.split(",") for line in whole]
        for row in EMPTY:
            gaps[row][place] = [""] * len(gaps[row][place])
        Path(f"{name}.csv").write_text("\n".join(map(",".join, gaps)) + "\n")


MEAN = "release mean {} --epsilon 1 --range 0 10 --seed 0 --json --drop sex,age,bmi"
GROUPS = "release groups {} --epsilon 1 --range 0 10 --seed 0 --json --label sex --classes f,m"
CLASSIFY = "classify {} --epsilon 1 --range 0 10 --seed 0 --json --label sex --classes f,m"
SLOPE = "regress {} --epsilon 1 --target bmi --target-range 10 50 --range 0 10 --seed 0 --json"
TABLE = "regress {} --epsilon 1 --target bmi --target-range 10 50 --seed 0 --json"
ON_SCALAR = "release function-on-scalar {} --epsilon 1 --range 0 10 --seed 0 --json"
POINTS = "release density {} --epsilon 1 --seed 0 --json --feature-ranges age=20:80"
NAMED = ["--feature-ranges", '{"age": [20, 80], "sex": ["f", "m"]}']

CALLS = {
    "mean": ("curve", MEAN, []),
    "groups": ("sex", GROUPS + " --drop age,bmi", []),
    "classify": ("sex", CLASSIFY + " --drop age,bmi", []),
    "classify curves": ("curve", CLASSIFY + " --drop age,bmi", []),
    "slope": ("bmi", SLOPE + " --drop sex,age", []),
    "slope of curves": ("curve", SLOPE + " --drop sex,age", []),
    "table": ("bmi", TABLE, NAMED),
    "table, feature": ("age", TABLE, NAMED),
    "table, category": ("sex", TABLE, NAMED),
    "function-on-scalar": ("age", ON_SCALAR + " --drop bmi --covariates age,sex", NAMED),
    "function-on-scalar, word": ("sex", ON_SCALAR + " --drop bmi --covariates age,sex", NAMED),
    "density": ("age", POINTS, []),
}


@pytest.mark.parametrize("name", CALLS)
def test_rows_without_data_are_left_out_publicly(name: str) -> None:
    file, call, more = CALLS[name]
    words = call.format(f"{file}.csv").split()
    refused = run(*words, *more)
    assert refused.exit_code == 2
    assert f"Error: row {EMPTY[0]}" in refused.stderr  # which row, and what to do
    assert "--drop-empty" in refused.stderr
    left = run(*words, *more, "--drop-empty")
    assert left.exit_code == 0, left.output
    held = run(*call.format("kept.csv").split(), *more)
    one, other = json.loads(left.stdout), json.loads(held.stdout)
    # The same numbers as of the file without these rows, and the guarantee names the assumption.
    assert EMPTY_RECORDS_ARE_PUBLIC in one["guarantee"]["assumptions"]
    one["guarantee"]["assumptions"].remove(EMPTY_RECORDS_ARE_PUBLIC)
    assert one == other


@pytest.mark.parametrize("name", [name for name in CALLS if CALLS[name][0] != "sex"])
def test_fill_answers_the_public_middle_in_every_command(name: str) -> None:
    file, call, more = CALLS[name]
    filled = run(*call.format(f"{file}.csv").split(), *more, "--fill")
    assert filled.exit_code == 0, filled.output
    middle = {"curve": ",5.000,5.000,5.000", "bmi": ",30,", "age": ",50,"}[file]
    lines = Path("whole.csv").read_text().splitlines()
    place = {"curve": slice(3, 6), "bmi": slice(2, 3), "age": slice(1, 2)}[file]
    for row in EMPTY:
        cells = lines[row].split(",")
        cells[place] = middle.strip(",").split(",")
        lines[row] = ",".join(cells)
    Path("middle.csv").write_text("\n".join(lines) + "\n")
    assert filled.stdout == run(*call.format("middle.csv").split(), *more).stdout


def test_a_missing_category_is_none_of_them_and_a_missing_label_is_refused() -> None:
    file, call, more = CALLS["table, category"]
    assert run(*call.format(f"{file}.csv").split(), *more, "--fill").exit_code == 0
    refused = run(*CLASSIFY.format("sex.csv").split(), "--drop", "age,bmi", "--fill")
    assert "row 3, column 'sex' must be given (--drop-empty" in refused.stderr


def test_an_empty_curve_needs_a_public_middle() -> None:
    call = [
        "release",
        "mean",
        "curve.csv",
        "--epsilon",
        "500",
        "--seed",
        "0",
        "--drop",
        "sex,age,bmi",
        "--fill",
    ]
    refused = run(*call)
    assert refused.exit_code == 2
    assert "Error: row 3 must be a curve with a value at one point at least" in refused.stderr
    assert run(*call, "--bound", "6", "--center", "5").exit_code == 0


def test_the_ledger_records_the_assumption() -> None:
    call = [*MEAN.format("curve.csv").split(), "--drop-empty"]
    assert run(*call, "--ledger", "b.jsonl", "--ledger-limit", "3", "1e-6").exit_code == 0
    assert EMPTY_RECORDS_ARE_PUBLIC in FileLedger("b.jsonl").assumptions


def test_nothing_is_left_of_a_file_without_data() -> None:
    file = Handed("a.csv", b"0,1\n,\n 1,2\n,\n")
    assert Reading(drop_empty=True, header=True).rows(file, least=1).X.tolist() == [[1, 2]]
    Path("a.csv").write_text("who,0,1\na,,\nb,,\n")
    refused = run("release", "mean", "a.csv", "--epsilon", "1", "--range", "0", "1", "--drop",
                  "who", "--drop-empty")  # fmt: skip
    assert refused.exit_code == 2
    assert len(refused.stderr.splitlines()) == 1


def test_in_long_form_points_without_a_value_are_left_out() -> None:
    lines = ["id,t,x", "a,0,1", "a,1,", "b,0,2", "b,0.5,3", "c,0,"]
    file = Handed("a.csv", "\n".join(lines).encode())
    rows = Reading(id="id", drop_empty=True).rows(file)
    assert [[t.tolist(), x.tolist()] for t, x in rows.X] == [[[0], [1]], [[0, 0.5], [2, 3]]]
    assert rows.row(1) == 3
    filled = Reading(id="id", fill=True, center=7.0).rows(file)
    assert filled.X[2][1].tolist() == [7.0]
    assert np.isnan(filled.X[0][1]).tolist() == [False, True]


LONG = ["id,t,x", "a,0.995,1", "a,9,2", "b,1,3", "b,18.1,4", "c,2,1", "c,17,5"]


def test_points_just_outside_the_domain_are_moved_and_others_name_their_row() -> None:
    Path("long.csv").write_text("\n".join(LONG) + "\n")
    call = "release mean long.csv --id id --epsilon 1 --range 0 10 --seed 0 --json"
    assert run(*call.split(), "--domain-range", "1", "18").exit_code == 0
    refused = run(*call.split(), "--domain-range", "1", "17")
    assert refused.exit_code == 2
    assert "Error: row 4 must be a point inside --domain-range 1 17" in refused.stderr
    assert "18.1" not in refused.stderr  # a point of one person is private


def test_a_domain_without_the_grid_points_of_the_file_is_refused_by_its_option() -> None:
    refused = run(*MEAN.format("whole.csv").split(), "--domain-range", "0.1", "1")
    rule = "--domain-range must be a range with all grid points of the file, 0 to 1, got '0.1 1'"
    assert rule in refused.stderr


def test_ranges_are_said_inline_and_in_files_with_one_result() -> None:
    Path("r.json").write_text('{"age": [20, 80], "sex": ["f", "m"]}')
    Path("r.toml").write_text('age = [20, 80]\nsex = ["f", "m"]\n')
    call = TABLE.format("whole.csv").split()
    said = {run(*call, "--feature-ranges", one).stdout for one in (NAMED[1], "r.json", "r.toml")}
    assert len(said) == 1
    assert "sex=m" in said.pop()
    positional = [
        "release",
        "density",
        "whole.csv",
        "--columns",
        "age",
        "--epsilon",
        "1",
        "--seed",
        "0",
        "--json",
    ]
    same = {run(*positional, "--feature-ranges", one).stdout for one in ("[[20, 80]]", "20:80")}
    assert len(same) == 1


@pytest.mark.parametrize("given", ["{", "[]", '"age"', "none.toml", "age=1", "3"])
def test_ranges_that_are_none_are_refused_with_an_example(given: str) -> None:
    refused = run(*TABLE.format("whole.csv").split(), "--feature-ranges", given)
    assert refused.exit_code == 2
    assert "--feature-ranges must be" in refused.stderr


def test_points_have_no_categories() -> None:
    refused = run(*["release", "density", "whole.csv", "--epsilon", "1"], *NAMED)
    assert "densities and kernel machines do not take categories, got ['sex']" in refused.stderr
