"""How sure a classifier may be: the question, what is read out of the answers, whole studies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.local.recipe import in_words, plan_study
from dpfda.mechanisms.randomized_response import QuestionResponse
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.study import Run
from dpfda.protocol.tasks.questions import (
    ConfidenceTask,
    Temperature,
    asked,
    confidence_questions,
    reach,
)
from dpfda.simulate import ask_everybody

ENCODER = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)


def plan(name: str = "answers", **changes: Any) -> StudyPlan:
    design = {"name": name, "temperature_share": 0.2} | changes.pop("design", {})
    facts = {"epsilon": 2.0, "n_people": 4000, "encoder": ENCODER, "classes": (0, 1)}
    return StudyPlan(**facts | {"design": design} | changes)


def model(*, classes: int = 2, factor: float = 1.0, damping: float = 1.0) -> CurveModel:
    scores = 1 if classes == 2 else classes
    slopes = factor * np.linspace(-3.0, 3.0, 2 * scores).reshape(scores, 2)
    return CurveModel(
        encoder=ENCODER, classes=tuple(range(classes)), intercept=np.full(scores, 0.2 * factor),
        coefficients=slopes, centers=np.zeros((scores, 2)), scales=np.full((scores, 2), 0.8),
        clipped=True, variances=np.full((scores, 3), 0.3), damping=damping,
        guarantee=Guarantee(epsilon=1.0, model="local"),
    )  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3])
def test_the_answer_is_whether_right_less_sure_exceeds_the_dither(classes: int) -> None:
    about, generator = model(classes=classes, damping=0.7), np.random.default_rng(0)
    z, y = generator.uniform(-1, 1, (500, 2)), generator.integers(0, classes, 500)
    fields = asked(about, generator.random((500, 3)))
    task = ConfidenceTask(epsilon=2.0, people=500, clipped=True, **fields)
    off = (about.decide(z) == y) - about.chances(z).max(axis=1)
    found = task.exact((z, y), SimulationSource(0))
    assert np.array_equal(found, np.where(off[:, None] > task.dithers, 1.0, -1.0))
    low, high = reach(classes)
    assert (low, high) == (-1, 1 - 1 / classes)
    assert low <= task.dithers.min() < low + 0.05
    assert high - 0.05 < task.dithers.max() <= high
    assert off.min() >= low
    assert off.max() <= high


def test_a_dither_that_is_met_is_not_exceeded() -> None:
    """A model that knows nothing is right, or wrong, by exactly ½."""
    fields = asked(model(factor=0.0), np.array([[1.0, 1 / 3], [1 / 3, 0.9]]))
    task = ConfidenceTask(epsilon=2.0, people=2, clipped=True, **fields)
    assert task.dithers.tolist() == [[0.5, -0.5], [-0.5, pytest.approx(0.35)]]
    found = task.exact((np.zeros((2, 2)), np.array([1, 0])), SimulationSource(0))
    assert found.tolist() == [[-1.0, 1.0], [-1.0, -1.0]]


@pytest.mark.parametrize(("epsilon", "classes", "k"), [(1.0, 2, 1), (1.0, 5, 1), (6.0, 2, 4)])
def test_what_answers_say_of_the_temperature(epsilon: float, classes: int, k: int) -> None:
    study = plan(epsilon=epsilon, classes=tuple(range(classes)))
    assert confidence_questions(study) == k
    alpha = QuestionResponse(epsilon=epsilon, questions=k).truth_probability
    half, middle = 1 - 1 / (2 * classes), -1 / (2 * classes)
    # 300 people whose answers mean v = -0.06.
    total = 300 * k * alpha * (-0.06 - middle) / half
    before = Temperature(0.1, 0.2)
    noise = half**2 / (300 * k * alpha**2) / 0.15**2
    kept = 0.2 / (0.2 + noise)
    found = before.updated(total, people=300, plan=study)
    assert found.mean == pytest.approx(0.1 - kept * 0.06 / 0.15, rel=1e-12)
    assert found.variance == pytest.approx(0.2 * noise / (0.2 + noise), rel=1e-12)
    assert found.factor == math.exp(found.mean)
    assert before.updated(0.0, people=0, plan=study) == before
    assert Temperature() == (0.0, 0.25)
    for sign in -1, 1:
        assert (
            Temperature(0.0, 1e9).updated(sign * 300.0 * k, people=300, plan=study).mean == 2 * sign
        )


@pytest.mark.parametrize("factor", [0.5, 2.5])
def test_a_model_that_is_too_sure_or_too_shy_is_found_out(factor: float) -> None:
    """From 20 000 people at ε = 4; the worst of 8 seeds was off by 15 %."""
    study, generator = plan(epsilon=4.0), np.random.default_rng(3)
    z = generator.uniform(-1, 1, (20_000, 2))
    truth = model()
    y = (generator.random(len(z)) < truth.chances(z)[:, 1]).astype(np.int64)
    belief, source = Temperature(), SimulationSource(1)
    for rows in np.array_split(np.arange(len(z)), 4):
        about = model(damping=factor * belief.factor)
        fields = asked(about, generator.random((len(rows), confidence_questions(study))))
        task = ConfidenceTask(epsilon=4.0, people=len(rows), clipped=True, **fields)
        reply = task.answer((z[rows], y[rows]), source).values
        belief = belief.updated(float(reply.sum()), people=len(rows), plan=study)
    assert belief.factor == pytest.approx(1 / factor, rel=0.2)


def people(start: int, stop: int) -> Any:
    generator = np.random.default_rng(start)
    z = generator.uniform(-1, 1, (stop - start, 2))
    return z, (generator.random(len(z)) < expit(4 * z[:, 0])).astype(np.int64)


@pytest.mark.parametrize("name", ["answers", "vectors"])
def test_some_people_say_how_sure_the_model_may_be(name: str) -> None:
    study = plan(name, design={"evaluation_share": 0.1})
    server = ask_everybody(study, people, source=SimulationSource(0))
    asked_of = dict.fromkeys(("temperature", "evaluation"), 0)
    for phase in server.run.steps:
        asked_of[phase.kind] = asked_of.get(phase.kind, 0) + phase.people
    assert asked_of["temperature"] == 800
    assert sum(asked_of.values()) == 4000
    kinds = [phase.kind for phase in server.run.steps]
    assert kinds[-5:] == ["temperature"] * 4 + ["evaluation"]
    plain = ask_everybody(
        plan(name, design={"temperature_share": 0.0}), people, source=SimulationSource(0)
    )
    assert plain.model.damping == pytest.approx(1.0, abs=0.5)
    assert server.model.damping not in (1.0, plain.model.damping)
    again = Server.resume(study, server.state()).model
    assert again.damping == server.model.damping
    assert again.coefficients.tolist() == server.model.coefficients.tolist()


@pytest.mark.parametrize("name", ["answers", "vectors"])
def test_nobody_is_asked_where_no_share_is_given(name: str) -> None:
    study = plan(name, design={"temperature_share": 0.0})
    assert "confidence" not in study.asks
    task = ConfidenceTask(
        epsilon=2.0, people=1, clipped=True, **asked(model(), np.full((1, 1), 0.5))
    )
    with pytest.raises(ProtocolError):
        study.check(task)
    tempered = plan(name)
    tempered.check(
        ConfidenceTask(
            epsilon=2.0, people=1, clipped=True,
            **asked(model(), np.full((1, confidence_questions(tempered)), 0.5)),
        )
    )  # fmt: skip


@pytest.mark.parametrize("name", ["answers", "vectors"])
def test_shares_that_leave_nobody_are_refused(name: str) -> None:
    for shares in (
        {"temperature_share": 1.0}, {"temperature_share": -0.1}, {"temperature_share": math.nan},
        {"temperature_share": 0.5, "evaluation_share": 0.5},
    ):  # fmt: skip
        with pytest.raises(InvalidParameter, match="temperature_share"):
            Run(plan(name, design=shares))
    Run(plan(name, design={"temperature_share": 0.4, "evaluation_share": 0.5}))


def test_the_recipe_passes_it_on() -> None:
    facts: dict[str, Any] = {"value_range": (-6, 6), "temperature_share": 0.1}
    found = plan_study(3000, 1.0, classes=(0, 1), **facts)
    assert found.design["temperature_share"] == 0.1
    assert ("temperature", 300) in [(row["phase"], row["people"]) for row in in_words(found)[0]]
    with pytest.raises(InvalidParameter, match="temperature_share"):
        plan_study(3000, 1.0, target_range=(0, 1), **facts)
    with pytest.raises(InvalidParameter, match="temperature_share"):
        plan_study(3000, 1.0, classes=(0, 1), protects="labels", **facts)
