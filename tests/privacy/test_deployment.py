"""What stands beside a release in public: every fact of the promise, and nothing made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dpfda
from dpfda import Ledger
from dpfda.cli._group import dpfda as command_line
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.privacy.deployment import to_yaml
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC, Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.report.documents import HOMES, Documented, _home

yaml: Any = pytest.importorskip("yaml")

TOLD: dict[str, Any] = {
    "curator": "A, B & Co.",
    "data": 'load of "homes": kWh',
    "date": "2026-01-31",
}


@pytest.fixture(scope="module")
def moments() -> Any:
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=900)
    rows = rng.normal(size=(900, 1)) + np.zeros(12)
    ledger = Ledger(5.0, limit_delta=1e-3)
    model = dpfda.PrivateGroupComparison(
        0.7, value_range=(-4, 4), groups=("a", "b"), unit="home", ledger=ledger, delta=1e-6
    ).fit(rows, np.array(["a", "b"])[group])
    return model.moments_, ledger


def test_a_record_holds_the_promise(moments: Any) -> None:
    found, ledger = moments
    record = found.deployment_record(**TOLD, purpose="planning", ledger=ledger)
    promised, made = record["privacy"], record["implementation"]
    assert (promised["epsilon"], promised["delta"]) == (0.7, 1e-6)
    assert promised["flavor"] == "(ε, δ)-differential privacy"
    assert promised["privacy_unit"] == "home"
    assert promised["model"] == "central"
    assert promised["neighbors"] == "replace one home's data"
    assert promised["records"] == 900
    assert promised["data_domain"] == {"value_range": [-4.0, 4.0]}
    assert promised["unprotected_quantities"] == [NUMBER_IS_PUBLIC]
    assert made["software"] == f"dpfda {dpfda.__version__}"
    assert "exact" in made["noise"]
    assert made["other_releases"] == [entry.label for entry in ledger.entries]
    assert made["method"] == found.method_paragraph()
    assert record["deployment"]["publication_date"] == "2026-01-31"
    assert record["deployment"]["intended_use"] == "planning"
    assert yaml.safe_load(to_yaml(record)) == json.loads(json.dumps(record))


def test_a_paragraph_says_it_in_words(moments: Any) -> None:
    told = moments[0].method_paragraph()
    for part in ("ε = 0.7", "δ = 1e-06", "one home", "groups (a, b)", "900 records", "(-4, 4)"):
        assert part in told
    assert NUMBER_IS_PUBLIC in told
    assert "Balle & Wang" in told
    assert "simulation" not in told


def test_a_simulation_is_called_one() -> None:
    curves = np.random.default_rng(0).normal(size=(300, 8))
    mean = dpfda.PrivateMean(1.0, delta=0, value_range=(-4, 4), random_state=0).fit(curves)
    mean = mean.release_
    assert "protects nobody" in mean.method_paragraph()
    record = mean.deployment_record(**TOLD)
    assert "protects nobody" in record["implementation"]["noise"]
    assert record["privacy"]["flavor"] == "ε-differential privacy"
    assert "Balle" not in mean.method_paragraph()
    assert "δ" not in mean.method_paragraph()


def test_models_of_studies_have_both() -> None:
    model = CurveModel.linear(
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        classes=("low", "high"),
        intercept=[0.0],
        coefficients=[[1.0, 1.0]],
        guarantee=Guarantee(epsilon=1.0, model="local", sampler="unknown"),
    )
    assert "every person adds the noise" in model.method_paragraph()
    assert model.deployment_record(**TOLD)["privacy"]["data_domain"] == {"classes": ["low", "high"]}


def test_every_kind_of_document_has_facts() -> None:
    for kind in HOMES:
        assert _home(kind)._deployment is not Documented._deployment, kind


@pytest.mark.parametrize(
    ("name", "value"),
    [("curator", " "), ("data", None), ("date", "31.1.2026"), ("date", "20260131"), ("date", None)],
)
def test_a_record_that_says_nothing_is_refused(moments: Any, name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=name):
        moments[0].deployment_record(**TOLD | {name: value})


def test_the_command_line_writes_it(tmp_path: Path) -> None:
    file, out, record = (tmp_path / name for name in ("c.csv", "r.json", "record.yaml"))
    rows = np.random.default_rng(0).normal(size=(400, 6))
    np.savetxt(file, rows, delimiter=",", header=",".join("012345"), comments="")
    asked = ["release", "mean", file, "--epsilon", 1, "--range", -4, 4, "--header", "--out", out]
    told = ["--curator", "A", "--data", "B", "--date", "2026-01-31"]

    def invoke(*arguments: Any) -> Any:
        return CliRunner().invoke(command_line, [str(part) for part in arguments])

    done = invoke(*asked, "--record", record, *told)
    assert done.exit_code == 0, done.output
    found = yaml.safe_load(record.read_text(encoding="utf-8"))
    assert found["privacy"]["records"] == 400
    assert found["privacy"]["epsilon"] == 1.0
    again = tmp_path / "again.json"
    assert invoke("show", out, "--record", again, *told).exit_code == 0
    assert json.loads(again.read_text(encoding="utf-8")) == found
    for wrong, said in ((["--record", record], "--curator"), (told, "left out without --record")):
        done = invoke(*asked, *wrong)
        assert done.exit_code == 2
        assert said in done.stderr
