"""``dpfda release`` on real files, good and bad."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import load
from dpfda.cli import release
from dpfda.cli._group import dpfda
from dpfda.privacy.ledger_file import FileLedger

T = np.linspace(0, 1, 15)
CURVES = np.sin(3 * T) + 0.1 * np.random.default_rng(0).normal(size=(400, 1))


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(dpfda, ["release", *map(str, arguments)], catch_exceptions=False)


def write_csv(path: Path, rows: np.ndarray, header: str = "") -> Path:
    np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.6f")
    return path


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "curves.csv", CURVES)


def test_mean_as_table_json_and_picture(csv: Path, tmp_path: Path) -> None:
    plain = invoke("mean", csv, "--epsilon", 1, "--bound", 1.2)
    assert plain.exit_code == 0
    assert "sampler = exact" in plain.output.replace("\n", " ")
    picture = tmp_path / "mean.png"
    result = invoke(
        "mean", csv, "--epsilon", 4, "--bound", 1.2, "--seed", 1, "--json", "--plot", picture
    )
    document = json.loads(result.stdout)
    assert document["guarantee"]["sampler"] == "simulation"
    assert np.abs(np.array(document["values"]) - np.sin(3 * T)).max() < 0.2
    assert picture.stat().st_size > 1000


def test_a_mean_says_what_its_band_covers(csv: Path) -> None:
    asked = ("mean", csv, "--epsilon", 4, "--bound", 1.2, "--seed", 1)
    plain, inferred = invoke(*asked), invoke(*asked, "--inference")
    assert "band of the privacy noise" in " ".join(plain.output.split())
    assert "noise and sampling" in " ".join(inferred.output.split())
    document = json.loads(invoke(*asked, "--inference", "--json").stdout)
    assert len(document["sampling"]) == 1
    refused = invoke("covariance", csv, "--epsilon", 1, "--bound", 1, "--inference")
    assert "--inference must be left out: it is for mean" in refused.stderr


def test_the_same_curves_from_every_format(csv: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(CURVES).rename(columns=str).to_parquet(tmp_path / "c.parquet")
    np.savez(tmp_path / "c.npz", curves=CURVES, grid_points=T)
    write_csv(tmp_path / "named.csv", CURVES, ",".join(f"t{k}" for k in range(15)))
    found = [
        json.loads(
            invoke("mean", path, "--epsilon", 1, "--bound", 1.2, "--seed", 1, "--json").stdout
        )["values"]
        for path in (csv, tmp_path / "named.csv", tmp_path / "c.parquet", tmp_path / "c.npz")
    ]
    for values in found[1:]:
        np.testing.assert_allclose(values, found[0], atol=1e-5)


def test_other_summaries(csv: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(1000, 1))
    points = write_csv(tmp_path / "points.csv", rng.uniform(size=(500, 1)))
    regress = write_csv(
        tmp_path / "regress.csv", np.hstack([x, x * np.sin(3 * T)]), "dose," + ",".join(map(str, T))
    )
    machine = write_csv(tmp_path / "machine.csv", np.hstack([x, np.sign(x)]), "x,y")
    calls = (
        ("covariance", csv, "--epsilon", 2, "--bound", 1.2),
        ("density", points, "--epsilon", 1, "--feature-ranges", "0:1"),
        ("function-on-scalar", regress, "--epsilon", 2, "--bound", 1.0, "--covariates", "dose",
         "--feature-ranges", "-1:1"),
        ("kernel-machine", machine, "--epsilon", 2, "--feature-ranges", "-1:1", "--target", "y",
         "--loss", "logistic", "--classes", "-1,1"),
    )  # fmt: skip
    for call in calls:
        result = invoke(*call, "--seed", 0, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["guarantee"]["model"] == "central"
        assert invoke(*call, "--seed", 0).exit_code == 0


BAD = {
    "ragged": ("1,3,2\n7654,5\n", "equally many cells"),
    "text": ("a,b\n1,2\n7654,x7654\n", "must be a number"),
    "missing": ("1,2\n7654,\n", "row 2, column 2 must be given (pass --fill"),
    "empty": ("", "at least two rows"),
    "header only": ("a,b\n", "at least two rows"),
    "one row": ("7654,2\n", "at least two rows"),
    "infinite": ("1,2\ninf,7654\n", "finite"),
}


@pytest.mark.parametrize(("text", "rule"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_on_one_line(tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    result = invoke("mean", path, "--epsilon", 1, "--bound", 1)
    assert result.exit_code == 2
    assert rule in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "7654" not in result.output


def test_missing_values_may_be_filled(tmp_path: Path) -> None:
    holes = CURVES.copy()
    holes[3, 4] = np.nan
    path = tmp_path / "holes.csv"
    path.write_text("\n".join(",".join("" if np.isnan(v) else f"{v}" for v in r) for r in holes))
    assert invoke("mean", path, "--epsilon", 1, "--bound", 1.2, "--fill").exit_code == 0


def test_bounds_and_names_must_be_given(csv: Path, tmp_path: Path) -> None:
    assert "--range" in invoke("mean", csv, "--epsilon", 1).stderr
    assert "--feature-ranges" in invoke("density", csv, "--epsilon", 1).stderr
    assert "--covariates" in invoke("function-on-scalar", csv, "--epsilon", 1).stderr
    assert (
        "--target"
        in invoke("kernel-machine", csv, "--epsilon", 1, "--feature-ranges", "0:1").stderr
    )
    unknown = invoke("mean", csv, "--epsilon", 1, "--bound", 1, "--mechanism", "magic")
    assert "adaptive" in unknown.stderr
    other = tmp_path / "curves.sav"
    other.write_text("x")
    assert ".npz" in invoke("mean", other, "--epsilon", 1, "--bound", 1).stderr


def test_damaged_archives(tmp_path: Path) -> None:
    for name in ("c.npz", "c.parquet"):
        path = tmp_path / name
        path.write_bytes(b"not an archive")
        assert "readable" in invoke("mean", path, "--epsilon", 1, "--bound", 1).stderr
    np.savez(tmp_path / "odd.npz", a=np.ones((3, 2)), b=np.ones((3, 2)))
    assert "curves" in invoke("mean", tmp_path / "odd.npz", "--epsilon", 1, "--bound", 1).stderr


def test_a_ledger_is_spent_and_then_refuses(csv: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "budget.jsonl"
    call = ("mean", csv, "--epsilon", 1, "--bound", 1.2, "--json", "--ledger", ledger)
    assert "--ledger-limit" in invoke(*call).stderr
    refused = invoke(*call, "--ledger-limit", 1.5, 0).stderr
    assert "pass --delta 0 for pure ε, or begin a budget with a δ (--ledger-limit)" in refused
    call += ("--delta", 0)
    assert invoke(*call, "--ledger-limit", 1.5, 0).exit_code == 0
    spent = FileLedger(ledger).spent.epsilon
    assert spent == pytest.approx(1.0, rel=1e-12)
    entries = FileLedger(ledger).entries
    assert [entry.label.split(": ")[1] for entry in entries] == [
        "radius_count",
        "ball_mean",
        "radius_choice",
        "ball_mean",
    ]
    shown = CliRunner().invoke(dpfda, ["ledger", str(ledger)]).stdout
    assert ": ε = 1, 4 questions, assuming" in shown.splitlines()[1]
    assert shown.splitlines()[2] == "left: ε = 0.5"
    shown = CliRunner().invoke(dpfda, ["ledger", str(ledger), "--parts"]).stdout
    assert len(shown.splitlines()) == 6
    refused = invoke(*call)
    assert refused.exit_code == 2
    assert "\nError: nothing was spent: " in f"\n{refused.stderr}"
    assert not refused.stdout
    assert FileLedger(ledger).spent.epsilon == spent


@pytest.mark.parametrize("wrong", [("--bound", -1), ("--mechanism", "magic"), ("--delta", 2)])
def test_what_is_refused_spends_nothing(csv: Path, tmp_path: Path, wrong: Any) -> None:
    ledger = FileLedger(tmp_path / "budget.jsonl", limit_epsilon=9.0)
    call = ("mean", csv, "--epsilon", 1, "--bound", 1.2, "--ledger", ledger.path)
    assert invoke(*call, *wrong).exit_code == 2
    assert not ledger.entries


def test_the_help_has_a_phrase_for_every_summary() -> None:
    told = CliRunner().invoke(dpfda, ["release", "--help"]).output
    for summary in release._MODELS:
        assert re.search(rf"^ +{summary} {{2,}}\S+ \S+ \S+", told, re.MULTILINE), summary


def test_refusals_name_options_not_arguments_of_python(csv: Path) -> None:
    facts = ["--range", "0", "1", "--people", "40", "--epsilon", "1", "--target-range", "0", "9"]
    told = CliRunner().invoke(dpfda, ["plan", *facts, "--class-share", "0.3"]).stderr
    assert "--class-share must be left out with --target-range" in told
    told = invoke("mean", csv, "--epsilon", 1, "--bound", 9, "--inference", "--mechanism", "frl")
    assert "with --inference: the others" in told.stderr


@pytest.mark.parametrize("summary", ["mean", "moments", "covariance"])
def test_values_are_written_with_their_bands(csv: Path, tmp_path: Path, summary: str) -> None:
    table, saved = tmp_path / "table.csv", tmp_path / "release.json"
    call = (summary, csv, "--epsilon", 1, "--bound", 1.2, "--seed", 0, "--out", saved, "--json")
    done = invoke(*call, "--csv", table)
    assert done.exit_code == 0, done.output
    written = np.genfromtxt(table, delimiter=",", names=True, deletechars="")
    names = written.dtype.names
    value, low, high = (
        next(written[name] for name in names if name.endswith(end))
        for end in (("value", "mean"), "low", "high")
    )
    assert np.all((low <= value) & (value <= high))
    assert np.any(low < high)
    band = json.loads(done.stdout).get("band")
    assert (band is None) == (summary == "covariance")  # which is large
    if band is not None:
        np.testing.assert_allclose(next(iter(band.values())), written["t"])
    again = CliRunner().invoke(dpfda, ["show", str(saved), "--csv", str(tmp_path / "again.csv")])
    assert again.exit_code == 0
    assert load(saved).from_json(done.stdout).to_json() == load(saved).to_json()
