"""`dpfda regress`: files in, coefficients and a guarantee out, nothing private in between."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda


@pytest.fixture
def patients(tmp_path):
    rng = np.random.default_rng(0)
    age, weight = rng.uniform(20, 90, 4000), rng.uniform(40, 120, 4000)
    dose = np.clip(60 - 0.4 * age + 0.2 * weight, 0, 100)
    table = tmp_path / "patients.csv"
    lines = [
        f"{a:.3f},{w:.3f},{d:.3f},{int(a > 55)}" for a, w, d in zip(age, weight, dose, strict=True)
    ]
    table.write_text("age,weight,dose,old\n" + "\n".join(lines) + "\n")
    np.savez(tmp_path / "patients.npz", age=age, weight=weight, dose=dose)
    (tmp_path / "ranges.json").write_text('{"age": [18, 100], "weight": [30, 150]}')
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(dpfda, ["regress", *map(str, arguments)])


def linear(folder, *more, file="patients.csv"):
    return run(
        folder / file, "--target", "dose", "--features", "age,weight", "--epsilon", "2",
        "--ranges", folder / "ranges.json", "--target-range", "0", "100", *more,
    )  # fmt: skip


def test_json(patients):
    done = linear(patients, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.output)
    slopes = {row["feature"]: row["value"] for row in result["coefficients"]}
    assert slopes["age"] == pytest.approx(-0.4, abs=0.2)
    assert result["rows"] == 4000
    assert result["guarantee"]["sampler"] == "exact"
    assert result["guarantee"]["epsilon"] == 2


def test_table_and_other_files(patients):
    assert "age" in linear(patients).output
    npz = linear(patients, "--json", file="patients.npz")
    assert json.loads(npz.output)["rows"] == 4000
    whole = linear(patients, "--json", "--method", "output_perturbation")
    assert json.loads(whole.output)["stages"] == 1


def test_logistic(patients):
    done = run(
        patients / "patients.csv", "--target", "old", "--features", "age,weight", "--epsilon", "2",
        "--task", "logistic", "--ranges", patients / "ranges.json", "--seed", "1", "--json",
    )  # fmt: skip
    result = json.loads(done.output)
    assert result["guarantee"]["sampler"] == "simulation"
    slopes = {row["feature"]: row["value"] for row in result["coefficients"]}
    assert slopes["age"] > 5 * abs(slopes["weight"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--target", "height", "--epsilon", "1", "--norm-bound", "1"], "--target"),
        (["--target", "dose", "--epsilon", "1"], "bounds are public"),
        (["--target", "dose", "--epsilon", "-1", "--norm-bound", "1"], "epsilon"),
        (["--target", "dose", "--epsilon", "1", "--norm-bound", "1"], "target_bound"),
    ],
)
def test_refusals_are_one_line_and_show_no_value(patients, options, reason):
    done = run(patients / "patients.csv", *options)
    assert done.exit_code != 0
    assert reason in done.output
    first = (patients / "patients.csv").read_text().split("\n")[1].split(",")[0]
    assert first not in done.output
