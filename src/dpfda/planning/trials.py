"""Simulated studies for forecasts: the real server, with synthetic or public people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mechanisms.randomized_response import effective_answers
from dpfda.noise import SimulationSource
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.planning.world import Rows, World
from dpfda.planning.world import Source as Population
from dpfda.protocol.plan import StudyPlan
from dpfda.simulate import ask_everybody

_OTHERS = 2000  # number of test people, who do not take part
_MARGIN = 0.01  # an error smaller than guessing by this margin counts as better
_LARGEST = 20.0  # largest ε of a simulated study

Planned = Callable[[int, float], StudyPlan]
"""The plan for a number of people and an ε."""


@dataclass(frozen=True)
class Expected:
    """Errors of simulated studies: their mean, and a 90 % interval.

    Attributes:
        people: number of people in the study.
        epsilon: ε of each person.
        error: mean error.
        low: 5 % quantile of the errors.
        high: 95 % quantile of the errors.
        standard_error: standard error of the mean over the simulated studies.
        better: share of the studies that are better than guessing by one percentage point.
    """

    people: int
    epsilon: float
    error: float
    low: float
    high: float
    standard_error: float
    better: float


class Trials:
    """Simulations of studies with the same populations, people and noise for all compared studies.

    Args:
        place: the assumed populations.
        planned: a function that returns the plan for a number of people and ε.
        studies: number of simulated studies, each with a different population.
        most: largest number of people in one simulated study, see `tractable`.
        limit: the error without privacy, which determines the distance of the classes; by default
            that of `place`.
        tell: called after every study with the number of finished simulations of all studies.
        sweep: settings of the simulations. A store is valid for one `place`, one `planned`, one
            number of studies and one `most`.
    """

    def __init__(
        self,
        place: World,
        planned: Planned,
        *,
        studies: int,
        most: int = 20_000,
        limit: float | None = None,
        tell: Callable[[float], None] = lambda simulations: None,
        sweep: Sweep = ALONE,
    ) -> None:
        self.place = place
        self._most, self._tell, self._sweep = most, tell, sweep
        self._limit = place.limit if limit is None else limit
        self._crowd = _Crowd(place, planned, place.populations(studies, self._limit))
        self._known: dict[tuple[int, float], tuple[FloatArray, FloatArray]] = {}
        self._simulations = 0.0

    def apart(self, limit: float) -> Trials:
        """The same studies with another distance between the classes."""
        before = self._simulations
        return Trials(
            self.place,
            self._crowd.planned,
            studies=len(self._crowd.populations),
            most=self._most,
            limit=limit,
            tell=lambda more: self._done(before + more),
            sweep=self._sweep,
        )

    def errors(self, n_people: int, epsilon: float) -> FloatArray:
        """The errors of whole studies on test people, one for each population."""
        return self._both(n_people, epsilon)[0]

    def guessing(self, n_people: int, epsilon: float) -> float:
        """The error without features; a median over studies, because means of few are unstable."""
        return float(np.median(self._both(n_people, epsilon)[1]))

    def _both(self, n_people: int, epsilon: float) -> tuple[FloatArray, FloatArray]:
        if (n_people, epsilon) not in self._known:
            size = tractable(n_people, epsilon, most=self._most)
            studies = range(len(self._crowd.populations))
            names = [(*size, self._limit, number) for number in studies]
            before = self._simulations
            sweep = replace(self._sweep, tell=lambda share: self._done(before + share))
            found = sweep.run(partial(_study, self._crowd), names, bound="a crowd")
            errors, guesses = np.array(found).T
            self._known[n_people, epsilon] = self.place.told(errors), guesses
            self._done(before + 1)
        return self._known[n_people, epsilon]

    def expected(self, n_people: int, epsilon: float) -> Expected:
        """A summary of the errors."""
        errors, guesses = self._both(n_people, epsilon)
        mean, low, high = errors.mean(), *np.quantile(errors, [0.05, 0.95])
        # The interval also includes the sampling error of a public sample.
        apart = 1.645 * self.place.doubt
        return Expected(
            people=n_people,
            epsilon=epsilon,
            error=float(mean),
            low=float(max(0, mean - np.hypot(mean - low, apart))),
            high=float(min(self.place.most, mean + np.hypot(high - mean, apart))),
            standard_error=float(errors.std(ddof=1) / np.sqrt(len(errors))),
            better=float(np.mean(errors < guesses - _MARGIN)),
        )

    def _done(self, simulations: float) -> None:
        self._simulations = simulations
        self._tell(simulations)


class _Crowd:
    """Participants and test people of each study, cached for consecutive studies."""

    def __init__(self, place: World, planned: Planned, populations: Sequence[Population]) -> None:
        self.place, self.planned, self.populations = place, planned, populations
        self._plans: dict[tuple[int, float], StudyPlan] = {}
        self._asked: dict[int, Rows] = {}
        self._others: dict[int, Rows] = {}

    def plan(self, n_people: int, epsilon: float) -> StudyPlan:
        """The plan for this number of people and ε."""
        if (n_people, epsilon) not in self._plans:
            self._plans[n_people, epsilon] = self.planned(n_people, epsilon)
        return self._plans[n_people, epsilon]

    def asked(self, number: int, people: int) -> Rows:
        """Participants of a study; fewer people are the first rows of more people."""
        if len(self._asked.get(number, ((), ()))[1]) < people:
            self._asked[number] = self.populations[number].people(people, [number, 0])
        features, labels = self._asked[number]
        return features[:people], labels[:people]

    def others(self, number: int) -> Rows:
        """Test people of a study, who do not take part."""
        if number not in self._others:
            self._others[number] = self.populations[number].others(_OTHERS, [number, 1])
        return self._others[number]

    def __reduce__(self) -> tuple[type[_Crowd], tuple[World, Planned, Sequence[Population]]]:
        return _Crowd, (self.place, self.planned, self.populations)


def _study(
    crowd: _Crowd, n_people: int, epsilon: float, limit: float, number: int
) -> tuple[float, float]:
    """The errors of a study and of guessing; `limit` is part of the name of the cell."""
    plan = replace(crowd.plan(n_people, epsilon), seed=number)
    features, labels = asked = crowd.asked(number, n_people)

    def people(start: int, stop: int) -> Rows:
        return features[start:stop], labels[start:stop]

    # No budget is spent, because these people are synthetic or public.
    model = ask_everybody(plan, people, source=SimulationSource(number)).model
    others = crowd.others(number)
    guess = crowd.place.guess(asked, others, epsilon=epsilon, seed=number)
    return crowd.place.judged(model, others), guess


def tractable(n_people: int, epsilon: float, *, most: int) -> tuple[int, float]:
    """A study of at most `most` people with the same effective sample size, and thus a larger ε.

    The information in the answers depends on N and ε only through N_eff.

    Examples:
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
