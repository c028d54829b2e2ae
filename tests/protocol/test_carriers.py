"""`curate`, `Passes`, `simulate` and `convene`: who is asked, who pays, what is written down."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpfda
from dpfda.central.functions import as_grid
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.curate import Passes, curate
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import SecureSource, SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol import StudyPlan
from dpfda.protocol.consortium import convene
from dpfda.protocol.person import Crowd
from dpfda.protocol.wire import receipt_of, ticket_of
from dpfda.simulate import ask_everybody, people_from, simulate

N = 90
MEAN = MeanRelease(
    epsilon=1.0,
    delta=1e-6,
    n=N,
    bound=2.0,
    grid=as_grid(np.linspace(0, 1, 5)),
    mechanism=FunctionMechanism.named("adaptive")(),
)
(HELD,) = MEAN.records(np.random.default_rng(1).normal(0, 0.1, (N, 5)))


def ledger() -> Ledger:
    return Ledger(2.0, limit_delta=1e-5)


def passes(records: Any, **given: Any) -> Any:
    """As `curate`, in three chunks."""
    fit = Passes(MEAN, **given)
    while fit.result is None:
        for chunk in np.array_split(records[0], 3):
            fit.add((chunk,))
        fit.release()
    return fit.result, fit.stream


@pytest.mark.parametrize("carry", [lambda *a, **k: curate(MEAN, *a, **k), passes])
def test_a_curator_pays_from_the_ledger_and_is_tallied(carry: Any) -> None:
    mine = ledger()
    release, curator = carry((HELD,), source=SecureSource(), ledger=mine)
    assert len(mine.entries) == len(curator.transcript) > 0
    assert release.values().shape == (5,)
    carry((HELD,), source=SimulationSource(0))
    carry((HELD,), source=SecureSource())
    assert [one.paid for one in dpfda.spent().releases] == [True, False]
    assert {one.label for one in dpfda.spent().releases} == {"MeanRelease"}


def test_chunks_give_the_bits_of_the_whole() -> None:
    once, _ = curate(MEAN, (HELD,), source=SimulationSource(3))
    chunked, _ = passes((HELD,), source=SimulationSource(3))
    np.testing.assert_array_equal(once.values(), chunked.values())


def hospitals() -> dict[str, Any]:
    return {name: (part,) for name, part in zip("ABC", np.array_split(HELD, 3), strict=True)}


def test_sites_without_a_ledger_are_paid_for_once() -> None:
    shared, own = ledger(), ledger()
    convene(MEAN, hospitals(), source=SecureSource(), ledger=shared, ledgers={"B": own})
    assert len(shared.entries) == 1
    assert len(own.entries) >= 1
    assert [one.paid for one in dpfda.spent().releases] == [True]
    with pytest.raises(InvalidParameter, match="ledgers"):
        convene(MEAN, hospitals(), source=SecureSource(), ledgers={"D": own})


def test_sites_that_all_pay_need_nobody_else() -> None:
    shared, own = ledger(), {name: ledger() for name in "ABC"}
    convene(MEAN, hospitals(), source=SecureSource(), ledger=shared, ledgers=own)
    assert not shared.entries
    assert all(len(one.entries) == len(own["A"].entries) > 0 for one in own.values())
    assert [one.paid for one in dpfda.spent().releases] == [True]


PLAN = StudyPlan(
    epsilon=1.0,
    n_people=20,
    encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
    classes=("no", "yes"),
    design={"name": "mrma", "n_classifiers": 3, "member_size": 3, "training_share": 0.5},
)


CURVES = replace(PLAN, encoder=CurveEncoder(n_basis=4))


class Village:
    """People who remember in which blocks they were asked."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int]] = []

    def __call__(self, start: int, stop: int) -> tuple[Any, Any]:
        self.blocks.append((start, stop))
        return np.zeros((stop - start, 2)), np.arange(start, stop) % 2


def test_a_study_is_paid_for_before_anybody_is_asked() -> None:
    mine, village = Ledger(1.5), Village()
    assert simulate(PLAN, village, source=SecureSource(), ledger=mine, label="trial").finished
    assert [entry.label for entry in mine.entries] == ["trial"]
    assert mine.spent.epsilon == 1.0
    asked = list(village.blocks)
    with pytest.raises(dpfda.errors.BudgetExceeded):
        simulate(PLAN, village, source=SecureSource(), ledger=mine)
    assert village.blocks == asked
    assert [one.paid for one in dpfda.spent().releases] == [True]


def test_people_are_asked_in_blocks_one_after_the_other() -> None:
    village, told = Village(), []
    server = ask_everybody(PLAN, village, source=SimulationSource(0), at_once=7, tell=told.append)
    assert server.finished
    assert village.blocks == [(0, 7), (7, 10), (10, 17), (17, 20)]
    assert told == [0.35, 0.5, 0.85, 1.0]
    crowd = Crowd(PLAN, Village(), source=SimulationSource(0))
    again = ask_everybody(PLAN, crowd, source=SimulationSource(9), at_once=7)
    assert crowd.asked == 20
    assert again.state() == server.state()


@pytest.mark.parametrize("silent", [{9, 19}, {0, 3, 12}, set(range(0, 20, 2)), set()])
def test_who_does_not_answer_is_not_waited_for(silent: set[int]) -> None:
    village, seen = Village(), []

    def answers(people: Any) -> Any:
        seen.extend(people.tolist())
        return [person not in silent for person in people]

    server = ask_everybody(PLAN, village, source=SimulationSource(0), at_once=7, answers=answers)
    assert server.finished
    assert village.blocks == [(0, 7), (7, 10), (10, 17), (17, 20)]
    assert seen == list(range(20))


def test_people_hold_their_own_rows_in_a_public_order() -> None:
    rows = np.linspace(-1, 1, 40).reshape(20, 2)
    labels = np.where(rows[:, 0] > 0, "yes", "no")
    people = people_from(PLAN, rows, labels)
    features, numbers = people(0, 20)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(features, rows[order])
    np.testing.assert_array_equal(numbers, (rows[order, 0] > 0).astype(int))
    np.testing.assert_array_equal(people(3, 5)[0], features[3:5])
    for X, y in ((rows[:19], labels[:19]), (rows, labels[:19]), (rows[:19], labels)):
        with pytest.raises(InvalidData, match="20 rows with a label each"):
            people_from(PLAN, X, y)
    with pytest.raises(InvalidData, match="grid_points"):
        people_from(CURVES, rows, labels, grid_points=[0.0, 2.0])  # curves are known on [0, 1]
    with pytest.raises(InvalidData):
        people_from(PLAN, np.zeros((20, 3)), labels)


def test_a_receipt_is_for_one_reply() -> None:
    receipt = receipt_of(0, 3, b"digest", seal="s").receipt
    assert receipt == receipt_of(0, 3, b"digest", seal="s").receipt
    assert len(receipt) == 48  # 128 bits in hexadecimal, and the ticket under a mask
    assert ticket_of(receipt, seal="s") == (0, 3)
    assert ticket_of(receipt, seal="t") != (0, 3), "only who has the seal can read it"
    others = [
        receipt_of(0, 3, b"other", seal="s"),
        receipt_of(1, 3, b"digest", seal="s"),
        receipt_of(0, 4, b"digest", seal="s"),
        receipt_of(0, 3, b"digest", seal="t"),
    ]
    for part in (slice(32), slice(32, 48)):
        assert receipt[part] not in {other.receipt[part] for other in others}


def test_a_receipt_does_not_tell_the_ticket() -> None:
    """Receipts of neighboring tickets agree in as many bits as random words do."""
    marks = [
        int(receipt_of(0, ticket, bytes(32), seal="secret").receipt, 16) for ticket in range(2000)
    ]
    apart = [(one ^ other).bit_count() for one, other in pairwise(marks)]
    # 192 fair bits have mean 96 and variance 48; five standard errors of a mean of 1999.
    assert abs(np.mean(apart) - 96) < 5 * np.sqrt(48 / 1999)
    assert min(apart) > 96 - 6 * np.sqrt(48)


@pytest.mark.parametrize("unit", ["", "  ", 3, None])
def test_whose_data_it_is_about_is_said_in_words(unit: Any) -> None:
    with pytest.raises(InvalidParameter, match="unit"):
        MeanRelease(
            epsilon=1.0, delta=1e-6, n=N, bound=2.0, grid=MEAN.grid, mechanism=MEAN.mechanism,
            unit=unit,
        )  # fmt: skip
