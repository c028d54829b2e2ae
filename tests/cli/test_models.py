"""``dpfda classify``, ``predict`` and ``show``: a model from a messy file, used again later."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dpfda
from dpfda.cli._group import dpfda as command_line
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger_file import FileLedger

T = np.linspace(0, 24, 20)
RNG = np.random.default_rng(0)
ILL = RNG.integers(0, 2, 3000)
CURVES = 100 + 30 * ILL[:, None] * np.sin(T / 8) + 10 * RNG.normal(size=(3000, 20))
WORDS = np.array(["gesund", "krank"])[ILL]
ASKED = ("--label", "Befund", "--epsilon", 1, "--range", 30, 200)
TWO = ("--classes", "gesund,krank")


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(command_line, [str(part) for part in arguments])


def refused(*arguments: Any) -> str:
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return str(done.stderr)


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a German Excel writes: semicolons, decimal commas, a byte that is not UTF-8."""
    path = tmp_path_factory.mktemp("files") / "patienten.csv"
    lines = ["Nummer;Größe;Befund;" + ";".join(f"{t:g}".replace(".", ",") for t in T)]
    for place, (word, row) in enumerate(zip(WORDS, CURVES, strict=True)):
        cells = ";".join(f"{value:.3f}".replace(".", ",") for value in row)
        lines.append(f"P{place // 2};{170 + place % 9};{word};{cells}")
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    return path


def test_the_whole_path(messy: Path, tmp_path: Path) -> None:
    model, found, picture = (tmp_path / name for name in ("m.json", "found.csv", "m.png"))
    done = invoke(
        "classify", messy, *ASKED, *TWO, "--groups", "Nummer", "--drop", "Größe", "--out", model
    )
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(
        "read 3000 rows × 23 columns: ';' between columns, ',' decimals, first row is a header, "
        "cp1252; 20 grid points from 0 to 24\n"
    )
    loaded = dpfda.load(model)
    assert loaded.rows == 1500  # one curve of each person
    assert loaded.classes == ("gesund", "krank")
    assert loaded.guarantee.sampler == "exact"
    done = invoke("predict", model, messy, "--label", "Befund", "--id", "Nummer", "--drop", "Größe",
        "--out", found)  # fmt: skip
    assert done.exit_code == 0, done.output
    wrong = float(done.stderr.split("wrong: ")[1].split(" %")[0])
    assert wrong < 5
    with found.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["Nummer"] for row in rows[:3]] == ["P0", "P0", "P1"]
    assert 100 * np.mean([row["predicted"] for row in rows] != WORDS) == pytest.approx(
        wrong, abs=0.1
    )
    chances = [float(row["probability of krank"]) for row in rows]
    assert [chance >= 0.5 for chance in chances] == [row["predicted"] == "krank" for row in rows]
    done = invoke("show", model, "--plot", picture)
    assert "ε = 1, δ = 1e-06" in done.stdout
    assert "values from 30 to 200" in done.stdout
    assert "gesund, krank" in done.stdout
    assert picture.stat().st_size > 1000


def test_other_forms_give_the_same_model(messy: Path, tmp_path: Path) -> None:
    seeded = (*ASKED, "--seed", 3, "--json")
    wide = invoke("classify", messy, *seeded, "--drop", "Größe,Nummer")
    lines = ["who,t,x,Befund"]
    for who, row in enumerate(CURVES):
        lines += [f"q{who},{t},{x:.3f},{WORDS[who]}" for t, x in zip(T, row, strict=True)]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    long = invoke("classify", tmp_path / "long.csv", *seeded, "--id", "who")
    assert long.exit_code == 0, long.output
    np.savez(tmp_path / "a.npz", curves=CURVES.round(3), grid_points=T, Befund=WORDS)
    npz = invoke("classify", tmp_path / "a.npz", *seeded)
    slopes = [json.loads(done.stdout)["fit"]["slope"] for done in (wide, long, npz)]
    # Values have three digits: small slopes of fast functions keep fewer than large ones.
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(slopes[2], slopes[0], rtol=1e-3, atol=2e-3)


def test_what_is_refused_spends_nothing(messy: Path, tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "budget.jsonl", limit_epsilon=9.0, limit_delta=0.1)
    call = ("classify", messy, *ASKED, "--ledger", ledger.path, "--drop", "Größe,Nummer")
    assert "--classes must be given" in refused(*call)
    assert "--classes must be given" in refused(*call, "--classes", "gesund")
    assert "row 1, column 'Befund' must be one of" in refused(*call, "--classes", "a,b")
    assert "--out must be a file in a folder" in refused(*call, *TWO, "--out", tmp_path / "x" / "m")
    assert "'Nummer', which looks like" in refused(*call, *TWO, "--drop", "Größe")
    assert "--label must be" in refused(*call, *TWO, "--label", "Befindlichkeit")
    assert "--range must be" in refused(*call, *TWO, "--range", 5, 1)
    assert not ledger.entries
    assert invoke(*call, *TWO).exit_code == 0
    assert ledger.entries


def test_tables_are_predicted_by_name(tmp_path: Path) -> None:
    age, weight = RNG.uniform(20, 90, 3000), RNG.uniform(40, 120, 3000)
    dose = 60 - 0.4 * age + 0.2 * weight
    lines = [f"{a:.2f};{w:.2f};{d:.2f}".replace(".", ",") for a, w, d in zip(age, weight, dose,
             strict=True)]  # fmt: skip
    (tmp_path / "fit.csv").write_text("age;weight;dose\n" + "\n".join(lines))
    model = tmp_path / "m.json"
    done = invoke("regress", tmp_path / "fit.csv", "--target", "dose", "--epsilon", 4, "--out",
        model, "--feature-ranges", "age=18:99,weight=30:150", "--target-range", 0, 100)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert dpfda.load(model).features == ("age", "weight")
    (tmp_path / "new.csv").write_text("id,weight,height,age\nx,80,170,50\n")
    done = invoke("predict", model, tmp_path / "new.csv", "--id", "id")
    ((who, value),) = list(csv.reader(done.stdout.splitlines()))[1:]
    assert who == "x"
    assert float(value) == pytest.approx(60 - 20 + 16, abs=4)
    (tmp_path / "other.csv").write_text("weight,height\n80,170\n81,171\n")
    assert "must be a column of the file, got 'age'" in refused(
        "predict", model, tmp_path / "other.csv"
    )
    shown = invoke("show", model).stdout
    assert "18 … 99" in shown
    assert "target: 0 to 100" in shown


def test_files_of_another_width_are_not_predicted(tmp_path: Path) -> None:
    model = PrivateCurveClassifier(2.0, value_range=(30, 200), classes=("a", "b"), random_state=0)
    model.fit(CURVES, np.where(ILL, "a", "b"), grid_points=T).model_.save(tmp_path / "m.json")
    np.savetxt(tmp_path / "new.csv", CURVES[:9, :7], delimiter=",", fmt="%.3f")
    call = ("predict", tmp_path / "m.json", tmp_path / "new.csv", "--no-header")
    said = invoke(*call)
    assert said.exit_code == 2
    assert "FILE must be curves at the 20 points of the model" in said.stderr
    assert "got 7 columns" in said.stderr
    outside = invoke(*call, "--grid", "0:30")
    assert "--grid must be inside the domain" in outside.stderr
    assert invoke(*call, "--grid", "0:8").exit_code == 0
    same = invoke(*call, "--grid", "0:8", "--json")
    rows = json.loads(same.stdout)
    assert len(rows) == 9
    assert rows[0]["probability of a"] + rows[0]["probability of b"] == pytest.approx(1, abs=1e-3)


def test_what_was_saved_is_shown_as_json_too(tmp_path: Path) -> None:
    model = PrivateCurveClassifier(2.0, value_range=(30, 200), classes=("a", "b"), random_state=0)
    model.fit(CURVES, np.where(ILL, "a", "b"), grid_points=T).model_.save(tmp_path / "m.json")
    assert invoke("show", tmp_path / "m.json", "--json").stdout == (
        (tmp_path / "m.json").read_text(encoding="utf-8") + "\n"
    )


def test_releases_are_shown_and_predict_nothing(messy: Path, tmp_path: Path) -> None:
    out = tmp_path / "mean.json"
    call = ("release", "mean", messy, "--epsilon", 1, "--range", 30, 200, "--drop", "Größe,Befund")
    done = invoke(*call, "--groups", "Nummer", "--out", out)
    assert done.exit_code == 0, done.output
    assert dpfda.load(out).parameters["n"] == 1500  # persons
    assert invoke("show", out).stdout == done.stdout
    assert "MODEL must be one that predicts" in refused("predict", out, messy)
    (tmp_path / "broken.json").write_text('{"format": 1, "kind": "release"}')
    assert "`summary`" in refused("show", tmp_path / "broken.json")


def test_groups_average_the_curves_of_a_person(tmp_path: Path) -> None:
    rows = [("a", 1.0)] * 3 + [("b", 0.0)] + [("c", 0.5)] * 2
    text = "who,0,1\n" + "".join(f"{who},{value},{value}\n" for who, value in rows)
    (tmp_path / "a.csv").write_text(text)
    done = invoke("release", "mean", tmp_path / "a.csv", "--epsilon", 1e5, "--range", 0, 1,
        "--groups", "who", "--seed", 0, "--json")  # fmt: skip
    document = json.loads(done.stdout)
    assert document["parameters"]["n"] == 3
    np.testing.assert_allclose(document["values"], 0.5, atol=0.01)


def test_curves_of_two_persons_are_as_good_as_one(messy: Path) -> None:
    groups = np.arange(3000) // 2
    model = PrivateCurveClassifier(1.0, value_range=(30, 200), random_state=0)
    model.fit(CURVES, WORDS, grid_points=T, groups=groups)
    assert model.model_.rows == 1500
    assert model.score(CURVES, WORDS) > 0.95
    other = WORDS.copy()
    other[1::2] = other[::2]  # of the two only one may count, whichever it is
    assert model.fit(CURVES, other, grid_points=T, groups=groups).model_.rows == 1500


@pytest.mark.parametrize("channels", [1, 2])
def test_a_studys_model_is_shown(tmp_path: Path, channels: int) -> None:
    """Its coefficients have centers of their own, one for each."""
    X = np.random.default_rng(0).normal(size=(60, 20, channels))
    X = X[:, :, 0] if channels == 1 else X
    study = dpfda.LocalCurveClassifier(5.0, value_range=(0, 4), random_state=0)
    study.fit(X, np.arange(60) % 2).model_.save(tmp_path / "study.json")
    done = invoke("show", tmp_path / "study.json")
    assert done.exit_code == 0, done.output
    assert ("slope 2" if channels == 2 else "slope β(t)") in done.stdout


def test_slopes_of_several_classes_are_named_by_them(tmp_path: Path) -> None:
    kinds = np.array(["a", "b", "c"])[np.arange(900) % 3]
    X = 1.5 + np.random.default_rng(0).normal(scale=0.2, size=(900, 20))
    model = dpfda.PrivateCurveClassifier(
        2.0, value_range=(0, 3), classes=("a", "b", "c"), random_state=0
    )
    model.fit(X, kinds).model_.save(tmp_path / "three.json")
    shown = invoke("show", tmp_path / "three.json").stdout
    assert shown.startswith("discriminant analysis, 900 rows, ")
    assert all(f"slope of {kind}" in shown for kind in "abc")
    assert "values from 0 to 3" in shown


@pytest.mark.parametrize("budget", [None, 12.0, 4.0])
def test_a_classifier_is_judged_by_people_who_are_not_in_it(
    tmp_path: Path, budget: float | None
) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=800)
    rows = label[:, None] * np.sin(np.linspace(0, 3, 9)) + 0.3 * rng.normal(size=(800, 9))
    lines = ["who," + ",".join(map(str, range(9)))]
    known = zip(label, rows, strict=True)
    lines += [f"{'ab'[one]}," + ",".join(f"{x:.3f}" for x in row) for one, row in known]
    file, ledger = tmp_path / "curves.csv", tmp_path / "ledger"
    file.write_text("\n".join(lines), encoding="utf-8")
    call = ["classify", str(file), "--label", "who", "--classes", "a,b", "--epsilon", "4"]
    call += ["--range", "-3", "3", "--evaluation-share", "0.25"]
    if budget is not None:
        call += ["--ledger", str(ledger), "--ledger-limit", str(budget), "1e-5"]
    done = invoke(*call)
    if budget == 4.0:  # enough for the fit alone
        assert done.exit_code == 2
        assert "nothing was spent: fit and evaluation together" in done.stderr
        assert not FileLedger(ledger).entries
        return
    said = r"right about (\S+)% of people \(95 %: \S+% to \S+%\), by .* 200 who"
    found = re.search(said, done.stdout)
    assert found is not None, done.output
    assert float(found[1]) > 95
    assert budget is None or len(FileLedger(ledger).releases) == 2
    several = invoke("classify", *call[1:2], *call[1:])
    assert "--evaluation-share must be left out for several files" in several.stderr


def test_an_evaluation_spends_no_delta(tmp_path: Path) -> None:
    """For so small an ε Gaussian noise is the smaller one: `private_score` would choose it."""
    rows = np.random.default_rng(0).normal(size=(80, 5))
    lines = ["who," + ",".join(map(str, range(5)))]
    lines += [f"{'ab'[k % 2]}," + ",".join(f"{x:.3f}" for x in row) for k, row in enumerate(rows)]
    file, ledger = tmp_path / "curves.csv", tmp_path / "ledger"
    file.write_text("\n".join(lines), encoding="utf-8")
    call = ["classify", str(file), "--label", "who", "--classes", "a,b", "--range", "-3", "3"]
    call += ["--epsilon", "0.05", "--delta", "0.1", "--evaluation-share", "0.3"]
    done = invoke(*call, "--ledger", str(ledger), "--ledger-limit", "1", "0.3")
    assert done.exit_code == 0, done.output
    *_, evaluation = FileLedger(ledger).entries
    assert type(evaluation.event) is PureEvent
