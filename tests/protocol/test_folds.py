"""Distances from a middle, as features that tasks and models look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpfda import CurveEncoder
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import check_terms
from dpfda.protocol.task import folded
from dpfda.protocol.tasks.questions import ConfidenceTask, EvaluationTask, StumpTask, example_fields
from dpfda.protocol.tasks.vector import SummaryTask

Z = np.array([[0.5, -0.3, 0.9], [-0.9, 0.2, 0.1]])
Y = np.array([1, 0])
FOLDS = np.array([0.2, -0.1])
FAR = np.array([[0.3, 0.2], [1.1, 0.3]])
SOURCE = SimulationSource(0)
TWO: Any = {"epsilon": 1.0, "people": 2}


def exact(task: Any) -> Any:
    return task.exact(task.fitting((Z, Y)), SOURCE)


def test_a_fold_keeps_features_and_adds_distances() -> None:
    assert_allclose(folded(Z, FOLDS), np.column_stack([Z[:, :2], FAR]))
    assert folded(Z, np.zeros(0)) is Z


def test_a_stump_asks_how_far_somebody_is_from_the_middle() -> None:
    where: Any = {"coordinates": [[2], [2]], "thresholds": [[0.35], [0.35]], "positive": [1, 1]}
    assert exact(StumpTask(**TWO, **where, folds=FOLDS)).tolist() == [[-1.0], [-1.0]]
    assert exact(StumpTask(**TWO, **where)).tolist() == [[1.0], [1.0]]
    task = StumpTask(**TWO, **where, folds=FOLDS, uses_label=False)
    assert exact(task).tolist() == [[-1.0], [1.0]]
    assert task.columns == 2, "as many features as it takes to make the distances"
    assert task.rows([1]).answer((Z[1:], Y[1:]), SOURCE).values.shape == (1, 1)


def test_a_vector_is_made_of_features_and_distances() -> None:
    numbers: Any = {
        "centers": [0.1, 0.2, 0.3, 0.4], "scales": [1.0, 2.0, 0.5, 1.0], "clip": 2.0,
        "matrix": np.eye(4), "offsets": np.zeros((1, 4)), "limit": 100.0, "classes": 2,
    }  # fmt: skip
    task = SummaryTask(**TWO, statistic="spread", folds=FOLDS, **numbers)
    standard = (np.column_stack([Z[:, :2], FAR]) - numbers["centers"]) / numbers["scales"]
    assert_allclose(100 * exact(task)[:, :4], np.clip(standard, -2, 2))
    assert task.columns == 2


def test_models_and_tasks_score_alike() -> None:
    model = CurveModel(
        encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 3),
        classes=("no", "yes"),
        intercept=np.array([-0.2]),
        coefficients=np.array([[0.1, 0.5, -0.6, 2.0]]),
        centers=np.array([[0.0, 0.1, 0.3, 0.2]]),
        scales=np.array([[1.0, 0.5, 0.4, 0.3]]),
        clipped=True,
        variances=np.full((1, 5), 0.2),
        folds=FOLDS,
        guarantee=Guarantee(epsilon=1.0, model="local"),
    )
    standard = (np.column_stack([Z[:, :2], FAR]) - model.centers[0]) / model.scales[0]
    scores = model.intercept + np.clip(standard, -1, 1) @ model.coefficients[0]
    assert_allclose(model.scores(Z)[:, 0], scores)
    assert model.decide(Z).tolist() == (scores >= 0).tolist()
    judged = exact(EvaluationTask(**TWO, **model.rows(2), clipped=True))
    assert judged.tolist() == np.where(model.decide(Z) == Y, 1.0, -1.0).tolist()
    again = CurveModel.from_json(model.to_json())
    assert_allclose(again.chances(Z), model.chances(Z))
    chances = 1 / (
        1
        + np.exp(
            -scores
            / np.sqrt(1 + np.pi / 8 * 0.2 * (1 + (np.clip(standard, -1, 1) ** 2).sum(axis=1)))
        )
    )
    assert_allclose(model.chances(Z)[:, 1], chances)
    assert_allclose(model.slope(), [[0.1, 1.0, 0.0]]), "distances have no slope"
    dithers = (model.decide(Z) == Y) - model.chances(Z).max(axis=1)
    sure: Any = {"variances": np.repeat(model.variances[None], 2, axis=0), "damping": 1.0}
    for moved, answer in ((-1e-6, 1.0), (1e-6, -1.0)):
        asked = np.clip(dithers + moved, -1, 1)[:, None]
        task = ConfidenceTask(**TWO, **model.rows(2), clipped=True, **sure, dithers=asked)
        assert exact(task).tolist() == [[answer], [answer]]


@pytest.mark.parametrize(
    "parts",
    [
        {"folds": [[0.1]]},
        {"folds": [0.0] * 3},
        {"folds": [float("nan")]},
        {"folds": [0.1], "coefficients": [[1.0, 1.0, 1.0]]},
        {"coefficients": [[1.0, 1.0, 1.0]]},
    ],
)
def test_folds_that_do_not_fit_a_model_are_refused(parts: dict[str, Any]) -> None:
    given = {"coefficients": [[1.0, 1.0]], **parts}
    with pytest.raises(InvalidParameter, match=r"folds|coefficients"):
        CurveModel.linear(
            encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
            classes=("no", "yes"),
            intercept=[0.0],
            guarantee=Guarantee(epsilon=1.0, model="local"),
            **given,
        )


def test_folds_that_do_not_fit_a_task_are_refused() -> None:
    line = example_fields(1)  # of two features
    assert EvaluationTask(**line, folds=[0.1]).columns == 1
    with pytest.raises(InvalidParameter, match="folds"):
        StumpTask(
            epsilon=1.0, people=1, coordinates=[[2]], thresholds=[[0.0]], positive=[1], folds=[0.1]
        )  # type: ignore[arg-type]
    for outside in (1.001, -1.001):
        with pytest.raises(InvalidParameter, match="folds"):
            EvaluationTask(**line, folds=[outside])
    assert EvaluationTask(**line, folds=[1.0, -1.0]).columns == 2
    terms = {"dimension": 2, "m": 1, "epsilon": 1.0, "unit": "person"}
    check_terms(EvaluationTask(**line), terms)
    check_terms(EvaluationTask(**line, folds=[0.1]), terms | {"f": 1})
    with pytest.raises(ProtocolError, match="f = 1"):  # what nothing is said of has no entries
        check_terms(EvaluationTask(**line, folds=[0.1]), terms)
    with pytest.raises(ProtocolError, match="f = 0"):
        check_terms(EvaluationTask(**line), terms | {"f": 1})
