"""The scikit-learn face of MRMA."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpfda.curves import CurveEncoder
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.mrma_classifier import MRMAClassifier
from dpfda.estimators.multi_server_mrma import MultiServerMRMA
from dpfda.estimators.online_mrma import OnlineMRMA
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.public_randomness import one_row_each

matplotlib.use("Agg")

ENCODER = CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=2.0)
DATA = simulate_001(3000, random_state=1)
TEST = simulate_001(2000, random_state=2)


@pytest.fixture(scope="module")
def fitted() -> MRMAClassifier:
    clf = MRMAClassifier(
        epsilon=2.0,
        encoder=ENCODER,
        learner="conjugate_gradient",
        learner_parameters={"steps": 1},
        evaluation_share=0.1,
        random_state=0,
    )
    return clf.fit(DATA.X, DATA.y, grid_points=DATA.grid_points)


def test_learns(fitted: MRMAClassifier) -> None:
    # The Bayes rule errs in 10 %; the design reaches 12 % on average at ε = 2.
    assert fitted.score(TEST.X, TEST.y) > 0.82
    scores = fitted.decision_function(TEST.X, grid_points=TEST.grid_points)
    np.testing.assert_array_equal(fitted.predict(TEST.X), np.where(scores >= 0, 1.0, -1.0))


def test_shrunk_intercepts_are_what_makes_small_budgets_work() -> None:
    """With intercepts as fitted, members call everybody the same at ε = 0.5."""
    parameters = {
        "epsilon": 0.5,
        "encoder": ENCODER,
        "learner_parameters": {"steps": 1},
    }
    errors = {
        spread: np.mean([
            1 - MRMAClassifier(boundary_spread=spread, random_state=seed, **parameters)
            .fit(DATA.X, DATA.y).score(TEST.X, TEST.y)
            for seed in range(4)
        ])
        for spread in (0.3, None)
    }  # fmt: skip
    # Means over 40 studies are 12 % and 36 %.
    assert errors[0.3] < 0.2 < errors[None]


def test_the_guarantee_travels(fitted: MRMAClassifier) -> None:
    stamp = "sampler = simulation (seeded), assuming the set of labels is public"
    assert str(fitted.guarantee_) == f"ε = 2, local, unit = person, {stamp}"
    assert fitted.model_.guarantee == fitted.guarantee_
    real = MRMAClassifier(2.0, encoder=ENCODER, classes=(-1, 1))
    real.fit(DATA.X[:300], DATA.y[:300])
    assert real.guarantee_.sampler == "exact"
    for protects, words in (("features", "labels are public"), ("labels", "curves are public")):
        clf = MRMAClassifier(encoder=ENCODER, protects=protects, classes=(-1, 1), random_state=0)
        assert clf.fit(DATA.X[:300], DATA.y[:300]).guarantee_.assumptions == (words,)


@pytest.mark.filterwarnings("ignore:too few people")
@pytest.mark.parametrize("kind", [MRMAClassifier, OnlineMRMA, MultiServerMRMA])
def test_a_person_reports_one_of_several_rows(kind: type) -> None:
    """Whatever the other two rows of each person hold, it changes nothing."""
    groups, ledger = np.repeat(np.arange(100), 3), Ledger(2.0)
    clf = kind(0.5, encoder=ENCODER, classes=(-1, 1), random_state=0, ledger=ledger)
    fitted = clone(clf).set_params(ledger=ledger).fit(DATA.X[:300], DATA.y[:300], groups=groups)
    assert fitted.guarantee_.epsilon == ledger.spent.epsilon == 0.5
    seed = clf._public_seed() >> 1 if kind is OnlineMRMA else clf._public_seed()
    kept = one_row_each(groups, seed=seed, rows=300)
    alone = clone(clf).fit(DATA.X[kept], DATA.y[kept])
    np.testing.assert_array_equal(alone.model_.coefficients, fitted.model_.coefficients)
    assert len(kept) == 100


def test_table(fitted: MRMAClassifier) -> None:
    rows = fitted.evaluate(TEST.X, TEST.y, grid_points=TEST.grid_points).table()
    held_out = [row["method"] for row in rows if row["source"] == "held-out people"]
    assert held_out == ["Weak", "MR only", "MA only", "MRMA", "majority class", "non-private"]
    errors = {row["method"]: row for row in rows if row["source"] == "held-out people"}
    assert errors["MRMA"]["error"] == pytest.approx(1 - fitted.score(TEST.X, TEST.y))
    assert errors["non-private"]["error"] < errors["MRMA"]["error"] + 0.03
    assert errors["MRMA"]["error"] < errors["Weak"]["error"]
    assert all(row["low"] <= row["error"] <= row["high"] for row in rows)
    private = rows[-1]
    assert (private["method"], private["source"]) == ("MRMA", "private verdicts")
    # Five standard errors of the private estimate.
    assert (
        abs(private["error"] - errors["MRMA"]["error"]) < 5 * fitted.error_estimate_.standard_error
    )


def test_strength_is_never_an_accuracy(fitted: MRMAClassifier) -> None:
    """Members show r̃ as estimated, which may lie below ½ or above 1, never max(r̃, 1 - r̃)."""
    accuracies = np.array([row["accuracy"] for row in fitted.result_.members()])
    assert (accuracies < 0.5).any()
    assert sum(row["weight"] for row in fitted.result_.members()) == pytest.approx(1)


@pytest.mark.filterwarnings("ignore:too few people")
def test_no_survivor_says_so() -> None:
    clf = MRMAClassifier(encoder=ENCODER, epsilon=0.01, strictness=50.0, random_state=0)
    clf.fit(DATA.X[:600], DATA.y[:600])
    assert any("no member passed" in note for note in clf.result_.notes)
    assert np.isfinite(clf.model_.coefficients).all()


def test_plots(fitted: MRMAClassifier) -> None:
    figure = fitted.plot()
    titles = [axis.get_title() for axis in figure.axes]
    assert [title.split(",")[0] for title in titles] == [
        "slope function", "accuracy of members", "weights (below 0: reversed)",
    ]  # fmt: skip
    pyplot.close(figure)
    for encoder, data in (
        (CurveEncoder("identity", feature_ranges=[(-3, 3)] * 3), DATA.X[:300, :3]),
        (CurveEncoder("bspline", n_basis=4, rescale="max_abs"), DATA.X[:300]),
    ):
        clf = MRMAClassifier(encoder=encoder, random_state=0).fit(data, DATA.y[:300])
        pyplot.close(clf.plot())


def test_slope_function_is_the_classifier(fitted: MRMAClassifier) -> None:
    """b·z* is ∫ x β up to the curvature of tanh: small curves are decided alike (C2)."""
    points = np.linspace(0, 1, 2001)
    small = 0.05 * np.stack([np.cos(np.pi * points), points, np.ones_like(points)])
    integral = np.trapezoid(small * fitted.slope(points), points, axis=1)
    scores = fitted.decision_function(small, grid_points=points) - fitted.model_.intercept[0]
    np.testing.assert_allclose(integral, scores, rtol=0.01)


def test_same_seed_same_study() -> None:
    clf = MRMAClassifier(encoder=ENCODER, random_state=5)
    first = clf.fit(DATA.X[:600], DATA.y[:600]).model_.coefficients
    np.testing.assert_array_equal(
        first, clone(clf).fit(DATA.X[:600], DATA.y[:600]).model_.coefficients
    )


def test_ragged_and_missing_curves() -> None:
    points = DATA.grid_points
    ragged = [(points[: 60 + i % 30], DATA.X[i, : 60 + i % 30]) for i in range(300)]
    clf = MRMAClassifier(encoder=ENCODER, random_state=0).fit(ragged, DATA.y[:300])
    assert len(clf.predict(ragged[:5])) == 5
    holes = DATA.X[:300].copy()
    holes[::3, 10:20] = np.nan
    assert len(clf.fit(holes, DATA.y[:300]).predict(holes)) == 300


def test_errors_show_no_private_value() -> None:
    clf = MRMAClassifier(encoder=ENCODER, random_state=0)
    with pytest.raises(InvalidData) as error:
        clf.fit([["secret-7", "1"], ["2", "3"]], [0, 1])
    assert "secret" not in str(error.value)
    for bad in (1.5, "x", -1):
        with pytest.raises(InvalidParameter, match="random_state"):
            MRMAClassifier(encoder=ENCODER, random_state=bad).fit(DATA.X[:30], DATA.y[:30])


@parametrize_with_checks(
    [
        MRMAClassifier(
            epsilon=50.0, n_classifiers=5, member_size=10, training_share=0.5, random_state=0
        ),
        MultiServerMRMA(
            epsilon=50.0, n_classifiers=5, member_size=10, training_share=0.5, random_state=0
        ),
        OnlineMRMA(
            epsilon=50.0,
            n_classifiers=5,
            new_classifiers=5,
            member_size=10,
            training_share=0.5,
            random_state=0,
        ),
    ],
)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)
