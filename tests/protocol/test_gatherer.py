"""A holder that has no record: it spends first, asks for sums once, and adds noise itself."""

import numpy as np
import pytest
from site_studies import MOST, WHOLE, BoxSum

from dpfda.central.regression.base import Regression, RegressionMechanism
from dpfda.central.regression.problem import Bounds, Problem
from dpfda.central.regression.two_stage_queries import LocationQuery
from dpfda.curate import gather
from dpfda.errors import BudgetExceeded, InvalidData, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.holder import Curator, Gatherer

ROWS = np.random.default_rng(0).uniform(-1, 1, (20, 2))
LOOK = BoxSum(cost=WHOLE, dimension=2)
AGREED = {"most": MOST, "accepts": [NUMBER_IS_PUBLIC]}


def test_the_same_bits_as_a_curator() -> None:
    holder = Gatherer(lambda look: (20, look.sums((ROWS,))), n=20, source=SimulationSource(1),
                      **AGREED)  # fmt: skip
    curator = Curator((ROWS,), source=SimulationSource(1), **AGREED)
    one, other = holder.answer(LOOK, number=0), curator.answer(LOOK, number=0)
    assert np.array_equal(one.values, other.values)
    assert one.n == 20
    assert holder.answer(LOOK, number=0) is one


def test_it_spends_before_anything_is_computed_and_asks_once() -> None:
    ledger, asked = Ledger(1.0, limit_delta=1e-5), []

    def sums(look: BoxSum) -> tuple[int, np.ndarray]:
        asked.append(len(ledger.entries))
        return 20, look.sums((ROWS,))

    holder = Gatherer(sums, n=20, ledger=ledger, source=SimulationSource(1), **AGREED)
    holder.answer(LOOK, number=0)
    assert asked == [1]
    with pytest.raises(BudgetExceeded):
        holder.answer(LOOK, number=1)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        Gatherer(sums, n=20, ledger=ledger, **AGREED)
    assert asked == [1]


def test_another_number_of_rows_than_was_counted_is_no_answer() -> None:
    holder = Gatherer(lambda look: (19, look.sums((ROWS[:19],))), n=20, **AGREED)
    with pytest.raises(ProtocolError, match="20 records were counted, and 19 were read"):
        holder.answer(LOOK, number=0)
    assert holder.transcript == []


def test_what_is_no_sum_is_refused_before_it_is_paid_for() -> None:
    problem = Problem(link="linear", bounds=Bounds(center=np.zeros(2)), rows=20)
    whole = Regression(
        epsilon=1.0, delta=1e-5, problem=problem,
        mechanism=RegressionMechanism.named("output_perturbation")(),
    )  # fmt: skip
    ledger = Ledger(1.0, limit_delta=1e-5)
    with pytest.raises(InvalidData, match="cannot be computed from sums"):
        gather(whole, lambda _: pytest.fail("computed"), n=20, source=SimulationSource(0),
               ledger=ledger)  # fmt: skip
    assert ledger.entries == ()


def test_more_rows_than_sums_have_room_for_are_refused_in_any_chunks() -> None:
    problem = Problem(link="linear", bounds=Bounds(center=np.zeros(2)))
    look = LocationQuery(cost=WHOLE, problem=problem)
    for n in (2**27 - 1, 2**27):
        ledger = Ledger(1.0, limit_delta=1e-5)
        holder = Gatherer(lambda one: (n, np.zeros(one.size, dtype=np.int64)), n=n, ledger=ledger,  # noqa: B023
                          **AGREED)  # fmt: skip
        if n < 2**27:
            assert holder.answer(look, number=0).n == n
            continue
        with pytest.raises(InvalidData, match="at most 134217727 rows"):
            holder.answer(look, number=0)
        assert ledger.entries == ()


def test_fewer_rows_than_a_look_is_about_are_refused_before_it_is_paid_for() -> None:
    from dpfda.central.queries import BallMean

    look = BallMean(cost=WHOLE, n=21, center=np.zeros(2), axes=np.ones(2), radius=1.0)
    ledger = Ledger(1.0, limit_delta=1e-5)
    holder = Gatherer(lambda _: pytest.fail("computed"), n=20, ledger=ledger, **AGREED)
    with pytest.raises(ProtocolError, match="announces 21 records"):
        holder.answer(look, number=0)
    assert ledger.entries == ()
