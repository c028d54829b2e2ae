"""The coordinator's side of a study of owners who live at sites."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.design import BoostingProgress
from dpfda.boosting.model import RowModel
from dpfda.errors import ProtocolError
from dpfda.federation.coordinator import Coordinator
from dpfda.federation.messages import Heard, Request, Shares
from dpfda.noise import SecureSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.scattered import Scattered
from dpfda.protocol.secure_sum.session import ATTEMPTS
from dpfda.protocol.task import Task, check_reply
from dpfda.simulate import ask_everybody


def lead_owners(coordinator: Coordinator, study: StudyPlan, places: IntArray) -> RowModel:
    """Run the study from its first round to its last; the model as the study states it.

    Args:
        coordinator: carries messages, and keeps replies.
        study: the contract.
        places: the site of each owner, by its number in the plan, in the order of the study.
    """
    crowd = Scattered(study, places, Requests(coordinator).ask)
    server = ask_everybody(
        study,
        crowd,
        source=SecureSource(),  # nothing is drawn here
        at_once=study.n_people,
        answers=crowd.answered,
    )
    assert isinstance(server.progress, BoostingProgress)
    return server.progress.model


class Requests:
    """Brings each request to the sites whose owners' turn it is; their replies are kept first."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._number = coordinator, -1

    def ask(self, tasks: Mapping[int, Task], start: int, stop: int) -> dict[int, FloatArray]:
        """Replies of the sites that answered."""
        self._number += 1
        lead, number = self._coordinator, self._number
        names = {lead.plan.terms.names[place]: place for place in tasks}
        asked = {
            name: Request(number=number, start=start, stop=stop, query=tasks[place].to_dict())
            for name, place in names.items()
        }
        marks = [tasks[place].digest for place in names.values()]
        digest = hashlib.sha256(" ".join([str(start), str(stop), *marks]).encode()).hexdigest()
        heard = lead.folder.told(number, Heard)
        if heard is None:
            heard = self._heard(
                asked, {name: tasks[place] for name, place in names.items()}, digest
            )
            lead.folder.keep(number, heard)
        elif heard.question != digest:
            raise ProtocolError(f"the answer that is kept for question {number} is to another one")
        kind = next(iter(tasks.values())).name
        lead.say_answered(number, kind, heard.survivors)
        return {
            names[name]: _rows(content, tasks[names[name]])
            for name, content in zip(heard.survivors, heard.replies, strict=True)
        }

    def _heard(self, asked: Mapping[str, Request], tasks: Mapping[str, Task], digest: str) -> Heard:
        """Ask, and ask those again who did not answer, until too few are missing to matter."""
        lead, found = self._coordinator, dict[str, Shares]()

        def wrong(name: str, reply: Any) -> str:
            if reply.site != name or reply.number != self._number:
                return "replied in another site's name, or to another question"
            check_reply(tasks[name], _rows(reply.values, tasks[name]))
            return ""

        lead.trouble = {}
        for _ in range(ATTEMPTS):
            lead.folder.next_attempt(self._number)
            missing = {name: one for name, one in asked.items() if name not in found}
            lead.trouble = {}
            found |= lead.carry("owners", missing, wrong)
            if not lead.trouble:
                break
        if len(lead.trouble) > lead.plan.body.dropouts:
            raise lead.failed(self._number, "too few sites answered")
        if lead.trouble:
            lead.say(f"question {self._number}: {lead.reasons}")
        names = [name for name in asked if name in found]
        return Heard(digest, tuple(names), tuple(found[name].values for name in names))


def _rows(content: bytes, task: Task) -> FloatArray:
    """Replies as they travel; whatever does not fit is refused by its shape."""
    if len(content) != 8 * task.people * task.width:
        raise ProtocolError(
            f"{len(content) / 8:g} numbers came where {task.people * task.width} were asked for"
        )
    return np.frombuffer(content, dtype="<f8").reshape(task.people, task.width)
