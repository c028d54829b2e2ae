"""All answers of a small study in one posterior."""

from __future__ import annotations

import json
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpfda._validate import FloatArray
from dpfda.noise import SimulationSource
from dpfda.protocol.server import Server
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import balance, parting
from dpfda.questions.design import QuestionDesign
from dpfda.questions.progress import QuestionProgress
from dpfda.recipe import plan_study
from dpfda.simulate import simulate


def answers(d: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A few at several thresholds, without and with the label, and about the label alone."""
    rng = np.random.default_rng(3)
    return rng.integers(0, 4, parting.nothing_heard(d).shape).astype(float), np.array([3.0, 7.0])


@pytest.mark.parametrize("ordered", [True, False])
def test_the_posterior_is_that_of_bayes(ordered: bool) -> None:
    """One feature, cell by cell: every prior written out once more."""
    heard, labels = answers()
    alpha = 0.5
    found = parting.found(heard, labels, alpha=alpha, ordered=ordered)
    grid = parting._PLACES
    weights: dict[tuple[float, float, float, float, bool], float] = {}
    steps = {"r0": np.gradient(parting._BALANCES), "rho": np.gradient(parting._RIGHT)}
    # Of the first feature, whatever the decay; without an order, it may be among those of nothing.
    sizes = parting._SIZES if ordered else parting._SIZES_WITHOUT_ORDER
    there = 1.0 if ordered else sum(parting._SHARES) / len(parting._SHARES)
    variances = dict.fromkeys(sizes, there * parting._EXPECTED / len(sizes))
    hidden = (1 - there) * parting._EXPECTED
    for (i, r0), m, (c, rho), s in product(
        enumerate(parting._BALANCES), grid, enumerate(parting._RIGHT), parting._WIDTHS
    ):
        up = 2 * ndtr((m - grid) / s + ndtri((1 + rho) / 2)) - 1
        down = 2 * ndtr((m - grid) / s - ndtri((1 + rho) / 2)) - 1
        share = (1 + r0) / 2
        means = [share * up + (1 - share) * down, share * up - (1 - share) * down]
        log = sum(
            heard[kind, 0, :, 1] @ np.log(1 + alpha * mean)
            + heard[kind, 0, :, 0] @ np.log(1 - alpha * mean)
            for kind, mean in enumerate(means)
        )
        log += labels[1] * np.log(1 + alpha * r0) + labels[0] * np.log(1 - alpha * r0)
        usual = 0.75 * np.exp(-0.5 * r0**2 / 0.01) / 0.1 + 0.25 * np.exp(-0.5 * r0**2 / 0.2) / (
            0.2**0.5
        )
        place = sum(
            chance * np.exp(-0.5 * (m / spread) ** 2) / np.exp(-0.5 * (grid / spread) ** 2).sum()
            for spread, chance in parting._OFFSETS.items()
        )
        signal = sum(
            chance
            * steps["rho"][c]
            * np.exp(-0.5 * rho**2 / size)
            / (steps["rho"] @ np.exp(-0.5 * parting._RIGHT**2 / size))
            for size, chance in variances.items()
        )
        common = np.exp(log) * usual * steps["r0"][i] * place
        weights[r0, m, rho, s, True] = common * (signal + (rho == 0) * hidden)
        weights[r0, m, rho, s, False] = common * (rho == 0) * (1 - parting._EXPECTED)
    keys = np.array(list(weights))
    chance = np.array(list(weights.values()))
    chance /= chance.sum()
    some = keys[:, 4] == 1
    given = chance[some] / chance[some].sum()
    r0, m, rho, s = keys[some, :4].T
    assert found.evidence == pytest.approx(chance[some].sum())
    assert found.balance == pytest.approx(chance @ keys[:, 0])
    assert found.right[0] == pytest.approx(given @ rho)
    assert found.doubt[0] == pytest.approx(given @ rho**2 - (given @ rho) ** 2)
    assert found.middles[0] == pytest.approx((given * rho**2) @ m / (given @ rho**2))
    assert found.widths[0] == pytest.approx(given @ s)
    odds = np.log((1 + r0) / (1 - r0))
    steep = 2 * ndtri((1 + rho) / 2) / np.maximum(s, 0.25)
    assert found.slopes[0] == pytest.approx(given @ steep)
    assert found.slope_doubt[0] == pytest.approx(given @ steep**2 - (given @ steep) ** 2)
    assert found.intercept == pytest.approx(given @ (odds + steep * (found.middles[0] - m)))
    assert found.intercept_doubt == pytest.approx(given @ odds**2 - (given @ odds) ** 2)
    assert found.unbalanced == pytest.approx(chance[np.abs(keys[:, 0]) > 0.25].sum())


def test_the_other_class_counted_as_one_turns_every_sign() -> None:
    heard, labels = answers(2)
    turned = heard.copy()
    turned[1] = heard[1, ..., ::-1]
    one, other = (
        parting.found(told, said, alpha=0.3, ordered=True)
        for told, said in ((heard, labels), (turned, labels[::-1]))
    )
    np.testing.assert_allclose(other.right, -one.right)
    np.testing.assert_allclose(other.slopes, -one.slopes)
    assert other.intercept == pytest.approx(-one.intercept)
    np.testing.assert_allclose(other.middles, one.middles)
    assert other.balance == pytest.approx(-one.balance)
    assert other.evidence == pytest.approx(one.evidence)


@pytest.mark.parametrize("ordered", [True, False])
def test_nothing_heard_is_the_prior(ordered: bool) -> None:
    found = parting.found(parting.nothing_heard(3), np.zeros(2), alpha=0.4, ordered=ordered)
    assert found.evidence == pytest.approx(parting._EXPECTED)
    np.testing.assert_allclose([found.middles, found.right], 0, atol=1e-12)
    assert found.balance == pytest.approx(0, abs=1e-12)


def heard_of(
    people: int,
    *,
    middle: float,
    apart: float,
    wide: float,
    share: float,
    alpha: float,
    seed: int = 0,
) -> parting.Parting:
    """What is found of one feature by people who are asked all over, in units of h."""
    rng = np.random.default_rng(seed)
    label = np.where(rng.random(people) < share, 1, -1)
    z = middle + label * apart + wide * rng.normal(size=people)
    place = rng.integers(5, 16, people)
    kind = rng.integers(0, 2, people)
    above = np.where(z > parting._PLACES[place], 1, -1)
    told = np.where(kind == 1, label * above, above) * np.where(
        rng.random(people) < (1 + alpha) / 2, 1, -1
    )
    heard = parting.nothing_heard(1)
    np.add.at(heard, (kind, 0, place, (told > 0).astype(int)), 1)
    said = label[: people // 10] * np.where(rng.random(people // 10) < (1 + alpha) / 2, 1, -1)
    labels = np.array([np.sum(said < 0), np.sum(said > 0)])
    return parting.found(heard, labels, alpha=alpha, ordered=True)


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_many_answers_find_where_classes_part(share: float) -> None:
    """Not where the middle of all people is: that lies in the larger class."""
    found = heard_of(40_000, middle=0.5, apart=-0.25, wide=0.2, share=share, alpha=0.5)
    # Cells are .125 apart in m, .15 in ρ (2Φ(1.25) - 1 = .79) and .18 in r₀.
    assert found.middles[0] == pytest.approx(0.5, abs=0.07)
    assert found.right[0] == pytest.approx(-0.79, abs=0.1)
    assert found.widths[0] == pytest.approx(0.2, abs=0.05)
    assert found.balance == pytest.approx(2 * share - 1, abs=0.1)
    assert found.evidence > 0.999


def test_classes_that_do_not_part_show_nothing() -> None:
    evidence = [
        heard_of(1200, middle=0.3, apart=apart, wide=0.3, share=0.5, alpha=0.5, seed=seed).evidence
        for apart in (0.0, 0.3)
        for seed in range(20)
    ]
    assert np.mean(evidence[:20]) < 0.4
    assert np.mean(evidence[20:]) > 0.9


def test_what_nobody_was_asked_about_changes_nothing() -> None:
    heard, labels = answers()
    beside = np.concatenate([heard, parting.nothing_heard(1)], axis=1)
    one, two = (parting.found(told, labels, alpha=0.5, ordered=False) for told in (heard, beside))
    assert two.evidence == pytest.approx(one.evidence)
    assert two.balance == pytest.approx(one.balance)
    assert two.slopes[0] == pytest.approx(one.slopes[0])


def test_features_that_contradict_each_other_leave_numbers() -> None:
    """One is sure that class 1 is the larger, the other that it is the smaller."""
    heard = parting.nothing_heard(2)
    heard[1, 0, 0, 1] = heard[1, 0, 20, 0] = heard[1, 1, 0, 0] = heard[1, 1, 20, 1] = 160_000
    found = parting.found(heard, np.zeros(2), alpha=0.05, ordered=True)
    assert all(np.all(np.isfinite(part)) for part in found)
    assert 0 <= found.evidence <= 1 + 1e-9
    assert np.all(found.widths >= 0.12 - 1e-9)


def _agree(task: StumpTask) -> FloatArray:
    return np.ones(task.thresholds.shape)


def _contradict(task: StumpTask) -> FloatArray:
    """About features and about labels."""
    return np.where(task.thresholds == -2.0, -1.0, 1.0)


def _by_threshold(task: StumpTask) -> FloatArray:
    return np.where(task.thresholds > 0, 1.0, -1.0) * (1 - 2 * (task.coordinates % 2))


@pytest.mark.parametrize("lie", [_agree, _contradict, _by_threshold])
@pytest.mark.parametrize(
    ("people", "epsilon", "facts"),
    [
        (1300, 1.0, {"value_range": (-1, 1)}),
        (119_000, 0.1, {"value_range": (-1, 1)}),
        (119_000, 0.1, {"value_range": (-1, 1), "n_features": 1, "temperature_share": 0.1}),
        (2_900_000, 0.02, {"feature_ranges": [(-1, 1)] * 2}),
    ],
)
def test_replies_of_liars_leave_a_rule_that_can_be_used(
    lie: Any, people: int, epsilon: float, facts: Any
) -> None:
    server = Server(plan_study(people, epsilon, classes=(0, 1), **facts))
    assert isinstance(server.progress, QuestionProgress)
    assert server.progress.parts
    while not server.finished:
        task = server.issue(min(server.wanted, 50_000))
        start = server.issued - task.people
        told = lie(task) if isinstance(task, StumpTask) else np.ones((task.people, task.width))
        server.receive(told, start=start)
        if isinstance(task, StumpTask):
            assert np.all((np.abs(task.thresholds) <= 1) | (task.thresholds == -2.0))
        json.dumps(server.progress.state(), allow_nan=False)
    model = server.model
    assert np.all(np.isfinite(np.append(model.coefficients, model.intercept)))


def progress_of(people: int, **facts: Any) -> QuestionProgress:
    plan = plan_study(people, 1.0, classes=facts.pop("classes", (0, 1)), **facts)
    progress = Server(plan).progress
    assert isinstance(progress, QuestionProgress)
    return progress


def test_only_small_studies_of_two_classes_of_unknown_share_and_middle() -> None:
    for facts in ({"value_range": (-1, 1)}, {"feature_ranges": [(-1, 1)] * 64}):
        assert progress_of(400, **facts).parts
        assert progress_of(1400, **facts).parts  # 299 effective people
        assert progress_of(71, **facts).parts
        assert not progress_of(1410, **facts).parts
        assert not progress_of(70, **facts).parts  # less than 15
        for known in ("center_known", "spread_differs"):
            assert not progress_of(400, **facts, **{known: True}).parts
        assert not progress_of(400, **facts, class_share=0.3).parts
        assert not progress_of(400, **facts, classes=(0, 1, 2)).parts
    assert not progress_of(400, value_range=(-1, 1), range_is_loose=True).parts
    for epsilon, parts in ((2.0, True), (3.0, False)):  # two and three questions each
        plan = plan_study(100, epsilon, value_range=(-1, 1), classes=(0, 1))
        assert cast(QuestionProgress, Server(plan).progress).parts is parts
    assert not progress_of(400, feature_ranges=[(-1, 1)] * 65).parts  # too wide for one grid


def test_thresholds_lie_on_the_grid_around_what_is_known_and_answers_are_counted_there() -> None:
    plan = plan_study(800, 1.0, value_range=(-1, 1), classes=(0, 1))
    server, progress = Server(plan), None
    rng = np.random.default_rng(0)
    asked = {False: 0, True: 0}
    counted = parting.nothing_heard(4)
    while not server.finished:
        task = server.issue(server.wanted)
        progress = server.progress
        assert isinstance(task, StumpTask)
        assert isinstance(progress, QuestionProgress)
        about = task.thresholds > -1.5
        unit = progress.scales[task.coordinates[about]]
        place = task.thresholds[about] / unit
        np.testing.assert_allclose(parting.on_grid(place), place, atol=1e-9)
        near = np.abs(task.thresholds[about] - progress.centers[task.coordinates[about]])
        widest = progress.spans[task.coordinates[about]] if task.uses_label else unit / 3
        assert np.all(progress.spans <= 0.6 * progress.scales)
        step = parting._PLACES[1] - parting._PLACES[0]
        assert np.all(near <= widest + step * unit / 2 + 1e-9)
        asked[task.uses_label] += int(about.sum())
        told = rng.choice([-1.0, 1.0], (task.people, task.width))
        cells = np.rint((place + 1.25) / 0.125).astype(int)  # 0.125 apart from -1.25 on
        where = (task.coordinates[about], cells, (told[about] > 0).astype(int))
        np.add.at(counted[int(task.uses_label)], where, 1)
        server.receive(told, start=0)
    assert isinstance(progress, QuestionProgress)
    np.testing.assert_array_equal(progress.heard, counted)
    assert progress.heard.sum(axis=(1, 2, 3)).tolist() == [asked[False], asked[True]]
    assert asked[False] == 80  # a tenth of the people, without their label


def test_stumps_that_seem_right_are_asked_about_more() -> None:
    progress = progress_of(400, value_range=(-1, 1))
    cell = parting.cells(np.zeros(1))[0]
    progress.heard[1, 2, cell] = [5, 60]
    progress.phase = 2
    progress._learn_parting()
    assert np.argmax(progress.asking / progress._at_first) == 2
    assert progress.asking.sum() == pytest.approx(progress._at_first.sum())
    assert progress.asking.min() > 0.1 * progress._at_first.min()


@pytest.mark.parametrize(
    ("people", "facts", "leaning"),
    [
        (187, {"value_range": (-1, 1)}, 0.1),  # less than 40 effective people
        (188, {"value_range": (-1, 1)}, 0.15),
        (400, {"value_range": (-1, 1)}, 0.33),
        (200, {"feature_ranges": [(-1, 1)] * 3}, 0.5),
        (280, {"feature_ranges": [(-1, 1)] * 3}, 1.0),
    ],
)
def test_a_rule_without_evidence_names_the_larger_class(
    people: int, facts: Any, leaning: float
) -> None:
    progress = progress_of(people, **facts)
    progress.slopes[:] = 2.0
    progress.balance = np.array(-0.5)
    progress.intercepts = [balance.Belief(np.array([0.0, 1.0]), np.full(2, -1.0), np.ones(2))]
    progress.evidence = np.array([0.8])
    odds = 4 * leaning
    expected = balance.mixed(-1.0, balance=-0.5, evidence=odds / (1 + odds))
    assert progress.model.intercept == pytest.approx([expected[0]])
    assert progress.model.coefficients[0] == pytest.approx(2.0 * expected[1])


def test_the_fewer_the_labels_that_all_could_tell_the_more_caution() -> None:
    """Who answers two questions tells the label once at most: 60 effective people, 30 labels."""
    plan = plan_study(80, 2.0, value_range=(-1, 1), classes=(0, 1))
    progress: Any = Server(plan).progress
    assert (progress.k, progress.parts) == (2, True)
    assert progress._caution == progress_of(150, value_range=(-1, 1))._caution
    assert progress_of(280, value_range=(-1, 1))._caution != progress._caution


def test_a_study_keeps_what_the_posterior_says() -> None:
    progress = progress_of(400, value_range=(-1, 1))
    alpha, cell = progress._alpha(1), parting.cells(np.array([0.3]))[0]
    progress.heard[1, 1, cell] = [5, 30]
    progress._sums = {"total": np.array([[0.0] * 4 + [-30.0]]), "asked": np.full((1, 5), 40.0)}
    labels = np.array([35.0, 5.0])
    found = parting.found(progress.heard, labels, alpha=alpha, ordered=True)
    progress.phase = 2
    progress._learn_parting()
    np.testing.assert_allclose(progress.slopes[0], found.slopes)
    np.testing.assert_allclose(progress.slope_variance[0], found.slope_doubt)
    np.testing.assert_allclose(progress.centers, progress.scales * found.middles)
    np.testing.assert_allclose(progress.center_variance, progress.scales**2 * found.unsure)
    (belief,) = progress.intercepts
    assert belief.mean == pytest.approx(found.intercept)
    assert belief.variance == pytest.approx(found.intercept_doubt + found.slopes**2 @ found.unsure)
    assert [told.people for told in progress.correlations[0]] == [40] * 4
    calm, alarmed = progress._constant
    assert progress.constant_share == pytest.approx(calm + (alarmed - calm) * found.unbalanced)
    assert 0.5 < found.unbalanced < 1
    size = np.sqrt(found.right**2 + found.doubt)
    share = progress._at_first * size / (progress._at_first @ size)
    np.testing.assert_allclose(
        progress.asking, 0.3 * progress._at_first + 0.7 * progress._at_first.sum() * share
    )


def test_who_speaks_of_the_temperature_tells_no_label() -> None:
    """Of 5000 people 1000 are left: as many labels are wanted as of 1000."""
    left = progress_of(5000, value_range=(-1, 1), temperature_share=0.8)
    alone = progress_of(1000, value_range=(-1, 1))
    assert left.parts
    assert left._labels_wanted == pytest.approx(alone._labels_wanted)
    assert left._constant == pytest.approx(alone._constant)
    assert left._caution == alone._caution


def test_no_threshold_of_the_grid_is_the_constant_stumps() -> None:
    plan = plan_study(400, 1.0, value_range=(-1, 1), classes=(0, 1))
    progress = QuestionProgress(QuestionDesign(scales=(1.6,) * 8), plan)
    assert progress.parts
    asked = progress._thresholds(np.zeros(3, dtype=np.int64), np.array([-9.0, -2.0, 9.0]))
    assert asked == pytest.approx([-1, -1, 1])


def test_balanced_classes_are_asked_nearer_to_where_they_part() -> None:
    progress = progress_of(400, value_range=(-1, 1))
    found = progress._parted()
    share = progress.spans / progress.scales / found.widths
    assert share == pytest.approx(np.full(progress.d, 0.7 + found.unbalanced))
    progress._sums = {"total": np.zeros((1, 5)), "asked": np.zeros((1, 5))}
    for name, value in (("total", 90.0), ("asked", 100.0)):
        progress._sums[name][0, -1] = value  # nearly everybody has one label
    found = progress._parted()
    assert found.unbalanced > 0.99
    assert progress.spans == pytest.approx(progress.scales * found.widths)


def test_classes_that_part_away_from_the_public_middle_are_found() -> None:
    """Features are off the middle by their own width, and one class is larger."""
    wrong = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = (rng.random(2000) < 0.4).astype(np.int64)
        z = 0.02 * rng.normal(size=(2000, 8))
        z[:, 0] = 0.15 + 0.1 * np.where(y == 1, 1, -1) + 0.06 * rng.normal(size=2000)
        z[:, 1] = 0.2 - 0.1 * np.where(y == 1, 1, -1) + 0.06 * rng.normal(size=2000)
        plan = plan_study(700, 1.0, value_range=(-1, 1), classes=(0, 1), seed=seed)

        def some(a: int, b: int, z: Any = z, y: Any = y) -> Any:
            return z[a:b], y[a:b]

        model = simulate(plan, some, source=SimulationSource(seed)).model
        wrong.append(np.mean(model.decide(z[700:]) != y[700:]))
    # .9 % without privacy, 40 % by guessing; 8 % where middles have people of their own.
    assert np.median(wrong) < 0.05
