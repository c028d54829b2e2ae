"""Exports of watches and apps: the same curves from the same files as on the page."""

from __future__ import annotations

import contextlib
import io
import json
import time
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda import plan_study
from dpfda.cli.submit import read_day
from dpfda.client.exports import day_curve, read_export
from dpfda.client.exports.series import read_time, zone_of
from dpfda.errors import DpfdaError, InvalidData

SAMPLES = Path(__file__).resolve().parents[2] / "clients" / "samples"
EXPECTED = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
MONTHS = ["Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"]
MILLISECONDS = 1e-6  # in hours: times are kept as whole milliseconds


@pytest.mark.parametrize(
    "case", EXPECTED["cases"], ids=lambda case: f"{case['file']} {case['day']}"
)
def test_a_sample_becomes_the_curve_that_the_page_reads(case: dict[str, Any]) -> None:
    found = read_export(SAMPLES / case["file"], zone=EXPECTED["zone"])
    assert found.format == case["format"]
    assert [one.name for one in found.series] == case["series"]
    day = None if case["day"] == "all" else case["day"]
    curve = day_curve(found.series, wanted=case["wanted"], day=day)
    assert (curve.name, curve.day) == (case["name"], case["day"])
    (own,) = [one for one in found.series if one.name == case["name"]]
    assert len(own.days) == case["days"]
    np.testing.assert_allclose(curve.hours, case["hours"], atol=MILLISECONDS)
    np.testing.assert_array_equal(curve.values, case["values"])


def test_every_sample_is_used() -> None:
    used = {case["file"] for case in EXPECTED["cases"]} | {"expected.json"}
    assert {path.name for path in SAMPLES.iterdir()} == used


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return out.getvalue()


HOSTILE = {
    "a zip bomb": (zipped(export_xml=b"<HealthData>" + b" " * (64 << 20)), "unpacks to at most"),
    "entities": (
        b'<!DOCTYPE gpx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><gpx>&b;</gpx>',
        "without entity",
    ),
    "a million columns": (b"x," * 10**6 + b"\n", "at most 5000 columns"),
    "twenty million cells": ((b"1," * 4_999 + b"1\n") * 4_000, "at most 5000000 cells"),
    "an attribute of 50 MB": (b'<HealthData a="' + b"x" * (50 << 20), "shorter than 1 MB"),
    "a tag without an end": (b"<HealthData " + b'a="b" ' * 10**6, "shorter than 1 MB"),
    "a million fields": (
        b"{" + b",".join(b'"%d":1' % k for k in range(10**6)) + b"}",
        "at most 5000 fields",
    ),
    "nested JSON": (b"[" * 10**6, "whole JSON"),
    "another XML": (b"<svg><path/></svg>", "Apple Health"),
    "an archive cut off": (b"PK\x03\x04" + b"x" * 10**5, "whole zip"),
    "an archive of many": (zipped(a_csv=b"t,x", b_csv=b"t,x"), "2 readable files"),
    "bytes": (bytes([0, 1, 2, 0xFF]), "text file"),
    "nothing": (b"", "1 to 500000 lines"),
    "no times": (b"a,b\n1,2\n", "beside their times"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_at_once(name: str) -> None:
    content, rule = HOSTILE[name]
    begin = time.process_time()
    with pytest.raises(InvalidData, match=rule):
        read_export(content)
    assert time.process_time() - begin < 2


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300), st.sampled_from(["", "<gpx>", "[{", "PK\x03\x04", "time,x\n1:00,"]))
def test_whatever_is_in_a_file_is_read_or_refused(content: bytes, start: str) -> None:
    with contextlib.suppress(DpfdaError):
        read_export(start.encode() + content)


@given(st.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(2150, 1, 1)))
def test_all_ways_to_write_a_time_are_the_same_time(moment: datetime) -> None:
    at = moment.replace(microsecond=0, second=0)
    half = "AM" if at.hour < 12 else "PM"
    clock = f"{at.hour % 12 or 12}:{at:%M} {half}"
    german = ["Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"][
        at.month - 1
    ]
    ways = {
        f"{at:%Y-%m-%d %H:%M}": "month",
        f"{at:%Y-%m-%dT%H:%M:%S.000Z}": "day",
        f"{at:%d.%m.%Y %H:%M}": "month",
        f"{at:%m/%d/%Y} {clock}": "month",
        f"{at:%d/%m/%Y %H:%M:%S}": "day",
        f"{at.day}. {german} {at:%Y %H:%M}": "month",
        f"{at:%Y/%m/%d %H:%M} +0530": "day",
    }
    utc = zone_of("UTC")
    expected = round((at - datetime(1970, 1, 1)).total_seconds() * 1000)
    for text, order in ways.items():
        assert read_time(text, order, utc) == (expected, True), text  # type: ignore[arg-type]


def test_a_date_without_its_time_of_day_is_refused() -> None:
    with pytest.raises(InvalidData, match="row 2, column 'Date Time' must be times like"):
        read_export(b"Date,Time,Pulse\n2026-11-16,07:30,60\n2026-11-16,,61\n2026-11-16,08:30,62\n")
    lengths = b"Date,Duration,Steps\n2026-11-16,00:45,600\n2026-11-17,00:30,1\n"
    (steps,) = read_export(lengths).series
    assert steps.times.tolist() == [20_773 * 86_400_000, 20_774 * 86_400_000], "not times of day"


def test_submit_reads_a_day_of_an_export(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_study(
        400, 1.0, value_range=(40, 200), domain_range=(0, 24), classes=("well", "ill"),
        title="Pulse over a day",
    )  # fmt: skip
    how: dict[str, Any] = {"series": None, "day": None, "zone": "Europe/Berlin"}
    for name in ("apple-export.zip", "fitbit-heart-rate.csv", "garmin.tcx"):
        found = read_day(SAMPLES / name, plan, **how)
        assert found is not None
        np.testing.assert_array_equal(found[1], [57, 61, 75, 81, 84, 79, 60])
        assert "of 2026-11-16" in capsys.readouterr().err
    average = read_day(SAMPLES / "apple-export.xml", plan, **how | {"day": "average"})
    assert average is not None
    assert "'heart rate' of the average of 2 days" in capsys.readouterr().err
    plain = SAMPLES / "google-fit-day.csv"  # times without dates: read as a table
    assert read_day(plain, plan, **how) is None
