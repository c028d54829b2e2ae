"""A person's own file, read as the page on which people take part reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import plan_study
from dpfda.cli._group import dpfda
from dpfda.cli.submit import _print, read_own
from dpfda.client.own_data import Preview, look_over
from dpfda.curves.files import Reading
from dpfda.errors import InvalidData


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("time;pulse\n07:00;61\n7:30;62\n18:00:36;63\n", [7, 7.5, 18.01]),
        ("07:00;61\n07:30;62\n08:00;63\n", [7, 7.5, 8]),  # no line of names
        ("t,x\n2026-01-31T23:00Z,61\n2026-02-01T01:30Z,62\n2026-02-02T00:00Z,63\n", [23, 25.5, 48]),
        ("t,x\n2026-03-29 01:00 +01:00,61\n2026-03-29 03:00+0200,62\n2026-03-29 4:00,63\n",
            [1, 3, 4]),
        ("t,x\n0.5,61\n1,62\n1.5,63\n", [0.5, 1, 1.5]),
    ],
)  # fmt: skip
def test_times_of_day_are_hours(
    tmp_path: Path, text: str, points: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    t, values = read_own(path, Reading(), None)
    np.testing.assert_allclose(t, points, rtol=1e-12)
    assert values.tolist() == [61, 62, 63]
    assert ("times as hours since midnight" in capsys.readouterr().err) is (":" in text)


@pytest.mark.parametrize("rows", ["07:00,1\n8,2\n", "2026-02-31 07:00,1\n2026-03-01 07:00,2\n"])
def test_what_is_no_time_of_day_is_refused(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"t,x\n{rows}", encoding="utf-8")
    with pytest.raises(InvalidData, match="row 1, column 't' must be a number, got a date"):
        read_own(path, Reading(), None)


def test_a_point_without_a_value_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("t,x\n0,0.1\n0.5,\n1,0.3\n", encoding="utf-8")
    plan = plan_study(50, 1.0, value_range=(0, 1), classes=("no", "yes"))
    curve = read_own(path, Reading(), plan)
    told = look_over(plan, curve=curve, label="yes")
    assert told == ["1 of 3 points have no value and are left out"]
    asked = ["submit", "0" * 64, str(path), "--label", "yes", "--home", str(tmp_path), "--fill"]
    refused = CliRunner().invoke(dpfda, asked)
    assert "a row is a point, and those without a value are left out" in refused.stderr


def test_a_reply_that_was_drawn_before_has_nothing_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = {"body": b'{"values": [1.0]}', "points": np.linspace(0, 1, 41), "hides": "Whatever."}
    _print(Preview(kind="stump", original=None, perturbed=None, **known))  # type: ignore[arg-type]
    drawn_before = capsys.readouterr().err
    assert drawn_before.splitlines()[:2] == ["task: stump", 'bytes: {"values": [1.0]}']
    _print(Preview(kind="stump", original=np.ones(41), perturbed=None, **known))  # type: ignore[arg-type]
    shown = capsys.readouterr().err
    assert "yours" in shown
    assert shown.endswith("Whatever.\n")
