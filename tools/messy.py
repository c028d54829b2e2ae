"""Print the five messiest files for every command that reads one, and what it said.

    python tools/messy.py          a table in Markdown: docs/reference/command-line.md holds it

The files are made up here, the commands are the real ones; what they said is the first line on
standard error. Nothing that is printed was written by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openpyxl
from click.testing import CliRunner

from dpfda import PrivateCurveClassifier
from dpfda.cli._group import dpfda
from dpfda.privacy.ledger_file import FileLedger

T = [0, 0.5, 1, 1.5, 2]
SEX = np.array(["f", "m"] * 60)
X = 5 + 2 * (SEX == "m")[:, None] + np.random.default_rng(0).normal(size=(120, 5)).round(2)


@dataclass(frozen=True)
class Messy:
    """A file, and how it is made.

    Attributes:
        words: what is wrong with it.
        write: makes it.
        tries: options that are tried one after the other.
    """

    words: str
    write: Callable[[], Path]
    tries: tuple[str, ...] = ("",)


def _text(name: str, *lines: str, encoding: str = "utf-8", end: str = "\n") -> Callable[[], Path]:
    def write() -> Path:
        path = Path(name)
        path.write_bytes(end.join([*lines, ""]).encode(encoding))
        return path

    return write


def _german() -> Path:
    lines = ["Fälle;Datum;sex;" + ";".join(str(t).replace(".", ",") for t in T)]
    for place, row in enumerate(X):
        cells = ";".join(f"{value:.2f}".replace(".", ",") for value in row)
        lines.append(f"F{place};{place % 28 + 1:02}.03.2021;{SEX[place]};{cells}")
    return _text("german.csv", *lines, encoding="cp1252", end="\r\n")()


def _tabs() -> Path:
    lines = ["Ward 3", "# device 7", "\t".join(["sex", *map(str, T), ""])]
    lines += ["\t".join([SEX[k], *(f"{value:.2f}" for value in X[k]), ""]) for k in range(120)]
    return _text("tabs.tsv", *lines, encoding="utf-16")()


def _indexed() -> Path:
    lines = [",sex," + ",".join(map(str, T))]
    for place, row in enumerate(X):
        cells = [f"{value:.2f}" for value in row]
        if place == 16:
            cells[2] = "NA"
        lines.append(f"{place},{SEX[place]}," + ",".join(cells))
    return _text("indexed.csv", *lines, encoding="utf-8-sig")()


def _long() -> Path:
    lines = ["who,sex,t,x"]
    for place, row in enumerate(X):
        lines += [f"w{place},{SEX[place]},{t},{x:.2f}" for t, x in zip(T, row, strict=True)]
    return _text("long.csv", *lines)()


def _workbook() -> Path:
    book = openpyxl.Workbook()
    book.active.title = "Export"
    book.active.append(["sex", *T])
    for place, row in enumerate(X.tolist()):
        book.active.append([SEX[place], *(row if place != 4 else [*row[:4], "ca. 7"])])
    book.save("book.xlsx")
    return Path("book.xlsx")


CURVES = (
    Messy("ids and dates among numbers, `;`, decimal commas, cp1252", _german,
          ("", "--drop Fälle,Datum")),
    Messy("a title, a comment, tabs, one more at every end, UTF-16", _tabs),
    Messy("an index without a name, an empty cell, a byte order mark", _indexed,
          ("", "--drop @1", "--drop @1 --fill")),
    Messy("long form, a row a point", _long, ("", "--id who")),
    Messy("XLSX, a word typed into a cell", _workbook, ("", "--drop @6")),
)  # fmt: skip
TABLES = (
    Messy("names among numbers, decimal commas, cp1252",
          _text("german.csv", "Größe;Name;dose", *(f"1,{k % 80};P{k};{k % 7},5" for k in range(60)),
                encoding="cp1252"), ("", "--drop Name")),
    Messy("a title, a unit in every cell",
          _text("units.csv", "Ward 3, May", "age;weight;dose",
                *(f"{20 + k % 30};{60 + k % 9} kg;{k % 7}" for k in range(40))),
          ("", "--drop weight")),
    Messy("a line that is longer",
          _text("ragged.csv", "age;dose", *["30;5"] * 4, "31;5;late")),
    Messy("a question mark for a number",
          _text("gaps.csv", "age|dose", *["30|5"] * 40, "?|6"), ("", "--fill")),
    Messy("a word below numbers, thousands with commas",
          _text("income.csv", "age,income,dose", *(f'3{k % 9},"{k + 1},204",5' for k in range(40)),
                "about 40,9,6"), ("", "--columns age")),
)  # fmt: skip
ONES = (
    Messy("t and x, `;`, decimal commas", _text("one.csv", "t;x", "0;1,5", "0,5;2,5")),
    Messy("a device's comments, spaces", _text("one.txt", "# watch", "0 1.5", "0.5 2.5")),
    Messy("values alone, UTF-16", _text("one.csv", "1.5", "2.5", "1", encoding="utf-16")),
    Messy("three columns", _text("one.csv", "no,t,x", "1,0,5", "2,1,6"), ("", "--columns t,x")),
    Messy("a word among numbers", _text("one.csv", "t,x", "0,5", "1,6", "2,low")),
)
DOCUMENTS = (
    Messy("empty", _text("model.json")),
    Messy("a table", _text("model.json", "age,dose", "30,5")),
    Messy("JSON of something else", _text("model.json", json.dumps({"age": [18, 99]}))),
    Messy("cut off", _text("model.json", '{"format": 1, "kind": "release", "guar')),
    Messy("a field missing", _text("model.json", '{"format": 1, "kind": "release"}')),
)


def _cut() -> Path:
    ledger = FileLedger("cut.jsonl", limit_epsilon=1.0)
    with ledger.path.open("a", encoding="utf-8") as stream:
        stream.write('{"epsilon": ')
    return Path(ledger.path)


def _emptied() -> Path:
    path = Path(FileLedger("emptied.jsonl", limit_epsilon=1.0).path)
    path.write_text("")
    return path


LEDGERS = (
    Messy("empty", _text("new.jsonl")),
    Messy("a table", _text("table.jsonl", "age,dose", "30,5")),
    Messy("JSON of something else", _text("other.jsonl", json.dumps({"age": [18, 99]}))),
    Messy("its last line cut off", _cut),
    Messy("emptied", _emptied),
)
COMMANDS = {
    "release": ("release mean {file} --epsilon 1 --range 0 12 --drop sex", CURVES),
    "classify": ("classify {file} --label sex --classes f,m --epsilon 1 --range 0 12", CURVES),
    "predict": ("predict m.json {file} --label sex", CURVES),
    "plan": ("plan --people 50 --epsilon 1 --classes f,m --range 0 12 --domain-range 0 2 "
             "--studies 2 --sample {file} --label sex", CURVES),
    "simulate": ("simulate {file} --label sex --classes f,m --epsilon 1 --range 0 12", CURVES),
    "regress": ("regress {file} --target dose --epsilon 1 --target-range 0 10 "
                "--feature-ranges 0:100", TABLES),
    "submit": (f"submit {'0' * 64} {{file}} --label f --home home", ONES),
    "show": ("show {file}", DOCUMENTS),
    "ledger": ("ledger {file}", LEDGERS),
}  # fmt: skip


def save_model() -> None:
    """What `predict` predicts by."""
    model = PrivateCurveClassifier(2.0, value_range=(0, 12), classes=("f", "m"), random_state=0)
    model.fit(X, SEX, grid_points=T).model_.save("m.json")


def said(name: str) -> Iterator[tuple[str, str, str, int]]:
    """For every file of a command: what it is, the options tried, what was said, the exit code."""
    save_model()
    call, files = COMMANDS[name]
    for messy in files:
        file = messy.write()
        for options in messy.tries:
            parts = [part.format(file=file) for part in call.split()]
            more = options.split()
            if "--drop" in parts and "--drop" in more:  # both name columns to leave out
                place = more.index("--drop")
                parts[parts.index("--drop") + 1] += f",{more[place + 1]}"
                del more[place : place + 2]
            done = CliRunner().invoke(dpfda, [*parts, *more], prog_name="dpfda")
            line = (done.stderr.splitlines() or ["(nothing)"])[0].removeprefix("Error: ")
            yield messy.words, options, line, done.exit_code


def table() -> str:
    """All of it, in Markdown; commands that said the same share their rows."""
    found: dict[tuple[str, str, str], list[str]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        here = f"{Path.cwd()}{os.sep}"
        for name in COMMANDS:
            for words, options, line, _ in said(name):
                found.setdefault((words, options, line.replace(here, "")), []).append(f"`{name}`")
    lines, before = ["| command | file | options | it said |", "|---|---|---|---|"], ("", "")
    for (words, options, line), names in found.items():
        head = ", ".join(names), words
        shown = head if head != before else ("", "…")
        tried = f"`{options}`" if options else ""
        quoted = line.replace("|", "\\|").replace("`", "'")
        lines.append(f"| {shown[0]} | {shown[1]} | {tried} | `{quoted}` |")
        before = head
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(table())
