"""The first phases of a study whose curves may lie anywhere in their range, and be far narrower.

Some people say how large the ups and downs of their curve are: one number that needs no middle, and
gives every coefficient its scale. Others say where the level of their curve lies, its first
coefficient: its place is not known at all, its spread is like that of the ups and downs. Each
channel of a curve has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.protocol.findings import Step
from dpfda.protocol.tasks.reach import ReachTask
from dpfda.protocol.tasks.stump import StumpTask
from dpfda.questions import sizes
from dpfda.questions.location import Search, counted

RANGING = ("reach", "level")
"""Of phases, in order."""

_REACH_BATCHES, _LEVEL_BATCHES = 6, 8
_REACHES: FloatArray = np.linspace(np.log(1 / 2000), 0.0, 77)  # logarithms of S
_REACH_SCALES: FloatArray = np.array([0.2, 0.4])  # people's ups and downs are of like size
_WIDER = 0.7  # the prior of S grows like this power: few ranges are a hundred times too wide
_LEVELS: FloatArray = (np.arange(2048) + 0.5) / 1024 - 1
_LEVEL_SCALES: FloatArray = np.geomspace(1 / 4000, 1 / 2, 18)
_RATIO, _RATIO_SPREAD = 0.5, 0.6  # of a level's scale and S, and of the ratio's logarithm
_ANY = 1e-6  # a level's scale may be anything, though hardly ever
_HALF_WIDTH = 2.7  # of a coefficient, in units of S


def channels(encoder: CurveEncoder) -> list[IntArray]:
    """The coordinates of each channel, its level first."""
    every = np.arange(encoder.n_features, dtype=np.float64)
    return [own.astype(np.int64) for own in encoder.basis.apart(every)]


def waves(channels: Sequence[IntArray]) -> IntArray:
    """The coordinates that show ups and downs, a row each for channels that have any."""
    own = [one[1:] for one in channels if len(one) > 1]
    width = max(map(len, own), default=0)
    rows = [np.pad(one, (0, width - len(one)), mode="edge") for one in own]
    return np.array(rows, dtype=np.int64).reshape(len(own), width)


class Ranging:
    """What people said so far of where curves lie.

    Args:
        channels: the coordinates of each, its level first.
        k: how many questions everybody is asked.
        alpha: truth probability of an answer.
    """

    def __init__(self, channels: Sequence[IntArray], *, k: int, alpha: float) -> None:
        self.k, self.alpha = k, alpha
        self.channels, self.waves = channels, waves(channels)
        self.levels: IntArray = np.array([own[0] for own in self.channels])
        self.counts: dict[str, FloatArray] = {
            "reach": np.zeros((len(self.waves), len(_REACHES), 2)),
            "level": np.zeros((len(self.levels), len(_LEVELS), 2)),
        }
        self._searches: dict[tuple[str, int], Search] = {}

    def phases(self, people: int) -> list[Step]:
        """Of so many people, a quarter is asked for ups and downs, where there are any."""
        reach = people // 4 if len(self.waves) else 0
        batches = {
            "reach": sizes.split_evenly(reach, _REACH_BATCHES) if reach else [],
            "level": sizes.split_evenly(people - reach, _LEVEL_BATCHES),
        }
        return [Step(kind, n) for kind in batches for n in batches[kind]]

    # -- questions and answers ------------------------------------------------------------------

    def questions(self, kind: str, start: int, uniforms: FloatArray) -> dict[str, Any]:
        """What tickets from `start` on are asked, channels in turn: coordinates and thresholds.

        Args:
            kind: of the phase.
            start: the first ticket.
            uniforms: public, shape (n, 2 k).
        """
        places = self.waves if kind == "reach" else self.levels
        turn = np.arange(start, start + len(uniforms)) % len(places)
        asked = np.empty((len(uniforms), self.k))
        for row in np.unique(turn):
            asked[turn == row] = self._search(kind, int(row)).thresholds(uniforms[turn == row])
        return {
            "coordinates": np.repeat(places[turn][:, None], self.k, axis=1),
            "thresholds": np.exp(asked) if kind == "reach" else asked,
        }

    def counted(self, kind: str, task: StumpTask | ReachTask, reply: FloatArray) -> FloatArray:
        """Answers by channel and threshold, as in `counts`."""
        first = task.coordinates.reshape(task.people, -1)[:, 0]
        if kind == "reach":
            own, grid, asked = self.waves[:, 0], _REACHES, np.log(task.thresholds)
        else:
            own, grid, asked = self.levels, _LEVELS, task.thresholds
        return np.stack([counted(grid, asked[first == one], reply[first == one]) for one in own])

    def learn(self, kind: str, counts: FloatArray) -> None:
        """Take in what a batch said."""
        self.counts[kind] = self.counts[kind] + counts
        self._searches.clear()

    def state(self) -> dict[str, Any]:
        """The counts, as plain values: where there are any, and how many."""
        flat = {kind: counts.ravel() for kind, counts in self.counts.items()}
        places = {kind: np.flatnonzero(counts) for kind, counts in flat.items()}
        return {kind: [at.tolist(), flat[kind][at].tolist()] for kind, at in places.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for kind, (places, counts) in state.items():
            self.counts[kind].flat[np.array(places, dtype=np.int64)] = counts
        self._searches.clear()

    # -- what is known ----------------------------------------------------------------------------

    def found(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of all coordinates: middle, half-width, and the variance of what is known of the middle.

        Waves are taken to swing around 0, and fast ones less than slow ones.
        """
        size = sum(map(len, self.channels))
        centers, scales = np.zeros(size), np.zeros(size)
        doubt = np.zeros(size)
        for channel, own in enumerate(self.channels):
            level = self.level(channel)
            reach = float(np.exp(self._reach(own) @ _REACHES))
            scales[own] = _HALF_WIDTH * reach / np.maximum(np.arange(len(own)), 1)
            doubt[own] = (scales[own] / 2) ** 2
            centers[own[0]], doubt[own[0]] = level.median, level.doubt**2
        return centers, scales, doubt

    def level(self, channel: int) -> Search:
        """What is known of where the level of a channel lies, and how wide it is."""
        return self._search("level", channel)

    def _search(self, kind: str, row: int) -> Search:
        if (kind, row) not in self._searches:
            made = self._reach_search if kind == "reach" else self._level_search
            self._searches[kind, row] = made(row)
        return self._searches[kind, row]

    def _reach_search(self, row: int) -> Search:
        prior = np.broadcast_to(_WIDER * _REACHES, (len(_REACH_SCALES), len(_REACHES)))
        return Search(_REACHES, _REACH_SCALES, prior, self.counts["reach"][row], self.alpha)

    def _level_search(self, channel: int) -> Search:
        off = (np.log(_LEVEL_SCALES / _RATIO)[:, None] - _REACHES) / _RATIO_SPREAD
        expected = np.exp(-0.5 * off**2) @ self._reach(self.channels[channel])
        prior = np.log(expected + _ANY)[:, None] * np.ones(len(_LEVELS))
        return Search(_LEVELS, _LEVEL_SCALES, prior, self.counts["level"][channel], self.alpha)

    def _reach(self, own: Sequence[int] | IntArray) -> FloatArray:
        """What is known of S of the channel with these coordinates."""
        rows = np.flatnonzero(np.isin(self.waves, own).any(axis=1))
        if not len(rows):  # nobody is asked: a level says nothing of waves
            return np.full(len(_REACHES), 1 / len(_REACHES))
        return np.asarray(self._search("reach", int(rows[0])).posterior.sum(axis=0))
