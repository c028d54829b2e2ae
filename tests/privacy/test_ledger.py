"""One suite for both ledgers; what only the one on disk can do: `test_ledger_file.py`."""

import copy
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases import tenth

from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    InvalidParameter,
    UnknownEvent,
)
from dpfda.privacy.calibration import gaussian_sigma
from dpfda.privacy.cost import Cost, limit
from dpfda.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import Budget, Ledger, part_label
from dpfda.privacy.ledger_file import FileLedger


class UnpricedEvent(Event, name="unpriced"):
    """Registered, but without a price."""


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    def make(limit_epsilon=1.0, **limits):
        if request.param == "memory":
            return Ledger(limit_epsilon, **limits)
        return FileLedger(tmp_path / "ledger", limit_epsilon=limit_epsilon, **limits)

    return make


def test_starts_with_the_whole_budget(make):
    ledger = make(limit_epsilon=2.0, limit_delta=1e-6)
    assert ledger.spent == Budget(epsilon=0.0)
    assert ledger.remaining == ledger.limit == Budget(epsilon=2.0, delta=1e-6)
    assert ledger.entries == ()


def test_ten_tenths_fit_into_one_and_not_a_bit_more(make):
    ledger = make()
    for number in range(10):
        assert ledger.spend(tenth(), label="tenth").sequence == number + 1
    assert ledger.spent == Budget(epsilon=1.0)
    assert ledger.remaining == Budget(epsilon=0.0)
    with pytest.raises(BudgetExceeded, match=r"ε = 1e-12 does not fit into ε = 1: ε = 0 is left"):
        ledger.spend(PureEvent(epsilon=1e-12), label="more")
    assert len(ledger.entries) == 10


def test_refusal_spends_nothing(make):
    ledger = make()
    ledger.spend(PureEvent(epsilon=0.7), label="first", key="a")
    before = ledger.entries
    with pytest.raises(BudgetExceeded):
        ledger.spend(PureEvent(epsilon=0.4), label="too much", key="b")
    assert ledger.entries == before
    assert ledger.remaining == Budget(epsilon=0.3)
    ledger.spend(PureEvent(epsilon=0.3), label="the refused key is free", key="b")


def test_entries_say_what_happened(make):
    ledger = make()
    event = ComposedEvent(events=(LaplaceEvent(ratio=0.3), tenth()), repeated=2)
    given = ledger.spend(event, label="curve\nand label ✓", key="question-1")
    (entry,) = ledger.entries
    assert entry == given
    assert (entry.label, entry.event, entry.key) == ("curve\nand label ✓", event, "question-1")
    assert entry.time > 1.7e9


def test_a_guarantee_can_be_spent(make):
    ledger = make(limit_delta=1e-5)
    ledger.spend(Guarantee(epsilon=0.25, delta=1e-6), label="approximate")
    ledger.spend(Guarantee(epsilon=0.25), label="pure")
    assert [entry.event for entry in ledger.entries] == [
        ApproximateEvent(epsilon=0.25, delta=1e-6),
        PureEvent(epsilon=0.25),
    ]
    assert ledger.spent == Budget(epsilon=0.5, delta=1e-6)
    assert ledger.remaining == Budget(epsilon=0.5, delta=9e-6)


def test_releases_about_different_units_are_not_added_up(make):
    """A row's ε is not its household's."""
    ledger = make(2.0)
    ledger.spend(PureEvent(epsilon=0.1), label="a study, on somebody's own device")
    ledger.spend(Guarantee(epsilon=0.5, model="central", unit="row"), label="mean")
    for other in (
        lambda: ledger.spend(PureEvent(epsilon=0.5), label="mean", unit="household"),
        lambda: ledger.spend(Guarantee(epsilon=0.5, model="central", unit="person"), label="mean"),
    ):
        with pytest.raises(InvalidParameter, match="unit must be 'row', as in the rest"):
            other()
    assert ledger.spend(PureEvent(epsilon=0.5), label="again", unit="row").sequence == 3
    assert [entry.unit for entry in ledger.entries] == [None, "row", "row"]


def test_a_copy_is_no_second_budget(make):
    ledger = make(1.0)
    for twin in (copy.copy(ledger), copy.deepcopy(ledger)):
        assert twin is ledger


def test_a_key_is_spent_once(make):
    ledger = make()
    ledger.spend(tenth(), label="answer", key="person-7")
    assert ledger.refusal(tenth(), key="person-7")
    assert not ledger.refusal(tenth(), key="person-8")
    with pytest.raises(AlreadySpent, match="person-7"):
        ledger.spend(tenth(), label="again", key="person-7")
    ledger.spend(tenth(), label="no key")
    ledger.spend(tenth(), label="no key")
    assert ledger.spent == Budget(epsilon=0.3)


def test_refusal_agrees_with_spend_and_spends_nothing(make):
    ledger = make()
    assert not ledger.refusal(PureEvent(epsilon=1.0))
    assert ledger.refusal(PureEvent(epsilon=math.nextafter(1.0, 2)))
    assert ledger.entries == ()


def test_pure_limit_refuses_delta(make):
    ledger = make(limit_epsilon=100.0)
    for event in (ApproximateEvent(epsilon=0.1, delta=1e-12), GaussianEvent(multiplier=1e6)):
        with pytest.raises(BudgetExceeded):
            ledger.spend(event, label="has a delta")
    assert ledger.entries == ()


def test_gaussian_parts_of_a_budget_fit_exactly(make):
    ledger = make(limit_delta=1e-5)
    whole, most = Cost(epsilon=1.0, delta=1e-5), limit(epsilon=1.0, delta=1e-5)
    for share in (0.2, 0.3, 0.5):
        ledger.spend(whole.part(share).event, label="moment", whole=most)
    assert 1 - 1e-8 < ledger.spent.epsilon <= 1
    assert ledger.spent.delta == 1e-5
    with pytest.raises(BudgetExceeded, match=r"does not fit into ε = 1, δ = 1e-05: ε = 0 is left"):
        ledger.spend(GaussianEvent(multiplier=1e4), label="more")


def test_a_gaussian_release_calibrated_to_the_limit_fits(make):
    ledger = make(limit_epsilon=0.5, limit_delta=1e-6)
    multiplier = gaussian_sigma(epsilon=0.5, delta=1e-6)
    ledger.spend(GaussianEvent(multiplier=multiplier), label="all of it")


def test_many_small_releases_compose_tightly_where_delta_is_allowed(make):
    ledger = make(limit_epsilon=4.0, limit_delta=1e-5)
    for _ in range(2):
        ledger.spend(ComposedEvent(events=(tenth(),), repeated=25), label="25 × 0.1")
    assert 2.9 < ledger.spent.epsilon < 3.1 < 5.0  # the sum would be 5


def test_assumptions_are_kept(make):
    ledger = make()
    promise = Guarantee(epsilon=0.1).assuming("n is public")
    ledger.spend(promise, label="mean", assumptions=["labels are public", "n is public"])
    ledger.spend(tenth(), label="plain")
    ledger.spend(tenth(), label="other", assumptions=("labels are public",))
    first, second, third = ledger.entries
    assert first.assumptions == ("n is public", "labels are public")
    assert second.assumptions == ()
    assert third.assumptions == ("labels are public",)
    assert ledger.assumptions == ("n is public", "labels are public")
    assert "entries: 3, assuming n is public, assuming labels are public" in repr(ledger)
    table = ledger.table().splitlines()
    assert table[0] == "ε = 0.3 of ε = 1 spent"
    assert "mean: PureEvent(epsilon=0.1), assuming n is public, assuming labels" in table[1]
    assert len(table) == 4


def test_a_conversation_is_one_line_and_its_parts_on_request(make):
    ledger = make()
    ledger.spend(tenth(), label=part_label("Mean", 1, "radius"), assumptions=["n is public"])
    ledger.spend(tenth(), label=part_label("Mean", 2, "ball"), assumptions=["n is public"])
    for name in ("radius", "ball"):  # asked again: another release
        ledger.spend(tenth(), label=part_label("Mean", 1 + (name == "ball"), name))
    for label in ("Mean, 2: ball", "Mean, 4: late", "Mode, 5: other", "no part"):
        ledger.spend(tenth(), label=label)
    assert [len(release) for release in ledger.releases] == [2, 2, 1, 1, 1, 1]
    head, first, second, *others = ledger.table().splitlines()
    assert head == "ε = 0.8 of ε = 1 spent"
    assert first[:6].split() == ["1"]
    assert first.endswith("  Mean: ε = 0.2, 2 questions, assuming n is public")
    assert second[:6].split() == ["3"]
    assert second.endswith("  Mean: ε = 0.2, 2 questions")
    assert [line.split("  ")[-1] for line in others] == [
        f"{entry.label}: {entry.event}" for entry in ledger.entries[4:]
    ]
    parts = ledger.table(parts=True).splitlines()
    assert parts == [head, *(f"{entry.sequence:>4}  {entry}" for entry in ledger.entries)]
    assert [entry.label for entry in ledger.entries[:2]] == ["Mean: radius", "Mean, 2: ball"]


@pytest.mark.parametrize("wrong", ["n is public", [""], [3], 3, None, [["n"]]])
def test_refuses_assumptions_that_are_no_words(make, wrong):
    ledger = make()
    with pytest.raises(InvalidParameter, match="assumptions must be"):
        ledger.spend(tenth(), label="x", assumptions=wrong)
    assert ledger.entries == ()


def test_a_refusal_says_why(make):
    ledger = make()
    assert ledger.refusal(tenth()) == ""
    assert "does not fit" in ledger.refusal(PureEvent(epsilon=2.0))
    ledger.spend(tenth(), label="x", key="k")
    assert ledger.refusal(tenth(), key="k") == "the key was spent before"


@pytest.mark.parametrize(
    "event",
    [
        UnpricedEvent(),
        ComposedEvent(events=(PureEvent(epsilon=0.1), UnpricedEvent())),
    ],
)
def test_refuses_a_release_without_a_price(make, event):
    ledger = make()
    with pytest.raises(UnknownEvent):
        ledger.spend(event, label="?")
    with pytest.raises(UnknownEvent):
        ledger.refusal(event)
    assert ledger.entries == ()


def test_refuses_bad_arguments_and_spends_nothing(make):
    ledger = make()
    with pytest.raises(InvalidParameter, match="release must be an Event or a Guarantee, got 'fl"):
        ledger.spend(0.5, label="a number")
    with pytest.raises(InvalidParameter, match="label must be a string that is not empty, got ''"):
        ledger.spend(tenth(), label="")
    with pytest.raises(InvalidParameter, match="key must be a string"):
        ledger.spend(tenth(), label="x", key=7)
    for epsilon in (-0.1, math.nan, math.inf):
        with pytest.raises(InvalidParameter, match="epsilon must be a finite number, 0 or above"):
            ledger.spend(PureEvent(epsilon=epsilon), label="x")
    assert ledger.entries == ()


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_refuses_a_limit_that_is_no_budget(make, limit):
    with pytest.raises(InvalidParameter, match="limit_epsilon must be"):
        make(limit_epsilon=limit)


@pytest.mark.parametrize("limit", [-1e-9, 1, 2.0, math.nan, "0.1"])
def test_refuses_a_delta_limit_that_is_no_probability(make, limit, tmp_path):
    with pytest.raises(InvalidParameter, match=r"limit_delta must be 0 .* between 0 and 1"):
        make(limit_delta=limit)
    assert list(tmp_path.iterdir()) == []  # nothing half made is left behind


def test_threads_never_overspend(make):
    ledger = make()
    accepted, start = [], threading.Barrier(6)

    def work():
        start.wait()
        try:
            for _ in range(10):
                accepted.append(ledger.spend(PureEvent(epsilon=0.05), label="x").sequence)
        except BudgetExceeded:
            pass

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accepted) == list(range(1, 21))


@given(st.lists(st.decimals("0.001", "0.5", places=3), max_size=30))
def test_spends_are_accepted_exactly_while_their_sum_fits(amounts):
    ledger, spent = Ledger(1.0), 0
    for amount in amounts:
        if spent + amount <= 1:
            ledger.spend(PureEvent(epsilon=float(amount)), label="x")
            spent += amount
        else:
            with pytest.raises(BudgetExceeded):
                ledger.spend(PureEvent(epsilon=float(amount)), label="x")
    assert ledger.spent.epsilon == float(spent)
    left = ledger.remaining.epsilon
    if left:  # what is said to remain can be spent
        ledger.spend(PureEvent(epsilon=left), label="rest")
        assert ledger.remaining.epsilon == 0
