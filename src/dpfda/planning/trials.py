"""Studies that are simulated before anybody is asked: the real server, on people made up."""

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

_OTHERS = 2000  # people who are not asked, and judge
_MARGIN = 0.01  # what counts as better than guessing
_LARGEST = 20.0  # ε that stands for any larger one

Planned = Callable[[int, float], StudyPlan]
"""The plan for a number of people and an ε."""


@dataclass(frozen=True)
class Expected:
    """Errors of simulated studies: their mean, and where nine of ten lie.

    Attributes:
        people: in the study.
        epsilon: of each of them.
        error: the mean.
        low: one study in twenty is better.
        high: one study in twenty is worse.
        standard_error: of the mean, as only so many studies were simulated.
        better: share of the studies that are better than guessing by a point.
    """

    people: int
    epsilon: float
    error: float
    low: float
    high: float
    standard_error: float
    better: float


class Trials:
    """The same populations, people and noise for every study that is compared.

    Args:
        place: where people come from.
        planned: makes the plan for a number of people and ε.
        studies: how many are simulated, each on a population of its own.
        most: people in one simulated study, see `tractable`.
        limit: how far the classes are apart, as an error without privacy; by default as the place
            says.
        tell: called after every study with how many simulations there have been, in parts of one.
        sweep: where studies are simulated, and what is kept of them: a store is of one place, one
            `planned`, one number of studies and one `most`.
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
        """The same studies on classes that are nearer to each other, or farther apart."""
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
        """The errors of whole studies on people who were not asked, one for each population."""
        return self._both(n_people, epsilon)[0]

    def guessing(self, n_people: int, epsilon: float) -> float:
        """The error without features: a median over studies, since a mean of few is unstable."""
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
        """A summary of those errors."""
        errors, guesses = self._both(n_people, epsilon)
        mean, low, high = errors.mean(), *np.quantile(errors, [0.05, 0.95])
        # A sample's own luck comes on top of that of the study.
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
    """Participants and test people of each study; drawn once for studies that follow each other."""

    def __init__(self, place: World, planned: Planned, populations: Sequence[Population]) -> None:
        self.place, self.planned, self.populations = place, planned, populations
        self._plans: dict[tuple[int, float], StudyPlan] = {}
        self._asked: dict[int, Rows] = {}
        self._others: dict[int, Rows] = {}

    def plan(self, n_people: int, epsilon: float) -> StudyPlan:
        """The plan of studies of so many people."""
        if (n_people, epsilon) not in self._plans:
            self._plans[n_people, epsilon] = self.planned(n_people, epsilon)
        return self._plans[n_people, epsilon]

    def asked(self, number: int, people: int) -> Rows:
        """People of a study: fewer are the first of more."""
        if len(self._asked.get(number, ((), ()))[1]) < people:
            self._asked[number] = self.populations[number].people(people, [number, 0])
        features, labels = self._asked[number]
        return features[:people], labels[:people]

    def others(self, number: int) -> Rows:
        """People who are not asked."""
        if number not in self._others:
            self._others[number] = self.populations[number].others(_OTHERS, [number, 1])
        return self._others[number]

    def __reduce__(self) -> tuple[type[_Crowd], tuple[World, Planned, Sequence[Population]]]:
        return _Crowd, (self.place, self.planned, self.populations)


def _study(
    crowd: _Crowd, n_people: int, epsilon: float, limit: float, number: int
) -> tuple[float, float]:
    """The error of a study, and that of guessing; the crowd is as far apart as `limit` says."""
    plan = replace(crowd.plan(n_people, epsilon), seed=number)
    features, labels = asked = crowd.asked(number, n_people)

    def people(start: int, stop: int) -> Rows:
        return features[start:stop], labels[start:stop]

    # Nobody is charged: these people are public.
    model = ask_everybody(plan, people, source=SimulationSource(number)).model
    others = crowd.others(number)
    guess = crowd.place.guess(asked, others, epsilon=epsilon, seed=number)
    return crowd.place.judged(model, others), guess


def tractable(n_people: int, epsilon: float, *, most: int) -> tuple[int, float]:
    """A study of at most so many people that learns as much: fewer people, a larger ε.

    The information in the answers depends on N and ε through N_eff alone.

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
