"""Lines that are read all at once say what the same lines say cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda.curves.files import Handed, Reading, arrow, text
from dpfda.curves.files.text import Lines
from dpfda.errors import DpfdaError

CELLS = (
    "1",
    "-2.5",
    "3e2",
    "+4",
    ".5",
    "6.",
    "007",
    " 8",
    "9 ",
    "1e999",
    "1e-999",
    "0.1",
    "12345678901234567890",
)
ODD = (
    *("", "NA", "nan", "inf", "x", '"1"', '"a"', '"a,b"', '""', '"1', 'a"b', "1 2", "1_0", "٣"),
    *("#", "#1", "[1]", "null", "true", "1]", "-", '"x\ny"', '"x""y"', "nan(1)", "0x1", "1;2"),
    *('a"b"', '"a"b'),
    *("\t", " ", "\x0b", "é"),
)
ENDS = ("\n", "\r\n", "\r", "\n\n", "\n# a comment, 1\n", "\n,,\n", "\n \n")


def told(content: bytes, **how: Any) -> Any:
    reading = Reading(header=True, **how)
    try:
        opened = reading.open(Handed("a.csv", content))
        tables = list(opened.chunks(3))
        whole = reading.rows(Handed("a.csv", content), curves=False)
        chunks = [table.numbers(opened.names, gaps=True) for table in tables]
        words = [str(word) for table in tables for word in table.text(opened.names[0])]
        return [whole.X.tobytes(), np.concatenate(chunks).tobytes(), words, whole.said]
    except DpfdaError as refusal:
        return str(refusal)


def tables(content: bytes, **how: Any) -> list[Any]:
    try:
        return list(Reading(header=True, **how).open(Handed("a.csv", content)).chunks(3)) or [None]
    except DpfdaError:
        return [None]


@pytest.mark.parametrize(("sep", "decimal"), [(",", "."), (";", ","), ("\t", "."), ("|", ".")])
@pytest.mark.parametrize("odd", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("parser", ["msgspec", "arrow"])
def test_whatever_is_in_the_lines(
    sep: str, decimal: str, odd: float, parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parser == "arrow":
        monkeypatch.setattr(arrow, "LARGE", 0)
    monkeypatch.setattr(text, "_PART", 9)
    rng = np.random.default_rng([ord(sep), int(100 * odd)])
    cases, fast = [], 0
    for _ in range(150):
        width = int(rng.integers(1, 5))
        content = sep.join("abcd"[:width]) + "\n"
        for _ in range(int(rng.integers(2, 9))):
            row = [str(rng.choice(ODD if rng.random() < odd else CELLS)) for _ in range(width)]
            row = [cell.replace(".", decimal) for cell in row]
            content += sep.join(row) + str(rng.choice(ENDS) if rng.random() < odd else "\n")
        how = {"sep": sep, "decimal": decimal, "fill": bool(rng.integers(2))}
        encoded = content.encode(str(rng.choice(["utf-8", "utf-16", "utf-8-sig"])))
        cases.append((encoded, how, told(encoded, **how)))
        fast += all(isinstance(table, Lines) for table in tables(encoded, **how))
    monkeypatch.setattr(text, "plain", lambda *_: None)
    for encoded, how, said in cases:
        assert told(encoded, **how) == said, encoded
    assert fast > 20  # both ways were gone


def test_quotes_that_no_cell_needs_and_those_that_one_does() -> None:
    idle = b'"who","a","b"\n"r,1"'.replace(b"r,1", b"r1") + b',"1",2\n"r2",3,"4"\n'
    (table,) = Reading().open(Handed("a.csv", idle)).chunks(None)
    assert isinstance(table, Lines)
    assert table.text("who").tolist() == ["r1", "r2"]
    assert table.numbers(["b", "a"]).tolist() == [[2, 1], [4, 3]]
    for needed in (b'"r,1"', b'"r\n1"', b'"r""1"'):
        (table,) = Reading().open(Handed("a.csv", idle.replace(b'"r1"', needed))).chunks(None)
        assert not isinstance(table, Lines)
        assert table.text("who")[0] == needed[1:-1].decode().replace('""', '"')


def test_a_cell_too_few_is_not_made_up_by_one_too_many() -> None:
    for lines in (b"1,2\n3,4,5,6\n7,8,9\n", b"1,2,3,4\n5,6\n7,8,9\n", b"1,2,3\n4,5,6,7\n8,9\n"):
        with pytest.raises(DpfdaError, match="equally many cells in every row"):
            Reading(header=True).rows(Handed("a.csv", b"a,b,c\n" + lines))


def test_lines_of_many_blocks() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5)).round(6)
    words = rng.choice(["f", "männlich", ""], size=len(X), p=[0.5, 0.4999, 0.0001])
    words[0] = "f"
    lines = ["a,b,sex,c,d,e"]
    lines += [
        f"{a},{b},{s},{c},{d},{e}" for (a, b, c, d, e), s in zip(X.tolist(), words, strict=True)
    ]
    (table,) = Reading(label="sex").open(Handed("a.csv", "\n".join(lines).encode())).chunks(None)
    assert isinstance(table, Lines)
    assert len(table) == len(X)
    np.testing.assert_array_equal(table.numbers(["a", "b", "c", "d", "e"]), X)
    np.testing.assert_array_equal(table.numbers(["d", "b"]), X[:, [3, 1]])
    assert [str(cell) for cell in table.column(2)] == words.tolist()


def test_numbers_of_large_files_are_those_of_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every digit counts: two parsers that round differently would release different bits."""
    rng = np.random.default_rng(0)
    mantissas, exponents = rng.integers(0, 2**63, 9000), rng.integers(-345, 285, 9000)
    cells = [f"-{m}e{e}" if e % 2 else f"{m / 1e9:.17g}" for m, e in zip(mantissas, exponents)]  # noqa: B905
    cells[::50] = ["NA"] * 180
    lines = [",".join(cells[k : k + 3]) for k in range(0, 9000, 3)]
    content = Handed("a.csv", ("a,b,c\n" + "\n".join(lines)).encode())

    def numbers() -> Any:
        monkeypatch.setattr(text, "_PART", 1000)
        tables = list(Reading().open(content).chunks(100))
        assert len(tables) > 100
        assert all(isinstance(table, Lines) for table in tables)
        return np.vstack([table.numbers(["c", "a", "b"], gaps=True) for table in tables])

    small = numbers()
    monkeypatch.setattr(arrow, "LARGE", 0)
    assert numbers().tobytes() == small.tobytes()
    assert np.isnan(small).sum() == 180
