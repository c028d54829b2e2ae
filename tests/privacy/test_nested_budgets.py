"""Budgets inside budgets are charged with what was released, whatever its kind."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_loss import Loss
from tally_data import (
    DOORS,
    LINE,
    X,
)

import dpfda
from dpfda.errors import BudgetExceeded
from dpfda.noise import SecureSource
from dpfda.privacy import tally
from dpfda.privacy.composition import Budget
from dpfda.privacy.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger


def test_what_is_released_in_an_inner_budget_is_paid_for_by_both() -> None:
    with dpfda.budget(2.0) as outer:
        with dpfda.budget(1.5) as inner:
            assert (outer.spent.epsilon, inner.spent.epsilon) == (0.0, 0.0)
            DOORS["local"]()
        assert (outer.spent.epsilon, inner.spent.epsilon) == (1.0, 1.0)
        with dpfda.budget(5.0) as wide:  # more than the outer one has left
            DOORS["mean"]()
            with pytest.raises(BudgetExceeded, match="ε = 0 is left"):
                DOORS["mean"]()
        assert (outer.spent.epsilon, wide.spent.epsilon) == (2.0, 1.0)
        assert len(wide.entries) == len(outer.entries) - len(inner.entries)
    assert tally.payer(None, SecureSource()) is None


OBJECTIVE: dict[str, Any] = LINE | {"mechanism": "objective_perturbation"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_inner_budget_does_not_make_gaussian_noise_of_other_releases() -> None:
    """Nineteen releases of which only (0.2, 1e-5) is known once fitted into (1, 1e-5)."""
    taken = 0
    with dpfda.budget(1.0, 1e-5) as outer:
        for _ in range(19):
            try:
                with dpfda.budget(0.2, 1e-5):
                    dpfda.PrivateLinearRegression(0.2, delta=1e-5, **OBJECTIVE).fit(X, X[:, 0])
            except BudgetExceeded:
                continue
            taken += 1
    assert taken == 1
    assert outer.spent == Budget(epsilon=0.2, delta=1e-5)
    assert dpfda.spent().totals["person"] == Budget(epsilon=0.2, delta=1e-5)
    with dpfda.budget(0.2, 1e-5):
        dpfda.PrivateLinearRegression(0.2, delta=1e-5, **OBJECTIVE).fit(X, X[:, 0])
    assert dpfda.spent().totals["person"] == Budget(epsilon=0.4, delta=2e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_budget_pays_for_one_release_of_all_of_it_of_any_kind() -> None:
    for options in (LINE, OBJECTIVE):
        with dpfda.budget(1.0, 1e-5) as ledger:
            dpfda.PrivateLinearRegression(1.0, delta=1e-5, **options).fit(X, X[:, 0])
            assert 0.999 <= ledger.spent.epsilon <= 1
            with pytest.raises(BudgetExceeded):
                dpfda.PrivateLinearRegression(0.5, delta=1e-5, **options).fit(X, X[:, 0])


def _random_event(rng: np.random.Generator) -> Event:
    size = float(np.round(np.exp(rng.uniform(-4, 0)), 3))
    return [
        PureEvent(epsilon=size),
        LaplaceEvent(ratio=size),
        RandomizedResponseEvent(epsilon=size, categories=int(rng.integers(2, 9))),
        GaussianEvent(multiplier=1 / size),
        ApproximateEvent(epsilon=size, delta=float(10 ** rng.uniform(-8, -5))),
    ][rng.integers(5)]


def _random_tree(rng: np.random.Generator, depth: int, found: list[list[Event]]) -> None:
    """Releases and budgets inside one another; `found` are those of every budget that is open."""
    for _ in range(rng.integers(2, 6)):
        if depth < 3 and rng.random() < 0.5:
            with dpfda.budget(float(rng.uniform(0.2, 3)), 10 ** float(rng.uniform(-6, -3))) as one:
                mine: list[Event] = []
                _random_tree(rng, depth + 1, [*found, mine])
            _check_true(one, mine)
            continue
        event = _random_event(rng)
        try:
            tally.pay(Guarantee(epsilon=1.0), label="x", source=SecureSource(), event=event)
        except BudgetExceeded:
            continue
        for events in found:
            events.append(event)


def _check_true(ledger: BaseLedger, events: list[Event]) -> None:
    """A ledger knows everything inside, and neither what it says nor its limit is too small."""
    assert [entry.event for entry in ledger.entries] == events
    if events:
        loss = Loss(events, up=False, points=1 << 13)
        for said in (ledger.spent, ledger.limit):
            assert loss.delta(said.epsilon) <= said.delta * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("seed", range(12))
def test_budgets_inside_budgets_are_charged_what_was_released(seed: int) -> None:
    rng = np.random.default_rng(seed)
    events: list[Event] = []
    with dpfda.budget(3.0, 1e-4) as outer:
        _random_tree(rng, 0, [events])
    assert len(events) > 1
    _check_true(outer, events)
    kinds = [release.event for release in dpfda.spent().releases]
    assert kinds == events


def test_an_inner_budget_in_a_file_is_pickled_with_the_one_around_it(tmp_path: Path) -> None:
    here = {name: tmp_path / name for name in ("outer", "inner", "other")}
    with dpfda.budget(2.0, path=here["outer"]) as outer, dpfda.budget(1, path=here["inner"]) as one:
        again = pickle.loads(pickle.dumps(one))
        again.spend(PureEvent(epsilon=0.5), label="elsewhere")
        assert (one.spent.epsilon, outer.spent.epsilon) == (0.5, 0.5)
    with (
        dpfda.budget(2.0),
        dpfda.budget(1.0, path=here["other"]) as one,
        pytest.raises(TypeError, match="one process"),
    ):
        pickle.dumps(one)
