"""People of a study whose replies are prepared before they are sent, so that sending is cheap."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dpfda.client.crowd import request_bytes
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage, TaskMessage
from dpfda_bench.load import CONNECTIONS, Load, load

FEATURES = 4
_BATCH = 1000
_TOKENS = 5000  # in one invitation

_task = msgspec.json.Decoder(TaskMessage).decode


def plan_for(people: int, *, seed: int = 0) -> StudyPlan:
    """A study of four numbers a person, which wants one more than will ever answer."""
    return StudyPlan(
        epsilon=1.0,
        n_people=people + 1,  # so that nothing is learnt meanwhile
        encoder=CurveEncoder("bspline", n_basis=FEATURES, scale=2.0),
        classes=(0, 1),
        design={"name": "moments"},
        seed=seed,
    )


class Crowd:
    """Some people of one study: first invited, then asked, then with a reply each.

    Args:
        collector: where the study is created.
        plan: what it is.
    """

    def __init__(self, collector: CollectorProcess, plan: StudyPlan) -> None:
        self._collector = collector
        self._plan = plan
        self._tokens: list[str] = []
        self._bodies: list[bytes] = []
        self.study = plan.hash[:16]
        self.path = f"/api/studies/{self.study}"
        collector.create(plan)

    @property
    def people(self) -> int:
        """How many were invited."""
        return len(self._tokens)

    def invite(self, people: int) -> None:
        """A token for each."""
        for first in range(0, people, _TOKENS):
            count = min(_TOKENS, people - first)
            self._tokens += self._collector.invite(self._plan.hash, count)

    def leave(self) -> None:
        """Forget everybody: others come in their place."""
        self._tokens.clear()
        self._bodies.clear()

    def ask(self, *, connections: int = CONNECTIONS) -> Load:
        """Everybody gets a task, and makes up a reply to it."""
        asked = [request_bytes("GET", self.path + "/task", token=token) for token in self._tokens]
        found = load(self._collector.url, asked, connections=connections, keep=True)
        rng = np.random.default_rng(0)
        for body in found.bodies:
            task = _task(body)
            values = rng.normal(size=FEATURES).tolist()
            message = ReplyMessage.saying(task.plan, task.phase, task.ticket, values)
            self._bodies.append(msgspec.json.encode(message))
        return found

    def replies(self, people: Sequence[int]) -> list[bytes]:
        """One request for each of them."""
        path = self.path + "/reply"
        return [request_bytes("POST", path, self._bodies[i], token=self._tokens[i]) for i in people]

    def batches(self, people: Sequence[int]) -> list[bytes]:
        """One request for each thousand of them."""
        requests = []
        for first in range(0, len(people), _BATCH):
            brought = [
                {"token": self._tokens[i], "reply": msgspec.Raw(self._bodies[i])}
                for i in people[first : first + _BATCH]
            ]
            body = msgspec.json.encode({"replies": brought})
            first_token = self._tokens[people[first]]
            requests.append(request_bytes("POST", self.path + "/replies", body, token=first_token))
        return requests
