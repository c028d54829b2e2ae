"""Runs a secure sum: in one process, or over whatever carries its messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpfda.protocol.secure_sum.aggregator import Aggregator, SecureSum
from dpfda.protocol.secure_sum.keys import Identity
from dpfda.protocol.secure_sum.member import Member
from dpfda.protocol.secure_sum.messages import RoundFailed, RoundId
from dpfda.protocol.secure_sum.terms import Terms

ATTEMPTS = 3
"""How often a question is tried before it counts as not answered."""

Silence = Callable[[str, int], set[str]]
"""(step, attempt) -> the sites that fall silent at this step; for tests and rehearsals."""

Carry = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(step, message by site) -> what sites replied; those that fell silent are left out."""


def add_up(
    members: Sequence[Member],
    terms: Terms,
    coordinator: Identity,
    *,
    stage: int,
    size: int,
    question: str = "",
    silent: Silence | None = None,
) -> SecureSum:
    """The sum of the sites' vectors for a stage; repeats a failed round with new masks.

    Args:
        members: the sites that can be reached.
        terms: what all sites agreed on.
        coordinator: whose key the terms name.
        stage: which of the sites' contributions.
        size: length of the vectors.
        question: digest of what they answer.
        silent: which sites fall silent when; None: nobody does.

    Raises:
        RoundFailed: no attempt succeeded, or the last one may not be repeated. Nothing was learnt.
    """
    for attempt in range(1, ATTEMPTS + 1):
        round_id = RoundId(stage=stage, attempt=attempt, question=question)
        aggregator = Aggregator(terms, coordinator, round_id, size=size)
        try:
            return one_round(
                aggregator, [one.name for one in members], _called(members, attempt, silent)
            )
        except RoundFailed as failure:
            if not failure.repeatable or attempt == ATTEMPTS:
                raise
    raise AssertionError  # the loop returns or raises


def one_round(aggregator: Aggregator, sites: Sequence[str], carry: Carry) -> SecureSum:
    """The five steps of a round; whoever falls silent in one of them is not asked any more."""
    offered = carry("advertise", dict.fromkeys(sites, aggregator.round))
    offers = aggregator.offers(list(offered.values()))
    shared = carry("share", dict.fromkeys(offered, offers))
    masked = carry("mask", aggregator.route(list(shared.values())))
    survivors = aggregator.collect(list(masked.values()))
    signed = carry("confirm", dict.fromkeys(masked, survivors))
    confirmed = aggregator.confirmations(list(signed.values()))
    return aggregator.open(list(carry("unmask", dict.fromkeys(signed, confirmed)).values()))


def _called(members: Sequence[Member], attempt: int, silent: Silence | None) -> Carry:
    """Members of this process, of whom some may rehearse to fall silent."""
    by_name = {member.name: member for member in members}

    def carry(step: str, messages: Mapping[str, Any]) -> dict[str, Any]:
        gone = silent(step, attempt) if silent is not None else set()
        return {
            name: getattr(by_name[name], step)(message)
            for name, message in messages.items()
            if name not in gone
        }

    return carry
