"""Regression among sites: the pooled noise, flat in the number of sites, and dropouts."""

from contextlib import nullcontext

import numpy as np
import pytest

from dpfda.central.regression.model import RegressionModel
from dpfda.curves import CurveEncoder
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.secure_sum import RoundFailed
from dpfda.sites.rehearsal import rehearse
from dpfda_bench.benchmarks.regression import aggregate_variance_ratio


def among(data, epsilon=1.0, *, link="linear", y=None, sites=None, silent=None, **more):
    """A rehearsed regression, and its consortium."""
    how = {name: more.pop(name) for name in ("colluders", "dropouts", "alone", "ledgers")
           if name in more}  # fmt: skip
    how |= {"grid_points": more.pop("grid_points", None)}
    if "encoder" in more:
        model = PrivateCurveRegression(epsilon, target_range=(-1, 1), **more)
        return rehearse(model, data, y, sites=sites, silent=silent, **how)
    more["feature_norm_bound"] = 1.0
    if link == "linear":
        model = PrivateLinearRegression(epsilon, target_range=(-1, 1), **more)
    else:
        model = PrivateLogisticRegression(epsilon, **({"classes": (0, 1)} | more))
    return rehearse(model, data, y, sites=sites, silent=silent, **how)


def hospitals(count, *, n=6000, seed=0, uneven=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    y = X @ [0.8, -0.4, 0.0] + 0.1
    cuts = np.sort(rng.choice(np.arange(50, n - 50), count - 1, replace=False))
    if not uneven:
        cuts = np.linspace(0, n, count + 1).astype(int)[1:-1]
    parts = zip(np.split(X, cuts), np.split(y, cuts), strict=True)
    return {f"site{k}": part for k, part in enumerate(parts, start=1)}, X, y


@pytest.mark.parametrize("sites", [2, 7, 30])
def test_aggregate_noise_is_the_pooled_noise(sites):
    # 20 000 coordinates: the variance is known to √(2/20 000) = 1 %; the goal is 2 %.
    ratio = aggregate_variance_ratio(sites, size=20_000, seed=sites)
    assert ratio == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("uneven", [False, True])
def test_as_good_as_pooled(uneven):
    data, X, y = hospitals(6, uneven=uneven)
    model, consortium = among(data, colluders=0, random_state=0)
    pooled = PrivateLinearRegression(
        1.0, feature_norm_bound=1.0, target_range=(-1, 1), random_state=0
    ).fit(X, y)
    assert consortium.noise_ratio == pytest.approx((1.0, 1.0), rel=1e-6)
    errors = [np.mean((one.predict(X) - y) ** 2) for one in (model, pooled)]
    assert errors[0] < 0.01
    assert errors[1] < 0.01


def test_utility_is_flat_in_the_number_of_sites_and_the_conventional_scheme_decays():
    flat, decaying = [], []
    for count in (2, 12):
        data, X, y = hospitals(count)
        for alone, into in ((False, flat), (True, decaying)):
            fits = [
                among(data, 0.2, colluders=0, alone=alone, random_state=seed)[0]
                for seed in range(3)
            ]
            into.append(np.mean([np.mean((fit.predict(X) - y) ** 2) for fit in fits]))
    assert flat[1] < 2 * flat[0]
    assert decaying[1] > 2 * decaying[0]
    assert decaying[1] > 2 * flat[1]


def test_colluders_and_dropouts_are_paid_for_in_noise_and_stated():
    data, _, _ = hospitals(7)
    model, consortium = among(data, colluders=2, dropouts=1, random_state=0)
    assert consortium.noise_ratio == pytest.approx((7 / 4, 7 / 4), rel=1e-6)
    text = str(model.guarantee_)
    assert "at most 2 of 7 sites collude" in text
    assert "at most 1 fall silent" in text
    assert "5 sites are needed" in text
    assert model.guarantee_.model == "decentralized"
    assert model.guarantee_.sampler == "simulation"


@pytest.mark.parametrize("step", ["advertise", "share", "mask", "confirm", "unmask"])
def test_a_fit_survives_two_dropouts_at_every_step(step):
    data, X, y = hospitals(7)
    silent = lambda at, _: {"site2", "site5"} if at == step else set()  # noqa: E731
    model, consortium = among(data, 2.0, colluders=0, dropouts=2, silent=silent, random_state=0)
    survivors = consortium.survivors[-1]
    assert len(survivors) == (5 if step in ("advertise", "share", "mask") else 7)
    # The survivors' noise alone is at least the pooled one.
    assert min(consortium.noise_ratio) >= 1
    assert np.mean((model.predict(X) - y) ** 2) < 0.02


def test_too_many_dropouts_fail_with_a_reason():
    data, _, _ = hospitals(5)
    silent = lambda at, _: {"site1", "site2"} if at == "mask" else set()  # noqa: E731
    with pytest.raises(RoundFailed, match="3 sites sent their vectors, 4 are needed"):
        among(data, dropouts=1, silent=silent, random_state=0)


def test_logistic_task():
    data, X, y = hospitals(4)
    labeled = {name: (rows, (values > 0.1).astype(int)) for name, (rows, values) in data.items()}
    model, _ = among(labeled, 2.0, link="logistic", random_state=0)
    assert np.mean(model.predict(X) == (y > 0.1)) > 0.9


@pytest.mark.parametrize("mechanism", ["gaussian_fm", "noisy_gradient"])
def test_other_methods_that_are_sums(mechanism):
    data, X, y = hospitals(3)
    model, _ = among(data, 2.0, mechanism=mechanism, random_state=0)
    assert np.mean((model.predict(X) - y) ** 2) < 0.06


@pytest.mark.parametrize("mechanism", ["adassp", "objective_perturbation"])
def test_methods_that_are_not_are_refused(mechanism):
    data, _, _ = hospitals(3, n=300)
    with pytest.raises(InvalidParameter, match="questions are sums"):
        among(data, 2.0, mechanism=mechanism, random_state=0)


def test_rows_outside_the_bounds_are_shortened_at_the_site():
    data, X, y = hospitals(3)
    data["site2"][0][4, 0] = 1e12
    model, _ = among(data, 2.0, random_state=0)
    assert np.mean((model.predict(X) - y) ** 2) < 0.01


def test_what_sites_are_is_said():
    data, X, y = hospitals(3, n=300)
    for wrong in ({}, X, [X]):
        with pytest.raises(InvalidData, match="a mapping site → "):
            among(wrong, random_state=0)
    with pytest.raises(InvalidData, match="y must be left out"):
        among(data, y=y, random_state=0)
    with pytest.raises(InvalidData, match=r"y of site 'site2'.*got 99"):
        among(data | {"site2": (data["site2"][0], data["site2"][1][1:])}, random_state=0)
    with pytest.raises(InvalidParameter, match="one entry for each of 300 rows"):
        among(X, y=y, sites=["a", "b"], random_state=0)
    for seed in (0, None):  # nobody sees the labels of all sites, in a simulation neither
        with pytest.raises(InvalidParameter, match="classes must be given"):
            among(X, link="logistic", classes=None, y=y > 0, sites=np.arange(300) % 3,
                  random_state=seed)  # fmt: skip


def test_one_table_with_its_sites_is_the_same_as_tables_by_site():
    data, X, y = hospitals(3, uneven=True)
    where = np.repeat(list(data), [len(rows) for rows, _ in data.values()])
    one, _ = among(X, y=y, sites=where, random_state=0)
    assert np.array_equal(one.coef_, among(data, random_state=0)[0].coef_)


def test_labels_of_all_sites():
    _, X, y = hospitals(4)
    labels = np.where(y > 0.1, "yes", "no")
    sites = np.argsort(np.argsort(y)) // 3000  # one site has one label only
    model, _ = among(X, 2.0, link="logistic", classes=("no", "yes"), y=labels, sites=sites,
                     colluders=0, random_state=0)  # fmt: skip
    assert list(model.classes_) == ["no", "yes"]
    assert model.score(X, labels) > 0.9
    again = RegressionModel.from_json(model.model_.to_json())
    assert again.guarantee.model == "decentralized"
    assert np.allclose(again.predict_proba(X), model.predict_proba(X))


def test_a_rehearsal_says_that_it_is_one():
    data, _, _ = hospitals(3, n=300)
    model, _ = among(data)
    assert "whoever ran this rehearsal may see every site's rows" in str(model.guarantee_)
    assert model.guarantee_.sampler == "exact"


def test_score():
    data, X, y = hospitals(4)
    model, _ = among(data, 2.0, random_state=0)
    residual = np.mean((model.predict(X) - y) ** 2)
    assert model.score(X, y) == pytest.approx(1 - residual / y.var())
    labeled = {name: (rows, (values > 0.1).astype(int)) for name, (rows, values) in data.items()}
    classes, _ = among(labeled, 2.0, link="logistic", random_state=0)
    assert classes.score(X, (y > 0.1).astype(int)) == np.mean(classes.predict(X) == (y > 0.1))


def test_few_rows_warn():
    data, _, _ = hospitals(3, n=200)
    with pytest.warns(UserWarning, match="too few rows"):
        among(data, 0.05, random_state=0)


def test_every_site_spends_from_its_own_ledger():
    data, _, _ = hospitals(3, n=900)
    ledgers = {name: Ledger(1.0, limit_delta=1e-5) for name in ("site1", "site3")}
    model, consortium = among(data, ledgers=ledgers, random_state=0)
    for ledger in ledgers.values():
        assert len(ledger.entries) == len(consortium.survivors)
        assert set(model.guarantee_.assumptions) <= set(ledger.entries[0].assumptions)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        among(data, ledgers=ledgers, random_state=0)
    assert [len(ledger.entries) for ledger in ledgers.values()] == [2, 2]
    with pytest.raises(InvalidParameter, match="ledgers must be by site"):
        among(data, ledgers={"sitr1": Ledger(1.0)})
    shared = Ledger(1.0, limit_delta=1e-5)
    for own in (None, {"site1": Ledger(1.0, limit_delta=1e-5)}):
        with nullcontext() if own is None else pytest.raises(BudgetExceeded):
            among(data, ledger=shared, ledgers=own, random_state=0)
    assert len(shared.entries) == 1  # once for all sites: their people are others


def test_what_is_public_is_said():
    data, _, _ = hospitals(3, n=300)
    assumptions = among(data, random_state=0)[0].guarantee_.assumptions
    assert "the number of records is public" in assumptions
    assert "each site's number of records is public" in assumptions
    alone, _ = among(data, alone=True, random_state=0)
    assert "each site's number of records is public" in alone.guarantee_.assumptions
    assert not any("collude" in text for text in alone.guarantee_.assumptions)


def test_encoded_curves_at_every_site():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 30)
    score = rng.uniform(-1, 1, (4000, 2))
    curves = score[:, :1] * np.sin(np.pi * t) + score[:, 1:] * t
    y = 0.5 * score[:, 0]
    parts = np.array_split(np.arange(4000), 4)
    sites = {name: (curves[part], y[part]) for name, part in zip("ABCD", parts, strict=True)}
    encoder = CurveEncoder("bspline", n_basis=4, rescale="clip", scale=2.0)
    model, _ = among(sites, encoder=encoder, grid_points=t, random_state=0)
    assert np.mean((model.predict(curves) - y) ** 2) < 0.3 * y.var()
