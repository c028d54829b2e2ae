"""A guarantee in plain words."""

from __future__ import annotations

import math

from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger

_NEARLY_SURE = 0.99  # of somebody who guesses: then a promise is next to none
_LARGEST = 700.0  # ε whose e^ε a float holds

SIMULATED = (
    "This is a simulation: its noise was drawn from a seed, so whoever knows the seed can take it "
    "off again. It protects nobody, and is not to be published as if it did."
)
_TRUST = {
    "local": "Every {unit} added the noise before anything left their device: nobody else has to "
    "be trusted with it.",
    "central": "Whoever holds the data added the noise, and has to be trusted with them; readers "
    "of this page need not be.",
    "decentralized": "Each site holds its own data and added a share of the noise; no site and no "
    "coordinator saw the data of another.",
}


def in_words(promise: Guarantee) -> list[str]:
    """What people were promised, for readers who have never heard of ε.

    Examples:
        >>> for sentence in in_words(Guarantee(epsilon=1.0)):
        ...     print(sentence)
        ε = 1 for each person: if all data of one person were replaced, nothing on this page would \
become more or less probable than by a factor of e^ε = 2.72.
        Somebody who knows everything else and guesses which of two cases holds for one person is \
right in 73.2 % of cases at most with this page, and in 50 % without it.
        Whoever holds the data added the noise, and has to be trusted with them; readers of this \
page need not be.
    """
    unit = promise.unit
    small = f" and δ = {promise.delta:g}" if promise.delta else ""
    more = f", and by δ = {promise.delta:g} on top" if promise.delta else ""
    factor = f"{math.exp(min(promise.epsilon, _LARGEST)):.3g}"
    right = guess(promise)
    told = [
        f"ε = {promise.epsilon:g}{small} for each {unit}: if all data of one {unit} were replaced, "
        "nothing on this page would become more or less probable than by a factor of "
        f"e^ε = {factor}{more}.",
        f"Somebody who knows everything else and guesses which of two cases holds for one {unit} "
        f"is right in {shown(right)} of cases at most with this page, and in 50 % without it.",
    ]
    if right >= _NEARLY_SURE:
        told.append("So large an ε promises next to nothing.")
    told.append(_TRUST[promise.model].format(unit=unit))
    if promise.assumptions:
        told.append(f"This holds provided that {'; that '.join(promise.assumptions)}.")
    return told


def guess(promise: Guarantee) -> float:
    """How often somebody may be right who guesses which of two equally likely cases holds.

    (1 + TV)/2, where TV ≤ (e^ε - 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015).
    """
    odds = math.exp(-promise.epsilon)
    return (1 + promise.delta * odds) / (1 + odds)


def shown(right: float) -> str:
    """A bound, rounded up, that does not call certain what is not.

    Examples:
        >>> shown(0.7310585), shown(0.5), shown(0.99999), shown(1.0)
        ('73.2 %', '50 %', 'nearly 100 %', '100 %')
    """
    up = math.ceil(1000 * right) / 10
    return "nearly 100 %" if up == 100 and right < 1 else f"{up:g} %"


def budget_in_words(ledger: BaseLedger) -> str:
    """How much of a budget is gone, by how many releases."""
    many = len(ledger.releases)
    return (
        f"All releases of these data so far ({many}, with this one) have spent {ledger.spent} of "
        f"{ledger.limit}, which they may never exceed together."
    )
