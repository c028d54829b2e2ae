"""A file of public people in the form: read as everywhere, bounded, kept nowhere."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hostile_files import HOSTILE
from organizer import ENOUGH, STUDIES, Organizer, QuickForecasts

from dpfda import forecast
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages import planning
from dpfda.curves.files import Handed, Reading
from dpfda.planning.people_file import public_people, public_people_in_subprocess
from dpfda.planning.words import verdict

T = np.linspace(0, 1, 8).round(3)
LABELS = np.array(["no", "yes"] * 100)
X = 0.2 * np.random.default_rng(0).normal(size=(200, 8)) + 0.4 * (LABELS == "yes")[:, None]
X = X.round(3)
CSV = "\r\n".join(
    ["Fälle;ill;" + ";".join(f"{t:g}".replace(".", ",") for t in T)]
    + [
        f"F{k};{LABELS[k]};" + ";".join(f"{x:.3f}".replace(".", ",") for x in X[k])
        for k in range(200)
    ]
).encode("cp1252")
HOW = {"read-label": "ill", "read-id": "Fälle"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample")


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[CollectorProcess]:
    with QuickForecasts(
        f"sqlite:///{folder}/x.db", log=folder / "log", options=["--rate", "100"]
    ) as found:
        yield found


@pytest.fixture(scope="module")
def organizer(collector: CollectorProcess) -> Organizer:
    somebody = Organizer(collector)
    somebody.forecast_from("a.csv", CSV, **HOW)  # whatever a good file needs is in memory by now
    return somebody


NUMBERS = {"classes-0": "", "target_range-0": "0", "target_range-1": "9"}


def outlook(page: str) -> str:
    after = r'</div>\s*(?:<label class="check">|<p><button form="study-form">)'
    found = re.search(rf'<div id="outlook"[^>]*>(.*?){after}', page, re.DOTALL)
    assert found is not None
    return unescape(re.sub(r"<[^>]*>", " ", found[1]))


def test_the_form_forecasts_what_the_command_forecasts(organizer: Organizer) -> None:
    status, page = organizer.forecast_from("C:\\Daten\\öffentlich.csv", CSV, **HOW)
    assert status == 200
    told = outlook(page)
    people, said = public_people(
        Handed("öffentlich.csv", CSV), Reading(label="ill", id="Fälle"), classes=["no", "yes"]
    )
    expected = forecast(
        2000, 1.0, classes=["no", "yes"], value_range=[-1, 1], domain_range=[0, 1], seed=0,
        title="", evaluation_share=0.15, sample=people, studies=STUDIES, most=2000, also=(),
    )  # fmt: skip
    assert verdict(expected) in told
    assert "People were drawn from a public sample of 200 rows" in told
    assert f"öffentlich.csv: {said}" in told
    assert "Daten" not in page  # a folder is nobody's business
    assert 'value="Fälle"' in page  # the form is filled in again


def test_the_form_says_that_the_file_must_be_public_and_is_not_kept(organizer: Organizer) -> None:
    page = organizer.forecast()[1]
    assert "Choose only a file that anybody may see, because nothing in it is protected" in page
    assert "not stored" in page


def test_nothing_is_kept(organizer: Organizer, folder: Path) -> None:
    secret = b"kept7654nowhere"
    content = CSV.replace(b"F17;", secret + b";")
    assert "This study" in organizer.forecast_from("a.csv", content, **HOW)[1]
    for path in folder.iterdir():
        assert secret not in path.read_bytes(), path
    assert planning._simulated.cache_info().currsize == 0  # in this process; and there is no other


@pytest.mark.parametrize(
    ("change", "typed", "said"),
    [
        ((b"F17;", b"F17;"), {"read-label": ""}, "Column of classes must be given"),
        (
            (b"F17;", b"F17;"),
            {"read-label": "sick"},
            "Column of classes must be a column of the file",
        ),
        ((b"F17;", b"F17;"), {"read-id": ""}, "column 'Fälle', which looks like ids"),
        ((b"F17;yes", b"F17;u7654"), {}, "row 18, column 'ill' must be one of the classes no,yes"),
        ((b"F17;yes;", b"F17;yes;x7654"), {}, "row 18, column @3 must be a number, got a word"),
        ((b"F17;yes;", b"F17;yes;7654;"), {}, "11 cells in row 18, where there are 10 columns"),
        ((b"F17;", b"F17;"), {"read-fill": "7654"}, "--fill must be yes or no"),
        ((b"F17;", b"F17;"), {"read-grid": "0:9"}, "inside the domain"),
        ((b"F17;", b"F17;"), {"classes-0": "no, yes, 3"}, "12 rows or more of each class"),
        ((b"F17;", b"F17;"), NUMBERS, "row 1, column 'ill' must be a number"),
        ((CSV[150:], b""), {}, "cells in row 2, where there are 10 columns"),
    ],
)
def test_refusals_name_row_column_and_rule_and_no_value(
    organizer: Organizer, change: tuple[bytes, bytes], typed: dict[str, str], said: str
) -> None:
    status, page = organizer.forecast_from("a.csv", CSV.replace(*change, 1), **HOW | typed)
    assert status == 200
    told = outlook(page)
    assert "No forecast:" in told
    assert said in told
    assert "7654" not in told.replace("got '7654'", "")  # what was typed, not what was in the file


@pytest.mark.parametrize("kind", ["npz", "xlsx", "parquet", "long"])
def test_other_kinds_give_the_same_people(kind: str, tmp_path: Path) -> None:
    path, reading = tmp_path / f"a.{kind}", Reading(label="ill")
    if kind == "npz":
        np.savez(path, curves=X, grid_points=T, ill=LABELS)
    elif kind == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        book.active.append(["ill", *T.tolist()])
        for label, row in zip(LABELS.tolist(), X.tolist(), strict=True):
            book.active.append([label, *row])
        book.save(path)
    elif kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {"ill": LABELS} | {str(t): X[:, k] for k, t in enumerate(T)}
        parquet.write_table(importlib.import_module("pyarrow").table(columns), path)
    else:
        path, reading = tmp_path / "a.csv", Reading(label="ill", id="who")
        lines = ["who,ill,t,x"]
        for k, row in enumerate(X):
            points = T if k else T[:-1]  # points of their own
            lines += [f"w{k},{LABELS[k]},{t},{x}" for t, x in zip(points, row, strict=False)]
        path.write_text("\n".join(lines))
    file = Handed(path.name, path.read_bytes())
    here, said = public_people(path, reading, classes=["no", "yes"])
    there, also_said = public_people_in_subprocess(file, reading, classes=["no", "yes"])
    assert said == also_said
    assert here[1].tolist() == there[1].tolist() == LABELS.tolist()
    if kind == "long":
        for one, other in zip(here[0], there[0], strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])
    else:
        np.testing.assert_array_equal(here[0], there[0])
        np.testing.assert_array_equal(here[0], X)
        np.testing.assert_array_equal(here[2], there[2])


def peak(collector: CollectorProcess) -> int:
    """The most memory that the server ever had, in bytes."""
    status = Path(f"/proc/{collector.pid}/status")
    if not status.exists():
        pytest.skip("no /proc here")
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])  # type: ignore[index]


@pytest.mark.timed
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_the_form(
    organizer: Organizer, collector: CollectorProcess, name: str
) -> None:
    if name.endswith("many times"):
        pytest.importorskip("pyarrow")
    file, make = HOSTILE[name]
    content = make()
    before, began = peak(collector), time.monotonic()
    status, page = organizer.forecast_from(file, content, **{"read-label": "sex"})
    assert status == 200
    told = outlook(page)
    assert "No forecast:" in told, told
    assert "7654" not in told
    assert len(told) < 1500
    assert time.monotonic() - began < ENOUGH
    assert peak(collector) < before + 8 * len(content) + (64 << 20)
    with Connection(organizer.url) as connection:
        assert connection.ask("GET", "/health").status == 200


def test_files_that_are_too_large(organizer: Organizer) -> None:
    status, page = organizer.forecast_from("a.csv", b"1,2\n" * (3 << 19), **HOW)
    assert status == 200
    assert "a.csv must be at most 4 MB (dpfda plan --sample takes more), got '6.0 MB'" in outlook(
        page
    )
    try:
        status, _ = organizer.forecast_from("a.csv", b"1,2\n" * (6 << 20), **HOW)
    except OSError:
        return  # hung up upon while it was still sending
    assert status == 413


KIND = "multipart/form-data; boundary=x"
HEAD = b'--x\r\nContent-Disposition: form-data; name="sample"; filename="a.csv"\r\n\r\n'


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", KIND, 400),
        (HEAD + b"1,2", KIND, 400),
        (b"nothing like it", KIND, 400),
        (HEAD + b"1,2\r\n--x--\r\n", KIND, 403),  # no token
        (HEAD + b"1,2\r\n--x--\r\n", "multipart/form-data", 400),
        (HEAD + b"1,2\r\n--x--\r\n", KIND + "; boundary=y", 403),
        ((HEAD + b"1\r\n") * 500 + b"--x--\r\n", KIND, 400),
        (b"--x\r\n" + b"A: b\r\n" * 5000 + b"\r\n1\r\n--x--\r\n", KIND, 400),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--\r\n", KIND, 400),
        (b"\xff" * 1000, "multipart/form-data; boundary=\"\xe9\"", 400),
    ],
)  # fmt: skip
def test_forms_that_are_none(organizer: Organizer, body: bytes, kind: str, status: int) -> None:
    assert organizer.send("/forecast", body, kind, organizer.cookie)[0] == status
    assert organizer.send("/forecast", body, kind, "")[0] == 303


def test_names_are_text(organizer: Organizer) -> None:
    name = "<script>alert(1)</script>" + "x" * 300 + ".csv"
    status, page = organizer.forecast_from(name, b"\0", **HOW)
    assert status == 200
    assert "<script>" not in page.replace('<script src="/static/script.js" defer></script>', "")
    assert "x" * 101 not in page
