"""One conversation with several sites that do not trust each other, without a curator.

Every answer is a secure sum. Any conversation can be used if all its queries are sums with Gaussian
noise (`AdditiveQuery.linear`, δ > 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from dpfda.errors import BudgetExceeded, DpfdaError, InvalidParameter, ProtocolError
from dpfda.mechanisms.additive import Gaussian
from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.privacy import tally
from dpfda.privacy.events import ComposedEvent
from dpfda.privacy.guarantee import (
    ONE_PROCESS_SEES_ALL,
    SITE_SIZES_ARE_PUBLIC,
    SITES_DRAW_THEIR_NOISE,
    Guarantee,
)
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.conversation import Conversation, converse
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import AdditiveQuery, Answer, Query, Records
from dpfda.protocol.secure_sum import Identity, Member, Terms, add_up
from dpfda.protocol.secure_sum.aggregator import Silence
from dpfda.protocol.site import Site, opened

Result = TypeVar("Result")


class Consortium:
    """Sends queries to sites and adds up their masked answers.

    Args:
        sites: the sites that can be reached, all in one process.
        coordinator: the key that the sites' terms name.
        silent: (step, attempt) -> sites that do not reply, to rehearse dropouts.

    Attributes:
        transcript: the public questions and answers.
        survivors: for each answer, the sites that took part.
        noise_ratio: for each answer, the variance of its noise divided by that of one curator.
    """

    def __init__(
        self, sites: Sequence[Site], coordinator: Identity, *, silent: Silence | None = None
    ) -> None:
        self.sites = {site.member.name: site for site in sites}
        self.terms = sites[0].member.terms
        self.transcript: list[Exchange] = []
        self.survivors: tuple[tuple[str, ...], ...] = ()
        self.noise_ratio: tuple[float, ...] = ()
        self._coordinator, self._silent = coordinator, silent

    def ask(self, query: Query, number: int) -> Answer:
        """The sum of all sites' answers to question `number`, with the law of its noise.

        If a query is about n records, the records of the survivors represent all of them.
        """
        if isinstance(query, AdditiveQuery) and len(self.sites) == self.terms.sites:
            query.count(sum(site.n for site in self.sites.values()))
        receipts, refusals = self._receipts(query, number)
        if len(refusals) > self.terms.dropouts:
            raise refusals[0]
        mechanism = query.mechanism
        assert isinstance(mechanism, Gaussian)  # sites refuse any other
        result = add_up(
            [self.sites[name].member for name in receipts],
            self.terms,
            self._coordinator,
            stage=number,
            question=query.digest,
            size=len(mechanism.axes),
            silent=self._silent,
        )
        one = receipts[result.survivors[0]].noise.scales[0] / mechanism.scales[0]
        self.survivors += (result.survivors,)
        self.noise_ratio += (float(one**2 * len(result.survivors)),)
        assert isinstance(query, AdditiveQuery)
        answer = opened(
            query,
            result.total,
            survivors=len(result.survivors),
            sharing=self.sites[result.survivors[0]].sharing,
            n=sum(receipts[name].n for name in result.survivors),
        )
        self.transcript.append(Exchange(query, answer))
        return answer

    def _receipts(self, query: Query, number: int) -> tuple[dict[str, Answer], list[DpfdaError]]:
        """The sites that took part; a site that refuses counts as silent."""
        receipts: dict[str, Answer] = {}
        refusals: list[DpfdaError] = []
        for name, site in self.sites.items():
            try:
                receipts[name] = site.answer(query, number=number)
            except (ProtocolError, BudgetExceeded) as refusal:
                refusals.append(refusal)
        return receipts, refusals

    def guarantee(self, promise: Guarantee) -> Guarantee:
        """The guarantee of a conversation among these sites, which one process rehearses."""
        sites = self.sites.values()
        kept = decentralized(
            promise,
            self.terms,
            alone=all(site.alone for site in sites),
            sources=[site.source for site in sites],
        )
        return kept.assuming(ONE_PROCESS_SEES_ALL)


def convene(
    conversation: Conversation[Result],
    records: Mapping[str, Records],
    *,
    source: Source,
    colluders: int = 0,
    dropouts: int = 0,
    alone: bool = False,
    ledger: BaseLedger | None = None,
    ledgers: Mapping[str, BaseLedger] | None = None,
    silent: Silence | None = None,
) -> tuple[Result, Consortium]:
    """Ask sites all questions of a conversation: a rehearsal, since one process holds all records.

    Args:
        conversation: a public conversation whose queries are sums with Gaussian noise.
        records: the records of each site, by its name.
        source: the source from which the sites' separate sources are made.
        colluders: how many sites may share their knowledge with the coordinator.
        dropouts: how many sites may stop replying in a stage.
        alone: whether every site adds all the noise instead of a share.
        ledger: the ledger of all sites without their own one. It pays once, because the sites have
            different people. By default that of an enclosing `dpfda.budget`, if there is one.
        ledgers: the budgets of single sites over all conversations.
        silent: as in `Consortium`.

    Returns:
        The public result, and the consortium with its sites.
    """
    budgets = dict(ledgers or {})
    if not set(budgets) <= set(records):
        raise InvalidParameter("ledgers", f"by site: {sorted(records)}", sorted(budgets))
    identities = {name: Identity() for name in records}
    coordinator = Identity()
    terms = Terms(
        study=type(conversation).__name__,
        coordinator=coordinator.public,
        roster=tuple((name, one.public) for name, one in identities.items()),
        colluders=colluders,
        dropouts=dropouts,
    )
    sites = []
    own = zip(records.items(), sources_like(source, len(records)), strict=True)
    for (name, held), drawn in own:
        agreed = conversation.agreed(drawn, budgets.get(name))
        agreed["accepts"] = (*agreed["accepts"], ONE_PROCESS_SEES_ALL)
        member = Member(name, identities[name], terms)
        sites.append(Site(held, member=member, alone=alone, **agreed))
    consortium = Consortium(sites, coordinator, silent=silent)
    promise, label = consortium.guarantee(conversation.guarantee), type(conversation).__name__
    event, lapse = conversation.event, None if alone else terms.lapse
    if lapse is not None:
        event = ComposedEvent(events=(event, lapse))
    if len(budgets) < len(sites):
        tally.pay(promise, label=label, source=source, ledger=ledger, event=event)
    else:
        paying = next(iter(budgets.values()))
        tally.note(promise, label=label, source=source, ledger=paying, event=event)
    return converse(conversation, consortium.ask), consortium


def decentralized(
    promise: Guarantee,
    terms: Terms,
    *,
    alone: bool = False,
    sources: Sequence[Source] | None = None,
) -> Guarantee:
    """The guarantee of a conversation among sites, with the assumptions of their terms.

    Args:
        promise: the guarantee of the conversation with one curator.
        terms: the agreed terms of the sites.
        alone: whether every site adds all the noise, so that nothing is assumed about other sites.
        sources: the sites' sources of noise, if they are known in this process. Otherwise the
            guarantee states the assumption that sites draw their noise correctly.
    """
    assumptions = (SITE_SIZES_ARE_PUBLIC,) if alone else terms.assumptions
    delta = promise.delta + (0.0 if alone else terms.neighbors.failure)
    kept = replace(promise, model="decentralized", delta=delta).assuming(*assumptions)
    if sources is None:
        return kept.assuming(SITES_DRAW_THEIR_NOISE)
    exact = all(source.sampler == "exact" for source in sources)
    return replace(kept, sampler="exact" if exact else "simulation")


def sources_like(source: Source, count: int) -> list[Source]:
    """A separate source for each of several sites, from one seed or the operating system."""
    if isinstance(source, SimulationSource):
        return list(source.spawn(count))
    return [SecureSource() for _ in range(count)]
