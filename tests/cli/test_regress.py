"""`dpfda regress`: files in, coefficients and a guarantee out, nothing private in between."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda
from dpfda.privacy.ledger_file import FileLedger


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


ONE = ("--target", "dose", "--epsilon", "1", "--target-range", "0", "100")
LOGISTIC = (*ONE[:4], "--feature-norm-bound", "999", "--link", "logistic")


def run(*arguments):
    return CliRunner().invoke(dpfda, ["regress", *map(str, arguments)])


def linear(folder, *more, file="patients.csv"):
    return run(
        folder / file, "--target", "dose", "--columns", "age,weight", "--epsilon", "2",
        "--feature-ranges", folder / "ranges.json", "--target-range", "0", "100", *more,
    )  # fmt: skip


def test_json(patients):
    done = linear(patients, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    slopes = {row["feature"]: row["value"] for row in result["coefficients"]}
    assert slopes["age"] == pytest.approx(-0.4, abs=0.2)
    assert result["rows"] == 4000
    assert result["guarantee"]["sampler"] == "exact"
    assert result["guarantee"]["epsilon"] == 2


def test_table_and_other_files(patients):
    assert "age" in linear(patients).output
    npz = linear(patients, "--json", file="patients.npz")
    assert json.loads(npz.stdout)["rows"] == 4000
    whole = linear(patients, "--json", "--mechanism", "output_perturbation")
    assert json.loads(whole.stdout)["stages"] == 1


def test_brackets_in_names_are_shown(tmp_path):
    (tmp_path / "t.csv").write_text("age [years],dose\n30,1\n40,2\n50,3\n60,3\n")
    ranges = ("--feature-ranges", "age [years]=18:100", "--target-range", "0", "5")
    done = run(tmp_path / "t.csv", *ONE[:4], *ranges, "--delta", "1e-5", "--seed", "1")
    assert "age [years]" in done.output


def test_logistic(patients):
    done = run(
        patients / "patients.csv", "--target", "old", "--columns", "age,weight", "--epsilon", "2",
        "--link", "logistic", "--classes", "0,1", "--feature-ranges", patients / "ranges.json",
        "--seed", "1", "--json",
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["guarantee"]["sampler"] == "simulation"
    slopes = {row["feature"]: row["value"] for row in result["coefficients"]}
    assert slopes["age"] > 5 * abs(slopes["weight"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([*ONE, "--target", "height", "--feature-norm-bound", "1"], "--target"),
        ([*ONE], "bounds are public"),
        ([*ONE, "--epsilon", "-1", "--feature-norm-bound", "1"], "--epsilon must"),
        ([*ONE, "--delta", "2", "--feature-norm-bound", "1"], "--delta"),
        ([*ONE, "--feature-norm-bound", "-1"], "--feature-norm-bound must"),
        ([*ONE, "--feature-norm-bound", "1", "--seed", "-1"], "--seed"),
        ([*ONE, "--feature-norm-bound", "1", "--target-range", "9", "0"], "--target-range must"),
        ([*ONE[:4], "--feature-norm-bound", "1"], "--target-range must be given"),
        ([*LOGISTIC, "--classes", "0,1"], "one of the classes 0,1"),
        ([*LOGISTIC, "--classes", "1"], "--classes must be given"),
        (LOGISTIC, "--classes must be given"),
    ],
)
def test_refusals_are_one_line_and_show_no_value(patients, options, reason):
    done = run(patients / "patients.csv", *options)
    assert done.exit_code == 2
    assert reason in done.output
    assert done.output.count("\n") == 1
    first = (patients / "patients.csv").read_text().split("\n")[1].split(",")[0]
    assert first not in done.output


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"age": [18, 100', "JSON like"),
        ("[1, 2, 3]", "JSON like"),
        ('{"age": [18, 100]}', "a range for the feature 'weight'"),
        ('{"age": [100, 18], "weight": [30, 150]}', "--feature-ranges['age']"),
        ('{"age": 5, "weight": [30, 150]}', "--feature-ranges['age']"),
    ],
)
def test_bad_ranges_are_named(patients, text, reason):
    (patients / "ranges.json").write_text(text)
    done = linear(patients)
    assert done.exit_code == 2
    assert reason in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("ragged.csv", b"age,weight,dose\n41.5,70,30\n1,2,3,41.5,5,6\n"),
        ("binary.csv", bytes(range(256)) * 8),
        ("words.csv", b"age,weight,dose\n41.5,heavy,30\n"),
        ("no-rows.csv", b"age,weight,dose\n"),
        ("broken.npz", b"PK41.5"),
        ("broken.parquet", b"PAR141.5"),
        ("table.xlsx", b"41.5"),
    ],
)
@pytest.mark.parametrize("method", ["moments", "output_perturbation"])
def test_unreadable_files_are_one_line_and_show_no_value(patients, name, content, method):
    (patients / name).write_bytes(content)
    done = linear(patients, "--mechanism", method, file=name)
    assert done.exit_code == 2, done.exception
    assert done.output.startswith("Error: ")
    assert done.output.count("\n") == 1
    assert "41.5" not in done.output
    assert "heavy" not in done.output


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("20,,30,1", "row 4001, column 'weight' must be given"),
        ("20,heavy,30,1", "row 4001, column 'weight' must be a number"),
        ("20,70,,1", "row 4001, column 'dose' must be given"),
        ("20,70,inf,1", "row 4001, column 'dose' must be finite"),
    ],
)
def test_a_column_with_a_bad_cell_is_named(patients, row, reason):
    with (patients / "patients.csv").open("a") as table:
        table.write(row + "\n")
    done = linear(patients)
    assert done.exit_code == 2
    assert reason in done.output
    assert "heavy" not in done.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--epsilon", "50"], "--epsilon must be below 19.7"),
        (["--delta", "0"], "--delta must be"),
    ],
)
def test_what_a_method_refuses_names_the_option(patients, options, reason):
    done = linear(patients, "--mechanism", "objective_perturbation", *options)
    assert done.exit_code == 2
    assert reason in done.output


def test_arrays_of_different_lengths_are_refused(patients):
    np.savez(patients / "odd.npz", age=np.ones(3), weight=np.ones(4), dose=np.ones(3))
    done = linear(patients, file="odd.npz")
    assert done.exit_code == 2
    assert "of one length" in done.output


def test_values_outside_their_ranges_are_moved_to_the_end(patients):
    with (patients / "patients.csv").open("a") as table:
        table.write("333.25,70,30,1\n")
    done = linear(patients, "--json", "--seed", "1")
    assert json.loads(done.stdout)["rows"] == 4001
    whole = patients / "patients.csv"
    whole.write_text(whole.read_text().replace("333.25,70,30,1", "100,70,30,1"))
    assert json.loads(linear(patients, "--json", "--seed", "1").stdout) == json.loads(done.stdout)


def test_a_dot_in_the_name_is_no_suffix(patients):
    (patients / "patients.csv").rename(patients / "ward.3.csv")
    assert linear(patients, file="ward.3.csv").exit_code == 0


def test_clipped_coefficients_come_with_a_note(patients):
    clipped = json.loads(linear(patients, "--seed", "0", "--epsilon", "0.5", "--json").stdout)
    assert clipped["fit"]["clips"]
    assert {row["low"] for row in clipped["coefficients"]} == {None}
    assert "gaussian_fm" in clipped["notes"][0]
    table = linear(patients, "--seed", "0").output
    assert "clipped rows" in table
    assert "95 % interval" not in table
    whole = linear(patients, "--seed", "0", "--mechanism", "gaussian_fm").output
    assert "95 % interval" in whole
    assert "least-squares coefficients of these rows" in " ".join(whole.split())


def test_a_note_says_that_clipped_coefficients_may_be_smaller(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 85, 4000)
    dose = 100 + 0.8 * age - 0.004 * age**2 + rng.normal(0, 5, 4000)
    table = np.column_stack([age, age**2, dose])
    path = tmp_path / "square.csv"
    np.savetxt(path, table, delimiter=",", header="age,square,dose", comments="")
    call = ["regress", str(path), "--target", "dose", "--epsilon", "0.5", "--target-range", "60",
            "200", "--feature-ranges", "age=18:85,square=324:7225", "--seed", "0"]  # fmt: skip
    found = json.loads(CliRunner().invoke(dpfda, [*call, "--json"]).stdout)
    values = {row["feature"]: row["value"] for row in found["coefficients"]}
    assert values["age"] < 0.8 * 0.9  # and not larger
    (note, *_) = found["notes"]
    assert "They are larger" not in note
    assert "shrinkage against the noise smaller" in note
    assert "with either sign" in note


def test_few_rows_warn_on_a_line(patients):
    head = (patients / "patients.csv").read_text().split("\n")[:31]
    (patients / "few.csv").write_text("\n".join(head) + "\n")
    done = linear(patients, "--epsilon", "0.1", file="few.csv")
    assert done.exit_code == 0
    assert "warning: too few rows" in done.output


def test_a_ledger_on_disk(patients):
    budget = patients / "budget.jsonl"
    missing = linear(patients, "--ledger", budget)
    assert missing.exit_code != 0
    assert "--ledger-limit must be given" in missing.output
    begun = linear(patients, "--ledger", budget, "--ledger-limit", "2.5", "1e-5", "--json")
    assert begun.exit_code == 0, begun.output
    assert len(FileLedger(budget).entries) == json.loads(begun.stdout)["stages"] == 3
    refused = linear(patients, "--ledger", budget)
    assert refused.exit_code != 0
    assert len(FileLedger(budget).entries) == 3
    assert linear(patients, "--ledger-limit", "3", "1e-5").exit_code != 0


def test_categories_become_numbers_and_predict_again(patients):
    lines = (patients / "patients.csv").read_text().strip().split("\n")
    worded = [f"{lines[0]},ward"] + [f"{line},{'ab'[k % 2]}" for k, line in enumerate(lines[1:])]
    (patients / "patients.csv").write_text("\n".join(worded) + "\n")
    public = {"age": [18, 100], "weight": [30, 150], "ward": ["a", "b"]}
    (patients / "ranges.json").write_text(json.dumps(public))
    model = patients / "model.json"
    done = linear(patients, "--columns", "age,weight,ward", "--json", "--out", model)
    assert done.exit_code == 0, done.output
    features = [row["feature"] for row in json.loads(done.stdout)["coefficients"]]
    assert features == ["age", "weight", "ward=b"]
    # Columns are found by name, in whatever order, others are not looked at.
    (patients / "new.csv").write_text("ward,note,weight,age\na,x,80,30\nb,y,80,95\n")
    said = CliRunner().invoke(dpfda, ["predict", str(model), str(patients / "new.csv")])
    assert said.exit_code == 0, said.output
    young, old = map(float, said.stdout.split()[1:])
    assert young - old == pytest.approx(0.4 * 65, abs=15)
    (patients / "new.csv").write_text("ward,weight\na,80\nb,80\n")
    said = CliRunner().invoke(dpfda, ["predict", str(model), str(patients / "new.csv")])
    assert said.exit_code == 2
    assert "age" in said.output


def test_ranges_by_name_choose_the_features(patients):
    lines = (patients / "patients.csv").read_text().splitlines()
    lines = [f"{'day' if not row else '2021-03-01'},{line}" for row, line in enumerate(lines)]
    (patients / "dated.csv").write_text("\n".join(lines))
    done = run(
        patients / "dated.csv", *ONE, "--feature-ranges", "weight=30:150", "--unit", "ward",
        "--plot", patients / "a.svg", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert [row["feature"] for row in result["coefficients"]] == ["weight"]
    assert result["guarantee"]["unit"] == "ward"
    assert (patients / "a.svg").exists()
    refused = run(patients / "dated.csv", *ONE, "--feature-ranges", "0:150")
    assert "column 'day', which looks like dates" in refused.stderr


@pytest.fixture
def days(tmp_path):
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 20)
    X = rng.normal(size=(3000, 1)) + rng.normal(size=(3000, 1)) * np.sin(3 * t)
    y = X.mean(axis=1) + 0.1 * rng.normal(size=3000)
    header = "dose," + ",".join(f"{point:.4f}" for point in t)
    rows = np.column_stack([y, X])
    path = tmp_path / "days.csv"
    np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.5f")
    return path


def test_curves(days, tmp_path):
    asked = (days, *ONE[:4], "--target-range", "-4", "4", "--range", "-5", "5", "--seed", "0")
    shown = run(*asked, "--plot", tmp_path / "slope.png")
    assert shown.exit_code == 0, shown.output
    assert "95 % band" in " ".join(shown.output.split())
    assert (tmp_path / "slope.png").stat().st_size > 1000
    document = json.loads(run(*asked, "--json").stdout)
    assert document["recipe"]["encoder"] is not None
    assert len(document["coefficients"]) == 8


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        (("--range", "-5", "5", "--feature-ranges", "0:1"), "--feature-ranges must be left out"),
        (("--range", "5", "-5"), "--range must be a pair"),
        (("--feature-ranges", "0:1", "--domain-range", "0", "1"), "--domain-range must be left"),
        (("--range", "-5", "5", "--link", "logistic"), "--link must be linear for curves"),
    ],
)
def test_curves_and_tables_are_kept_apart(days, more, rule):
    assert rule in run(days, *ONE, *more).stderr


def test_one_file_and_two_are_read_alike(tmp_path):
    """Empty cells count as 0 where rows have a length, and ids are refused, however many files."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, (400, 2))
    lines = [f"{a:.3f},{b:.3f},{a:.3f}" for a, b in rows]
    lines[3] = f",0.2,{rows[3, 0]:.3f}"
    parts = {"whole": lines, "first": lines[:150], "second": lines[150:]}
    for name, some in parts.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,y", *some]) + "\n")
    asked = ["--target", "y", "--target-range", "-1", "1", "--epsilon", "1", "--seed", "0"]
    asked += ["--feature-norm-bound", "1", "--fill", "--json"]
    whole = run(tmp_path / "whole.csv", *asked)
    several = CliRunner().invoke(
        dpfda, ["regress", *(str(tmp_path / f"{n}.csv") for n in ("first", "second")), *asked]
    )
    assert (whole.exit_code, several.exit_code) == (0, 0), several.output
    assert json.loads(whole.stdout)["coefficients"] == json.loads(several.stdout)["coefficients"]
    empty = run(tmp_path / "whole.csv", *(part for part in asked if part != "--fill"))
    assert "row 4, column 'a' must be given (pass --fill, or --drop-empty" in empty.output
    for name, first in (("one", 1), ("two", 500)):
        numbered = [f"{first + place},{line}" for place, line in enumerate(lines[4:150])]
        (tmp_path / f"{name}.csv").write_text("\n".join(["n,a,b,y", *numbered]) + "\n")
    paths = [str(tmp_path / f"{name}.csv") for name in ("one", "two")]
    for files in (paths[:1], paths):
        done = CliRunner().invoke(dpfda, ["regress", *files, *asked])
        assert done.exit_code == 2
        assert "column 'n', which looks like row numbers" in done.stderr


def test_classes_belong_to_another_link(patients):
    done = run(patients / "patients.csv", *ONE, "--feature-norm-bound", "1", "--classes", "no,yes")
    assert done.exit_code == 2
    assert "--classes must be left out, or given with --link logistic" in done.stderr
