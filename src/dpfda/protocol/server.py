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
    """Bound at which reports are clipped: 1 plus 4 standard deviations of the noise at 1.

    An honest Laplace report exceeds it with probability 0.4 %, so clipping has little effect on
    honest reports, and one false report moves a mean by no more than a few honest ones. None for
    bits, which are bounded anyway. The bound is public, since it depends only on the task.

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
    """Replies clipped to ± `report_bound`."""
    bound = report_bound(task)
    return replies if bound is None else np.clip(replies, -bound, bound)


def steadied(replies: FloatArray, *, groups: int) -> FloatArray:
    """Replies shifted by a constant so that their mean becomes the median of group means.

    People are assigned to `groups` groups in the order of their tickets, which liars cannot choose.
    If there are fewer liars than half the number of groups, most groups contain no liar. The spread
    of the replies does not change, nor do standard errors that are computed from it.

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
"""Number of tickets whose replies are absorbed together."""
_FEWEST_GROUPS = 3


class Server:
    """Issues tasks, receives replies, and fits the model.

    Tickets number the people of a phase. `issue` returns the tasks of the next tickets; `receive`
    accepts the replies to any of them, each once. The study continues when every ticket of a phase
    has been answered; `close_phase` continues without the people who did not answer.

    The influence of one liar is bounded, because replies are clipped at `report_bound`. Replies are
    absorbed in blocks, in the order of tickets. Floating-point sums, and therefore all bits of the
    model, do not depend on the order of arrival or on the transport.

    Args:
        plan: the public contract.
        median_group: if above 0, averages of replies are replaced by the median of means over
            groups of this many people; fewer liars than half the groups then change little.
        source: the source of all noise, if this process draws it; the model's guarantee states it.
            A server whose participants draw their own noise does not know the source.

    Attributes:
        run: the running study.
        issued: the number of tickets of the current phase that were issued.

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
        """Number of the current phase, from 0."""
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
        """The current model: a `CurveModel`, or another result of the design."""
        model = self.run.result.model
        if self._source is None:
            return model
        return replace(model, guarantee=model.guarantee.drawn_from(self._source))

    @property
    def findings(self) -> Findings:
        """The estimates so far."""
        return self.run.result.findings

    def issue(self, people: int) -> Task:
        """The tasks of the next `people` tickets (fewer if the phase needs fewer)."""
        _validate.whole("people", people, least=0)
        start = self.issued
        self.issued += min(people, self.wanted)
        return self._tasks(start, self.issued - start)

    def task(self, ticket: int) -> Task:
        """The task of one issued ticket of the current phase."""
        if not 0 <= ticket < self.issued:
            raise ProtocolError("this ticket was not issued in the present phase")
        return self._tasks(ticket, 1)

    def receive(self, reply: ArrayLike, *, start: int, missing: ArrayLike | None = None) -> None:
        """Accept the replies to tickets start, start + 1, ...

        Args:
            reply: one row per ticket.
            start: the first ticket.
            missing: True if a person did not answer; their rows are ignored.
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
        # Clipped, so that a single reply has no more weight than a few honest ones.
        self._keep(start + np.flatnonzero(here), clipped(task, check_reply(task, given)))
        self._answered[start : start + rows] = here
        if self._answered.all():
            self.close_phase()
        elif not (self._steadying or self.run.at_once):
            self._absorb_blocks()

    def close_phase(self) -> None:
        """End the current phase with the received replies; unanswered tickets expire."""
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
        """Tasks of the current phase; the last result is cached, because it is needed again."""
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
        """Pass on the next blocks of replies in which everybody answered."""
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
        """Pass on all replies of the phase together."""
        if self._blocks:
            answered = self._tasks(0, self.quota).rows(self._answered)
            self.run.absorb(answered, np.concatenate([rows for *_, rows in self._waiting()]))

    def _waiting(self) -> list[tuple[int, npt.NDArray[np.bool_], FloatArray]]:
        """Blocks that are not absorbed yet: number, who answered, and replies."""
        heres = {n: self._answered[n * BLOCK : (n + 1) * BLOCK] for n in sorted(self._blocks)}
        return [(n, here, self._blocks[n][here]) for n, here in heres.items()]

    @property
    def _steadying(self) -> bool:
        return self._median_group > 0 and self.run.averaged

    def _steady(self) -> None:
        """Shift all replies of the phase so that their mean is the median of means."""
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
        """Plain values from which the study can be resumed after any participant."""
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
        """The server with this state; refused if another version of dpfda stored it."""
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
