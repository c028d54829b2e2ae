"""Estimators and their ledgers: spent before noise is drawn, refused before anything is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dpfda import PrivateMean
from dpfda.central import (
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
)
from dpfda.central.kernel_density import KernelDensity
from dpfda.central.linear import AbsoluteRegularization, FiniteLaplace, QuadraticRegularization
from dpfda.central.mean import FunctionMechanism
from dpfda.errors import BudgetExceeded, DpfdaError, InvalidParameter
from dpfda.mechanisms.additive import Additive
from dpfda.privacy.composition import Budget
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.ledger_file import FileLedger

T = np.linspace(0, 1, 20)
RNG = np.random.default_rng(0)
CURVES = np.sin(3 * T) + 0.1 * RNG.normal(size=(300, 1))
X = RNG.uniform(size=(300, 1))
BOX = {"feature_ranges": (0, 1)}

Fit = Callable[..., Any]
FITS: dict[str, tuple[Fit, int, int]] = {
    # How to fit it, and how many looks it takes: pure, and with a δ.
    "mean": (lambda **kw: PrivateMean(1.0, bound=1.5, **kw).fit(CURVES), 4, 9),
    "covariance": (lambda **kw: PrivateCovariance(1.0, bound=1.5, **kw).fit(CURVES), 5, 10),
    "density": (lambda **kw: PrivateDensity(1.0, **BOX, **kw).fit(X), 1, 1),
    "function-on-scalar": (
        lambda **kw: PrivateFunctionOnScalar(1.0, bound=1.5, feature_norm_bound=1.0, **kw).fit(
            X, CURVES
        ),
        3,
        3,
    ),
    "kernel machine": (
        lambda **kw: PrivateKernelMachine(1.0, **BOX, target_range=(-1, 1), **kw).fit(X, X[:, 0]),
        1,
        1,
    ),
}


@pytest.mark.filterwarnings("ignore:noise hides how")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_looks_are_spent_one_by_one(name: str, delta: float) -> None:
    fit, pure, gaussian = FITS[name]
    ledger = Ledger(5.0, limit_delta=delta)
    model = fit(delta=delta, ledger=ledger, random_state=0)
    assert len(ledger.entries) == (gaussian if delta else pure)
    assert ledger.spent.epsilon >= 0.99
    if not delta:  # with a δ, how a ledger adds up is its own affair
        assert ledger.spent.epsilon <= 1.0
    for entry in ledger.entries:
        assert entry.assumptions == (NUMBER_IS_PUBLIC,)
    assert model.guarantee_.assumptions == (NUMBER_IS_PUBLIC,)
    # The noise does not depend on whether there is a ledger.
    same = fit(delta=delta, random_state=0)
    assert np.array_equal(model.release_.values(), same.release_.values())


def test_gaussian_noise_is_refused_without_a_delta_and_says_what_to_do() -> None:
    ledger = Ledger(1.0)
    told = r"nothing was spent: .* the budget has none: pass delta=0 for pure ε, or begin a budget"
    with pytest.raises(BudgetExceeded, match=told):
        PrivateMean(1.0, bound=1.5, ledger=ledger, random_state=0).fit(CURVES)
    PrivateMean(0.5, bound=1.5, delta=0, ledger=ledger, random_state=0).fit(CURVES)
    assert ledger.spent == Budget(epsilon=0.5)
    # Noise that is smaller without δ costs none, and so fits.
    found = PrivateDensity(0.5, **BOX, ledger=ledger, random_state=0).fit(X)
    assert found.guarantee_.delta == 0
    assert ledger.spent == Budget(epsilon=1.0)


@pytest.mark.parametrize("name", FITS)
def test_a_ledger_that_cannot_pay_for_all_refuses_before_the_first_look(name: str) -> None:
    ledger = Ledger(0.99, limit_delta=1e-6)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        FITS[name][0](ledger=ledger, random_state=0)
    assert not ledger.entries


@pytest.mark.parametrize("name", FITS)
def test_spent_before_noise_is_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, spent = Ledger(1.0, limit_delta=1e-6), []

    def stop(self: Additive, rows: int, source: Any) -> Any:
        spent.append(ledger.spent.epsilon)
        raise KeyboardInterrupt

    for kind in (Additive, *Additive.__subclasses__()):
        monkeypatch.setattr(kind, "_integers", stop)
    with pytest.raises(KeyboardInterrupt):
        FITS[name][0](ledger=ledger, random_state=0)
    assert len(spent) == 1
    assert spent[0] > 0


def test_clones_share_one_budget(tmp_path: Path) -> None:
    limits = {"limit_epsilon": 1.0, "limit_delta": 1e-6}
    for ledger in (Ledger(**limits), FileLedger(tmp_path / "budget", **limits)):
        model = PrivateMean(1.0, bound=1.5, ledger=ledger, random_state=0)
        assert clone(model).ledger is ledger
        clone(model).fit(CURVES)
        with pytest.raises(BudgetExceeded):
            model.fit(CURVES)


BAD = {
    "2 × 2": np.ones((2, 2, 2)),
    "no points": np.ones((50, 1)),
    "four axes": np.ones((50, 2, 2, 2)),
    "text": [["a", "b"]] * 50,
    "ragged": [[1.0, 2.0], [3.0]],
}


@pytest.mark.filterwarnings("ignore:.*bands and tests may hold less")
@pytest.mark.filterwarnings("ignore:.*mostly the center")  # of two curves
@pytest.mark.parametrize("name", sorted(FunctionMechanism.members()))
@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_released_is_refused_with_nothing_spent(name: str, bad: str) -> None:
    delta = 1e-3 if FunctionMechanism.named(name).needs_delta else 0.0
    ledger = Ledger(10.0, limit_delta=0.1)
    models: list[Any] = [
        PrivateMean(1.0, bound=1.0, delta=delta, mechanism=name, ledger=ledger, random_state=0),
        PrivateCovariance(1.0, bound=1.0, ledger=ledger, random_state=0),
    ]
    for model in models:
        before = len(ledger.entries)
        try:
            model.fit(BAD[bad])
        except DpfdaError:
            assert len(ledger.entries) == before
        else:  # two curves of two points and channels are few, but they have a mean
            assert bad == "2 × 2"
            assert np.isfinite(model.release_.values()).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: FiniteLaplace(components=0),
        lambda: AbsoluteRegularization(psi=0.0),
        lambda: AbsoluteRegularization(eta=0.0),
        lambda: QuadraticRegularization(psi=0.0),
        lambda: QuadraticRegularization(eta=0.0),
        lambda: KernelDensity(bandwidth=0.0),
        lambda: KernelDensity(components=0),
        lambda: PrivateKernelMachine(1.0, **BOX, target_range=(-1, 1), psi=0.0).fit(X, X[:, 0]),
        lambda: PrivateKernelMachine(1.0, **BOX, target_range=(-1, 1), psi=1e-9).fit(X, X[:, 0]),
        lambda: PrivateMean(1e-5, bound=1.0).fit(CURVES),
        lambda: PrivateCovariance(1.0, bound=1e41).fit(CURVES),
    ],
)
def test_zero_is_not_taken_for_nothing_given(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_a_center_beyond_all_numbers_is_answered() -> None:
    # Coefficients overflow into NaN; an integer sum of those would be -2^63.
    center = np.where(np.arange(20) % 2, 1.7e308, -1.7e308)
    model = PrivateMean(1.0, bound=1.0, center=center, random_state=0)
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match="reach their public bound"):
        released = model.fit(CURVES).release_
    assert np.isfinite(released.noisy).all()
    assert np.abs(released.noisy).max() < 3


def test_data_that_are_hard_to_fit_are_fitted_all_the_same() -> None:
    # The solver once gave up on such data and so told them apart from others.
    x = np.repeat([0.0, 1.0], 150)
    for targets in (np.ones(300), np.where(np.arange(300) % 2, 1.0, -1.0), np.zeros(300)):
        machine = PrivateKernelMachine(
            1.0, **BOX, target_range=(-1e6, 1e6), psi=1e-4, random_state=0
        )
        assert np.isfinite(machine.fit(x, 1e6 * targets).release_.values()).all()
