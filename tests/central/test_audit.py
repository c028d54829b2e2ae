"""What the looks of a curator promise beyond the shipped contract: exact sums, budgets, twins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpfda.central.adaptive import Adaptive
from dpfda.central.covariance import CovarianceRelease
from dpfda.central.function_on_scalar import FunctionOnScalarRelease
from dpfda.central.functions import as_grid, spline_basis
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.queries import BallMean
from dpfda.checks.conversations import Rehearsal
from dpfda.checks.twins import Twin
from dpfda.curate import curate
from dpfda.errors import ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Conversation, converse
from dpfda_bench.printed_twins import BoundFromData, UnitVarianceMean

GRID = as_grid(np.linspace(0, 1, 12))


def shares(conversation: Conversation[Any], n: int) -> list[float]:
    """What each question may spend, of the whole."""
    holder = Rehearsal(conversation, n)
    converse(conversation, lambda query, number: holder.answer(query, number=number))
    return [float(exchange.query.cost.share) for exchange in holder.transcript]  # type: ignore[attr-defined]


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_shares_are_those_of_the_schedules(delta: float) -> None:
    # The contract of conversations says that they add up to 1; here is who gets what.
    # Here without a search for a range, which `test_scouting.py` is about.
    n = 400 if delta else 900
    mean = MeanRelease(epsilon=1.0, delta=delta, n=n, bound=1.0, grid=GRID, mechanism=Adaptive())
    plan = Adaptive().plan(mean)
    check, *rest = shares(mean, n)
    search = [plan.search] if plan.cost.pure else [plan.search / 6] * 6
    left = [plan.first, *search, 1 - plan.first - plan.search]
    assert rest == pytest.approx([(1 - check) * share for share in left])
    few = replace(mean, n=20)
    assert shares(few, 20) == [1.0]
    covariance = CovarianceRelease(
        epsilon=1.0, delta=delta, n=n, bound=1.0, basis=spline_basis(GRID, size=12)
    )
    search = [0.15] if not delta else [0.025] * 6
    check, *rest = shares(covariance, n)
    left = [0.25, *search, 0.25, 0.35]
    assert rest == pytest.approx([(1 - check) * share for share in left])
    if delta:
        check, *rest = shares(replace(covariance, n=2000), 2000)
        left = [0.2, *search, 0.65]
        assert rest == pytest.approx([(1 - check) * share for share in left])
    regression = FunctionOnScalarRelease(
        epsilon=1.0,
        delta=delta,
        n=500,
        bound=1.0,
        covariate_bound=1.0,
        covariates=2,
        basis=spline_basis(GRID, size=3),
    )
    check, *rest = shares(regression, 500)
    assert rest == pytest.approx([(1 - check) * share for share in (0.3, 0.7)])


@pytest.mark.parametrize("name", sorted(FunctionMechanism.members()))
def test_every_mechanism_is_a_conversation_that_is_checked(name: str) -> None:
    delta = 0.05 if FunctionMechanism.named(name).needs_delta else 0.0
    examples = MeanRelease.examples(n=100, epsilon=1.0, delta=delta)
    assert name in {example.mechanism.name for example in examples}


@pytest.mark.parametrize("twin", [UnitVarianceMean(), BoundFromData()], ids=lambda twin: twin.name)
def test_twins_are_caught(twin: Twin) -> None:
    result = audit(twin, name=twin.name, draws=8000, source=SimulationSource(2))
    assert result.lower_bound > 1.1
    assert not result.passed


def look(n: int = 4) -> BallMean:
    cost, ones = Cost(epsilon=1.0), np.ones(2)
    return BallMean(cost=cost, n=n, center=0 * ones, axes=ones, radius=1.0)


def test_a_record_that_is_no_number_is_a_zero_not_a_hole() -> None:
    rows = np.array([[0.5, 0.5], [np.nan, 0.25], [np.inf, -np.inf], [0.0, 0.25]])
    asked = look()
    sums = asked.sums(asked.fitting((rows,)))
    assert np.abs(sums).max() < 4 * 2**40
    mean = asked.statistic(sums)
    # [nan, ¼] is read as [0, ¼]; [inf, -inf] is pulled to the circle.
    np.testing.assert_allclose(mean, [(0.5 + 0.5**0.5) / 4, (1 - 0.5**0.5) / 4], atol=1e-9)


def test_one_spoiled_curve_leaves_the_others_alone() -> None:
    rows = 0.1 * np.random.default_rng(0).normal(size=(400, 12))
    mean = MeanRelease(epsilon=50.0, n=400, bound=1.0, grid=GRID, mechanism=Adaptive())
    rows[7] = np.nan
    released = mean.ask((rows,), source=SimulationSource(0))
    others = np.delete(rows, 7, axis=0).sum(axis=0) / 400
    assert np.abs(released.noisy - others[: released.noisy.size]).max() < 0.02


def test_another_number_of_records_is_refused_before_anything_is_spent() -> None:
    from dpfda.privacy.ledger import Ledger

    mean = MeanRelease(epsilon=1.0, n=500, bound=1.0, grid=GRID, mechanism=Adaptive())
    ledger = Ledger(10.0)
    with pytest.raises(ProtocolError, match="500 records"):
        curate(mean, (np.zeros((400, 12)),), source=SimulationSource(0), ledger=ledger)
    with pytest.raises(ProtocolError, match="widths"):
        curate(mean, (np.zeros((500, 1)),), source=SimulationSource(0), ledger=ledger)
    assert not ledger.entries
