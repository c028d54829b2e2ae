"""Studies of answers, moments and labels, from the first person to the last."""

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.errors import BudgetExceeded, InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import Person, Server, StudyPlan, Task
from dpfda.simulate import simulate

IDENTITY = CurveEncoder("identity", n_basis=4, rescale="clip", scale=1.0)
ANSWERS = {"name": "answers"}
DESIGNS = [
    ANSWERS,
    ANSWERS | {"center_known": True, "evaluation_share": 0.2},
    {"name": "moments"},
]


def make_plan(n_people=2000, epsilon=2.0, design=None, classes=(0, 1), **changes):
    design = design if design is not None else ANSWERS
    return StudyPlan(
        epsilon=epsilon,
        n_people=n_people,
        encoder=IDENTITY,
        classes=classes,
        design=design,
        **changes,
    )


def crowd(n, seed=0, *, shift=0.0, classes=2):
    """Encoded people whose label follows their first feature."""
    rng = np.random.default_rng(seed)
    z = np.clip(shift + rng.normal(0, [0.3, 0.2, 0.1, 0.1], (n, 4)), -1, 1)
    if classes == 2:
        y = (z[:, 0] - shift + 0.1 * rng.normal(size=n) > 0).astype(np.int64)
    else:
        y = np.digitize(z[:, 0] - shift, [-0.15, 0.15])
    return z, y


def run(plan, z, y, seed=0, **options):
    return simulate(
        plan,
        lambda start, stop: (z[start:stop], y[start:stop]),
        source=SimulationSource(seed),
        **options,
    )


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: str(sorted(d)))
def test_learns_a_clear_rule(design):
    z, y = crowd(4000)
    model = run(make_plan(4000, design=design), z, y).model
    test_z, test_y = crowd(4000, seed=1)
    # Bayes error is about 10 %; 20 % leaves room for the noise of one study at N_eff ≈ 3000.
    assert np.mean(model.decide(test_z) != test_y) < 0.2


def test_finds_a_center_that_is_off():
    """The private center repairs what ruins a study that trusts the public one."""
    z, y = crowd(6000, shift=0.3)
    test_z, test_y = crowd(4000, seed=1, shift=0.3)
    errors = {}
    for known in (True, False):
        design = ANSWERS | {"center_known": known, "n_features": 1}
        model = run(make_plan(6000, 1.0, design=design), z, y).model
        errors[known] = np.mean(model.decide(test_z) != test_y)
    assert errors[False] < errors[True]


def test_labels_only_uses_all_of_epsilon_for_the_label():
    z, y = crowd(2000)
    plan = make_plan(design={"name": "noisy_labels"}, protects="labels")
    server = run(plan, z, y)
    test_z, test_y = crowd(4000, seed=1)
    assert np.mean(server.model.decide(test_z) != test_y) < 0.15
    assert "curves are public" in str(plan.guarantee)
    with pytest.raises(InvalidParameter, match="protects must be 'labels'"):
        Server(make_plan(design={"name": "noisy_labels"}))


def test_three_classes_by_one_against_the_rest():
    z, y = crowd(9000, classes=3)
    for design in ({"name": "vectors"}, {"name": "moments"}):
        model = run(make_plan(9000, 4.0, design=design, classes=("a", "b", "c")), z, y).model
        test_z, test_y = crowd(4000, seed=1, classes=3)
        majority = 1 - np.bincount(test_y).max() / len(test_y)
        assert np.mean(model.decide(test_z) != test_y) < majority


def test_replies_may_come_in_any_order():
    z, y = crowd(200)
    plan = make_plan(200, 4.0, design={"name": "moments"})
    task = Server(plan).issue(200)
    reply = task.answer((z, y), SimulationSource(0)).values
    models = []
    for order in (np.arange(200), np.random.default_rng(0).permutation(200)):
        server = Server(plan)
        server.issue(200)
        for row in order:
            server.receive(reply[row : row + 1], start=int(row))
        models.append(server.model.coefficients)
    assert np.allclose(*models, rtol=1e-12)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: str(sorted(d)))
@pytest.mark.parametrize("absent", [0.3, 1.0])
def test_people_who_never_answer(design, absent):
    z, y = crowd(1000)
    gone = np.random.default_rng(0).random(1000) < absent
    server = run(make_plan(1000, design=design), z, y, answers=lambda who: ~gone[who])
    assert server.finished
    assert np.all(np.isfinite(server.model.coefficients))
    assert np.all(np.isfinite(server.model.intercept))


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: str(sorted(d)))
@pytest.mark.parametrize("n_people", [1, 2, 7])
def test_very_few_people(design, n_people):
    z, y = crowd(n_people)
    server = run(make_plan(n_people, 0.1, design=design), z, y)
    assert np.all(np.isfinite(server.model.scores(z)))


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: str(sorted(d)))
def test_one_class_only_and_constant_features(design):
    z, y = np.full((500, 4), 0.25), np.ones(500, dtype=np.int64)
    server = run(make_plan(500, 3.0, design=design), z, y)
    assert np.all(np.isfinite(server.model.scores(z)))


def test_honest_error_estimate_covers_the_truth():
    """The last fresh group sees the finished model: its 99.9 % interval holds the true error."""
    design = ANSWERS | {"evaluation_share": 0.5}
    test_z, test_y = crowd(50_000, seed=99)
    for seed in range(5):
        z, y = crowd(4000, seed=seed)
        server = run(make_plan(4000, 2.0, design=design), z, y, seed=seed)
        estimate = server.findings.error
        assert estimate.people == 2000
        low, high = estimate.interval(0.999)
        assert low < np.mean(server.model.decide(test_z) != test_y) < high


def test_moments_have_intervals():
    z, y = crowd(4000)
    server = run(make_plan(4000, 2.0, design={"name": "moments"}), z, y)
    for j, found in enumerate(server.findings.features[0]):
        low, high = found.interval(0.9999)
        assert low < np.mean((2 * y - 1) * z[:, j]) < high
        assert found.people == 4000


def test_state_does_not_grow_with_people():
    import msgspec

    sizes = []
    for n in (4000, 16_000):  # in as many phases
        z, y = crowd(n)
        state = run(make_plan(n, design=ANSWERS | {"n_features": 3}), z, y).state()
        sizes.append(len(msgspec.json.encode(state["run"])))
    assert abs(sizes[1] - sizes[0]) < 0.1 * sizes[0]


def test_a_second_task_is_refused_by_the_ledger():
    """The twin that asks one person twice."""
    plan = make_plan(10)
    ledger, mine = Ledger(limit_epsilon=100.0), {"curve": [0.1, 0.2, 0.3, 0.4], "label": 1}
    server = Server(plan)
    Person(plan, **mine, ledger=ledger).answer(server.issue(1))
    with pytest.raises(BudgetExceeded):
        Person(plan, **mine, ledger=ledger).answer(server.issue(1))


def test_a_task_dearer_than_the_plan_is_refused_and_costs_nothing():
    plan = make_plan(10, epsilon=1.0)
    ledger = Ledger(limit_epsilon=5.0)
    mine = {"curve": [0.1, 0.2, 0.3, 0.4], "label": 1}
    dear = Server(make_plan(10, epsilon=2.0)).issue(1)
    with pytest.raises(ProtocolError, match="epsilon of a stump task"):
        Person(plan, **mine, ledger=ledger).answer(dear)
    assert not ledger.entries


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: str(sorted(d)))
def test_tasks_travel_as_plain_values(design):
    import msgspec

    server = Server(make_plan(100, design=design))
    task = server.issue(3)
    copy = Task.from_dict(msgspec.json.decode(msgspec.json.encode(task.to_dict())))
    z, y = crowd(3)
    assert np.array_equal(
        task.answer((z, y), SimulationSource(1)).values,
        copy.answer((z, y), SimulationSource(1)).values,
    )


@pytest.mark.parametrize("name", ["answers", "vectors"])
def test_more_features_than_there_are_are_refused(name):
    with pytest.raises(InvalidParameter, match="n_features must be an integer from 1 to 4"):
        Server(make_plan(design={"name": name, "n_features": 5}))
