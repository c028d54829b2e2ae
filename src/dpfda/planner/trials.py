"""Studies that are simulated before anybody is asked: the real server, on people made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.mechanisms.question_response import effective_answers
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.simulate import ask_everybody

_OTHERS = 2000
_LARGEST = 20.0  # ε that stands for any larger one
Rows = tuple[FloatArray, IntArray]


class Source(Protocol):
    """Whatever people come from."""

    def people(self, n: int, seed: Any) -> Rows:
        """Encoded features and label numbers of people who are asked."""

    def others(self, n: int, seed: Any) -> Rows:
        """Those of people who are not."""


@dataclass(eq=False)
class Trials:
    """The same populations, people and noise for every study that is compared.

    Attributes:
        populations: one a replication.
        plan: makes the plan for a number of people and ε.
        most: people in one simulated study, see `tractable`.
        told: turns the error of a simulated study into the one to tell.
    """

    populations: Sequence[Source]
    plan: Callable[[int, float], StudyPlan]
    most: int = 20_000
    told: Callable[[FloatArray], FloatArray] = lambda errors: errors
    _people: dict[int, Rows] = field(default_factory=dict, init=False)
    _others: dict[int, Rows] = field(default_factory=dict, init=False)

    def errors(self, n_people: int, epsilon: float) -> FloatArray:
        """The errors of whole studies on people who were not asked, one for each population."""
        plan = self.plan(*tractable(n_people, epsilon, most=self.most))
        studies = range(len(self.populations))
        return self.told(np.array([self._study(plan, number) for number in studies]))

    def _study(self, plan: StudyPlan, number: int) -> float:
        if len(self._people.get(number, ((), ()))[1]) < plan.n_people:
            self._people[number] = self.populations[number].people(plan.n_people, [number, 0])
        if number not in self._others:
            self._others[number] = self.populations[number].others(_OTHERS, [number, 1])
        features, labels = self._people[number]

        def people(start: int, stop: int) -> Rows:
            return features[start:stop], labels[start:stop]

        # Nobody is charged: these people are public.
        own = replace(plan, seed=number)
        model = ask_everybody(own, people, source=SimulationSource(number)).model
        tested, truth = self._others[number]
        return float(np.mean(model.decide(tested) != truth))


def tractable(n_people: int, epsilon: float, *, most: int) -> tuple[int, float]:
    """A study of at most so many people that learns as much: fewer people, a larger ε.

    What questions teach depends on N and ε through the number of effective people.

    Example:
        >>> tractable(500, 1.0, most=1000)
        (500, 1.0)
        >>> n, epsilon = tractable(10**6, 0.1, most=10**4)
        >>> abs(effective_answers(n, epsilon) / effective_answers(10**6, 0.1) - 1) < 1e-6
        True
    """
    if n_people <= most:
        return n_people, epsilon
    wanted = effective_answers(n_people, epsilon)
    low, high = epsilon, max(epsilon, _LARGEST)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_answers(most, middle) < wanted else (low, middle)
    return most, high
