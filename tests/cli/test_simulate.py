"""``dpfda simulate``: every method on curves and tables of a file, stamped as a simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda
from dpfda.cli.simulate import METHODS, STAMP
from dpfda.datasets import simulate_001
from dpfda.estimators.mrma_classifier import MRMAClassifier
from dpfda.local.recipe import in_words
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.simulate import people_from, simulate

N = 600
RANGES = '{"age": [18, 99], "sex": ["f", "m"]}'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves at two sites and rows of a table, both with clearly different classes."""
    monkeypatch.chdir(tmp_path)
    rng, T = np.random.default_rng(0), np.linspace(0, 1, 6)
    ill = np.arange(N) // 2 % 2  # two rows of a person have one label
    curves = (2 * ill[:, None] - 1) * np.sin(3 * T) + rng.normal(0, 0.5, (N, 6))
    lines = ["ill,site,who," + ",".join(f"{t:g}" for t in T)]
    for row, curve in enumerate(curves):
        cells = ",".join(f"{value:.3f}" for value in curve)
        lines.append(f"{('no', 'yes')[ill[row]]},{'ab'[row // 4 % 2]},p{row // 2},{cells}")
    Path("curves.csv").write_text("\n".join(lines) + "\n")
    ages = 55 + 20 * (2 * ill - 1) + rng.normal(0, 10, N)
    rows = [f"{('no', 'yes')[ill[k]]},{ages[k]:.1f},{'fm'[k % 2]}" for k in range(N)]
    Path("table.csv").write_text("\n".join(["ill,age,sex", *rows]) + "\n")


CURVES = ("curves.csv", "--range", "-3", "3", "--servers", "site", "--groups", "who")
TABLE = ("table.csv", "--feature-ranges", RANGES)


def run(*words: str) -> Any:
    call = ["simulate", *words, "--label", "ill"]
    return CliRunner().invoke(dpfda, call, prog_name="dpfda", catch_exceptions=False)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_a_file(method: str) -> None:
    # At ε = 8 a reply is nearly the truth: whoever learns nothing errs on about half. Members that
    # are not linear learn more slowly.
    epsilon = 20 if method.startswith("mrma-") else 8
    for call in (CURVES, *([TABLE] if method != "multi-server" else [])):
        price = ("--epsilon", str(epsilon))
        done = run(*call, "--classes", "no,yes", "--method", method, *price, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["simulation"] is True
        assert found["notes"][0] == STAMP
        mine, guessing, plain = found["rows"]
        assert [row["ε"] for row in found["rows"]] == [epsilon, None, None]
        assert mine["error, %"] < 0.7 * guessing["error, %"]
        assert plain["error, %"] <= mine["error, %"] + 2
        # A quarter of the people tests; of curves two rows each.
        assert mine["test rows"] == N // 4
        assert mine["people"] == (225 if call is CURVES else 450)


def test_a_seed_repeats_it_and_several_budgets_are_rows() -> None:
    call = (*TABLE, "--epsilon", "0.5", "--epsilon", "4", "--json", "--seed", "3")
    first, again, other = run(*call), run(*call), run(*call[:-1], "4")
    assert first.stdout == again.stdout != other.stdout
    assert [row["ε"] for row in json.loads(first.stdout)["rows"]] == [0.5, 4, None, None]


@pytest.mark.parametrize(("words", "said"), [
    (("table.csv",), "--range or --feature-ranges must be given"),
    ((*TABLE, "--domain-range", "0", "1"), "--domain-range must be left out"),
    ((*TABLE, "--method", "multi-server"), "--servers must be given"),
    ((*TABLE, "--classes", "no,maybe"), "must be one of the classes no,maybe"),
    ((*TABLE, "--test-share", "1"), "--test-share must be"),
    ((*TABLE, "--epsilon", "0"), "--epsilon must be"),
])  # fmt: skip
def test_what_cannot_be_simulated_is_refused(words: tuple[str, ...], said: str) -> None:
    done = run(*words, "--epsilon", "1")
    assert done.exit_code == 2
    assert said in done.stderr


def test_plan_writes_the_study_of_the_papers() -> None:
    call = ["plan", "--method", "mrma", "--people", "400", "--epsilon", "8", "--range", "-3", "3"]
    call += ["--classes", "yes,no", "--evaluation-share", "0.1"]
    done = CliRunner().invoke(dpfda, [*call, "--json"], catch_exceptions=False)
    plan = StudyPlan.from_dict(json.loads(done.stdout))
    data = simulate_001(400, random_state=0)
    words = np.where(data.y > 0, "yes", "no")
    known = {"value_range": (-3, 3), "classes": ("no", "yes"), "evaluation_share": 0.1}
    fitted = MRMAClassifier(8.0, **known, random_state=0)
    fitted.fit(data.X, words, grid_points=data.grid_points)
    for name in ("encoder", "design", "classes", "protects", "unit"):
        assert getattr(plan, name) == getattr(fitted.plan_, name), name
    people = people_from(plan, data.X, words, grid_points=data.grid_points)
    model = simulate(plan, people, source=SimulationSource(0)).model
    assert np.mean(model.predict(data.X, grid_points=data.grid_points) != words) < 0.35
    text = CliRunner().invoke(dpfda, call, catch_exceptions=False).stdout
    assert [word in text for word in ("report", "evaluate", "check")] == [True] * 3
    for more in (["--temperature-share", "0.1"], ["--non-private-error", "0.1"]):
        done = CliRunner().invoke(dpfda, [*call, *more])
        assert done.exit_code == 2
        assert f"{more[0]} must be left out with --method mrma" in done.stderr


def test_plan_asks_a_participant_about_several_classifiers() -> None:
    call = ["plan", "--people", "400", "--epsilon", "2", "--range", "-3", "3", "--classes", "a,b"]
    call += ["--classifiers-per-person", "4"]
    done = CliRunner().invoke(dpfda, [*call, "--method", "mrma", "--json"], catch_exceptions=False)
    plan = StudyPlan.from_dict(json.loads(done.stdout))
    assert plan.asks["member"]["m"] == 4
    said = in_words(plan)[0][1]
    assert said["answers"] == 4
    assert said["true"] == f"{1 / (1 + np.exp(-0.5)):.3f}"  # ε/4 for each
    done = CliRunner().invoke(dpfda, call)
    assert done.exit_code == 2
    assert "--classifiers-per-person must be left out without --method mrma" in done.stderr
