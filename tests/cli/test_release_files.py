"""``dpfda release`` on the files people have: headers, delimiters, holes, and where pictures go."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda
from dpfda.curves.files import Reading
from dpfda.errors import InvalidData

HOURS = np.linspace(0, 24, 13)
CURVES = 0.9 + 0.02 * np.random.default_rng(0).normal(size=(400, 13))
MEAN = ("--epsilon", 4, "--bound", 1, "--seed", 0)


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(dpfda, ["release", *map(str, arguments)], catch_exceptions=False)


def refused(*arguments: Any) -> str:
    """The one line of an error, with nothing released."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return str(result.stderr.strip().splitlines()[-1])


def write(path: Path, rows: np.ndarray, header: str = "", delimiter: str = ",") -> Path:
    np.savetxt(path, rows, delimiter=delimiter, header=header, comments="", fmt="%.6f")
    return path


@pytest.fixture
def hourly(tmp_path: Path) -> Path:
    return write(tmp_path / "hourly.csv", CURVES, ",".join(f"{t:g}" for t in HOURS))


def test_the_bound_is_in_the_units_of_the_curve(tmp_path: Path) -> None:
    path = write(tmp_path / "plain.csv", CURVES)
    result = invoke("mean", path, *MEAN, "--domain-range", 0, 24, "--json")
    document = json.loads(result.stdout)
    assert document["grid_points"][0][-1] == 24
    assert np.abs(np.array(document["values"]) - 0.9).max() < 0.1


def test_a_numeric_first_row_must_be_explained(hourly: Path) -> None:
    message = refused("mean", hourly, *MEAN)
    assert "--header or --no-header" in message
    result = invoke("mean", hourly, *MEAN, "--header", "--json")
    document = json.loads(result.stdout)
    assert document["parameters"]["n"] == 400
    np.testing.assert_allclose(document["grid_points"][0], HOURS)
    assert result.stderr == (
        "read 400 rows × 13 columns: ',' between columns, '.' decimals, first row is a header, "
        "utf-8; 13 grid points from 0 to 24\n"
    )
    result = invoke("mean", hourly, *MEAN, "--no-header", "--json")
    assert json.loads(result.stdout)["parameters"]["n"] == 401
    assert "401 rows" in result.stderr
    assert "first row is data" in result.stderr


def test_two_columns_may_increase_by_chance(tmp_path: Path) -> None:
    rows = Reading().rows(write(tmp_path / "points.csv", np.array([[0.1, 0.2], [0.4, 0.3]])))
    assert rows.X.shape == (2, 2)
    assert "first row is data" in rows.said


def test_grid_points_beside_covariates(tmp_path: Path) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, size=(500, 1))
    names = "dose," + ",".join(f"{t:g}" for t in HOURS)
    path = write(tmp_path / "dose.csv", np.hstack([x, x * CURVES.mean(axis=0)]), names)
    result = invoke("function-on-scalar", path, "--epsilon", 2, "--bound", 1, "--covariates",
        "dose", "--feature-ranges", "-1:1", "--seed", 0, "--json")  # fmt: skip
    np.testing.assert_allclose(json.loads(result.stdout)["grid_points"][0], HOURS)


@pytest.mark.parametrize("place", ["nowhere/x.png", "plot.xyz", "plot", "a-file/x.png"])
def test_pictures_that_cannot_be_written_cost_nothing(
    hourly: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "a-file").write_text("")
    assert "--plot" in refused("mean", hourly, *MEAN, "--header", "--plot", tmp_path / place)


def test_the_result_is_shown_before_the_picture(
    hourly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    figure = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(figure.Figure, "savefig", full)
    result = invoke("mean", hourly, *MEAN, "--header", "--json", "--plot", tmp_path / "x.png")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["summary"] == "mean"
    assert "No space left" in result.stderr


def test_options_of_other_summaries_are_refused(hourly: Path) -> None:
    message = refused("mean", hourly, *MEAN, "--loss", "logistic")
    assert "--loss must be left out: it is for kernel-machine" in message
    assert "--bound" in refused("density", hourly, *MEAN, "--feature-ranges", "0:1")
    assert "--center" in refused("kernel-machine", hourly, "--epsilon", 1, "--center", 0)


HOLES = {
    "missing": (
        "a,b\n1,2\n7654,\n",
        "row 2, column 'b' must be given (pass --fill, or --drop-empty",
    ),
    "infinite": ("1,2\n3,4\ninf,7654\n", "row 3, column 1 must be finite"),
    "text": ("a,b\n1,2\n7654,x7654\n", "row 2, column 'b' must be a number"),
    "ragged": ("a;b\n1;2\n7654;1;2\n", "3 cells in row 2, where there are 2 columns"),
    "quotes": ('a,b\n1,"2\n7654,3\n', "must be"),
}


@pytest.mark.parametrize(("text", "message"), HOLES.values(), ids=HOLES)
def test_the_place_is_told_and_never_the_value(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    found = refused("mean", path, *MEAN)
    assert message in found
    assert "7654" not in found


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.npz", "e.parquet", "cut.csv.gz"])
def test_empty_and_cut_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"1,2\n3,4\n" * 99)[:25] if name == "cut.csv.gz" else b"")
    assert f"{name} must be" in refused("mean", path, *MEAN)
    with pytest.raises(InvalidData):
        Reading().rows(path)


def test_covariances_are_printed_and_numbers_are_short(hourly: Path) -> None:
    printed = invoke("covariance", hourly, *MEAN, "--header").stdout
    assert "covariance (rows s, columns t)" in printed
    assert "t = 12" in printed
    for summary in ("mean", "covariance"):
        parameters = invoke(summary, hourly, *MEAN, "--header").stdout.split("Release(")[1]
        for word in parameters.split("radius:")[1].split():
            digits = word.split("e")[0].replace(".", "").lstrip("0")
            assert not digits.isdigit() or len(digits) <= 4
