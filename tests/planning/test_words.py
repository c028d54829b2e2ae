"""What a forecast writes: consent, program, commands, page."""

from __future__ import annotations

import json
import math
import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import forecast, plan_study
from dpfda.cli._group import dpfda as main
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidParameter
from dpfda.planning.words import consent, organizer, take_part

FACTS = ["--range", "-6", "6", "--classes", "no,yes"]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Command and program forecast the error alone, without the curves and studies beside it."""
    monkeypatch.setattr("dpfda.cli.plan.forecast", partial(forecast, also=()))
    monkeypatch.setattr("dpfda.forecast", partial(forecast, also=()))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["plan", *FACTS, *arguments])


@pytest.mark.parametrize("epsilon", [0.5, math.log(3), 2.0, 5.0])
def test_consent_states_the_mechanism(epsilon: float) -> None:
    text = consent(plan_study(3000, epsilon, value_range=(-6, 6), classes=("no", "yes")))
    for line in re.findall(r"with probability.*", text):
        likely, unlikely = map(float, re.findall(r"\d\.\d+(?:e-\d+)?", line))
        assert likely / unlikely == pytest.approx(math.exp(epsilon), rel=0.01)
        others = int(found[1]) if (found := re.search(r"of the (\d+) other", line)) else 1
        assert likely + others * unlikely == pytest.approx(1, abs=0.002)
    assert f"{math.exp(epsilon):.4g} times" in text
    assert "ever leaves your device" in text


def test_consent_to_directions_states_the_odds() -> None:
    plan = plan_study(40_000, 2.0, feature_ranges=[(0, 1)] * 6, classes=("no", "yes"))
    assert plan.design["name"] == "vectors"
    assert "near your answer is 7.389 times as likely" in consent(plan)


def test_consent_says_what_is_sent_in_clear() -> None:
    facts = {"value_range": (0, 1), "classes": ("no", "yes"), "protects": "labels"}
    assert "sent as it is" in consent(plan_study(50, 1.0, **facts))


def test_a_label_cannot_end_a_comment() -> None:
    with pytest.raises(InvalidParameter, match="printable"):
        plan_study(50, 1.0, value_range=(0, 1), classes=("a", "x\nreboot"))
    plan = plan_study(50, 1.0, value_range=(0, 1), classes=("$(reboot)", "`reboot`"))
    code = [line for line in take_part(plan).splitlines() if not line.startswith("#")]
    assert "reboot" not in "".join(code)
    assert "reboot" not in organizer(plan)


def test_a_folder_with_all_that_a_study_needs(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "study"
    known = ("--people", "200", "--epsilon", "1", "--non-private-error", "0.1", "--studies", "2")
    ran = run(*known, "--title", "Gait <b>", "--folder", str(folder))
    assert ran.exit_code == 0, ran.output
    assert "effective sample size" in " ".join(ran.output.split())
    names = {
        "plan.json",
        "forecast.json",
        "consent.txt",
        "organizer.sh",
        "take-part.sh",
        "study.py",
        "forecast.html",
    }
    assert {path.name for path in folder.iterdir()} == names
    page = (folder / "forecast.html").read_text(encoding="utf-8")
    assert "data:image/png" in page
    assert "://" not in page  # nothing is loaded; base64 has no colon
    assert "Gait &lt;b&gt;" in page
    said = json.loads((folder / "forecast.json").read_text(encoding="utf-8"))
    assert said["expected"]["people"] == 200
    assert said["plan"] == json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    request.getfixturevalue("alone")  # test_folder.py compares what the whole program says
    exec(compile((folder / "study.py").read_text(encoding="utf-8"), "study.py", "exec"), {})


@pytest.mark.usefixtures("alone")
def test_epsilon_from_people_and_error(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    known = ("--people", "3000", "--error", "0.2", "--non-private-error", "0.1", "--studies", "4")
    ran = run(*known, "--json", "--out", str(out))
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert said["sought"] == "epsilon"
    assert json.loads(out.read_text(encoding="utf-8"))["epsilon"] == said["plan"]["epsilon"]


@pytest.mark.usefixtures("alone")
def test_a_public_sample_from_a_file(tmp_path: Path) -> None:
    data = simulate_001(60, 0)
    path = tmp_path / "public.csv"
    assert data.grid_points is not None
    assert data.y is not None
    head = "ill," + ",".join(f"{t:.2f}" for t in data.grid_points)
    rows = [f"{'yes' if y > 0 else 'no'}," + ",".join(f"{v:.4f}" for v in x)
            for x, y in zip(data.X, data.y, strict=True)]  # fmt: skip
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    known = ("--people", "500", "--epsilon", "2", "--studies", "2", "--sample", str(path))
    ran = run(*known, "--label", "ill", "--json", "--folder", str(tmp_path / "study"))
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["basis"] == "a public sample of 60 rows"
    program = (tmp_path / "study" / "study.py").read_text(encoding="utf-8")
    exec(compile(program, "study.py", "exec"), {})
    assert run(*known).exit_code == 2  # no label
    wrong = run(*known, "--label", "ill", "--classes", "a,b")
    assert wrong.exit_code == 2
    assert "row 1, column 'ill' must be one of the classes a,b" in wrong.output


@pytest.mark.usefixtures("alone")
def test_typical_curves_from_a_file(tmp_path: Path) -> None:
    path, t = tmp_path / "typical.csv", np.linspace(0, 1, 21)
    rows = [f"{name}," + ",".join(f"{v:.3f}" for v in level + np.sin(3 * t))
            for name, level in (("no", -1.5), ("yes", 1.0))]  # fmt: skip
    path.write_text(
        "ill," + ",".join(map(str, t)) + "\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )
    known = ["--people", "900", "--epsilon", "1", "--studies", "2", "--non-private-error", "0.1"]
    told = [*known, "--typical", str(path), "--label", "ill", "--json"]
    ran = run(*told, "--folder", str(tmp_path / "study"))
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["basis"] == "the family of curves 'smooth' around typical ones"
    program = (tmp_path / "study" / "study.py").read_text(encoding="utf-8")
    exec(compile(program, "study.py", "exec"), {})
    assert "--typical must be left out with a sample" in run(*told, "--sample", str(path)).stderr


@pytest.mark.usefixtures("alone")
def test_a_table_with_names_and_categories(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "public.csv"
    rows = ["age,sex,ill"]
    for number in range(60):
        age = rng.normal(50 + 10 * (number % 2), 5)
        rows.append(f"{age:.1f},{'fm'[number % 3 > 0]},{'no' if number % 2 else 'yes'}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    ranges = tmp_path / "ranges.json"
    ranges.write_text('{"age": [18, 100], "sex": ["f", "m"]}', encoding="utf-8")
    known = ["plan", "--people", "500", "--epsilon", "2", "--studies", "2", "--classes", "no,yes"]
    told = ["--feature-ranges", str(ranges), "--sample", str(path), "--label", "ill", "--json"]
    ran = CliRunner().invoke(main, [*known, *told])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["non_private"] < 0.4


@pytest.mark.parametrize(
    "given",
    [
        ("--people", "100"),
        ("--people", "100", "--epsilon", "1", "--family", "smooth"),
        ("--people", "100", "--epsilon", "1", "--error", "0.2", "--non-private-error", "0.1"),
        ("--people", "100", "--epsilon", "nan", "--non-private-error", "0.1"),
        ("--people", "100", "--epsilon", "1", "--non-private-error", "0.1", "--shares", "a,b"),
    ],
)
def test_the_command_refuses_in_one_line(given: tuple[str, ...]) -> None:
    ran = run(*given)
    assert ran.exit_code == 2
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_what_the_readme_shows_is_what_the_command_prints() -> None:
    """Line breaks aside, which depend on the terminal; ``...`` stands for what is left out."""
    root = Path(__file__).resolve().parents[2]
    text = (root / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```console\n\$ dpfda (plan .*)\n((?:.*\n)+?)```", text)
    assert block is not None
    ran = CliRunner().invoke(main, shlex.split(block[1]))
    assert ran.exit_code == 0, ran.output
    printed = " ".join(ran.output.split())
    for shown in block[2].split("...\n"):
        assert " ".join(shown.split()) in printed
