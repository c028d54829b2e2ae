"""One recipe: the same facts give the same plan, and nothing that was said is ignored."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpfda import LocalCurveClassifier, SimulationSource, plan_study
from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.local.recipe import in_words, plan_from_facts
from dpfda.local.study.moments import Reply
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.simulate import people_from, simulate

FACTS: dict[str, Any] = {
    "n_people": 400, "epsilon": 2, "value_range": [1, 5], "domain_range": [0, 4],
    "classes": ["ill", "healthy"], "evaluation_share": 0.25,
}  # fmt: skip


def test_facts_in_another_form_or_order_give_one_plan() -> None:
    plan = plan_from_facts(FACTS)
    assert plan_study(**FACTS).hash == plan.hash
    assert (
        plan_from_facts(FACTS | {"classes": ["healthy", "ill"], "epsilon": 2.0}).hash == plan.hash
    )
    assert StudyPlan.from_dict(plan.to_dict()).hash == plan.hash


def test_the_public_range_fills_the_box() -> None:
    """A constant curve at either end of its range is ±1 in the first feature, 0 in the others."""
    encoder = plan_from_facts(FACTS).encoder
    ends = encoder.encode(np.array([[5.0] * 9, [1.0] * 9, [3.0] * 9]), np.linspace(0, 4, 9))
    np.testing.assert_allclose(ends[:, 0], [1, -1, 0], atol=1e-12)
    np.testing.assert_allclose(ends[:, 1:], 0, atol=1e-12)


def test_more_people_than_there_are_are_refused():
    with pytest.raises(InvalidParameter, match="n_people must be at most 1000000000, got 'more'"):
        plan_study(10**400, 1, value_range=(0, 1), classes=(0, 1))


@pytest.mark.parametrize("name", ["n_people", "epsilon", "value_range", "domain_range", "classes"])
def test_every_fact_is_part_of_the_contract(name: str) -> None:
    other = {"n_people": 401, "epsilon": 2.5, "value_range": [1, 6], "domain_range": [0, 5],
             "classes": ["ill", "well"]}  # fmt: skip
    assert plan_from_facts(FACTS | {name: other[name]}).hash != plan_from_facts(FACTS).hash


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"value_range": None}, "value_range must be given for curves, or else feature_ranges"),
        ({"feature_ranges": [[0, 1]]}, "value_range must be given for curves, or else"),
        ({"value_range": [2, 1]}, "value_range must be a pair"),
        ({"classes": ["ill", 3]}, "classes must be all of them words"),
        ({"evaluation_share": 1.0}, "evaluation_share must be"),
        ({"n_features": 13}, "n_features must be an integer from 1 to 12"),
        ({"protects": "labels"}, "evaluation_share must be left out with protects='labels'"),
        ({"scales": [1.0]}, "unknown field `scales`"),
        ({"epsilon": "1"}, r"\$\.epsilon"),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises((InvalidParameter, InvalidData), match=told):
        plan_from_facts(FACTS | change)


def test_one_pair_does_not_stand_for_a_table() -> None:
    with pytest.raises(InvalidParameter, match="feature_ranges must be one"):
        plan_study(9, 1.0, feature_ranges=(0, 1), classes=(0, 1))  # type: ignore[arg-type]


def test_columns_may_have_names_and_categories() -> None:
    named = plan_study(9, 1, feature_ranges={"age": (20, 80), "sex": ["f", "m"]}, classes=(0, 1))
    sent = {"n_people": 9, "epsilon": 1, "classes": [0, 1]}
    facts = plan_from_facts(sent | {"feature_ranges": {"age": [20, 80], "sex": ["f", "m"]}})
    pairs = plan_from_facts(sent | {"feature_ranges": [[20, 80], [0, 1], [0, 1]]})
    assert named.hash == facts.hash == StudyPlan.from_dict(named.to_dict()).hash
    assert named.design == pairs.design
    record = {"sex": ["m"], "age": [80]}
    for person, plan in (([[80, 0, 1]], pairs), ([[80, 0, 1]], named), (record, named)):
        assert plan.encoder.encode(person).tolist() == [[1, -1, 1]]


def test_channels_may_have_ranges_of_their_own() -> None:
    facts = {"n_people": 900, "epsilon": 1, "classes": [0, 1]}
    both = plan_from_facts(facts | {"value_range": [[0, 1], [-6, 6]]})
    assert both.encoder.channels == 2
    one = plan_from_facts(facts | {"value_range": [[-6, 6]]})
    assert one.hash == plan_from_facts(facts | {"value_range": [-6, 6]}).hash


def test_a_plan_in_words_names_everybody_once() -> None:
    plan = plan_from_facts(FACTS)
    told, notes = in_words(plan)
    rows = {row["phase"]: row for row in told}
    assert sum(row["people"] for row in rows.values()) == 400
    assert rows["evaluation"] == {
        "phase": "evaluation", "people": 100, "answers": 1, "true": "0.881",
        "asked": "is the finished classifier right about you?",
    }  # fmt: skip
    assert rows["answers"]["answers"] == "1 or more"
    assert 2 in plan.asks["stump"]["k"]  # type: ignore[operator]
    assert rows["answers"]["true"] == "≤ 0.881"  # of one question; (1 + (e² - 1)/(e² + 1))/2
    assert "e^ε = 7.39" in notes[2]
    labels = plan_study(9, 1.0, value_range=(0, 1), classes=(0, 1), protects="labels")
    told, notes = in_words(labels)
    assert [(row["phase"], row["people"]) for row in told] == [("labels", 9)]
    assert "curves are public" in notes[0]
    assert len(notes) == 1  # nothing is said of data that travel in clear


@pytest.mark.parametrize("share", [0.0, 0.15])
@pytest.mark.parametrize("n_people", [7, 317, 3000])
def test_nobody_is_left_out_of_the_words(n_people: int, share: float) -> None:
    known: dict[str, Any] = {"evaluation_share": share, "temperature_share": share}
    plan = plan_study(n_people, 1.0, value_range=(0, 1), classes=(0, 1), **known)
    assert sum(row["people"] for row in in_words(plan)[0]) == n_people


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0, 12.0])
@pytest.mark.parametrize(
    "facts",
    [
        {"value_range": (0, 1), "classes": (0, 1)},
        {"feature_ranges": [(0, 1)] * 3, "classes": (0, 1)},
        {"feature_ranges": [(0, 1)] * 3, "classes": (0, 1, 2)},
        {"feature_ranges": [(0, 1)] * 3, "target_range": (0, 1)},
    ],
)
def test_replies_are_worth_no_more_than_what_people_are_asked(
    facts: dict[str, Any], epsilon: float
) -> None:
    plan = plan_study(12, epsilon, **facts)
    rows, notes = in_words(plan)
    (told,) = re.findall(r"worth (\d+) answers", notes[1])
    # Of vectors, one clear answer a feature.
    most = {"1 or more": plan.encoder.n_features}
    each = [3 if row["true"] == "–" else most.get(row["answers"], row["answers"]) for row in rows]
    clear = [row["people"] * answers for row, answers in zip(rows, each, strict=True)]
    assert int(told) <= sum(clear)
    if epsilon == 12.0:  # nearly no noise
        assert int(told) > 0.6 * sum(clear)


def test_answers_are_counted_as_they_are_asked() -> None:
    """By hand: 12 people, five questions each with α = (e⁵ - 1)/(e⁵ + 31) = 0.822."""
    rows, notes = in_words(plan_study(12, 5.0, value_range=(0, 1), classes=(0, 1)))
    assert [row["answers"] for row in rows] == ["1 or more"]
    assert "worth 41 answers" in notes[1]


TABLE, CURVE = {"feature_ranges": [(0, 1)] * 3}, {"value_range": (0, 1)}


@pytest.mark.parametrize(
    ("facts", "classes", "least"),
    [
        (TABLE, 2, 800),
        (TABLE | {"center_known": True}, 2, 800),
        (TABLE, 3, 0),
        (CURVE, 3, 0),
        (CURVE, 2, 20_000),
    ],
)
def test_tables_and_several_classes_are_asked_for_vectors(
    facts: dict[str, Any], classes: int, least: float
) -> None:
    """A plan says it, and its words name every phase."""
    for effective in (1, 750, 850, 19_000, 21_000):
        n_people = math.ceil(effective * Reply.of(32, 1.0).noise)
        plan = plan_study(n_people, 1.0, classes=range(classes), **facts)
        assert plan.design["name"] == ("answers" if effective < least else "vectors")
        if plan.design["name"] == "answers":
            continue
        assert StudyPlan.from_dict(plan.to_dict()).hash == plan.hash
        assert plan.design["center_known"] is facts.get("center_known", False)
        rows, notes = in_words(plan)
        assert sum(row["people"] for row in rows) == plan.n_people
        assert {row["true"] for row in rows if row["phase"] == "vectors"} == {"–"}
        assert "random directions" in notes[1]


@pytest.mark.parametrize(
    ("encoder", "ordered"),
    [
        (CurveEncoder("cosine", n_basis=4), True),
        (CurveEncoder("bspline", n_basis=4), False),
        (CurveEncoder("identity", n_basis=2, scale=1.0), False),
    ],
)
@pytest.mark.parametrize("name", ["answers", "vectors"])
def test_a_design_needs_no_more_than_its_name(
    encoder: CurveEncoder, ordered: bool, name: str
) -> None:
    plan = StudyPlan(
        epsilon=3.0, n_people=5000, encoder=encoder, classes=(0, 1), design={"name": name}
    )
    assert Server(plan).wanted
    assert plan.built_design.settled(encoder).ordered is ordered  # type: ignore[attr-defined]


def error_of(plan: StudyPlan, seed: int) -> float:
    """Of a study on simulation 001 whose best possible error is 10 %."""
    people, others = simulate_001(plan.n_people, seed), simulate_001(4000, 1000 + seed)
    crowd = people_from(plan, people.X, people.y, grid_points=people.grid_points)
    model = simulate(plan, crowd, source=SimulationSource(seed)).model
    return float(np.mean(model.predict(others.X, grid_points=others.grid_points) != others.y))


def test_the_recipe_is_far_better_than_a_plan_by_hand() -> None:
    """B-splines, tanh and one scale for all err on half as many again."""
    recipe = plan_study(3000, 1.0, value_range=(-6, 6), classes=(-1.0, 1.0), evaluation_share=0.15)
    by_hand = replace(
        recipe,
        encoder=CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=1.0),
        design={"name": "answers", "evaluation_share": 0.15},
    )
    seeds = range(8)
    assert np.median([error_of(recipe, seed) for seed in seeds]) < 0.13
    assert np.median([error_of(by_hand, seed) for seed in seeds]) > 0.15


def test_the_estimator_of_a_table_follows_it_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(0.3, 0.1, (1500, 3))
    y = (X[:, 0] - X[:, 1] + rng.normal(0, 0.05, 1500) > 0).astype(int)
    ranges = [(0.0, 1.0)] * 3
    classifier = LocalCurveClassifier(
        epsilon=4, feature_ranges=ranges, classes=(0, 1), random_state=5
    ).fit(X, y)
    plan = plan_study(1500, 4, feature_ranges=ranges, classes=(0, 1), seed=5)
    assert plan.design["name"] == "vectors"
    assert classifier.plan_.hash == plan.hash
    assert classifier.score(X, y) > 0.8  # the best linear rule is right on 90 %
    chances = classifier.predict_proba(X)
    assert np.mean(chances.argmax(axis=1) == classifier.predict(X)) == 1
    assert 0.5 < chances.max(axis=1).mean() < 1


def test_the_estimator_follows_the_recipe() -> None:
    people = simulate_001(200, 0)
    classifier = LocalCurveClassifier(
        epsilon=1, value_range=(-6, 6), evaluation_share=0.1, classes=(-1, 1), random_state=5
    )
    classifier.fit(people.X, people.y, grid_points=people.grid_points)
    plan = plan_study(200, 1, value_range=(-6, 6), evaluation_share=0.1, classes=(1, -1), seed=5)
    assert classifier.plan_.hash == plan.hash
