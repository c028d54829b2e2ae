"""The five messiest files for every command that reads one; what it said is documented."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import PrivateLogisticRegression
from dpfda.cli._group import dpfda
from dpfda.cli.submit import read_curve
from dpfda.errors import InvalidData
from dpfda.files import Reading

openpyxl = pytest.importorskip("openpyxl")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
T = [0, 0.5, 1, 1.5, 2]
RNG = np.random.default_rng(0)
SEX = np.array(["f", "m"] * 60)
X = 5 + 2 * (SEX == "m")[:, None] + RNG.normal(size=(120, 5)).round(2)


def german(folder: Path) -> Path:
    """Semicolons, decimal commas, cp1252, ids and dates among the numbers."""
    lines = ["Fälle;Datum;sex;" + ";".join(str(t).replace(".", ",") for t in T)]
    for place, row in enumerate(X):
        cells = ";".join(f"{value:.2f}".replace(".", ",") for value in row)
        lines.append(f"F{place};{place % 28 + 1:02}.03.2021;{SEX[place]};{cells}")
    (folder / "german.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    return folder / "german.csv"


def tabs(folder: Path) -> Path:
    """UTF-16 with a mark, tabs, one at the end of every line, comments above."""
    lines = ["# device 7", "\t".join(["sex", *map(str, T), ""])]
    lines += ["\t".join([SEX[k], *(f"{value:.2f}" for value in X[k]), ""]) for k in range(120)]
    (folder / "tabs.tsv").write_text("\n".join(lines), encoding="utf-16")
    return folder / "tabs.tsv"


def indexed(folder: Path) -> Path:
    """An index without a name in front, an empty cell, a byte order mark."""
    lines = [",sex," + ",".join(map(str, T))]
    for place, row in enumerate(X):
        cells = [f"{value:.2f}" for value in row]
        if place == 16:
            cells[2] = "NA"
        lines.append(f"{place},{SEX[place]}," + ",".join(cells))
    (folder / "indexed.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    return folder / "indexed.csv"


def long(folder: Path) -> Path:
    """Long form: a row a point."""
    lines = ["who,sex,t,x"]
    for place, row in enumerate(X):
        lines += [f"w{place},{SEX[place]},{t},{x:.2f}" for t, x in zip(T, row, strict=True)]
    (folder / "long.csv").write_text("\n".join(lines))
    return folder / "long.csv"


def workbook(folder: Path) -> Path:
    """XLSX with a word typed into a cell."""
    book = openpyxl.Workbook()
    book.active.title = "Export"
    book.active.append(["sex", *T])
    for place, row in enumerate(X.tolist()):
        book.active.append([SEX[place], *(row if place != 4 else [*row[:4], "ca. 7"])])
    book.save(folder / "book.xlsx")
    return folder / "book.xlsx"


CURVES: dict[Callable[[Path], Path], list[tuple[str, str]]] = {
    german: [
        ("", "got column 'Fälle', which looks like ids; column 'Datum', which looks like dates"),
        ("--drop Fälle,Datum", "read 120 rows × 8 columns: ';' between columns, ',' decimals, "
         "first row is a header, cp1252; 5 grid points from 0 to 2"),
    ],
    tabs: [
        ("", "read 120 rows × 6 columns: tabs between columns, '.' decimals, first row is a "
         "header, utf-16; 5 grid points from 0 to 2"),
    ],
    indexed: [
        ("", "got column @1, which looks like row numbers"),
        ("--drop @1", "row 17, column @5 must be given (or pass --fill), got an empty cell"),
        ("--drop @1 --fill", "read 120 rows × 7 columns: ',' between columns, '.' decimals, first "
         "row is a header, utf-8 with a mark; 5 grid points from 0 to 2"),
    ],
    long: [
        ("", "got column 'who', which looks like ids"),
        ("--id who", "read 600 rows × 4 columns: ',' between columns, '.' decimals, first row is a "
         "header, utf-8; long form: 120 curves at 5 common points"),
    ],
    workbook: [
        ("", "row 5, column @6 must be a number, got a word"),
        ("--drop @6", "read 120 rows × 6 columns: sheet 'Export', first row is a header; 4 grid "
         "points from 0 to 1.5"),
    ],
}  # fmt: skip


def documented(said: str) -> bool:
    """Whether the page has this, whatever its lines."""
    page = (
        re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8")).replace("`", "").replace("\\|", "|")
    )
    return said in page


def check(command: list[str], file: Path, cases: list[tuple[str, str]]) -> None:
    for options, said in cases:
        call = [command[0], *command[1:], *options.split()]
        done = CliRunner().invoke(dpfda, [part.format(file) for part in call])
        first = done.stderr.splitlines()[0]
        assert said in first, first
        assert done.exit_code == (0 if first.startswith("read") else 2), done.output
        assert documented(said), said


@pytest.mark.parametrize("make", CURVES, ids=lambda make: make.__name__)
def test_release(make: Callable[[Path], Path], tmp_path: Path) -> None:
    command = "release mean {} --epsilon 1 --range 0 12"
    file = make(tmp_path)
    cases = [(f"{options} --drop sex" if "--drop" not in options else options.replace("--drop ",
             "--drop sex,"), said) for options, said in CURVES[make]]  # fmt: skip
    check(command.split(), file, cases)


@pytest.mark.parametrize("make", CURVES, ids=lambda make: make.__name__)
def test_classify(make: Callable[[Path], Path], tmp_path: Path) -> None:
    command = "classify {} --label sex --classes f,m --epsilon 1 --range 0 12"
    check(command.split(), make(tmp_path), CURVES[make])


@pytest.mark.parametrize("make", CURVES, ids=lambda make: make.__name__)
def test_predict(make: Callable[[Path], Path], tmp_path: Path) -> None:
    model = PrivateLogisticRegression(2.0, value_range=(0, 12), classes=("f", "m"), random_state=0)
    model.fit(X, SEX, grid_points=T).model_.save(tmp_path / "m.json")
    check(
        ["predict", str(tmp_path / "m.json"), "{}", "--label", "sex"], make(tmp_path), CURVES[make]
    )


HEADER = "first row is a header"
TABLES = {
    "german": (
        "Größe;Name;dose\n" + "".join(f"1,{k % 80};P{k};{k % 7},5\n" for k in range(60)),
        "cp1252",
        [
            ("", "got column 'Name', which looks like ids"),
            (
                "--drop Name",
                f"read 60 rows × 3 columns: ';' between columns, ',' decimals, {HEADER}, cp1252",
            ),
        ],
    ),
    "word": (
        "age,dose\n" + "30,5\n" * 40 + "about 40,6\n",
        "utf-8",
        [("", "row 41, column 'age' must be a number, got a word")],
    ),
    "ragged": (
        "age;dose\n" + "30;5\n" * 4 + "31;5;late\n",
        "utf-8",
        [("", "got 3 cells in row 5, where there are 2 columns")],
    ),
    "gaps": (
        "age|dose\n" + "30|5\n" * 40 + "?|6\n",
        "utf-8",
        [
            ("", "row 41, column 'age' must be given (or pass --fill), got an empty cell"),
            (
                "--fill",
                f"read 41 rows × 2 columns: '|' between columns, '.' decimals, {HEADER}, utf-8",
            ),
        ],
    ),
    "title": (
        "Ward 3, May\nage;dose;x\n30;5;1\n31;6;2\n",
        "utf-8",
        [("", "got 1 in its first row, 3 in the next (a title above?)")],
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_regress(name: str, tmp_path: Path) -> None:
    text, encoding, cases = TABLES[name]
    file = tmp_path / f"{name}.csv"
    file.write_bytes(text.encode(encoding))
    command = "regress {} --target dose --epsilon 1 --target-range 0 10 --feature-ranges 0:100"
    check(command.split(), file, cases)


ONES = {
    "german": (
        "t;x\n0;1,5\n0,5;2,5\n",
        "cp1252",
        f"read 2 rows × 2 columns: ';' between columns, ',' decimals, {HEADER}, utf-8",
    ),
    "comments": (
        "# watch\n0 1.5\n0.5 2.5\n",
        "utf-8",
        "read 2 rows × 2 columns: spaces between columns, '.' decimals, first row is data, utf-8",
    ),
    "one column": (
        "1.5\n2.5\n1\n",
        "utf-16",
        "read 3 rows × 1 columns: one column, '.' decimals, first row is data, utf-16",
    ),
    "three columns": (
        "no,t,x\n1,0,5\n2,1,6\n",
        "utf-8",
        "must be one or two columns of numbers (choose them by --columns)",
    ),
    "a word": ("t,x\n0,5\n1,6\n2,low\n", "utf-8", "row 3, column 'x' must be a number"),
}


@pytest.mark.parametrize("name", ONES)
def test_submit(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, encoding, said = ONES[name]
    file = tmp_path / "curve.csv"
    file.write_bytes(text.encode(encoding))
    try:
        read_curve(file, Reading())
        found = capsys.readouterr().err
    except InvalidData as refusal:
        found = str(refusal)
    assert said in found
    assert documented(said)
