"""A site: the records of one hospital, queried only together with those of other sites."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import AlreadySpent, ProtocolError
from dpfda.mechanisms.additive import Gaussian
from dpfda.noise import discrete_gaussian
from dpfda.privacy.events import ComposedEvent, Event
from dpfda.privacy.ledger import part_label
from dpfda.privacy.price import compose
from dpfda.protocol.holder import Agreed, Holder
from dpfda.protocol.query import AdditiveQuery, Answer, Query, Records
from dpfda.protocol.secure_sum.member import Member


class Site(Holder):
    """Holds one hospital's records; its contribution to an answer is sent only with masks.

    For a query, the site computes its own statistic, rounds it to the public lattice of the query,
    adds its share of the noise and passes the integers to its `Member`, which masks them. The
    result of `answer` only confirms that the site took part, and contains no value.

    Privacy:
        μ-Gaussian DP for replacing one of its records, against all parties in the member's `Terms`:
        the noise of `Terms.noisy_sites` honest sites adds up to that of one curator's release. The
        site pays the price of the whole query. The price of the first query includes, as a separate
        δ, the probability that the random choice of neighbors does not protect. The account is
        written before noise is drawn. A restarted site therefore masks the same noisy vector again,
        or refuses.

    Args:
        records: the private records; they never leave this object.
        member: the site's role in the secure sum, with terms and account.
        most, source, unit, accepts, ledger, label: as in `Holder`; the terms' assumptions are
            accepted as well.
        alone: whether to add all the noise instead of a share.

    Examples:
        >>> from dpfda.privacy.price import Price
        >>> from dpfda.protocol.secure_sum import Identity, Terms
        >>> identity, other, coordinator = Identity(), Identity(), Identity()
        >>> roster = (("north", identity.public), ("south", other.public))
        >>> terms = Terms(study="beds", coordinator=coordinator.public, roster=roster)
        >>> Site((np.zeros((5, 2)),), member=Member("north", identity, terms), most=Price())
        Site('north', 5 records)
    """

    def __init__(
        self,
        records: Records,
        *,
        member: Member,
        alone: bool = False,
        **agreed: Unpack[Agreed],
    ) -> None:
        agreed["accepts"] = (*agreed.get("accepts", ()), *member.terms.assumptions)
        self._lapse = None if alone else member.terms.lapse
        if self._lapse is not None:
            agreed["most"] = agreed["most"] + compose([self._lapse])
        super().__init__(**agreed)
        self.member = member
        self.n = len(records[0])
        self.__records = records
        self.alone = alone
        self.sharing = 1 if alone else member.terms.noisy_sites
        stages = member.account.stages.values()
        self._spent = compose([stage.event for stage in stages if stage.event is not None])
        self._require_all()

    def _asked(self) -> int:
        return len(self.member.account.stages)

    def _question(self, number: int) -> str:
        return self.member.account.stages[number].question

    def _again(self, query: Query, number: int) -> Answer:
        stage = self.member.account.stages[number]
        if stage.noisy is None and not stage.opened:
            raise ProtocolError(
                f"this site stopped while it answered question {number}, and does not answer it "
                "again"
            )
        return self._receipt(query)

    def _check(self, query: Query) -> None:
        if not addable(query):
            raise ProtocolError(
                f"sites answer only sums with Gaussian noise, and {query.name} is not one"
            )
        query.fitting(self.__records)
        assert isinstance(query, AdditiveQuery)  # addable queries are additive
        query.count(self.n, part=True)

    def _spend(self, query: Query) -> None:
        account = self.member.account
        stage = len(account.stages), query.digest, self._event(query)
        try:
            super()._spend(query)
        except AlreadySpent:  # it stopped after the payment and before the record
            self._spent = self._afford(query)
            account.begin(*stage)
            raise
        account.begin(*stage)

    def _event(self, query: Query) -> Event:
        paid = any(stage.event is not None for stage in self.member.account.stages.values())
        if self._lapse is None or paid:
            return query.event
        return ComposedEvent(events=(query.event, self._lapse))

    def _pay(self, query: Query) -> None:
        assert self._ledger is not None
        number = len(self.member.account.stages)
        self._ledger.spend(
            self._event(query),
            label=part_label(self._label, number + 1, query.name),
            key=f"{self.member.terms.digest.hex()} {number}",
            assumptions=sorted(self._accepts),
            unit=self._unit,
            whole=self._most,
        )

    def _respond(self, query: Query, number: int) -> Answer:
        mechanism = query.mechanism
        assert isinstance(mechanism, Gaussian)
        exact = mechanism.lattice(query.exact(query.fitting(self.__records), self.source))
        sigma = site_sigma(mechanism.steps, self.sharing)
        noise = discrete_gaussian(len(exact), sigma=sigma, source=self.source)
        self.member.contribute(number, exact + noise)
        return self._receipt(query)

    def _receipt(self, query: Query) -> Answer:
        mechanism = query.mechanism
        assert isinstance(mechanism, Gaussian)
        share = site_sigma(mechanism.steps, self.sharing) / mechanism.steps
        return Answer(values=np.zeros(0), n=self.n, law=mechanism.law.times(np.asarray(share)))

    def __repr__(self) -> str:
        return f"Site({self.member.name!r}, {self.n} records)"


def addable(query: Query) -> bool:
    """Whether sites can answer the query together: it is a sum with Gaussian noise (δ > 0)."""
    linear = isinstance(query, AdditiveQuery) and query.linear
    return linear and isinstance(query.mechanism, Gaussian)


def opened(
    query: AdditiveQuery, total: IntArray, *, survivors: int, sharing: int, n: int
) -> Answer:
    """The answer that corresponds to an opened sum, with the law of its noise.

    Args:
        query: the answered query.
        total: the sum, in lattice steps.
        survivors: the number of sites whose vectors are in the sum.
        sharing: the number of sites that together add the noise of one curator:
            `Terms.noisy_sites`, or 1.
        n: records of the survivors, which represent all records of the query.
    """
    mechanism = query.mechanism
    assert isinstance(mechanism, Gaussian)  # sites refuse any other
    share = site_sigma(mechanism.steps, sharing) / mechanism.steps
    stand_for = 1.0 if query.announced is None else query.announced / n
    law = mechanism.law.times(np.asarray(share * math.sqrt(survivors) * stand_for))
    return Answer(values=np.asarray(total * mechanism.lattice_step * stand_for), n=n, law=law)


def site_sigma(steps: int, sharing: int) -> int:
    """Standard deviation of one site's noise in lattice steps, rounded up.

    The noise of `sharing` sites together reaches the standard deviation `steps`.

    Examples:
        >>> site_sigma(2**24, 1) == 2**24, site_sigma(2**24, 4) == 2**23
        (True, True)
    """
    return math.isqrt((steps**2 - 1) // sharing) + 1
