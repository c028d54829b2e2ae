"""Looks, conversations and sites that tests of sites put together."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpfda.mechanisms.ellipsoid_laplace import l1_noise, l2_noise
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import Cost, limit
from dpfda.protocol.account import Account, StoredAccount
from dpfda.protocol.consortium import Consortium
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.fields import part, whole
from dpfda.protocol.query import AdditiveQuery, Sums
from dpfda.protocol.secure_sum import Identity, Member, Terms
from dpfda.protocol.site import Site

EPSILON, DELTA = 1.0, 1e-5
WHOLE = Cost(epsilon=EPSILON, delta=DELTA)
MOST = limit(epsilon=EPSILON, delta=DELTA)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxSum(AdditiveQuery):
    """Sums of numbers in [-1, 1]: a small look of its own, no regression."""

    cost: Cost = part(lambda: Cost)
    dimension: int = whole()

    @property
    def mechanism(self):
        ones = np.ones(self.dimension)
        return l2_noise(self.cost, sensitivity=2 * self.dimension**0.5, axes=ones)

    @property
    def summed(self):
        def block(records):
            return np.rint(np.clip(records[0], -1, 1) * 2**20).sum(axis=0)

        columns, size = (self.dimension,), self.dimension
        return Sums(columns, size, 2**20, block, lambda totals: np.asarray(totals * 2.0**-20))

    @classmethod
    def examples(cls):
        return [cls(cost=WHOLE, dimension=2)]


class Squares(BoxSum):
    """No sum over sites."""

    linear: ClassVar[bool] = False


class Assuming(BoxSum):
    """Rests on something that nobody agreed to."""

    @property
    def assumptions(self):
        return ("labels are public",)


class Laplacian(BoxSum):
    """Pure noise."""

    @property
    def mechanism(self):
        cost = Cost(epsilon=1e-3)
        return l1_noise(cost, sensitivity=2.0 * self.dimension, axes=np.ones(self.dimension))


class Agreed(BoxSum):
    """Rests on something that its conversation says."""

    @property
    def assumptions(self):
        return ("the earth is round",)


@dataclass(frozen=True, kw_only=True, eq=False)
class Means(Conversation):
    """The mean of a box, asked in several parts."""

    dimension: int = 3
    looks: int = 2
    greed: int = 1  # how many times its share each look asks for
    look: type = BoxSum

    @property
    def assumptions(self):
        return (*super().assumptions, "the earth is round")

    def questions(self):
        means = []
        for _ in range(self.looks):
            cost = self.whole.part(Fraction(self.greed, self.looks))
            answer = yield self.look(cost=cost, dimension=self.dimension, unit=self.unit)
            means.append((answer.values / answer.n, answer.sigma / answer.n))
        return means

    @classmethod
    def examples(cls, *, n, epsilon, delta):
        return [cls(epsilon=epsilon, delta=delta)]

    def neighbors(self, n):
        here = np.zeros((n, self.dimension))
        there = here.copy()
        there[0, 0] = 1.0
        return (here,), (there,)


class Study:
    """Two sites or more, whose accounts lie in folders."""

    def __init__(self, folder, *, count=3, colluders=0, dropouts=0):
        self.folder = folder
        self.coordinator = Identity()
        self.keys = {f"site{i}": Identity() for i in range(count)}
        self.terms = Terms(
            study="s",
            coordinator=self.coordinator.public,
            roster=tuple((name, key.public) for name, key in self.keys.items()),
            colluders=colluders,
            dropouts=dropouts,
        )

    def account(self, name):
        return StoredAccount(self.folder / name, study=self.terms.digest.hex())

    def site(self, name="site0", *, seed=0, rows=None, stored=True, **facts):
        account = self.account(name) if stored else Account()
        rows = np.full((10, 2), 0.5) if rows is None else rows
        settings = {"most": MOST, "source": SimulationSource(seed)} | facts
        return Site((rows,), member=Member(name, self.keys[name], self.terms, account), **settings)

    def consortium(self, seed=0):
        sites = [self.site(name, seed=seed + k) for k, name in enumerate(self.keys)]
        return Consortium(sites, self.coordinator)


def half(dimension=2):
    return BoxSum(cost=WHOLE.part(Fraction(1, 2)), dimension=dimension)


def kept(site, number=0):
    return site.member.account.stages[number].noisy
