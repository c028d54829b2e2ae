"""Curves with several channels: one conversation releases the mean of each channel separately."""

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
    """A query about one channel of records with several channels, or with additional numbers.

    Privacy:
        The same as for the inner query: the other channels of a record do not affect the answer.

    Attributes:
        query: the query about the channel.
        channel: the index of the channel, from 0.
        channels: number of channels.
        numbers: number of single numbers in a record besides its channels, such as the targets of a
            regression.
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
        """The mechanism of the inner query."""
        return self.query.mechanism

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the inner query."""
        return self.query.assumptions

    @property
    def announced(self) -> int | None:
        """`announced` of the inner query."""
        return self.query.announced

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether the inner query is linear."""
        return self.query.linear

    @property
    def block_rows(self) -> int:  # type: ignore[override]
        """The block size of the inner query."""
        return self.query.block_rows

    @property
    def summed(self) -> Sums:
        """The sums of the inner query for the channel; a record has all channels, then numbers."""
        sums = self.query.summed
        return sums._replace(
            columns=sums.columns * self.channels + (0,) * self.numbers,
            block=lambda records: sums.block((records[self.channel],)),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """The first and the last of several channels; one channel with an additional number."""
        place: dict[str, Any] = {"center": np.zeros(2), "axes": np.ones(2), "radius": 1.5}
        query = BallMean(cost=Cost(epsilon=1.0), n=4, **place)
        places = (0, 2, 0), (2, 3, 0), (0, 1, 1)
        return [cls(query=query, channel=k, channels=m, numbers=more) for k, m, more in places]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelMeans(CentralConversation[Release], name="channel_means"):
    """The mean of each channel of n curves, in turn, with equal shares of the budget.

    Attributes:
        parts: one release for each channel, with its `share` of the common budget.
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
        """Whether no query uses δ; this is the same for all channels."""
        return self.parts[0].pure

    def among_sites(self) -> Self:
        """The same conversation for sites: each channel has Gaussian noise if δ > 0."""
        return replace(self, parts=tuple(one.among_sites() for one in self.parts))

    def questions(self) -> Questions[Release]:
        """All queries about the first channel, then all queries about the second, and so on."""
        conversations = [one.questions() for one in self.parts]
        # Invalid parameters of any channel raise here, before the first query is answered.
        first = [next(questions) for questions in conversations]
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
        """The laws of each channel, as laws of all channels jointly, assumed to be independent.

        For the sampling error of the population this assumption is conservative: the maximum of
        normal errors is largest if they are independent, so the band is not too narrow.
        """
        wide = ((k, law.widened(size)) for k, own in enumerate(laws) for law in own)
        return tuple(replace(law, scales=self._row(k, law.scales)) for k, law in wide)

    def _row(self, channel: int, scales: FloatArray) -> FloatArray:
        """Scales of all channels that are 0 except for one channel."""
        rows = np.zeros((len(self.parts), scales.size))
        rows[channel] = scales
        return rows

    def records(self, curves: Records) -> Records:
        """The curves of each channel on the grid, in the form that the queries need."""
        return tuple(one.records(rows)[0] for one, rows in zip(self.parts, curves, strict=True))

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One curve at either end of what is allowed, in every channel."""
        here, there = zip(*(one.neighbors(n) for one in self.parts), strict=True)
        return tuple(rows for (rows,) in here), tuple(rows for (rows,) in there)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Two channels with different bounds, by the default mechanism."""
        known: dict[str, Any] = {"n": n, "epsilon": epsilon, "delta": delta}
        one = next(
            mean for mean in MeanRelease.examples(**known) if mean.mechanism.name == "adaptive"
        )
        each = one.divided((1.0, 2.0))
        return [cls(**known, parts=each)]


def about_channel(questions: Questions[Found], query: Query, **where: int) -> Questions[Found]:
    """Apply the queries of a conversation to one channel of the records.

    Args:
        questions: the queries after the first one, about rows that consist of this channel only.
        query: the first query.
        where: `channel`, `channels` and `numbers` of `ChannelQuery`.
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
