"""The coordinator's side of a study of owners who live at sites."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import ProtocolError
from dpfda.local.boosting.model import RowModel
from dpfda.noise import SecureSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.scattered import Scattered
from dpfda.protocol.task import Task, check_reply
from dpfda.simulate import ask_everybody
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.messages import AskOwners


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
    model = server.model
    assert isinstance(model, RowModel)
    return model


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
            name: AskOwners(number=number, start=start, stop=stop, query=tasks[place].to_dict())
            for name, place in names.items()
        }
        marks = [tasks[place].digest for place in names.values()]
        digest = hashlib.sha256(" ".join([str(start), str(stop), *marks]).encode()).hexdigest()

        def wrong(name: str, reply: Any) -> str:
            if reply.site != name or reply.number != number:
                return "replied in another site's name, or to another question"
            task = tasks[names[name]]
            check_reply(task, _rows(reply.values, task))
            return ""

        found = lead.each(number, "owners", asked, question=digest, wrong=wrong)
        lead.say_answered(number, next(iter(tasks.values())).name, list(found))
        return {
            names[name]: _rows(reply.values, tasks[names[name]]) for name, reply in found.items()
        }


def _rows(content: bytes, task: Task) -> FloatArray:
    """Replies as they travel; whatever does not fit is refused by its shape."""
    if len(content) != 8 * task.people * task.width:
        raise ProtocolError(
            f"{len(content) / 8:g} numbers came where {task.people * task.width} were asked for"
        )
    return np.frombuffer(content, dtype="<f8").reshape(task.people, task.width)
