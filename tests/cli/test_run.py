"""``dpfda run``: a recorded plan is rehearsed on made-up data and runs once for real."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import load
from dpfda.cli import _made_up, run
from dpfda.cli._analyses import AnalysisPlan
from dpfda.cli._group import Complaint, dpfda
from dpfda.privacy.ledger_file import FileLedger

N = 1200
T = np.linspace(0, 24, 13)
PLAN = """
title = "Activity: a study"
ledger = "budget.jsonl"
limit = [3.0, 1e-5]

[data]
file = "activity.csv"
people = 1200
unit = "patient"
id = "who"

[record]
curator = "the clinic"
data = "activity of patients"
date = 2026-01-31

[[analysis]]
name = "mean activity"
command = "release mean"
epsilon = 0.5
range = [0, 10]
drop = ["sex", "age", "score"]

[[analysis]]
name = "score by age"
command = "regress"
target = "score"
target-range = [0, 1]
epsilon = 1
feature-ranges = {age = [18, 99], sex = ["f", "m"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = 7 + 0.5 * np.sin(T / 4) + 0.2 * rng.normal(size=(N, 1))
    lines = [",".join(["who", "sex", "age", "score", *(f"{t:g}" for t in T)])]
    for number, row in enumerate(rows):
        own = [f"a{number}", "fm"[number % 2], f"{rng.uniform(20, 80):.1f}", f"{rng.random():.3f}"]
        lines.append(",".join([*own, *(f"{x:.3f}" for x in row)]))
    (tmp_path / "activity.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def call(folder: Path, *arguments: str) -> Any:
    words = ["run", str(folder / "plan.toml"), *arguments]
    return CliRunner().invoke(dpfda, words, catch_exceptions=False)


def code(folder: Path) -> str:
    said = call(folder).stdout
    return str(said.rpartition("--confirm ")[2].strip())


def spent(folder: Path) -> list[str]:
    return [entry.label for entry in FileLedger(folder / "budget.jsonl").entries]


def test_a_rehearsal_uses_no_row_and_spends_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = call(folder)
    assert first.exit_code == 0
    text = " ".join(first.stdout.split())
    assert "made-up people. No row of the data was used, and nothing was spent." in text
    assert "│ ε = 0.5, δ = 1e-06" in text
    assert "mean activity: Expect an error of" in text
    assert sorted(path.name for path in folder.iterdir()) == ["activity.csv", "plan.toml"]
    path = folder / "activity.csv"
    header, *rows = path.read_text().splitlines()
    others = [row.replace("7.", "1.").replace("a", "b") for row in reversed(rows)]
    path.write_text("\n".join([header, *others[:50]]) + "\n")
    assert call(folder).stdout == first.stdout


def test_a_plan_runs_once_and_shows_its_results_again(folder: Path) -> None:
    done = call(folder, "--confirm", code(folder))
    assert done.exit_code == 0, done.output
    results = folder / "plan-results"
    released = load(results / "mean-activity.json")
    assert released.guarantee.sampler == "exact"
    assert released.guarantee.unit == "patient"
    assert np.abs(released.values() - (7 + 0.5 * np.sin(T / 4))).max() < 0.5  # of the real data
    once = spent(folder)
    assert {label.partition(" / ")[0].partition(", ")[2] for label in once} == {
        "mean activity",
        "score by age",
    }
    assert 'curator: "the clinic"' in (results / "mean-activity.yaml").read_text()
    assert "Activity: a study" in (results / "index.html").read_text()
    again = call(folder)
    assert again.stdout.count("stored; nothing was spent now") == 2
    assert "score by age" in again.stdout
    assert call(folder, "--confirm", code_of(folder)).exit_code == 0
    (folder / "activity.csv").unlink()  # who reads results needs no data
    assert call(folder).exit_code == 0
    assert spent(folder) == once


def code_of(folder: Path) -> str:
    return AnalysisPlan.read(folder / "plan.toml").code


def test_two_runs_at_once_spend_once(folder: Path) -> None:
    plan = AnalysisPlan.read(folder / "plan.toml")

    def alone(_: int) -> int:
        with run._alone(plan):
            return len(run._run(plan)[0])

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(alone, range(2))) == [0, 2]  # the second one finds two results
    parts = [label for label in spent(folder) if "score by age" in label]
    assert len(parts) == len(set(parts))


def test_a_changed_plan_or_file_is_refused(folder: Path) -> None:
    known = code(folder)
    path, data = folder / "plan.toml", folder / "activity.csv"
    path.write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.6"))
    refused = call(folder, "--confirm", known)
    assert refused.exit_code == 2
    assert "--confirm must be the code of this plan, which its rehearsal prints" in refused.stderr
    assert not (folder / "budget.jsonl").exists()
    path.write_text("# a comment changes nothing\n" + PLAN)
    assert call(folder, "--confirm", known).exit_code == 0
    once = spent(folder)
    path.write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.6"))
    for asked in ((), ("--confirm", code_of(folder))):
        refused = call(folder, *asked)
        assert refused.exit_code == 2
        assert "has changed since it was run" in refused.stderr
        assert "`results` of its own" in refused.stderr
    path.write_text(PLAN)
    data.write_text(data.read_text().replace("a0,", "zz,"))
    for asked in ((), ("--confirm", known)):
        refused = call(folder, *asked)
        assert refused.exit_code == 2
        assert "the data of" in refused.stderr
        assert "zz" not in refused.output
    assert spent(folder) == once


def test_a_fingerprint_of_the_data_stays_beside_the_ledger(folder: Path) -> None:
    assert call(folder, "--confirm", code(folder)).exit_code == 0
    place = folder / f"budget.jsonl.{code_of(folder)}.data"
    assert place.stat().st_mode & 0o077 == 0
    kept = json.loads(place.read_text())
    published = [path.read_text() for path in (folder / "plan-results").iterdir()]
    assert all(kept["digest"] not in text for text in published)


def test_a_killed_analysis_stays_charged_and_does_not_stop_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, original = code(folder), run._call

    def killed(plan: Any, one: Any, files: Any, ledger: Path, **more: Any) -> None:
        if one.name == "mean activity" and ledger == plan.ledger:
            more["out"] = folder / "lost.json"
            original(plan, one, files, ledger, **more)
            raise KeyboardInterrupt
        original(plan, one, files, ledger, **more)

    with monkeypatch.context() as patch:
        patch.setattr(run, "_call", killed)
        assert call(folder, "--confirm", known).exit_code == 1
    once = spent(folder)
    assert once
    seen = call(folder)  # it reads, and runs nothing
    assert "not run yet: score by age" in seen.stderr
    assert seen.stderr.endswith(f"(0 of 2 analyses have results in {folder / 'plan-results'})\n")
    told = call(folder, "--confirm", known)
    assert told.exit_code == 2
    assert "Error: mean activity was charged on " in told.stderr
    assert "so it is not run again: if a message named another file" in told.stderr
    assert "write a new plan for it, with `results` of its own" in told.stderr
    results = folder / "plan-results"
    assert load(results / "score-by-age.json").guarantee.epsilon <= 1
    assert "no result, charged" in (results / "index.html").read_text()
    after = spent(folder)
    assert after[: len(once)] == once
    assert all("score by age" in label for label in after[len(once) :])
    assert call(folder, "--confirm", known).exit_code == 2  # for good, and nothing is spent
    assert spent(folder) == after
    (folder / "lost.json").rename(results / "mean-activity.json")
    assert call(folder).exit_code == 0


def test_a_refused_analysis_does_not_stop_the_later_ones(folder: Path) -> None:
    path = folder / "activity.csv"
    lines = path.read_text().splitlines()
    lines[4] = ",".join([*lines[4].split(",")[:4], *[""] * len(T)])  # a curve without a value
    path.write_text("\n".join(lines) + "\n")
    told = call(folder, "--confirm", code(folder))
    assert told.exit_code == 2
    assert "Error: mean activity: " in told.stderr
    assert "(it spent nothing) (1 of 2 analyses have results in " in told.stderr
    assert (folder / "plan-results" / "score-by-age.json").exists()
    assert all("score by age" in label for label in spent(folder))


def test_plans_that_share_a_ledger_keep_their_own_fingerprints(folder: Path) -> None:
    other = folder / "other.toml"
    other.write_text(PLAN.replace("Activity: a study", "Another one").replace("0.5\n", "0.4\n"))
    plans = [AnalysisPlan.read(path) for path in (folder / "plan.toml", other)]

    def often(plan: AnalysisPlan) -> None:
        for _ in range(40):
            run._keep_fingerprint(plan)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(often, plans))
    for plan in plans:
        kept = json.loads(run._fingerprint_file(plan).read_text())
        assert kept["digest"] == run._fingerprint(plan, bytes.fromhex(kept["salt"]))


def test_a_run_that_was_stopped_goes_on_with_what_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = code(folder)
    original = run._call

    def stop(plan: Any, one: Any, files: Any, ledger: Path, **more: Any) -> None:
        if one.name == "score by age" and ledger == plan.ledger:
            raise Complaint("stopped")
        original(plan, one, files, ledger, **more)

    with monkeypatch.context() as patch:
        patch.setattr(run, "_call", stop)
        stopped = call(folder, "--confirm", known)
    assert stopped.exit_code == 2
    assert "score by age: stopped (it spent nothing) (1 of 2 analyses" in stopped.stderr
    assert "not run yet: score by age" in call(folder).stderr
    once = spent(folder)
    assert call(folder, "--confirm", known).exit_code == 0
    assert spent(folder)[: len(once)] == once
    assert len([label for label in spent(folder) if "mean activity" in label]) == len(once)


def test_a_budget_that_is_too_small_is_refused_before_the_first_analysis(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN.replace("limit = [3.0, 1e-5]", "limit = [0.8, 1e-5]"))
    refused = call(folder)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: score by age: ")
    refused = call(folder, "--confirm", code_of(folder))
    assert refused.exit_code == 2
    assert not (folder / "budget.jsonl").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('ledger = "budget.jsonl"', "", "ledger must be given"),
        ("limit = [3.0, 1e-5]", "", "limit must be given, like [3.0, 1e-6]"),
        ("people = 1200", "", "people must be an integer, 2 or above"),
        ("epsilon = 0.5", 'epsilon = "x"', "mean activity: --epsilon must be a number"),
        ("epsilon = 0.5", "epsilom = 0.5", "unknown option of release 'epsilom'; did you mean"),
        ("epsilon = 0.5", "epsilon = 0.5\nseed = 1", "seed of 'mean activity' must be left out"),
        ("release mean", "release meen", "mean activity: "),
        ("release mean", "predict", "command of 'mean activity' must be like"),
        ("score by age", "mean-activity", "name must be different for each analysis"),
        ("score by age", "a/b", "name of an analysis must be given: letters"),
        ("range = [0, 10]", "range = [0]", "range must be a list of 2 numbers"),
        ("[data]", "[dota]", "unknown entry of the plan 'dota'; did you mean 'data'?"),
        ('"sex", "age"', '"age"', "the points of its curves: column 'sex'. Leave it out"),
        ('target = "score"', 'target = "skore"', "score by age: --target must be a column of"),
    ],
)
def test_refusals_of_a_plan(folder: Path, old: str, new: str, said: str) -> None:
    assert old in PLAN
    (folder / "plan.toml").write_text(PLAN.replace(old, new))
    refused = call(folder)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (folder / "budget.jsonl").exists()


KINDS = {
    "long": ("who,t,x\n", "release mean", "id = 'who'\nrange = [0, 1]\ndomain-range = [0, 5]"),
    "density": ("a,b\n", "release density", "feature-ranges = {a = [0, 1]}"),
    "machine": ("a,b\n", "release kernel-machine",
                "feature-ranges = {a = [0, 1]}\ntarget = 'b'\ntarget-range = [0, 1]"),
    "scalar": ("dose;sex;0,5;1;1,5;2\n", "release function-on-scalar",
               "covariates = 'dose,sex'\nrange = [0, 1]\n"
               "feature-ranges = {dose = [0, 9], sex = ['f', 'm']}"),
    "fpca": ("p,0,1,2,3\n", "release fpca", "bound = 2.0\ncenter = 1.0\ngroups = 'p'"),
    "sparse": ("t0,t1,t2,t3,t4,t5,t6,t7\n", "release mean", "design = 'sparse'\nrange = [0, 1]"),
    "slope": ("y,0,1,2,3\n", "regress", "target = 'y'\ntarget-range = [0, 1]\nrange = [0, 1]"),
    "logistic": ("y,a,b\n", "regress",
                 "target = 'y'\nlink = 'logistic'\nclasses = ['u', 'v']\nfeature-norm-bound = 1"),
    "classes": ("y,0,1,2,3\n", "classify", "label = 'y'\nclasses = 'u,v'\nrange = [0, 1]"),
    "bare": ("", "release mean", "range = [0, 1]\nfill = true"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_analysis_is_rehearsed_from_a_header(kind: str, tmp_path: Path) -> None:
    header, command, options = KINDS[kind]
    mark = ";" if ";" in header else ","
    row = mark.join(["1"] * (header.count(mark) + 1 if header else 3))
    (tmp_path / "rows.csv").write_text(header + f"{row}\n" * 4)
    (tmp_path / "plan.toml").write_text(
        f"ledger = 'l.jsonl'\nlimit = [5, 1e-5]\n[data]\npeople = 600\nfile = 'rows.csv'\n"
        f"[[analysis]]\nname = 'one'\ncommand = '{command}'\nepsilon = 2\n{options}\n"
    )
    rehearsed = call(tmp_path)
    assert rehearsed.exit_code == 0, rehearsed.stderr
    assert "ε = 2" in rehearsed.stdout


def test_made_up_numbers_are_inside_their_public_ranges(folder: Path, tmp_path: Path) -> None:
    plan = AnalysisPlan.read(folder / "plan.toml")
    for one in plan.analyses:
        (path,), how = _made_up.made_up_files(
            tmp_path, one.words[0], run._options(one), people=300, seed=1
        )
        lines = [line.split(";") for line in path.read_text().splitlines()]
        columns = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=True))
        assert how["header"]
        if one.name == "mean activity":
            curves = np.array([columns[f"{t:g}"] for t in T], dtype=float)
            assert 0 <= curves.min() < 3
            assert 7 < curves.max() <= 10
        else:
            assert set(columns["sex"]) == {"f", "m"}
            ages = np.array(columns["age"], dtype=float)
            assert 18 <= ages.min() < 25
            assert 90 < ages.max() <= 99
