"""The server's side of a study. It receives only replies to its tasks, never a curve.

A randomized reply may be anything its mechanism can produce, so a false reply cannot be detected.
The server limits its influence: it bounds each report, and can take a median of group means.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import AnyArray, ArrayLike, FloatArray, IntArray
from dpfda._version import __version__
from dpfda.errors import ChangedStudy, ProtocolError
from dpfda.mechanisms.composed import Joined
from dpfda.noise import Source
from dpfda.protocol.findings import Findings
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Run
from dpfda.protocol.task import Task, check_reply

_DEVIATIONS = 4.0


def report_bound(task: Task) -> float | None:
    """Bound of honest reports: ±1 and 4 standard deviations of the noise there.

    An honest Laplace report is beyond with a chance of 0.4 %, which costs next to nothing; a liar
    moves a mean by no more than a few honest people do. None for replies made of bits, which are
    bounded anyway. Public: it follows from the task alone.

    Examples:
        >>> from dpfda.protocol.tasks.vector import MomentTask
        >>> task = MomentTask(epsilon=4.0, people=1, dimension=2, positive=[1])
        >>> round(report_bound(task), 1)
        5.9
    """
    mechanism = task.mechanism.parts[0] if isinstance(task.mechanism, Joined) else task.mechanism
    dimension = getattr(mechanism, "dimension", None)
    if dimension is None or task.width == 1 or not task.boxed:
        return None
    edge = mechanism.variance(np.ones((1, dimension)))
    return 1 + _DEVIATIONS * math.sqrt(float(np.max(edge)))


def clipped(task: Task, replies: FloatArray) -> FloatArray:
    """Replies with everything beyond `report_bound` moved to it."""
    bound = report_bound(task)
    return replies if bound is None else np.clip(replies, -bound, bound)


def steadied(replies: FloatArray, *, groups: int) -> FloatArray:
    """Replies moved together so that their mean is a median of group means.

    People are dealt into `groups` groups in the order of their tickets, which liars do not choose.
    Fewer than half as many liars as groups leave at least half of the groups clean. The spread
    of the replies stays as it is, and with it every standard error that is computed from it.

    Examples:
        >>> honest = np.full((99, 1), 0.5)
        >>> reports = np.concatenate([honest, [[1000.0]]])
        >>> float(steadied(reports, groups=5).mean().round(9))
        0.5
    """
    _validate.whole("groups", groups, least=3)
    if len(replies) < 2 * groups:
        return replies
    number = np.arange(len(replies)) % groups
    sums = np.zeros((groups, replies.shape[1]))
    np.add.at(sums, number, replies)
    means = sums / np.bincount(number)[:, None]
    return np.asarray(replies + (np.median(means, axis=0) - replies.mean(axis=0)))


BLOCK = 1 << 12
"""Tickets whose replies are absorbed at once."""
_FEWEST_GROUPS = 3


class Server:
    """Hands out tasks, takes replies, and learns.

    Tickets number the people of a phase. `issue` hands out the next tickets' tasks; `receive` takes
    the replies to any of them, each once. When every ticket of a phase has been answered the study
    moves on by itself; `close_phase` moves it on without the people who never answered.

    What one liar can do is bounded: replies are clipped where honest ones end. Replies are absorbed
    in blocks, in the order of tickets: floating-point sums, and so every bit of the model, are the
    same however replies arrive and whoever carries them.

    Args:
        plan: the public contract.
        median_group: where replies are averaged, take the median of means over groups of this many
            people instead: fewer liars than half the groups then change little. 0 averages.
        source: where the noise of all replies is drawn, if this process draws it: the model's
            guarantee says so. A server of people elsewhere does not know.

    Attributes:
        run: the study under way.
        issued: how many tickets of the present phase were handed out.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> plan = StudyPlan(epsilon=1.0, n_people=100, encoder=CurveEncoder(n_basis=4),
        ...                  classes=(0, 1), design={"name": "moments"})
        >>> server = Server(plan)
        >>> server.wanted, server.issue(3).people
        (100, 3)
    """

    def __init__(
        self, plan: StudyPlan, *, median_group: int = 0, source: Source | None = None
    ) -> None:
        self.plan, self._source = plan, source
        self._median_group = _validate.whole("median_group", median_group, least=0)
        self.run = Run(plan)
        self._begin_phase()

    @property
    def phase(self) -> int:
        """Number of the present phase, from 0."""
        return self.run.phase

    @property
    def kind(self) -> str:
        """The kind of the current phase; ``finished`` at the end."""
        return self.run.kind

    @property
    def quota(self) -> int:
        """Number of people of the current phase; 0 when the study is finished."""
        return self.run.quota

    @property
    def finished(self) -> bool:
        """Whether the study needs no further participants."""
        return self.run.finished

    @property
    def wanted(self) -> int:
        """Number of people who can get a task now."""
        return self.quota - self.issued

    @property
    def model(self) -> Any:
        """The classifier as it is now: a `CurveModel`, or what else the design ends with."""
        model = self.run.result.model
        if self._source is None:
            return model
        return replace(model, guarantee=model.guarantee.drawn_from(self._source))

    @property
    def findings(self) -> Findings:
        """The estimates so far."""
        return self.run.result.findings

    def issue(self, people: int) -> Task:
        """The tasks of the next `people` tickets (fewer if the phase wants fewer)."""
        _validate.whole("people", people, least=0)
        start = self.issued
        self.issued += min(people, self.wanted)
        return self._tasks(start, self.issued - start)

    def task(self, ticket: int) -> Task:
        """The task of one ticket of the present phase, again."""
        if not 0 <= ticket < self.issued:
            raise ProtocolError("this ticket was not issued in the present phase")
        return self._tasks(ticket, 1)

    def receive(self, reply: ArrayLike, *, start: int, missing: ArrayLike | None = None) -> None:
        """Take the replies to tickets start, start + 1, ...

        Args:
            reply: one row a ticket.
            start: the first ticket.
            missing: True where a person never answered; their rows are ignored.
        """
        given = _as_rows(reply)
        rows = len(given)
        if rows == 0:
            return
        if start < 0 or start + rows > self.issued:
            raise ProtocolError("a reply must belong to an issued ticket of the present phase")
        if self._answered[start : start + rows].any():
            raise ProtocolError("this ticket was answered before")
        task = self._tasks(start, rows)
        here = np.ones(rows, dtype=bool) if missing is None else ~np.asarray(missing, dtype=bool)
        if here.shape != (rows,):
            raise ProtocolError("missing must have one entry for each row of the reply")
        if not here.all():
            task, given = task.rows(here), given[here]
        # Clipped: no single reply weighs more than a few honest ones.
        self._keep(start + np.flatnonzero(here), clipped(task, check_reply(task, given)))
        self._answered[start : start + rows] = here
        if self._answered.all():
            self.close_phase()
        elif not (self._steadying or self.run.at_once):
            self._absorb_blocks()

    def close_phase(self) -> None:
        """End the present phase with the replies that came; unanswered tickets lapse."""
        if self.finished:
            raise ProtocolError("the study is finished")
        if self._steadying:
            self._steady()
        if self.run.at_once:
            self._absorb_all()
        else:
            self._absorb_blocks(incomplete=True)
        self.run.close()
        self._begin_phase()

    def _begin_phase(self) -> None:
        self.issued = self._absorbed = 0
        self._answered = np.zeros(self.quota, dtype=bool)
        self._blocks: dict[int, FloatArray] = {}
        self._asked: tuple[tuple[int, int], Task] | None = None

    def _tasks(self, start: int, people: int) -> Task:
        """Tasks of the present phase; the last ones are kept, since they are needed again."""
        key = (start, people)
        if self._asked is None or self._asked[0] != key:
            self._asked = key, self.run.tasks(start, people)
        return self._asked[1]

    def _keep(self, tickets: IntArray, rows: FloatArray) -> None:
        for number in np.unique(tickets // BLOCK).tolist():
            mine = tickets // BLOCK == number
            size = min(BLOCK, self.quota - number * BLOCK)
            block = self._blocks.setdefault(number, np.zeros((size, rows.shape[1])))
            block[tickets[mine] - number * BLOCK] = rows[mine]

    def _absorb_blocks(self, *, incomplete: bool = False) -> None:
        """Hand over the next blocks, as far as everybody in them answered."""
        while (first := self._absorbed * BLOCK) < self.quota:
            here = self._answered[first : first + BLOCK]
            if not incomplete and not here.all():
                return
            block = self._blocks.pop(self._absorbed, None)
            if block is not None:
                task = self._tasks(first, len(here))
                present = task if here.all() else task.rows(here)
                self.run.absorb(present, block[here])
            self._absorbed += 1

    def _absorb_all(self) -> None:
        """Hand over all replies of the phase together."""
        if self._blocks:
            answered = self._tasks(0, self.quota).rows(self._answered)
            self.run.absorb(answered, np.concatenate([rows for *_, rows in self._waiting()]))

    def _waiting(self) -> list[tuple[int, npt.NDArray[np.bool_], FloatArray]]:
        """Blocks that were not absorbed: number, who answered, and their replies."""
        heres = {n: self._answered[n * BLOCK : (n + 1) * BLOCK] for n in sorted(self._blocks)}
        return [(n, here, self._blocks[n][here]) for n, here in heres.items()]

    @property
    def _steadying(self) -> bool:
        return self._median_group > 0 and self.run.averaged

    def _steady(self) -> None:
        """Move all replies of the phase together to their median of means."""
        waiting = self._waiting()
        sizes = [len(rows) for *_, rows in waiting]
        groups = sum(sizes) // self._median_group
        if groups < _FEWEST_GROUPS:
            return
        moved = steadied(np.concatenate([rows for *_, rows in waiting]), groups=groups)
        parts = np.split(moved, np.cumsum(sizes)[:-1])
        for (number, here, _), part in zip(waiting, parts, strict=True):
            self._blocks[number][here] = part

    def state(self) -> dict[str, Any]:
        """Plain values from which the study can be resumed at any participant."""
        return {
            "version": __version__,
            "plan_hash": self.plan.hash,
            "issued": self.issued,
            "answered": np.packbits(self._answered).tobytes().hex(),
            "absorbed": self._absorbed,
            "waiting": {str(number): block.tolist() for number, block in self._blocks.items()},
            "run": self.run.state(),
        }

    @classmethod
    def resume(cls, plan: StudyPlan, state: dict[str, Any], *, median_group: int = 0) -> Server:
        """The server that `state` was taken from, if this is the version of dpfda that made it."""
        if state.get("version") != __version__:
            began = state.get("version") or "an earlier version"
            raise ChangedStudy(
                f"the stored study began with dpfda {began}, and this is {__version__}, which "
                f"might ask something else: go on with the version that began it"
            )
        if state.get("plan_hash") != plan.hash:
            raise ProtocolError("the stored study has another plan")
        server = cls(plan, median_group=median_group)
        server.run.restore(state["run"])
        server._begin_phase()
        server.issued, server._absorbed = state["issued"], state["absorbed"]
        packed = np.frombuffer(bytes.fromhex(state["answered"]), dtype=np.uint8)
        server._answered = np.unpackbits(packed, count=server.quota).astype(bool)
        server._blocks = {int(n): np.asarray(block) for n, block in state["waiting"].items()}
        return server


def _as_rows(reply: ArrayLike) -> AnyArray:
    try:
        rows = np.asarray(reply)
    except ValueError:
        raise ProtocolError("reply must be a rectangular array") from None
    if rows.ndim == 0:
        raise ProtocolError("reply must be an array with one row a ticket")
    return rows
