"""The planner of boosting: what it finds, what it writes, and what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda
from dpfda.errors import InvalidParameter
from dpfda.local.boosting import GradientDesign, SammeDesign
from dpfda.noise import SimulationSource
from dpfda.planning.boosting import BASES, plan_boosting
from dpfda.protocol.plan import StudyPlan

FACTS: dict[str, Any] = {
    "classes": ("yes", "no"), "feature_ranges": {"age": (18, 99), "sex": ["f", "m"]},
    "rows_per_owner": 3, "non_private_error": 0.1, "studies": 3, "others": False,
}  # fmt: skip


@pytest.mark.parametrize("base", BASES)
def test_every_base_is_planned_and_simulated(base: Any) -> None:
    found = plan_boosting(600, 3.0, base=base, **FACTS)
    design = found.plan.built_design
    assert isinstance(design, GradientDesign if base == "gradient" else SammeDesign)
    assert (found.plan.n_people, found.plan.epsilon, found.plan.unit) == (600, 3.0, "owner")
    assert found.plan.classes == ("no", "yes")
    assert found.plan.encoder.n_features == 3  # age, and sex as two numbers
    assert 0.05 < found.expected.error < 0.65
    assert StudyPlan.from_dict(json.loads(json.dumps(found.plan.to_dict()))).hash == found.plan.hash


def test_the_bound_is_that_of_the_paper_and_the_noise_that_of_the_mechanism() -> None:
    found = plan_boosting(600, 3.0, base="statistic", **FACTS)
    design = found.plan.built_design
    assert isinstance(design, SammeDesign)
    s, owners = found.share, found.owners_per_round
    assert (s, owners) == (2 * 3, design.owners_per_round)  # two sides of one threshold each
    assert found.order == pytest.approx(math.sqrt(6 * math.log(6)) / (3.0 * math.sqrt(owners)))
    # The mean of as many reports of 0, many times; four standard errors of its deviation.
    asked = design.first(found.plan)
    zeros = np.zeros((400 * owners, 6))
    means = asked.mechanism.randomize(zeros, SimulationSource(0)).reshape(400, owners, 6).mean(1)
    assert abs(means.std() / found.noise - 1) < 4 / math.sqrt(2 * means.size)
    assert "§III-D" in found.notes[-1]
    assert plan_boosting(600, 3.0, **FACTS).order is None  # gradients are codewords


def test_rows_that_are_sent_one_by_one_have_parts_of_epsilon() -> None:
    found = plan_boosting(600, 3.0, base="sample", **FACTS)
    s, reports = 2 * (3 + 1), 3 * found.owners_per_round  # class × (features, 1)
    assert found.share == s
    assert found.order == pytest.approx(math.sqrt(s * math.log(s) / reports) / (3.0 / 3))
    assert "3 shares each" in found.notes[-1]


def test_the_third_of_three_is_found() -> None:
    by_owners = plan_boosting(epsilon=3.0, error=0.2, **FACTS)
    low, high = by_owners.interval
    assert low <= by_owners.plan.n_people <= 1.2 * high
    assert 0.1 < by_owners.expected.error < 0.26  # mean of three studies: a curve is interpolated
    by_epsilon = plan_boosting(2000, error=0.2, **FACTS)
    assert by_epsilon.plan.n_people == 2000
    assert 0.1 < by_epsilon.expected.error < 0.26
    assert by_epsilon.sought == "epsilon"


def test_more_owners_and_a_larger_epsilon_err_less() -> None:
    found = plan_boosting(400, 1.0, **FACTS | {"others": True})
    owners = [one.error for one in found.by_owners]
    epsilons = [one.error for one in found.by_epsilon]
    assert owners[-1] < owners[0]
    assert epsilons[-1] < epsilons[0]
    assert len(found.outcome.rows) == len(found.by_owners) + len(found.by_epsilon) - 1


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"owners": 10, "epsilon": 1.0, "error": 0.2}, "two of the three"),
        ({"owners": 10}, "two of the three"),
        ({"owners": 10, "epsilon": 1.0, "base": "tree"}, "base"),
        ({"owners": 10, "epsilon": 1.0, "rows_per_owner": 0}, "rows_per_owner"),
        ({"owners": 10, "error": 0.05}, "no privacy"),
        ({"owners": 10, "error": 0.1001}, "within reach"),
        ({"owners": 10, "epsilon": 1.0, "non_private_error": 0.6}, "non_private_error"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        plan_boosting(**FACTS | changes)


CALL = (
    "plan", "--method", "boosting", "--people", "300", "--epsilon", "3", "--classes", "no,yes",
    "--feature-ranges", "age=18:99,bmi=15:50", "--rows-per-owner", "3", "--studies", "2",
    "--jobs", "1", "--fresh", "--non-private-error", "0.1",
)  # fmt: skip


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = [*CALL, "--store", "cells", "--out", "plan.json", "--base", "statistic"]
    done = CliRunner().invoke(dpfda, call, catch_exceptions=False)
    assert done.exit_code == 0
    assert "§III-D" in done.stdout
    plan = StudyPlan.from_dict(json.loads(Path("plan.json").read_text(encoding="utf-8")))
    assert plan.hash in done.stdout
    found = CliRunner().invoke(dpfda, [*call, "--json"], catch_exceptions=False)
    assert json.loads(found.stdout)["plan"] == plan.to_dict()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--range", "0", "1"), "--range must be left out with --method boosting"),
        (("--spread-differs",), "--spread-differs must be left out with --method boosting"),
        (("--error", "0.2"), "--people, --epsilon and --error must be given, two of the three"),
        (("--hostile-share", "0.1", "--base", "sample"), "--hostile-share must be 0 unless"),
        (("--method", "study"), "--rows-per-owner must be left out without --method boosting"),
    ],
)
def test_the_command_refuses(more: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(dpfda, [*CALL, *more])
    assert done.exit_code == 2
    assert said in done.stderr.replace("\n", " ")


def test_hostile_owners_are_part_of_the_plan_of_gradients():
    plans = [plan_boosting(300, 2.0, hostile_share=share, **FACTS).plan for share in (0.0, 0.1)]
    assert [plan.built_design.hostile_share for plan in plans] == [0.0, 0.1]
    assert plans[0].hash != plans[1].hash
    with pytest.raises(InvalidParameter, match="hostile_share"):
        plan_boosting(300, 2.0, base="statistic", hostile_share=0.1, **FACTS)
