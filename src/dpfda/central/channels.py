"""Curves of several channels: each is released by itself, all of them in one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.conversation import CentralConversation
from dpfda.central.mean import MeanRelease
from dpfda.central.queries import BallMean
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.mechanisms import Mechanism
from dpfda.noise.law import NoiseLaw, padded
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import part, whole
from dpfda.protocol.query import AdditiveQuery, Query, Records, Sums

_MOST_CHANNELS = 1 << 10

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelQuery(AdditiveQuery, name="channel"):
    """A query at one channel of records that have several, or numbers beside their curves.

    Privacy:
        That of the query: what a record holds in other channels does not enter the answer.

    Attributes:
        query: what is asked of the channel.
        channel: which one, counted from 0.
        channels: how many there are.
        numbers: how many single numbers stand beside them, a regression's targets.
    """

    query: AdditiveQuery = part(lambda: Query)
    channel: int = whole(least=0, most=_MOST_CHANNELS)
    channels: int = whole(least=1, most=_MOST_CHANNELS)
    numbers: int = whole(least=0, most=_MOST_CHANNELS, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.query, AdditiveQuery) or len(self.query.columns) != 1:
            raise InvalidParameter("query", "a sum over single rows", self.query.name)
        if self.query.unit != self.unit:
            raise InvalidParameter("unit", f"{self.query.unit!r}, the query's", self.unit)
        if self.channel >= self.channels:
            raise InvalidParameter("channel", f"below {self.channels}", self.channel)

    @property
    def mechanism(self) -> Mechanism:
        """The query's."""
        return self.query.mechanism

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The query's."""
        return self.query.assumptions

    @property
    def announced(self) -> int | None:
        """The query's."""
        return self.query.announced

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """The query's."""
        return self.query.linear

    @property
    def block_rows(self) -> int:  # type: ignore[override]
        """The query's."""
        return self.query.block_rows

    @property
    def summed(self) -> Sums:
        """The query's, of the channel: every channel has its columns, and numbers follow."""
        sums = self.query.summed
        return sums._replace(
            columns=sums.columns * self.channels + (0,) * self.numbers,
            block=lambda records: sums.block((records[self.channel],)),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """The first and the last of some channels; one with a number beside it."""
        place: dict[str, Any] = {"center": np.zeros(2), "axes": np.ones(2), "radius": 1.5}
        query = BallMean(cost=Cost(epsilon=1.0), n=4, **place)
        places = (0, 2, 0), (2, 3, 0), (0, 1, 1)
        return [cls(query=query, channel=k, channels=m, numbers=more) for k, m, more in places]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelMeans(CentralConversation[Release], name="channel_means"):
    """The mean of each channel of n curves, one after the other, for equal shares of the budget.

    Attributes:
        parts: the questions about each channel, with their `share` of the same budget.
    """

    summary: ClassVar[str] = "mean"

    parts: tuple[MeanRelease, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        own = {(one.n, one.epsilon, one.delta, one.unit) for one in self.parts}
        if own != {(self.n, self.epsilon, self.delta, self.unit)}:
            raise InvalidParameter("parts", "about the same records, for the same budget", own)
        if sum(one.share for one in self.parts) > 1:
            raise InvalidParameter(
                "parts", "shares that add up to 1", [str(one.share) for one in self.parts]
            )

    @property
    def pure(self) -> bool:
        """Whether no question uses δ: those about all channels are asked in the same way."""
        return self.parts[0].pure

    def among_sites(self) -> Self:
        """Each channel with Gaussian noise where a δ is given."""
        return replace(self, parts=tuple(one.among_sites() for one in self.parts))

    def questions(self) -> Questions[Release]:
        """All questions about the first channel, then all about the second, and so on."""
        conversations = [one.questions() for one in self.parts]
        first = [
            next(questions) for questions in conversations
        ]  # what is refused is refused before all
        releases, many = [], len(conversations)
        for channel, (questions, query) in enumerate(zip(conversations, first, strict=True)):
            release = yield from about_channel(questions, query, channel=channel, channels=many)
            releases.append(release)
        return self._together(releases)

    def _together(self, releases: Sequence[Release]) -> Release:
        basis = max((one.basis for one in releases), key=lambda basis: basis.size)
        choices = {
            key: tuple(one.parameters[key] for one in releases) for key in releases[0].parameters
        }
        doubts = ((k, text) for k, one in enumerate(releases, start=1) for text in one.warnings)
        return replace(
            releases[0],
            coefficients=np.stack([padded(one.coefficients, basis.size) for one in releases]),
            noisy=np.stack([padded(one.noisy, basis.size) for one in releases]),
            noise=self._each([one.noise for one in releases], basis.size),
            sampling=self._each([one.sampling for one in releases], basis.size),
            unseen=np.array([one.unseen for one in releases]),
            basis=basis,
            center=np.zeros((len(releases), releases[0].center.size)),
            sensitivity=max(one.sensitivity for one in releases),
            parameters={key: each[0] if _alike(each) else each for key, each in choices.items()},
            warnings=tuple(f"channel {channel}: {text}" for channel, text in doubts),
            channels=len(releases),
        )

    def _each(self, laws: Sequence[tuple[NoiseLaw, ...]], size: int) -> tuple[NoiseLaw, ...]:
        """Laws of each channel as laws of all; channels of one person are taken as independent.

        That makes a band of the whole population no narrower than it must be: the largest of
        normal errors is largest where they are independent.
        """
        wide = ((k, law.widened(size)) for k, own in enumerate(laws) for law in own)
        return tuple(replace(law, scales=self._row(k, law.scales)) for k, law in wide)

    def _row(self, channel: int, scales: FloatArray) -> FloatArray:
        """Noise of one channel alone."""
        rows = np.zeros((len(self.parts), scales.size))
        rows[channel] = scales
        return rows

    def records(self, curves: Records) -> Records:
        """Curves of each channel on the grid, as the questions need them."""
        return tuple(one.records(rows)[0] for one, rows in zip(self.parts, curves, strict=True))

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve at either end of what is allowed, in every channel."""
        here, there = zip(*(one.neighbors(n) for one in self.parts), strict=True)
        return tuple(rows for (rows,) in here), tuple(rows for (rows,) in there)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Two channels by the default mechanism, of different bounds."""
        known: dict[str, Any] = {"n": n, "epsilon": epsilon, "delta": delta}
        one = next(
            mean for mean in MeanRelease.examples(**known) if mean.mechanism.name == "adaptive"
        )
        each = one.divided((1.0, 2.0))
        return [cls(**known, parts=each)]


def about_channel(questions: Questions[Found], query: Query, **where: int) -> Questions[Found]:
    """Questions, of which `query` is the first, asked about one part of a record only.

    Args:
        questions: about rows that have no other part.
        query: the first of them.
        where: channel, channels and numbers of `ChannelQuery`.
    """
    while True:
        assert isinstance(query, AdditiveQuery)
        answer = yield ChannelQuery(unit=query.unit, query=query, **where)
        try:
            query = questions.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _alike(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)
