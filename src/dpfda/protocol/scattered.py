"""A crowd whose people live in several places: each place answers for its own, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import ProtocolError
from dpfda.noise import SecureSource
from dpfda.protocol.answer import Answer
from dpfda.protocol.person import Crowd
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.query import Query
from dpfda.protocol.task import Task, check_reply

AskPlaces = Callable[[Mapping[int, Task], int, int], Mapping[int, FloatArray]]
"""(place -> its people's tasks, first and last + 1 of all people asked) -> replies of the places
that answered."""


class Scattered(Crowd):
    """People in a public order, of whom a place holds some; it draws what protects them itself.

    Args:
        plan: what all of them agreed to.
        places: the place of each person, in the order in which they take part.
        ask: brings tasks to places, in this process or elsewhere.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.noise import SimulationSource
        >>> from dpfda.simulate import ask_everybody
        >>> plan = StudyPlan(epsilon=1.0, n_people=4, encoder=CurveEncoder(n_basis=4),
        ...                  classes=("no", "yes"), design={"name": "moments"})
        >>> here = {}
        >>> for place in (0, 1):
        ...     people = lambda start, stop: (np.zeros((stop - start, 4)), np.zeros(stop - start))
        ...     here[place] = Crowd(plan, people, source=SimulationSource(place))
        >>> def ask(tasks, start, stop):
        ...     return {place: here[place].answer(task).values for place, task in tasks.items()}
        >>> crowd = Scattered(plan, np.array([0, 1, 0, 1]), ask)
        >>> ask_everybody(plan, crowd, source=SimulationSource(2)).finished, here[0].asked
        (True, 2)
    """

    draws_here: ClassVar[bool] = False

    def __init__(self, plan: StudyPlan, places: IntArray, ask: AskPlaces) -> None:
        if len(places) != plan.n_people:
            raise ProtocolError(f"the plan is for {plan.n_people} people")
        super().__init__(plan, _nobody, source=SecureSource())  # nothing is drawn here
        self._places, self._ask = places, ask
        self._silent = np.zeros(plan.n_people, dtype=bool)

    def answered(self, people: IntArray) -> npt.NDArray[np.bool_]:
        """Of people who were asked, who answered."""
        return np.asarray(~self._silent[people])

    def _respond(self, query: Query, number: int) -> Answer:
        assert isinstance(query, Task)
        stop = number + query.people
        here = self._places[number:stop]
        rows = {int(place): np.flatnonzero(here == place) for place in np.unique(here)}
        tasks = {place: query.rows(who) for place, who in rows.items()}
        self.asked = stop  # first: nobody is asked twice, whatever happens
        replies = self._ask(tasks, number, stop)
        values = np.zeros((query.people, query.width))
        for place, who in rows.items():
            if place in replies:
                values[who] = check_reply(tasks[place], replies[place])
            else:
                self._silent[number + who] = True
        return Answer(values=values, n=query.people)


def _nobody(start: int, stop: int) -> tuple[FloatArray, IntArray]:
    raise ProtocolError("nobody's curve is here")
