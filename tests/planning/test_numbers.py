"""Forecasts of studies that predict a number: errors in units of its variance."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import forecast, plan_study
from dpfda.cli._group import dpfda
from dpfda.curves.files import Handed, Reading
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import SimulationSource
from dpfda.planning import page
from dpfda.planning.numbers import numbers_made_up, numbers_redrawn, private_mean
from dpfda.planning.people_file import public_people_in_subprocess
from dpfda.planning.words import consent, notes, take_part, verdict
from dpfda.protocol.estimate import non_private_regression
from dpfda.simulate import people_from, simulate

FACTS: dict[str, Any] = {"value_range": (-6, 6), "target_range": (-20, 20)}
KNOWN = FACTS | {"non_private_error": 0.2, "also": (), "studies": 4}


def crowd(n: int, seed: int) -> tuple[Any, Any]:
    """Level and slope of curves; both explain 80 % of a number."""
    rng = np.random.default_rng(seed)
    level, slope = rng.normal(size=(2, n, 1))
    X = 1 + level + slope * np.linspace(-1, 1, 21)
    return X, 3 + 3 * level[:, 0] + slope[:, 0] + 2.5**0.5 * rng.normal(size=n)


def explained(rows: Any) -> float:
    features, places = rows[0][:, 1:], rows[0][:, 0]
    return float(non_private_regression(features, places).score(features, places))


def test_more_people_help_and_seeds_repeat() -> None:
    few, many = (forecast(n, 2.0, **KNOWN, most=4000) for n in (300, 20_000))
    assert 0.2 < many.expected.error < few.expected.error - 0.1
    assert few == forecast(300, 2.0, **KNOWN)
    # A plan is forecast as its facts are.
    plan = plan_study(300, 2.0, **FACTS)
    told = {name: value for name, value in KNOWN.items() if name not in FACTS}
    assert forecast(plan, **told).expected == few.expected


def test_a_hopeless_study_is_called_so_and_not_refused() -> None:
    found = forecast(60, 1.0, **KNOWN)
    assert verdict(found).startswith("This study cannot work: its effective sample size is 9. ")
    assert "where the private mean gives" in verdict(found)
    assert found.guessing > 1.05, "so few people do not even tell their mean"
    works = forecast(5000, 5.0, **KNOWN)
    assert verdict(works).startswith("This study works")
    assert 1.0 <= works.guessing < 1.01
    assert "between the private mean (100" in verdict(works)
    assert works.theory is None


def test_people_for_an_error() -> None:
    found = forecast(epsilon=3.0, error=0.6, most=400, **KNOWN)
    assert found.sought == "n_people"
    assert abs(found.expected.error - 0.6) < 0.2
    assert "people are needed" in notes(found)[1]
    with pytest.raises(InvalidParameter, match=r"error must be above 0.2 .* below 1 \(the mean\)"):
        forecast(epsilon=3.0, error=0.1, **KNOWN)


@pytest.mark.parametrize("kind", ["smooth", "table"])
def test_as_much_is_left_as_was_said(kind: str) -> None:
    ranges: Any = {"feature_ranges": [(0, 1)] * 5} if kind == "table" else {"value_range": (-6, 6)}
    plan = plan_study(9000, 1.0, target_range=(0, 1), **ranges)
    place = numbers_made_up(plan, kind, non_private_error=0.4)
    for limit in (0.4, 0.8):
        left = [1 - explained(one.people(4000, 9)) for one in place.populations(5, limit)]
        assert np.median(left) == pytest.approx(limit, abs=0.05)
    features = place.populations(1, 0.4)[0].people(50, 3)[0]
    assert np.abs(features).max() <= 1
    np.testing.assert_array_equal(features[:20], place.populations(1, 0.4)[0].people(20, 3)[0])


def test_numbers_lie_anywhere_in_a_range_whose_middle_is_not_known() -> None:
    widths, places = {}, {}
    for loose in (False, True):
        plan = plan_study(9000, 1.0, **FACTS, center_known=not loose)
        place = numbers_made_up(plan, None, non_private_error=0.4)
        rows = [one.people(300, 1)[0][:, 0] for one in place.populations(12, 0.4)]
        widths[loose] = np.median([row.std() for row in rows])
        places[loose] = np.std([row.mean() for row in rows])
    assert widths[True] < 0.6 * widths[False]
    assert places[True] > 1.3 * places[False]


def test_a_sample_forecasts_what_the_study_then_achieves() -> None:
    plan = plan_study(4000, 2.0, **FACTS)
    achieved = []
    for seed in range(4):
        people = people_from(plan, *crowd(4000, seed))
        model = simulate(plan, people, source=SimulationSource(seed)).model
        X, y = crowd(3000, 50)
        achieved.append(np.mean((model.predict(X) - y) ** 2) / np.var(y))
    found = forecast(4000, 2.0, sample=crowd(200, 77), **(KNOWN | {"studies": 6}))
    assert abs(found.expected.error - np.mean(achieved)) < 0.1
    assert found.expected.low < np.mean(achieved) < found.expected.high


def test_a_sample_is_told_what_is_possible_and_blurred_where_less_is() -> None:
    plan, sample = plan_study(4000, 2.0, **FACTS), crowd(200, 5)
    free = numbers_redrawn(plan, sample, non_private_error=None)
    held = numbers_redrawn(plan, sample, non_private_error=0.4)
    at = np.array([free.limit, 0.9, 1.0, 1.2])
    assert free.limit == pytest.approx(0.2, abs=0.05)
    gain = 0.6 / (1 - free.limit)
    assert held.told(at) == pytest.approx([0.4, 1 - 0.1 * gain, 1.0, 1.2])
    assert free.doubt == pytest.approx(2 * free.limit / 200**0.5)
    for limit in (free.limit, 0.6):
        odd = free.populations(4, limit)[1]  # where all rows are seen
        assert 1 - explained(odd.people(20_000, 1)) == pytest.approx(limit, abs=0.06)
    even = held.populations(2, 0.4)[0]
    asked, others = even.people(3000, 1)[0], even.others(3000, 1)[0]
    assert not set(asked[:, 0]) & set(others[:, 0])


def test_the_private_mean_is_unbiased_and_as_exact_as_its_answers() -> None:
    places = np.full(2000, 0.3)
    told = [private_mean(places, 1.0, seed) for seed in range(40)]
    # One question: Var = 1/(N α²) less what the dither knows, α = tanh ½.
    assert np.mean(told) == pytest.approx(0.3, abs=3 * np.std(told) / 40**0.5)
    assert np.std(told) == pytest.approx((2000 * np.tanh(0.5) ** 2) ** -0.5, rel=0.35)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"class_shares": 0.5}, "class_shares must be left out with target_range"),
        ({"typical": ([[1.0] * 9], [1.0])}, "typical must be left out with target_range"),
        ({"classes": ("no", "yes")}, "classes must be given, or else target_range"),
        ({"non_private_error": None}, "non_private_error must be given: the part of the variance"),
        ({"non_private_error": 1.5}, "non_private_error"),
        ({"family": "table"}, "family must be one of"),
        ({"target_range": (3, 1)}, "target_range"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        forecast(500, 1.0, **(KNOWN | change))


@pytest.mark.parametrize(
    "sample",
    [
        (np.ones((50, 9)), ["many"] * 50),
        (np.ones((50, 9)), np.full(50, np.nan)),
        (np.ones((50, 9)), np.ones(50)),
        (np.ones((23, 9)), np.arange(23)),
        (np.ones((50, 9)), np.arange(49)),
    ],
)
def test_odd_samples_are_refused(sample: Any) -> None:
    with pytest.raises(InvalidData, match="sample must be"):
        forecast(500, 1.0, sample=sample, **KNOWN)


def test_the_command_forecasts_numbers_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpfda.cli.plan.forecast", partial(forecast, also=()))
    X, y = crowd(60, 0)
    header = ",".join([*(f"{t:g}" for t in np.linspace(0, 1, 21)), "weight"])
    np.savetxt(tmp_path / "public.csv", np.c_[X, y], "%.6f", ",", header=header, comments="")
    given = ["plan", "--people", "400", "--epsilon", "2", "--range", "-6", "6"]
    given += ["--target-range", "-20", "20", "--studies", "2", "--label", "weight"]
    given += ["--sample", str(tmp_path / "public.csv"), "--folder", str(tmp_path / "study")]
    result = CliRunner().invoke(dpfda, [*given, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "study" / "forecast.json").read_text())
    assert found["basis"] == "a public sample of 60 rows"
    assert 0 < found["expected"]["error"] < 2
    assert found["plan"]["target_range"] == [-20, 20]
    program = (tmp_path / "study" / "study.py").read_text()
    assert "classes=None" not in program.split("facts = dict(")[1].split(")")[0]
    assert "label" not in (tmp_path / "study" / "take-part.sh").read_text().split("set -eu")[0]


def test_a_file_from_somebody_else_may_hold_numbers() -> None:
    file = Handed("public.csv", b"weight,0,0.5,1\n71.5,1,2,3\n64,4,5,6\n")
    (X, y, points), _ = public_people_in_subprocess(file, Reading(label="weight"), classes=None)
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y.dtype == np.float64
    assert y.tolist() == [71.5, 64.0]
    assert points == [0.0, 0.5, 1.0]


def test_words_and_pages_speak_of_the_variance() -> None:
    some = {"studies": 2, "also": ("epsilons", "people"), "most": 300}
    found = forecast(2000, 2.0, **(KNOWN | some))
    shown = page.outcome(found)
    assert "better than the private mean" in shown.rows[0]
    assert any("of the number's variance left" in note for note in shown.notes)
    assert any("what your number goes with" in note for note in shown.notes)
    assert not any("classes" in note for note in shown.notes)
    assert page.draw(found).axes[0].get_ylabel() == "% of the variance left"
    assert "your target" in consent(found.plan)
    assert "Your number is one from -20 to 20" in take_part(found.plan)


def test_the_weakest_relation() -> None:
    found = forecast(4000, 4.0, **(KNOWN | {"studies": 2, "also": ("difference",), "most": 300}))
    told = " ".join(notes(found))
    assert "four of five such studies" in told
    if found.detectable is not None:
        error, correlation = found.detectable
        assert correlation == pytest.approx((1 - error) ** 0.5)
        assert f"a correlation of {correlation:.2f}" in told


def test_a_hopeless_forecast_prints_no_absurd_number() -> None:
    found = forecast(100, 1.0, **KNOWN)
    assert found.expected.error > 10
    assert "Expect more than 1000 % of the number's variance left" in verdict(found)
