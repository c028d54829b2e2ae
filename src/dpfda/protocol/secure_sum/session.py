"""Runs a secure sum in one process: the same roles that a network would carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpfda import _validate
from dpfda.protocol.secure_sum.aggregator import Aggregator, SecureSum
from dpfda.protocol.secure_sum.messages import RoundFailed, RoundId
from dpfda.protocol.secure_sum.site import Site
from dpfda.protocol.secure_sum.terms import Terms

STEPS = ("advertise", "share", "mask", "confirm", "unmask")
Silence = Callable[[str, int], set[str]]
"""(step, attempt) -> the sites that fall silent at this step; for tests and rehearsals."""


def add_up(
    sites: Sequence[Site],
    terms: Terms,
    *,
    stage: int,
    size: int,
    attempts: int = 3,
    silent: Silence | None = None,
) -> SecureSum:
    """The sum of the sites' vectors for a stage; repeats a failed round with new masks.

    Args:
        sites: the sites that can be reached.
        terms: what all sites agreed on.
        stage: which of the sites' contributions.
        size: length of the vectors.
        attempts: how often to try.
        silent: which sites fall silent when; None: nobody does.

    Raises:
        RoundFailed: no attempt succeeded, or the last one may not be repeated. Nothing was learnt.
    """
    _validate.whole("attempts", attempts)
    for attempt in range(1, attempts + 1):
        try:
            return _one_round(sites, terms, RoundId(stage=stage, attempt=attempt), size, silent)
        except RoundFailed as failure:
            if not failure.repeatable or attempt == attempts:
                raise
    raise AssertionError  # the loop returns or raises


def _one_round(
    sites: Sequence[Site], terms: Terms, round_id: RoundId, size: int, silent: Silence | None
) -> SecureSum:
    alive = list(sites)

    def step(name: str) -> list[Site]:
        gone = silent(name, round_id.attempt) if silent is not None else set()
        alive[:] = [site for site in alive if site.name not in gone]
        return list(alive)

    aggregator = Aggregator(terms, round_id, size=size)
    offers = aggregator.offers([site.advertise(round_id) for site in step("advertise")])
    routed = aggregator.route([site.share(offers) for site in step("share")])
    vectors = [site.mask(routed[site.name]) for site in step("mask")]
    survivors = aggregator.collect(vectors)
    confirmed = aggregator.confirmations([site.confirm(survivors) for site in step("confirm")])
    return aggregator.open([site.unmask(confirmed) for site in step("unmask")])
