"""The server's side of a study. It has no way to receive a curve: only replies to its tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda import _validate
from dpfda.errors import ProtocolError
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.progress import begin
from dpfda.protocol.task import Task, check_reply


class Server:
    """Hands out tasks, takes replies, and learns.

    Tickets number the people of a phase. `issue` hands out the next tickets' tasks; `receive` takes
    the replies to any of them, each once. When every ticket of a phase has been answered the study
    moves on by itself; `close_phase` moves it on without the people who never answered.

    Example:
        >>> from dpfda.curves import CurveEncoder
        >>> plan = StudyPlan(epsilon=1.0, n_people=100, encoder=CurveEncoder(n_basis=4),
        ...                  classes=(0, 1), design={"name": "moments"})
        >>> server = Server(plan)
        >>> server.wanted, server.issue(3).people
        (100, 3)
    """

    def __init__(self, plan: StudyPlan) -> None:
        self.plan = plan
        self._progress = begin(plan)
        self._begin_phase()

    @property
    def finished(self) -> bool:
        """Whether nobody else is wanted."""
        return self._progress.quota == 0

    @property
    def wanted(self) -> int:
        """How many more people can get a task now."""
        return self._progress.quota - self._issued

    @property
    def issued(self) -> int:
        """How many tickets of the present phase were handed out."""
        return self._issued

    @property
    def phase_name(self) -> str:
        """The present phase, for people to read."""
        return self._progress.kind

    @property
    def phase(self) -> int:
        """Number of the present phase."""
        return self._progress.phase

    @property
    def model(self) -> CurveModel:
        """The classifier as it is now."""
        return self._progress.model

    @property
    def progress(self) -> Any:
        """The study under way, with its design's own estimates."""
        return self._progress

    def issue(self, people: int) -> Task:
        """The tasks of the next `people` tickets (fewer if the phase wants fewer)."""
        _validate.whole("people", people, least=0)
        start = self._issued
        self._issued += min(people, self.wanted)
        return self._progress.tasks(start, self._issued - start)

    def task(self, ticket: int) -> Task:
        """The task of one ticket of the present phase, again."""
        if not 0 <= ticket < self._issued:
            raise ProtocolError("this ticket was not issued in the present phase")
        return self._progress.tasks(ticket, 1)

    def receive(self, reply: Any, *, start: int, missing: Any = None) -> None:
        """Take the replies to tickets start, start + 1, ...

        Args:
            reply: one row a ticket.
            start: the first ticket.
            missing: True where a person never answered; their rows are ignored.
        """
        rows = _count_rows(reply)
        if rows == 0:
            return
        if start < 0 or start + rows > self._issued:
            raise ProtocolError("a reply must belong to an issued ticket of the present phase")
        if self._answered[start : start + rows].any():
            raise ProtocolError("this ticket was answered before")
        task = self._progress.tasks(start, rows)
        here = np.ones(rows, dtype=bool) if missing is None else ~np.asarray(missing, dtype=bool)
        if here.shape != (rows,):
            raise ProtocolError("missing must have one entry for each row of the reply")
        if not here.all():
            task, reply = task.rows(here), _as_array(reply)[here]
        self._progress.absorb(task, check_reply(task, reply))
        self._answered[start : start + rows] = here
        if self._answered.all():
            self.close_phase()

    def close_phase(self) -> None:
        """End the present phase with the replies that came; unanswered tickets lapse."""
        if self.finished:
            raise ProtocolError("the study is finished")
        self._progress.close()
        self._begin_phase()

    def _begin_phase(self) -> None:
        self._issued = 0
        self._answered = np.zeros(self._progress.quota, dtype=bool)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, at any person; plain values."""
        return {
            "plan_hash": self.plan.hash,
            "issued": self._issued,
            "answered": np.packbits(self._answered).tobytes().hex(),
            "progress": self._progress.state(),
        }

    @classmethod
    def resume(cls, plan: StudyPlan, state: dict[str, Any]) -> Server:
        """The server that `state` was taken from."""
        if state.get("plan_hash") != plan.hash:
            raise ProtocolError("the stored study has another plan")
        server = cls(plan)
        server._progress.restore(state["progress"])
        server._begin_phase()
        server._issued = state["issued"]
        packed = np.frombuffer(bytes.fromhex(state["answered"]), dtype=np.uint8)
        server._answered = np.unpackbits(packed, count=server._progress.quota).astype(bool)
        return server


def _count_rows(reply: Any) -> int:
    try:
        return len(reply)
    except TypeError:
        raise ProtocolError("reply must be an array with one row a ticket") from None


def _as_array(reply: Any) -> Any:
    try:
        return np.asarray(reply)
    except ValueError:
        raise ProtocolError("reply must be a rectangular array") from None
