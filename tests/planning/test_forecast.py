"""Forecasts: any of people, ε and error from the others, on families and on public samples."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import dpfda
from dpfda import CurveEncoder, forecast, plan_study
from dpfda._validate import FloatArray
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.randomized_response import effective_answers
from dpfda.planning import trials, world
from dpfda.planning.families import FAMILIES, Known, public_range
from dpfda.planning.forecast import ALSO, PEOPLE, crossing, crossing_interval, reached
from dpfda.planning.sample import Pilot, discriminant_error, expected_by_theory, set_apart
from dpfda.planning.sweep import Sweep
from dpfda.planning.trials import tractable
from dpfda.planning.words import notes, verdict
from dpfda.planning.world import World, made_up, redrawn
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import folded
from dpfda.simulate import ask_everybody

NUMBERS = {"value_range": (-6, 6), "target_range": (0, 9), "non_private_error": 0.2, "also": ()}
KNOWN = {"value_range": (-6, 6), "classes": (-1, 1), "non_private_error": 0.1, "also": ()}


def test_more_people_and_a_larger_epsilon_help_and_seeds_repeat() -> None:
    few, many, strong = (
        forecast(n, epsilon, studies=8, **KNOWN).expected
        for n, epsilon in ((100, 0.5), (6000, 0.5), (6000, 5.0))
    )
    assert few.error > many.error + 0.05
    assert many.error > strong.error
    assert strong.error < 0.2
    assert few == forecast(100, 0.5, studies=8, **KNOWN).expected


def test_what_was_found_gives_the_error_that_was_wanted() -> None:
    """The error of few studies is as uncertain where the search ended as where it looked."""
    told = {"error": 0.15, "studies": 6, "most": 2000, **KNOWN}
    people = forecast(epsilon=1.0, **told)
    assert people.sought == "n_people"
    assert people.interval[0] <= people.plan.n_people * 1.1
    assert people.plan.n_people / 1.1 <= people.interval[1]
    tolerance = 3 * math.sqrt(2) * people.expected.standard_error
    assert tolerance < 0.1  # far from guessing, which errs 0.5
    assert abs(people.expected.error - 0.15) < tolerance
    epsilon = forecast(people.plan.n_people, **(told | {"studies": 3}))
    assert epsilon.sought == "epsilon"
    assert 0.4 < epsilon.plan.epsilon < 2.5


def test_a_hopeless_study_is_called_so() -> None:
    known = KNOWN | {"non_private_error": 0.35}
    found = forecast(40, 1.0, studies=10, **known)
    assert verdict(found).startswith("This study cannot work: its effective sample size is 9")
    works = forecast(20_000, 5.0, studies=4, **known)
    assert verdict(works).startswith("This study works")
    with pytest.raises(InvalidParameter, match="within reach"):
        forecast(20, error=0.11, studies=4, **KNOWN)


def test_curves_second_studies_and_the_smallest_difference() -> None:
    steps: list[float] = []
    known = KNOWN | {"also": ALSO}
    found = forecast(400, 1.0, studies=3, tell=steps.append, **known)
    assert [one.people for one in found.by_people] == [40, 80, 200, 400, 800, 2000]
    assert 1.0 in [one.epsilon for one in found.by_epsilon]
    assert [one.people for _, one in found.second] == [800, 400]
    assert [one.epsilon for _, one in found.second] == [1.0, 2.0]
    assert found.detectable is None or 0 < found.detectable[0] < found.guessing
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    assert len(set(steps)) > 2 * 18  # after every study, not after three of them
    assert max(np.diff(steps[:-1])) < 0.02
    assert any("Theory" in note for note in notes(found))


def test_people_are_worth_no_more_than_themselves() -> None:
    """Of a large ε they answer several questions each; they do not become more by it."""
    for facts in (KNOWN, NUMBERS):
        found = forecast(12, 8.0, studies=2, **facts)
        assert found.effective == 12
        assert forecast(12, 0.5, studies=2, **facts).effective < 1


def test_a_difference_in_spread_is_told_as_one() -> None:
    known = KNOWN | {"spread_differs": True}
    found = replace(forecast(60, 1.0, studies=2, **known), detectable=(0.175, 2.0))
    (said,) = [note for note in notes(found) if note.startswith("Smallest")]
    assert said.endswith("such studies find: one that leaves 17.5 % wrong without privacy.")
    found = replace(found, plan=plan_study(60, 1.0, value_range=(-6, 6), classes=(-1, 1)))
    (said,) = [note for note in notes(found) if note.startswith("Smallest")]
    assert said.endswith("2.0 standard deviations apart (17.5 % wrong without privacy).")


def test_a_whole_plan_is_forecast_as_its_facts_are() -> None:
    facts = {"value_range": (-6, 6), "classes": (-1, 1), "class_share": 0.3}
    plan = plan_study(500, 1.0, **facts)
    told = {"non_private_error": 0.1, "studies": 4, "also": ()}
    assert forecast(plan, **told) == forecast(500, 1.0, **facts, **told)
    # An own design is kept, whatever the recipe would take.
    design = {"name": "mrma", "n_classifiers": 4}
    by_hand = replace(plan, design=design, encoder=CurveEncoder("bspline", n_basis=4, scale=2.0))
    found = forecast(by_hand, **(told | {"also": ("second",)}))
    assert found.plan == by_hand
    assert [one.people for _, one in found.second] == [1000, 500]
    for name, value in (("epsilon", 2.0), ("error", 0.2), ("classes", (0, 1)), ("seed", 3)):
        with pytest.raises(InvalidParameter, match=f"{name} must be left out: the plan says it"):
            forecast(plan, **told, **{name: value})


def test_the_range_of_an_encoder() -> None:
    plan = plan_study(9, 1.0, value_range=[(-1, 3), (10, 30)], classes=(0, 1), domain_range=(2, 6))
    middle, half = public_range(plan.encoder)
    assert middle == pytest.approx([1, 20])
    assert half == pytest.approx([2, 10])
    with pytest.raises(InvalidParameter, match="pass a sample"):
        public_range(CurveEncoder("bspline", n_basis=4, rescale="max_abs"))


def test_a_forecast_that_was_ended_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = KNOWN | {"studies": 4}
    sweep = Sweep(store=tmp_path / "plan.jsonl")
    whole = forecast(200, 1.0, **told)
    asked: list[int] = []

    def asks(plan: StudyPlan, *rest: Any, **more: Any) -> Any:
        asked.append(plan.seed)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return ask_everybody(plan, *rest, **more)

    monkeypatch.setattr(trials, "ask_everybody", asks)
    with pytest.raises(KeyboardInterrupt):
        forecast(200, 1.0, sweep=sweep, **told)
    assert forecast(200, 1.0, sweep=sweep, **told) == whole
    assert asked == [0, 1, 2, 2, 3]
    assert forecast(200, 1.0, sweep=sweep, **told) == whole
    assert len(asked) == 5
    # What else is supposed, of the people or of the plan, has a file of its own.
    others = ({"non_private_error": 0.2}, {"family": "rough"}, {"class_shares": 0.3}, {"most": 100})
    for other in (*others, {"studies": 5}, {"value_range": (-9, 9)}):
        forecast(200, 1.0, sweep=sweep, **(told | other))
    assert len(list(tmp_path.iterdir())) == 7
    sweep.forget()
    assert not list(tmp_path.iterdir())


def test_forecasts_in_other_processes_are_the_same() -> None:
    told = KNOWN | {"studies": 4}
    assert forecast(200, 1.0, sweep=Sweep(jobs=2), **told) == forecast(200, 1.0, **told)


def test_nobody_is_charged() -> None:
    with dpfda.budget(epsilon=0.01) as account:
        forecast(50, 1.0, studies=2, **KNOWN)
    assert account.remaining.epsilon == 0.01


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.2), (0.5, 0.3, 0.2)])
def test_populations_are_as_far_apart_as_was_said(family: str, shares: tuple[float, ...]) -> None:
    labels = tuple("abc"[: len(shares)])
    ranges = {"feature_ranges": [(0, 1)] * 6} if family == "table" else {"value_range": (-1, 1)}
    plan = plan_study(100, 1.0, classes=labels, **ranges)
    known = Known(encoder=plan.encoder, shares=np.array(shares))
    for number in range(3):
        rng = np.random.default_rng(number)
        one = FAMILIES[family].population(known, rng)
        one = set_apart(one, 0.12, number)
        features, drawn = one.people(8000, 100 + number)
        assert np.abs(features).max() <= 1
        assert np.abs(np.bincount(drawn) / 8000 - shares).max() < 0.03
        assert abs(discriminant_error(features, drawn, np.array(shares)) - 0.12) < 0.03
        fewer, _ = one.people(50, 100 + number)
        assert np.allclose(fewer, features[:50])  # common random numbers


def _world(
    facts: dict[str, object], typical: object = None, people: int = 900
) -> tuple[StudyPlan, World]:
    plan = plan_study(people, 1.0, **({"classes": ("no", "yes")} | facts))  # type: ignore[arg-type]
    return plan, made_up(plan, None, shares=None, non_private_error=0.1, typical=typical)


def test_people_vary_around_typical_curves() -> None:
    t = np.linspace(0, 1, 30)
    low, high = np.sin(5 * t) - 1, np.sin(5 * t) + 1
    curves = np.stack([high, low, high])  # of several of one class, their mean
    plan, place = _world({"value_range": (-6, 6)}, (curves, ["yes", "no", "yes"], t))
    for one in place.populations(4, 0.1):
        assert np.allclose(one.means, plan.encoder.coefficients([low, high], t))
        features, labels = one.people(8000, 5)
        assert abs(discriminant_error(features, labels, place.shares) - 0.1) < 0.02
    widths = [np.linalg.norm(one.root[0]) / 6 for one in place.populations(12, 0.1)]
    assert 0.03 < min(widths) < max(widths) < 0.2  # worlds of an unusual width are left out
    with pytest.raises(InvalidParameter, match="typical must be left out for tables"):
        _world({"feature_ranges": [(0, 1)] * 3}, ([[0] * 3, [1] * 3], ["no", "yes"]))
    with pytest.raises(InvalidData, match="typical must be 1 rows or more of each class"):
        _world({"value_range": (-6, 6)}, (curves, ["no"] * 3, t))
    with pytest.raises(InvalidData, match="another label in row 2"):
        _world({"value_range": (-6, 6)}, (curves, ["no", "maybe", "yes"], t))


def test_what_is_known_of_the_middle_is_believed() -> None:
    def middles(**facts: object) -> FloatArray:
        _, place = _world(facts)
        return np.stack([one.means.mean(axis=0) for one in place.populations(6, 0.1)])

    assert np.abs(middles(value_range=(-6, 6))).max() > 0.1
    assert np.abs(middles(value_range=(-6, 6), center_known=True)).max() < 1e-9
    _, place = _world({"feature_ranges": [(0, 1)] * 9, "center_known": True})
    for one in place.populations(6, 0.1):
        (shown,) = one.features(np.zeros((1, 9)))
        assert np.all((shown == 0) | (shown < -0.6))  # amounts are skewed whatever is known


def test_a_range_is_filled_by_nobody_unless_its_middle_is_known() -> None:
    def spread(**known: object) -> tuple[float, float]:
        _, place = _world({"value_range": (-6, 6), **known})
        people = [one.people(300, 1)[0][:, 0] for one in place.populations(20, 0.1)]
        return float(np.std([x.mean() for x in people])), float(np.mean([x.std() for x in people]))

    (fits, wide), (lies, narrow) = spread(center_known=True), spread()
    assert lies > 2 * fits
    assert narrow < wide / 1.5


def test_columns_of_loose_ranges_are_narrow_and_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(loose: bool) -> FloatArray:
        monkeypatch.setattr(world, "is_loose", lambda plan, typical: loose)
        known = {"feature_ranges": [(-6, 6)] * 9}
        _, place = _world(known, people=9000)
        return np.stack([one.people(300, 1)[0] for one in place.populations(6, 0.1)])

    fits, loose = shown(False), shown(True)
    narrower = loose.std(axis=1) / fits.std(axis=1)
    assert 0.1 <= narrower.min() < 0.2
    assert 0.8 < narrower.max() <= 1
    moved = loose.mean(axis=1) - narrower * fits.mean(axis=1)
    np.testing.assert_allclose(loose, narrower[:, None] * fits + moved[:, None], atol=1e-9)
    assert np.all(np.abs(moved) <= 1 - narrower + 1e-9)
    assert moved.min() < -0.4 < 0.4 < moved.max()


def test_theory_is_the_formula() -> None:
    half = ndtri(0.92)
    strength = half**2 / (1 + half**2)
    kept = math.sqrt(strength / (strength + 30 * 31 / (0.7 * 5000)))
    told = expected_by_theory(0.08, 0.5, effective=5000, dimension=30)
    assert told == pytest.approx(ndtr(-half * kept), abs=1e-6)
    assert expected_by_theory(0.08, 0.5, effective=1e-9, dimension=30) == pytest.approx(0.5)
    assert expected_by_theory(0.08, 0.3, effective=1e12, dimension=3) == pytest.approx(0.08)


def test_large_studies_are_replaced_by_equally_informative_ones() -> None:
    n, epsilon = tractable(300_000, 0.2, most=5000)
    assert n == 5000
    told = effective_answers(n, epsilon)
    assert told == pytest.approx(effective_answers(300_000, 0.2), rel=1e-6)
    assert tractable(10**9, 9.0, most=100)[1] <= 20


def test_crossings() -> None:
    errors = np.array([[0.4, 0.5, 0.45], [0.2, 0.3, 0.25], [0.22, 0.3, 0.26]])
    assert crossing((10, 100, 1000), errors, 0.35) == pytest.approx(10**1.5, rel=0.1)
    assert crossing((10, 100, 1000), errors, 0.1) == math.inf
    assert crossing((10, 100, 1000), errors, 0.6) == 10
    low, high = crossing_interval((10, 100, 1000), errors, 0.35)
    assert low <= crossing((10, 100, 1000), errors, 0.35) <= high


def test_a_search_ends_at_the_first_level_that_is_surely_enough() -> None:
    """More people would not move the answer, and their studies take longest to simulate."""
    noise = np.random.default_rng(0).normal(0, 0.01, 20)
    asked: list[int] = []

    def errors(people: int, epsilon: float) -> FloatArray:
        asked.append(people)
        return 0.1 + 4 / np.sqrt(people) + noise

    place = SimpleNamespace(limit=0.1, guessing=0.5, numbers=False)
    trials: Any = SimpleNamespace(place=place, errors=errors)
    people, _, interval = reached(trials, None, 1.0, 0.2)
    assert asked == [100, 300, 1000, 3000]  # where the error is .5, .33, .23 and .17
    every = np.stack([errors(size, 1.0) for size in PEOPLE])
    assert people == math.ceil(crossing(PEOPLE, every, 0.2) / 100) * 100
    assert interval == crossing_interval(PEOPLE, every, 0.2)
    with pytest.raises(InvalidParameter, match="within reach: 1,000,000 people"):
        reached(trials, None, 1.0, 0.101)


def test_a_sample_is_redrawn_half_the_time_on_rows_kept_apart() -> None:
    data = simulate_001(90, 3)
    plan = plan_study(1000, 1.0, value_range=(-6, 6), classes=(-1, 1))
    pilot = Pilot.of(plan, data.X, data.y, shares=None)
    parts = pilot.parts(12)
    tested = np.concatenate([part.tested for part in parts[::2]])
    assert sorted(tested) == list(range(90))  # every row once, by people who did not see it
    for even, odd in zip(parts[::2], parts[1::2], strict=True):
        assert not set(even.seen) & set(even.tested)
        assert len(odd.seen) == len(odd.tested) == 90
    features, labels = parts[0].people(500, 1)
    rows = {tuple(row) for row in pilot.features[parts[0].seen]}
    assert {tuple(row) for row in features} <= rows
    assert abs(labels.mean() - pilot.shares[1]) < 0.07
    with pytest.raises(InvalidData, match="0 of the rarest"):
        Pilot.of(plan, data.X, np.ones(90), shares=None)


def test_a_sample_keeps_its_share_of_what_there_is_to_gain() -> None:
    data = simulate_001(200, 5)
    plan = plan_study(1000, 1.0, value_range=(-6, 6), classes=(-1, 1))
    known = {"shares": np.array([0.5, 0.5])}
    free = redrawn(plan, (data.X, data.y), non_private_error=None, **known)
    held = redrawn(plan, (data.X, data.y), non_private_error=0.2, **known)
    at = np.array([free.limit, 0.5, 0.55])
    assert held.told(at) == pytest.approx([0.2, 0.5, 0.55])
    assert free.told(at) == pytest.approx(at)


def test_a_weaker_sample_has_its_rows_blurred() -> None:
    data = simulate_001(200, 5)
    plan = plan_study(1000, 1.0, value_range=(-6, 6), classes=(-1, 1))
    place = redrawn(plan, (data.X, data.y), shares=None, non_private_error=None)
    for limit in (place.limit, 0.25, 0.4):
        (one, *_) = place.populations(2, limit)[1:]  # where all rows are seen
        features, labels = one.people(20_000, 1)
        assert abs(discriminant_error(features, labels, place.shares) - limit) < 0.04
        assert abs(labels.mean() - place.shares[1]) < 0.02
    found = forecast(
        6000, 1.0, sample=(data.X, data.y), studies=4, also=("difference",),
        value_range=(-6, 6), classes=(-1, 1),
    )  # fmt: skip
    assert found.detectable is not None
    assert place.limit < found.detectable[0] < found.guessing


def test_a_sample_forecasts_what_the_study_then_achieves() -> None:
    """Ten studies of the paper's people err 10.9 %; the sample's own luck is about a point."""
    public = simulate_001(200, 77)
    known = {"value_range": (-6, 6), "classes": (-1, 1), "also": (), "studies": 12}
    found = forecast(3000, 1.0, sample=(public.X, public.y), non_private_error=0.1, **known)
    assert abs(found.expected.error - 0.109) < 0.025
    assert found.expected.low < 0.109 < found.expected.high
    assert found.expected.high - found.expected.low < 0.2


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_people", 10**40), ("n_people", 0), ("n_people", 2.5), ("epsilon", NAN),
        ("epsilon", 1e-300), ("epsilon", 1e308), ("epsilon", -1.0), ("non_private_error", NAN),
        ("non_private_error", 0.5), ("non_private_error", None), ("class_shares", NAN),
        ("class_shares", (0.5, 0.6)), ("class_shares", ("x", "y")), ("family", "table"),
        ("family", "cubist"), ("studies", 0), ("studies", 10**9), ("value_range", (NAN, 1)),
        ("value_range", (-1e308, 1e308)), ("error", 0.3), ("also", ("everything",)),
        ("classes", None), ("class_share", 0.3),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(name: str, value: object) -> None:
    known: dict[str, object] = {"n_people": 100, "epsilon": 1.0, "studies": 2, **KNOWN}
    known["class_shares"] = 0.5
    with pytest.raises(InvalidParameter):
        forecast(**(known | {name: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize(("people", "epsilon"), [(10**9, 1e-3), (10**9, 700.0), (1, 1.0)])
def test_extreme_studies_are_simulated_in_bounded_time(people: int, epsilon: float) -> None:
    found = forecast(people, epsilon, studies=2, most=500, **KNOWN)
    assert 0 <= found.expected.error <= 1
    assert found.plan.n_people == people


@pytest.mark.parametrize("family", ["smooth", "table"])
def test_classes_that_differ_in_spread_are_forecast(family: str) -> None:
    ranges = {"smooth": {"value_range": (-6, 6)}, "table": {"feature_ranges": [(-1, 1)] * 4}}[
        family
    ]
    facts = {**ranges, "classes": (0, 1), "non_private_error": 0.15, "also": (), "family": family}
    found = forecast(6000, 5.0, studies=4, spread_differs=True, **facts)
    assert found.expected.error < 0.35
    assert found.theory is None
    assert "differ in spread" in found.basis
    known = Known(encoder=found.plan.encoder, shares=np.full(2, 0.5), spread_differs=True)
    for number in range(3):
        rng = np.random.default_rng([number, 2])
        one = set_apart(FAMILIES[family].population(known, rng), 0.15, number)
        assert one.spread_differs
        z, y = one.people(6000, 1)
        line = discriminant_error(z, y, known.shares)
        both = discriminant_error(folded(z, z.mean(axis=0)), y, known.shares)
        assert abs(both - 0.15) < 0.03
        assert line >= both - 0.01
