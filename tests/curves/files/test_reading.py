"""The files people have: how each is read, what is said about it, and what is refused where."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfda.curves.files import Handed, Reading
from dpfda.curves.files import text as lines
from dpfda.errors import InvalidData, InvalidParameter

WIDE = np.array([[1.5, 2.5, 2.0], [4.5, 5.0, 6.5]])


def read(
    folder: Path, text: str, *, name: str = "a.csv", encoding: str = "utf-8", **how: Any
) -> Any:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return Reading(**how).rows(path)


HEADER, DATA = "first row is a header", "first row is data"
MESSY = {
    "german excel": (
        "Größe;b;c\r\n1,5;2,5;2\r\n4,5;5;6,5\r\n",
        "cp1252",
        f"';' between columns, ',' decimals, {HEADER}, cp1252",
    ),
    "marked": (
        "a,b,c\n1.5,2.5,2\n4.5,5,6.5\n",
        "utf-8-sig",
        f"',' between columns, '.' decimals, {HEADER}, utf-8 with a mark",
    ),
    "utf-16 tabs": (
        "a\tb\tc\n1.5\t2.5\t2\n4.5\t5\t6.5\n",
        "utf-16",
        f"tabs between columns, '.' decimals, {HEADER}, utf-16",
    ),
    "trailing": (
        "a;b;c;\n1,5;2,5;2;\n4,5;5;6,5;\n",
        "utf-8",
        f"';' between columns, ',' decimals, {HEADER}, utf-8",
    ),
    "comments": (
        "# made by a device\n\n1.5 2.5  2\n4.5 5 6.5\n\n",
        "utf-8",
        f"spaces between columns, '.' decimals, {DATA}, utf-8",
    ),
    "quoted": (
        '"a|b"|"b"|"c"\n"1.5"|2.5|2\n4.5|5|6.5\n',
        "utf-8",
        f"'|' between columns, '.' decimals, {HEADER}, utf-8",
    ),
    "old mac": (
        "a,b,c\r1.5,2.5,2\r4.5,5,6.5\r",
        "utf-8",
        f"',' between columns, '.' decimals, {HEADER}, utf-8",
    ),
}


@pytest.mark.parametrize(("text", "encoding", "said"), MESSY.values(), ids=MESSY)
def test_what_is_sniffed_is_said(tmp_path: Path, text: str, encoding: str, said: str) -> None:
    rows = read(tmp_path, text, encoding=encoding)
    np.testing.assert_array_equal(rows.X, WIDE)
    read_as, _, curves = rows.said.partition("; curves of 3 points, column ")
    assert read_as == f"read 2 rows × 3 columns: {said}"
    assert curves.endswith(("to column 'c'", "to column 3"))


def test_what_is_given_is_not_sniffed(tmp_path: Path) -> None:
    pairs = "1,5\n2,5\n"
    assert read(tmp_path, pairs).X.shape == (2, 2)
    assert read(tmp_path, pairs, sep=";", decimal=",").X.tolist() == [[1.5], [2.5]]
    with pytest.raises(InvalidParameter, match="--sep must be one character"):
        read(tmp_path, pairs, sep="ab")


def test_packed_files_and_a_late_foreign_letter(tmp_path: Path) -> None:
    lines = "a;b\n" + "1,5;2\n" * 300_000
    path = tmp_path / "big.csv.gz"
    path.write_bytes(gzip.compress(lines.encode(), compresslevel=1))
    assert Reading().rows(path).X.shape == (300_000, 2)
    plain = tmp_path / "late.csv"  # the letter lies beyond the first block that is looked at
    plain.write_bytes(("a;b;c\n" + "1,5;2;x\n" * 300_000 + "1;2;ä\n").encode("cp1252"))
    assert Reading(label="c").rows(plain).said.partition("; curves")[0].count(", cp1252") == 1


COLUMNS = {
    "dates": ("day,a,b\n2021-03-01,1,2\n2021-03-02,3,5\n", "column 'day', which looks like dates"),
    "times": ("at,a,b\n08:30,1,2\n09:00,3,5\n", "column 'at', which looks like dates"),
    "ids": ("who,a,b\np7654,1,2\np7655,3,5\n", "column 'who', which looks like ids"),
    "labels": ("sex,a,b\nf,1,2\nm,3,5\nf,1,1\n", "column 'sex', which looks like labels"),
    "an index": (
        ",a,b\n" + "".join(f"{k},{k % 3},5\n" for k in range(12)),
        "column @1, which looks like row numbers",
    ),
    "row names": ('"a" "b"\n"r1" 2 3\n"r2" 4 5\n', "column @1, which looks like ids"),
    "increasing": (
        "no,a,b\n" + "".join(f"{7654 + 3 * k},{k % 3},5\n" for k in range(12)),
        "column 'no', which looks like ids",
    ),
    "remarks": (
        "a,remark\n" + "".join(f"{k % 4},{'' if k % 5 else 'late'}\n" for k in range(12)),
        "column 'remark', which looks like labels",
    ),
    "empty": ("a,b,c\n1,2,\n3,5,\n2,2,\n", "column 'c', which looks like nothing"),
    "thousands": (
        'a,b\n1,"1,204"\n3,"17,654"\n',
        "column 'b', which looks like numbers with commas between thousands",
    ),
    "units": ("a,b\n1,$1.20\n3,$7\n", "column 'b', which looks like numbers with units"),
    "degrees": ("a;b\n1;36.5 °C\n3;37 °C\n", "column 'b', which looks like numbers with units"),
    "rooms": ("a;b\n1;12a\n3;12b\n4;13c\n", "column 'b', which looks like ids"),
    "two": (
        "who,day,a\np1,2021-03-01,1\np2,2021-03-02,3\n",
        "column 'who', which looks like ids; column 'day', which looks like dates",
    ),
}


@pytest.mark.parametrize(("text", "message"), COLUMNS.values(), ids=COLUMNS)
def test_columns_are_named_as_what_they_look_like(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidData, match="--drop") as refusal:
        read(tmp_path, text)
    assert f"not hold numbers: {message}. Leave" in str(refusal.value)
    assert "7654" not in str(refusal.value)


@pytest.mark.parametrize("how", [{}, {"drop": "@1"}, {"label": "alise"}])
def test_a_first_row_of_words_above_words_is_not_quoted(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    text = "alice,female,red\nbob,male,blue\ncarol,female,red\n"
    with pytest.raises((InvalidData, InvalidParameter)) as refusal:
        read(tmp_path, text, **how)
    assert not {"alice", "female", "red"} & set(re.findall(r"\w+", str(refusal.value)))
    if "label" not in how:
        assert "column @2, which looks like" in str(refusal.value)
        assert "pass --no-header if it holds data" in str(refusal.value)
    with pytest.raises(InvalidData, match="column 'who', which looks like ids") as refusal:
        read(tmp_path, "who,sex\np1,f\np2,m\n", label="sex")  # one of its names is known
    assert "no-header" not in str(refusal.value)


CELLS = {
    "empty": (
        "a,b\n1,2\n7654,\n",
        {},
        "row 2, column 'b' must be given (pass --fill, or --drop-empty",
    ),
    "infinite": ("1,2\n3,4\ninf,7654\n", {}, "row 3, column 1 must be finite"),
    "a word": ("a,b\n1,2\n3,4\n7654,x7654\n", {}, "row 3, column 'b' must be a number"),
    "a point among commas": ("a;b\n1,5;2\n2,5;3\n1.76;4\n", {"decimal": ","}, "row 3, column 'a'"),
    "ragged": ("a;b\n1;2\n7654;1;2\n", {}, "3 cells in row 2, where there are 2 columns"),
    "no label": ("sex,a\nf,1\n,7654\n", {"label": "sex"}, "row 2, column 'sex' must be given"),
    "half a title": (
        "Export; 7654\na;b;c;d\n1;2;3;4\n4;5;6;7\n",
        {},
        "got 2 in its first row, 4 in the next",
    ),
    "unclear": ("0,1,2\n7654,3,1\n2,2,2\n", {}, "--header or --no-header"),
    "long, not said": ("id,t,x\n1,0,5\n1,1,7654\n2,0,7\n2,1,8\n", {}, "pass --id"),
    "t twice": (
        "id,t,x\n1,0,5\n1,0,7654\n2,0,7\n",
        {"id": "id"},
        "row 2 must be the only row with its id and t",
    ),
    "label changes": (
        "id,t,x,y\n1,0,5,f\n1,1,7,m\n2,0,7,f\n2,1,1,f\n",
        {"id": "id", "label": "y"},
        "row 2, column 'y' must be the same",
    ),
}


@pytest.mark.parametrize(("text", "how", "message"), CELLS.values(), ids=CELLS)
def test_refusals_name_row_column_and_rule_and_no_value(
    tmp_path: Path, text: str, how: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidData) as refusal:
        read(tmp_path, text, **how).text(how.get("label", ""))
    assert message in str(refusal.value)
    assert "7654" not in str(refusal.value)


def test_roles_take_columns_away(tmp_path: Path) -> None:
    text = "who,sex,day,0,0.5,1,note\np1,f,2021-01-01,1,2,3,x\np2,m,2021-01-02,4,5,6,y\n"
    rows = read(tmp_path, text, id="who", label="sex", drop="day,note")
    assert rows.X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert rows.grid_points.tolist() == [0, 0.5, 1]
    assert rows.text("sex").tolist() == ["f", "m"]
    assert rows.text("who").tolist() == ["p1", "p2"]
    assert read(tmp_path, text, columns="0..1").X.shape == (2, 3)
    assert read(tmp_path, text, columns="@4..@5").names == ("0", "0.5")  # by number
    for how, rule in (
        ({"columns": "who,0", "id": "who"}, "another role"),
        ({"columns": "nothing"}, "a column of the file"),
        ({"columns": "0,0"}, "different columns"),
        ({"drop": "@1..@9"}, "--drop must be"),
    ):
        with pytest.raises(InvalidParameter, match=rule):
            read(tmp_path, text, **how)


def test_names_that_two_columns_have(tmp_path: Path) -> None:
    text = "a,a,b\n1,2,3\n4,6,6\n"
    assert read(tmp_path, text).X.shape == (2, 3)
    assert read(tmp_path, text, drop="@2").X.tolist() == [[1, 3], [4, 6]]
    with pytest.raises(InvalidParameter, match="one column has"):
        read(tmp_path, text, drop="a")


def test_grids(tmp_path: Path) -> None:
    text = "1,5,2\n4,3,6\n"
    assert read(tmp_path, text).grid_points is None
    assert read(tmp_path, text, grid="0:24").grid_points.tolist() == [0, 12, 24]
    assert read(tmp_path, text, grid="0,1,9").grid_points.tolist() == [0, 1, 9]
    for wrong in ("0,1", "a:b", "x"):
        with pytest.raises(InvalidParameter, match="--grid"):
            read(tmp_path, text, grid=wrong)


def test_places_above_curves_are_the_grid(tmp_path: Path) -> None:
    """0, 1, 2, ... or 1, 2, 3, ... above curves that do not rise all the way are no curve."""
    curves = "5,3,8,4,2\n6,7,1,2,9\n"
    for first in (0, 1):
        counted = ",".join(str(first + place) for place in range(5))
        rows = read(tmp_path, f"{counted}\n{curves}")
        assert rows.grid_points.tolist() == [first + place for place in range(5)]
        assert rows.X.shape == (2, 5)
    for unclear in (
        f"2,3,4,5,6\n{curves}",  # counted, but not from the first place
        f"0,1,2,3,5\n{curves}",
        f"0,1,2,3,4.5\n{curves}",
        f"0,1,2,3,4\n{curves}1,2,3,4,7\n",  # a curve rises, too
        "0,1,2,3\n5,3,8,4\n6,7,1,2\n",  # too few for that to be no chance
    ):
        with pytest.raises(InvalidData, match="increasing numbers may be grid points"):
            read(tmp_path, unclear)


def test_long_form(tmp_path: Path) -> None:
    text = "who,t,x,sex\nb,1,2,f\nb,0,1,f\na,0,3,m\na,1,4,m\n"
    rows = read(tmp_path, text, id="who", label="sex")
    assert rows.X.tolist() == [[1, 2], [3, 4]]  # in the order of appearance, points sorted
    assert rows.grid_points.tolist() == [0, 1]
    assert rows.text("sex").tolist() == ["f", "m"]
    assert rows.text("who").tolist() == ["b", "a"]
    assert rows.said.endswith("long form: 2 curves at 2 common points")
    rows = read(tmp_path, "who,t,x\na,0,1\na,2,2\nb,1,3\nb,2,4\n", id="who")
    assert [(t.tolist(), x.tolist()) for t, x in rows.X] == [([0, 2], [1, 2]), ([1, 2], [3, 4])]
    assert rows.said.endswith("at individual points")


def test_gaps_are_read_where_asked_for(tmp_path: Path) -> None:
    rows = read(tmp_path, "1,NA\n.,n/a\n3,4\n", fill=True, center=2.5)
    np.testing.assert_array_equal(rows.X, [[1, np.nan], [2.5, 2.5], [3, 4]])
    with pytest.raises(InvalidData, match="row 2 must be a curve with a value"):
        read(tmp_path, "1,NA\n.,n/a\n3,4\n", fill=True)


def test_workbooks(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Curves"
    for row in (["who", 0, 0.5, 1], ["p1", 1.5, 2.5, 3], ["p2", 4.5, None, 6.5]):
        sheet.append(row)
    path = tmp_path / "a.xlsx"
    book.save(path)
    rows = Reading(id="who", fill=True).rows(path)
    assert rows.said.startswith("read 2 rows × 4 columns: sheet 'Curves', first row is a header")
    assert rows.grid_points.tolist() == [0, 0.5, 1]
    np.testing.assert_array_equal(rows.X, [[1.5, 2.5, 3], [4.5, np.nan, 6.5]])
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InvalidData, match="readable XLSX"):
        Reading().rows(path)


def test_archives_with_labels_beside_the_table(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, curves=WIDE, grid_points=[0.0, 1, 3], y=np.array(["f", "m"]))
    rows = Reading(label="y").rows(path)
    np.testing.assert_array_equal(rows.X, WIDE)
    assert rows.grid_points.tolist() == [0, 1, 3]
    assert rows.text("y").tolist() == ["f", "m"]


def test_parquet_in_chunks_with_words_and_gaps(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    columns = {"sex": ["f", "m", "f"], "a": [1, None, 3], "b": [0.5, 1.5, 2.5]}
    parquet.write_table(arrow.table(columns), path)
    reading = Reading(label="sex", fill=True)
    np.testing.assert_array_equal(reading.rows(path).X, [[1, 0.5], [np.nan, 1.5], [3, 2.5]])
    opened = reading.open(path)
    assert [(len(part), part.first) for part in opened.chunks(2)] == [(2, 1), (1, 3)]
    with pytest.raises(InvalidData, match="row 2, column 'a'"):
        Reading(label="sex").rows(path)


def test_chunks_count_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PART", 6)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n5,x\n")
    tables = list(Reading().open(path).chunks(2))
    assert tables[0].numbers(["a", "b"]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InvalidData, match="row 3, column 'b'"):
        tables[1].numbers(["a", "b"])


def test_a_name_that_is_asked_for_makes_a_header(tmp_path: Path) -> None:
    text = "who,0,1\na,5,6\nb,7,8\n"
    assert read(tmp_path, text, id="who").X.tolist() == [[5, 6], [7, 8]]
    assert read(tmp_path, text, id="1", header=False).X.tolist() == [[0, 1], [5, 6], [7, 8]]


TITLES = {
    "one": ("Ward 3, May\na;b;c\n1,5;2,5;2\n4,5;5;6,5\n", "1 line above the table left out"),
    "padded": ("Ward 3;;\n;;\na;b;c\n1,5;2,5;2\n4,5;5;6,5\n", "1 line above the table left out"),
    "two": (
        "Ward 3\nby nurse A\na,b,c\n1.5,2.5,2\n4.5,5,6.5\n",
        "2 lines above the table left out",
    ),
}


@pytest.mark.parametrize(("text", "said"), TITLES.values(), ids=TITLES)
def test_titles_are_left_out_and_that_is_said(tmp_path: Path, text: str, said: str) -> None:
    rows = read(tmp_path, text)
    np.testing.assert_array_equal(rows.X, WIDE)
    assert f", {said}; curves of 3 points, column 'a' to column 'c'" in rows.said


def test_numbers_are_no_titles(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="equally many cells"):
        read(tmp_path, "7654\na;b;c\n1;2;3\n4;5;6\n")
    rows = read(tmp_path, '"x"\n"r1" 1.5\n"r2" 2.5\n"r3" 3\n', id="@1")  # as R writes it
    assert rows.X.tolist() == [[1.5], [2.5], [3.0]]


@pytest.mark.parametrize(("sep", "decimal"), [(",", "."), (";", ","), ("\t", ".")])
def test_whole_lines_and_single_cells_are_read_alike(
    tmp_path: Path, sep: str, decimal: str
) -> None:
    """A quote that stands apart makes the reader go from cell to cell."""
    rng = np.random.default_rng(0)
    strange = ["1e3", " 2", "-0", "+.5", "3 ", "00012", "1E-2"]
    cells = [[f"{x:.3f}" for x in row] for row in rng.normal(size=(50, 3))]
    for place, cell in enumerate(strange):
        cells[place][place % 3] = cell
    lines = [sep.join(cell.replace(".", decimal) for cell in ["w,", *row]) for row in cells]
    lines = [line.replace("w,", f"w{place % 7}") for place, line in enumerate(lines)]
    text = "\n".join([sep.join("wabc"), *lines])
    quoted, apart = (text.replace("\nw3", f'\n{space}"w3"') for space in ("", " "))
    plain, idle, careful = (read(tmp_path, each, groups="w") for each in (text, quoted, apart))
    assert type(plain._table) is type(idle._table) is not type(careful._table)
    for other in (idle, careful):
        np.testing.assert_array_equal(plain.X, other.X)
        assert plain.text("w").tolist() == other.text("w").tolist()
    for wrong in ("1_0", "x", "٣", "0x10", "1.2.3", "1 2", "--1"):
        for whole in (text, quoted, apart):
            last = whole.rpartition(sep)[0] + sep + wrong
            with pytest.raises(InvalidData, match="row 50, column 'c' must be a number"):
                read(tmp_path, last, groups="w", sep=sep, decimal=decimal)


def test_a_quoted_cell_of_two_lines_is_one_cell_in_chunks_too(tmp_path: Path) -> None:
    lines = [f"{k % 5},{k % 3},fine" for k in range(20)]
    lines[7] = '1,2,"not\nfine"'
    lines[12] = ",,"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a,b,c", *lines]))
    opened = Reading(label="c").open(path)
    tables = list(opened.chunks(4))
    assert [len(table) for table in tables] == [4, 4, 4, 4, 3]  # row 13 is empty
    assert [table.first for table in tables] == [1, 5, 9, 13, 17]
    assert tables[1].text("c")[3] == "not\nfine"
    assert np.concatenate([table.numbers(["a"])[:, 0] for table in tables]).tolist() == [
        k % 5 if k != 7 else 1 for k in range(20) if k != 12
    ]


def test_a_decimal_comma_that_is_given_is_no_delimiter(tmp_path: Path) -> None:
    assert read(tmp_path, "1,5\n2,5\n4,25\n", decimal=",").X.tolist() == [[1.5], [2.5], [4.25]]
    assert read(tmp_path, "1,5 2\n2,5 3\n", decimal=",").X.tolist() == [[1.5, 2], [2.5, 3]]
    for how, rule in (
        ({"decimal": ",", "sep": ","}, "--decimal must be another character than --sep"),
        ({"decimal": ";"}, "--decimal must be '.' or ','"),
    ):
        with pytest.raises(InvalidParameter, match=rule):
            read(tmp_path, "1,5\n2,5\n", **how)


def test_roles_may_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="FILE must be a table with at least one column"):
        read(tmp_path, "a,b\n1,2\n3,4\n", drop="a", id="b")


def test_a_name_that_is_nearly_right_is_answered_by_the_right_one(tmp_path: Path) -> None:
    text = "Illness,a,b\nf,1,2\nm,3,4\n"
    with pytest.raises(
        InvalidParameter, match=r"a column of the file \(did you mean 'Illness'\?\)"
    ):
        read(tmp_path, text, label="ilness")
    with pytest.raises(InvalidParameter, match=r"a column of the file, got '76541'"):
        read(tmp_path, "x,7654,b\nf,1,2\nm,3,4\n", label="76541")  # may be somebody's number


def test_a_file_without_a_suffix_is_text(tmp_path: Path) -> None:
    assert read(tmp_path, "a;b\n1,5;2\n3;4\n", name="data").X.tolist() == [[1.5, 2], [3, 4]]
    with pytest.raises(InvalidParameter, match="FILE must be a "):
        read(tmp_path, "a;b\n1,5;2\n3;4\n", name="a.json")


@pytest.mark.parametrize(
    ("header", "odd"),
    [
        ("age,0,0.5,1,1.5", "column 'age'"),
        ("t1,t2,t3,weight kg,height", "column 'weight kg', column 'height'"),
        ("wave 400nm,wave 401nm,wave 402nm,37", "column @4"),
        ("jan,feb,mar,apr", None),
        ("hip1,hip2,knee1,knee2", None),
        ("x1,x2,age", None),  # too few to tell
    ],
)
def test_a_column_beside_the_points_of_curves_is_no_point(header: str, odd: str | None) -> None:
    values = "\n".join(
        ",".join(["0.5", "0.7", "0.2", "0.9", "0.1"][: header.count(",") + 1]) for _ in range(3)
    )
    file = Handed("curves.csv", f"{header}\n{values}\n".encode())
    for read in (Reading(header=True).rows, Reading(header=True).head):
        if odd is None:
            assert read(file).X.shape[1] == header.count(",") + 1
            continue
        with pytest.raises(InvalidData, match="named unlike the points") as refused:
            read(file)
        assert odd in str(refused.value)
        assert read(file, curves=False).X.shape[1] == header.count(",") + 1
    spans = Reading(header=True, columns=f"@1..@{header.count(',') + 1}")
    assert spans.rows(file).X.shape[1] == header.count(",") + 1
