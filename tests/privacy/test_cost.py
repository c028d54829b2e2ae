"""Shares of a budget: parts fit into the limit, and the limit into a ledger of the same size."""

from fractions import Fraction

import pytest

from dpfda.errors import InvalidParameter
from dpfda.privacy.cost import Cost, limit, within
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.price import Price, compose


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0])
def test_all_of_a_budget_fits_exactly_once(epsilon, delta):
    most = limit(epsilon=epsilon, delta=delta)
    ledger = Ledger(epsilon, limit_delta=delta)
    assert not ledger.refusal(most)
    whole = Cost(epsilon=epsilon, delta=delta)
    for parts in (1, 3, 7, 1000):
        events = [whole.part(Fraction(1, parts)).event] * parts
        assert within(compose(events), most)
        assert not within(compose([*events, whole.part(Fraction(1, 10**6)).event]), most)
    for event in [whole.part(Fraction(1, 3)).event] * 3:
        ledger.spend(event, label="part", whole=most)
    assert 0.999 * epsilon < ledger.spent.epsilon <= epsilon
    assert ledger.remaining.epsilon < 1e-3 * epsilon


def test_an_announced_epsilon_that_no_float_holds_is_refused():
    for epsilon in (1.0, 1e100):
        ledger = Ledger(epsilon, limit_delta=0.5)
        assert "does not fit" in ledger.refusal(Price(epsilon=Fraction(10**400)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"share": Fraction(0)},
        {"share": Fraction(-1)},
        {"share": Fraction(1000001, 1000000)},
        {"share": 0.5},
        {"share": 1},
    ],
)
def test_what_is_no_share_of_a_budget_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(InvalidParameter, match=f"^{name} must be"):
        Cost(**({"epsilon": 1.0} | wrong))


def test_a_pure_budget_has_no_gaussian_noise():
    with pytest.raises(InvalidParameter, match=r"^delta must be above 0 for Gaussian noise"):
        _ = Cost(epsilon=1.0).mu


@pytest.mark.parametrize("share", ["1e-999999999", "9" * 500, "1/0", "0.5", "", "1/", "-1", "x"])
def test_a_share_from_elsewhere_is_a_short_fraction(share):
    """Writing out a decimal with a large exponent would never end."""
    with pytest.raises(InvalidParameter, match="share"):
        Cost.from_dict({"epsilon": 1.0, "delta": 0.0, "share": share})
