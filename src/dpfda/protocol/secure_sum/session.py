"""Runs a secure sum in one process: the same roles that a network would carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpfda.protocol.secure_sum.aggregator import Aggregator, SecureSum
from dpfda.protocol.secure_sum.keys import Identity
from dpfda.protocol.secure_sum.member import Member
from dpfda.protocol.secure_sum.messages import RoundFailed, RoundId
from dpfda.protocol.secure_sum.terms import Terms

_ATTEMPTS = 3

Silence = Callable[[str, int], set[str]]
"""(step, attempt) -> the sites that fall silent at this step; for tests and rehearsals."""


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
    for attempt in range(1, _ATTEMPTS + 1):
        round_id = RoundId(stage=stage, attempt=attempt, question=question)
        try:
            return _one_round(members, Aggregator(terms, coordinator, round_id, size=size), silent)
        except RoundFailed as failure:
            if not failure.repeatable or attempt == _ATTEMPTS:
                raise
    raise AssertionError  # the loop returns or raises


def _one_round(
    members: Sequence[Member], aggregator: Aggregator, silent: Silence | None
) -> SecureSum:
    alive = list(members)

    def step(name: str) -> list[Member]:
        gone = silent(name, aggregator.round.attempt) if silent is not None else set()
        alive[:] = [member for member in alive if member.name not in gone]
        return list(alive)

    offers = aggregator.offers([one.advertise(aggregator.round) for one in step("advertise")])
    routed = aggregator.route([one.share(offers) for one in step("share")])
    survivors = aggregator.collect([one.mask(routed[one.name]) for one in step("mask")])
    confirmed = aggregator.confirmations([one.confirm(survivors) for one in step("confirm")])
    return aggregator.open([one.unmask(confirmed) for one in step("unmask")])
