"""Local linear studies, from the first person to the last."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.linear.design import LinearDesign
from dpfda.linear.regression_schedule import RegressionSchedule
from dpfda.linear.reports import effective_people
from dpfda.linear.schedule import Schedule
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Person, Server, StudyPlan
from dpfda.protocol.tasks.summary import SummaryTask
from dpfda.simulate import simulate

LINEAR: dict[str, Any] = {"name": "linear"}
CLASSES = {2: ("no", "yes"), 3: ("a", "b", "c")}


def make_plan(
    n_people: int = 2000, epsilon: float = 4.0, *, classes: int = 2, **design: Any
) -> StudyPlan:
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=CurveEncoder("identity", n_basis=4, rescale="clip", scale=1.0),
        classes=CLASSES[classes],
        design=LINEAR | design,
    )


def crowd(n: int, seed: int = 0, *, classes: int = 2) -> tuple[Any, Any]:
    """People off the middle, with correlated features, and labels across what these share."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.1, (n, 1))
    z = 0.4 + common + rng.normal(0, [0.06, 0.06, 0.1, 0.1], (n, 4))
    signal = (z[:, 0] - z[:, 1]) / 0.06
    if classes == 2:
        return z, (signal + rng.normal(0, 0.5, n) > 0.3).astype(np.int64)
    return z, np.digitize(signal, [-0.6, 0.6])


def run(plan: StudyPlan, z: Any, y: Any, seed: int = 0, **options: Any) -> Server:
    return simulate(
        plan,
        lambda start, stop: (z[start:stop], y[start:stop]),
        source=SimulationSource(seed),
        **options,
    )


@pytest.mark.parametrize(("classes", "bound"), [(2, 0.2), (3, 0.3)])
def test_learns_what_correlations_hide(classes: int, bound: float) -> None:
    """Single features say little: 38 % and 50 % is what the best of them errs on."""
    z, y = crowd(8000, classes=classes)
    model = run(make_plan(8000, classes=classes), z, y).model
    others, truth = crowd(4000, seed=1, classes=classes)
    # Without privacy 11 % and 13 %; N_eff is about 20 000, which costs a few points here.
    assert np.mean(model.decide(others) != truth) < bound


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_a_model_in_doubt(classes: int) -> None:
    z, y = crowd(3000, classes=classes)
    others, _ = crowd(500, seed=1, classes=classes)
    plans = [make_plan(3000, e, classes=classes) for e in (0.5, 5.0)]
    models = [[run(plan, z, y, seed=seed).model for seed in range(4)] for plan in plans]
    # Of two classes 0.62 and 0.80, give or take 0.08 for one study.
    unsure, sure = (np.mean([m.chances(others).max(axis=1) for m in four]) for four in models)
    assert unsure + 0.05 < sure
    found = models[1][0].chances(others)
    assert found.shape == (500, classes)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.mean(found.argmax(axis=1) == models[1][0].decide(others)) == 1


def test_finds_features_that_lie_off_the_middle() -> None:
    z, y = crowd(8000)
    server = run(make_plan(8000), z, y)
    progress: Any = server.progress
    # A grid of 0.01 on [0, 1] is 0.02 on [-1, 1]; each feature is 0.4 ± 0.13.
    np.testing.assert_allclose(progress.location, 0.4, atol=0.06)
    np.testing.assert_allclose(progress.width, z.std(axis=0), rtol=0.6)
    centers = server.findings.centers
    assert all(abs(found.value - 0.4) < 4 * max(found.standard_error, 0.01) for found in centers)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("absent", [0.3, 1.0])
def test_people_who_never_answer(classes: int, absent: float) -> None:
    z, y = crowd(800, classes=classes)
    gone = np.random.default_rng(0).random(800) < absent
    server = run(make_plan(800, 6.0, classes=classes), z, y, answers=lambda who: ~gone[who])
    assert server.finished
    assert np.all(np.isfinite(server.model.scores(z)))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("n_people", "epsilon"), [(1, 0.1), (2, 5.0), (7, 1.0), (300, 0.01)])
def test_very_few_people(classes: int, n_people: int, epsilon: float) -> None:
    z, y = crowd(n_people, classes=classes)
    server = run(make_plan(n_people, epsilon, classes=classes), z, y)
    assert np.all(np.isfinite(server.model.scores(z)))


@pytest.mark.parametrize("classes", [2, 3])
def test_one_class_only_and_constant_features(classes: int) -> None:
    z, y = np.full((900, 4), 0.25), np.ones(900, dtype=np.int64)
    server = run(make_plan(900, 5.0, classes=classes), z, y)
    assert np.all(np.isfinite(server.model.scores(z)))
    assert np.mean(server.model.decide(z) == 1) == 1


def test_the_estimated_error_covers_the_truth() -> None:
    z, y = crowd(4000)
    server = run(make_plan(4000, 3.0, evaluation_share=0.4), z, y)
    others, truth = crowd(50_000, seed=9)
    error = server.findings.error
    assert error is not None
    assert error.people == 1600
    low, high = error.interval(0.9999)
    assert low < np.mean(server.model.decide(others) != truth) < high


def test_a_public_share_is_not_asked_for() -> None:
    asked = {phase.kind for phase in Server(make_plan(800)).findings.phases}
    known = {phase.kind for phase in Server(make_plan(800, class_share=0.2)).findings.phases}
    assert asked - known == {"rate"}
    progress: Any = Server(make_plan(800, class_share=0.2)).progress
    assert progress.labels.rate.share == 0.2
    with pytest.raises(InvalidParameter, match="class_share must be left out with 3 classes"):
        Server(make_plan(800, classes=3, class_share=0.2))


@pytest.mark.parametrize("classes", [2, 3, 26])
@pytest.mark.parametrize("columns", [1, 8, 60])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("people", [1, 13, 900, 100_001])
def test_everybody_is_asked_once(classes: int, columns: int, epsilon: float, people: int) -> None:
    schedule = Schedule(
        people=people, epsilon=epsilon, columns=columns, n_classes=classes, judges=7
    )
    phases = schedule.phases()
    assert sum(phase.people for phase in phases) == people + 7
    assert all(phase.people > 0 for phase in phases)
    assert phases[-1].kind == "evaluation"


@pytest.mark.parametrize(("columns", "wanted"), [(2, 20), (8, 80), (30, 1125)])
def test_wide_tables_are_asked_for_correlations_where_these_can_be_seen(
    columns: int, wanted: float
) -> None:
    """Of two classes; a regression tells more of them with fewer."""
    one = effective_people(1_000_000, 1.0) / 1_000_000
    asked = {}
    for kind, part in product((Schedule, RegressionSchedule), (0.98, 1.02)):
        people = int(part * 10 * wanted / one)
        schedule = kind(people=people, epsilon=1.0, columns=columns, n_classes=2)
        asked[kind, part] = sum(p.people for p in schedule.phases() if p.kind == "correlation")
    assert asked[Schedule, 0.98] == 0
    assert asked[Schedule, 1.02] == pytest.approx(1.02 * wanted / one, abs=2)
    assert bool(asked[RegressionSchedule, 0.98]) == (wanted > 10 * columns)


def test_several_classes_of_curves_need_no_correlations() -> None:
    """What varies within a class is asked for later, where there are enough people for it."""
    kinds = {}
    for classes, ordered in ((2, True), (3, True), (3, False)):
        plan = make_plan(20_000, classes=classes, ordered=ordered)
        kinds[classes, ordered] = {phase.kind for phase in Server(plan).findings.phases}
    assert "correlation" in kinds[2, True] & kinds[3, False]
    assert kinds[3, False] - kinds[3, True] == {"correlation"}
    assert "within" in kinds[3, True]


def test_the_server_is_held_to_its_tasks() -> None:
    """What no phase asks is refused, and costs nothing."""
    plan = make_plan(400)
    ledger = Ledger(plan.epsilon)
    person = Person(plan, curve=[0.1, 0.2, 0.3, 0.4], label="yes", ledger=ledger)
    good: dict[str, Any] = {
        "epsilon": 4.0, "people": 1, "statistic": "residual", "classes": 2,
        "centers": np.zeros(4), "scales": np.ones(4), "clip": 2.0, "matrix": np.eye(4),
        "offsets": np.zeros((1, 4)), "weights": np.ones(5), "theta": np.zeros(5), "reach": 2.0,
        "limit": 1.0,
    }  # fmt: skip
    classes = {"statistic": "classes", "theta": (1.0,), "reach": 1.0}
    bad: list[dict[str, Any]] = [
        {"epsilon": 4.5},
        {"clip": 1e6},
        {"unit": "household"},
        classes,
        {"classes": 3, "offsets": np.zeros((3, 4))},
        {"centers": np.zeros(3), "scales": np.ones(3), "matrix": np.ones((4, 3))},
        {"matrix": np.ones((5, 4)), "offsets": np.zeros((1, 5)), "weights": np.ones(6),
         "theta": np.zeros(6)},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(ProtocolError):
            person.answer(SummaryTask(**(good | change)))
    assert ledger.remaining.epsilon == 4.0
    assert person.answer(SummaryTask(**good)).values.shape == (1, 2)
    several = make_plan(400, classes=3)
    with pytest.raises(ProtocolError, match="statistic"):
        several.check(SummaryTask(**(good | {"classes": 3})))


@pytest.mark.parametrize("classes", [2, 3])
def test_no_numbers_of_a_server_draw_more_out_of_anybody(classes: int) -> None:
    """Allowed tasks with the wildest public numbers: no two people are told apart beyond ε."""
    plan = make_plan(400, epsilon=1.0, classes=classes)
    rng = np.random.default_rng(0)

    def wild(*shape: int, least: float = -1e50) -> Any:
        return np.maximum(rng.choice([0, 0.5, -1, 1e50, -1e50, 1e-50, 1e25], size=shape), least)

    labelled = "residual" if classes == 2 else "classes"
    people = [(rng.uniform(-1, 1, (1, 4)), np.array([k])) for k in range(classes)]
    people += [(np.sign(z), y) for z, y in people]
    people += [(np.full((1, 4), np.nan), np.array([-5]))]
    for number in range(30):
        statistic = ("spread", "products", labelled)[number % 3]
        q = 1 + number % 4
        rule = {"weights": wild(q + 1)} if statistic == labelled else {}
        if statistic == "residual":
            rule |= {"theta": wild(q + 1), "reach": wild(1, least=1e-50).item()}
        sent = SummaryTask(
            epsilon=1.0, people=1, statistic=statistic, classes=classes,
            centers=wild(4), scales=wild(4, least=1e-50), clip=plan.asks["summary"]["clip"],
            matrix=wild(q, 4), offsets=wild((1, classes)[number % 2], q),
            limit=wild(1, least=1e-50).item(), **rule,
        )  # fmt: skip
        task = plan.read_task(sent.to_dict())
        for whose in people[:2]:
            answer = task.answer(whose, SimulationSource(number))
            told = [task.log_likelihood(answer, one, SimulationSource(0)) for one in people]
            assert np.ptp(told) <= 1.0 + 1e-9


@pytest.mark.parametrize(("people", "epsilon", "classes"), [(12, 5.0, 2), (8, 4.5, 3)])
def test_late_phases_of_a_study_too_small_for_them(
    people: int, epsilon: float, classes: int
) -> None:
    """They go on with the first question; any of them may have no reply at all."""
    plan = make_plan(people, epsilon, classes=classes)
    z, y = crowd(people, classes=classes)
    late = {2: ("gradient",), 3: ("within", "residuals")}[classes]
    phases = Server(plan).findings.phases
    for silent in [n for n, phase in enumerate(phases) if phase.kind in late]:
        first = sum(phase.people for phase in phases[:silent])
        nobody = range(first, first + phases[silent].people)
        server = run(plan, z, y, answers=lambda who, nobody=nobody: ~np.isin(who, nobody))
        assert not server.progress.labels.refines  # type: ignore[attr-defined]
        assert server.progress.labels.people > 0  # type: ignore[attr-defined]
        assert np.isfinite(server.model.coefficients).all()


def test_state_does_not_grow_with_people() -> None:
    sizes = []
    for n in (2000, 4000):
        z, y = crowd(n)
        state = run(make_plan(n), z, y).state()
        sizes.append(len(msgspec.json.encode(state["run"])))
    assert abs(sizes[1] - sizes[0]) < 0.1 * sizes[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reaches": ()}, "reaches must be one positive number"),
        ({"evaluation_share": 1.0}, "evaluation_share must be"),
        ({"reaches": (1.0, 1.0), "n_features": 3}, "n_features must be"),
        ({"class_share": 1.5}, "class_share must be"),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        LinearDesign(**change)


def test_more_features_than_there_are_are_refused() -> None:
    size = make_plan(900).encoder.n_features
    with pytest.raises(InvalidParameter, match=f"n_features must be an integer from 1 to {size}"):
        Server(make_plan(900, n_features=size + 1))


def test_fewer_features_are_asked_about() -> None:
    plan = make_plan(900, n_features=2)
    assert plan.asks["summary"]["d"] == plan.asks["evaluation"]["dimension"] == 2
    z, y = crowd(900)
    assert run(plan, z, y).model.coefficients.shape == (1, 2)


def test_curves_have_an_order() -> None:
    settled = LinearDesign().settled(CurveEncoder("cosine", n_basis=4))
    assert settled.reaches == (1.0, 1.0, 1 / 2, 1 / 3)
    plan = StudyPlan(
        epsilon=1.0, n_people=100, encoder=CurveEncoder("cosine", n_basis=4), classes=(0, 1),
        design=LINEAR,
    )  # fmt: skip
    assert LinearDesign().favor(plan).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    progress: Any = Server(plan).progress
    np.testing.assert_allclose(progress._asking, np.arange(1, 5) ** -0.5)
