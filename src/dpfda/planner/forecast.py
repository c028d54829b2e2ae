"""What a study will be worth before anybody is asked: whole studies, on public people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.question_response import effective_answers
from dpfda.planner import search, world
from dpfda.planner.separation import distance_of, expected_by_theory
from dpfda.planner.trials import Trials
from dpfda.planner.world import World
from dpfda.protocol.plan import MOST_PEOPLE, Label, StudyPlan
from dpfda.recipe import plan_study

_PEOPLE = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
_AROUND = (0.1, 0.2, 0.5, 1, 2, 5)
_STRENGTHS = (0.9, 0.7, 0.5, 0.35, 0.2, 0.1)  # of what there is to gain without privacy
_MARGIN = 0.01  # what counts as better than guessing
_SURE = 0.8
_CURVES = len(_EPSILONS) + len(_AROUND)


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


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What was found; `dpfda.planner.words` and `page` show it.

    Attributes:
        plan: the study.
        expected: its error.
        guessing: the error of always naming the most frequent class.
        non_private: the error of a classifier that sees everything.
        effective: how many answers without noise all replies are worth.
        by_epsilon: the same people at other ε; empty where only the main figure was asked for.
        by_people: other numbers of people.
        second: what a second study would add: of as many other people, or of the same again.
        sought: what was left open: ``error``, ``n_people`` or ``epsilon``.
        interval: of what was sought. Of an error where nine of ten studies lie, of the others where
            nine of ten repetitions of the search would end.
        detectable: the largest error without privacy at which four of five such studies are still
            better than guessing, and the distance of normal classes that goes with it.
        theory: the error by `expected_by_theory`; None but for two classes.
        basis: what people were drawn from.
    """

    plan: StudyPlan
    expected: Expected
    guessing: float
    non_private: float
    effective: float
    by_epsilon: tuple[Expected, ...] = ()
    by_people: tuple[Expected, ...] = ()
    second: tuple[tuple[str, Expected], ...] = ()
    sought: str
    interval: tuple[float, float]
    detectable: tuple[float, float] | None = None
    theory: float | None = None
    basis: str


def forecast(
    n_people: int | None = None,
    epsilon: float | None = None,
    *,
    classes: Sequence[Label],
    error: float | None = None,
    family: str | None = None,
    sample: Any = None,
    non_private_error: float | None = None,
    class_shares: Any = None,
    studies: int = 40,
    curves: bool = True,
    most: int = 20_000,
    tell: Callable[[float], None] | None = None,
    **facts: Any,
) -> Forecast:
    """The error of the study that `plan_study` makes of the facts, or what it takes to reach one.

    Of people, ε and error two are given, and the third is found.

    Args:
        n_people: how many take part.
        epsilon: what each of them spends, once.
        classes: the labels.
        error: the error to reach, where people or ε is left out.
        family: what curves look like (``smooth``, ``rough``, ``spectra``), or ``table``.
        sample: instead, *public* people: (X, y) or (X, y, grid_points), a hundred rows or more.
            It says far more than a family does.
        non_private_error: what a classifier without privacy is expected to err. Needed with a
            family; makes the forecast from a sample better.
        class_shares: how frequent each class will be, in the order of the sorted labels (of two,
            that of the last is enough); by default equally, or as in the sample.
        studies: how many are simulated for each figure.
        curves: whether to try other ε, other numbers of people and smaller differences, too.
        most: people in a simulated study; a larger one is replaced by one that learns as much.
        tell: called with the share of the work that is done.
        facts: what else `plan_study` takes.

    Privacy:
        Nobody's data are touched and nobody is charged: all that is used here is public.

    Example:
        >>> found = forecast(
        ...     300, 0.2, value_range=(-1, 1), classes=("no", "yes"), family="smooth",
        ...     non_private_error=0.1, studies=4, curves=False,
        ... )
        >>> round(found.effective), found.guessing, found.non_private
        (3, 0.5, 0.1)
    """
    given = {"n_people": n_people, "epsilon": epsilon, "error": error}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise InvalidParameter("n_people, epsilon and error", "given but for one of them", given)
    _validate.whole("studies", studies, least=2, most=10_000)
    people = _PEOPLE[2] if n_people is None else n_people
    price = 1.0 if epsilon is None else epsilon

    def planned(people: int, epsilon: float) -> StudyPlan:
        return plan_study(people, epsilon, classes=classes, **facts)

    plan = planned(people, price)
    if class_shares is None:
        class_shares = facts.get("class_share")
    known: dict[str, Any] = {"non_private_error": non_private_error, "class_shares": class_shares}
    if sample is not None:
        place = world.redrawn(plan, sample, **known)
    else:
        place = world.made_up(plan, family, facts=facts, **known)
    trials = Trials(place.populations(studies, place.limit), planned, most, place.told)
    steps = 1 + len(_PEOPLE) * (error is not None) + (_CURVES + len(_STRENGTHS)) * curves
    step = _steps(tell, steps)
    interval = None
    if error is not None:
        people, price, interval = _found(trials, place, given, step)
    at = partial(_summary, trials, place, step)
    expected = at(people, price)
    more: dict[str, Any] = {}
    if curves:
        epsilons = sorted({*_EPSILONS[1:-1], price})
        sizes = sorted({min(max(10, round(people * by)), MOST_PEOPLE) for by in _AROUND})
        more["by_epsilon"] = tuple(at(people, level) for level in epsilons)
        more["by_people"] = tuple(at(size, price) for size in sizes)
        more["second"] = (
            ("as many other people", at(min(2 * people, MOST_PEOPLE), price)),
            ("the same people again", at(people, 2 * price)),
        )
        if sample is None:

            def errors(limit: float) -> FloatArray:
                weaker = Trials(place.populations(studies, limit), planned, most)
                return step(weaker.errors(people, price))

            more["detectable"] = _detectable(errors, place)
    plan, effective = planned(people, price), effective_answers(people, price)
    if len(place.shares) == 2:
        more["theory"] = expected_by_theory(
            place.limit,
            float(place.shares[1]),
            effective=effective,
            dimension=plan.encoder.n_features,
        )
    return Forecast(
        plan=plan,
        expected=expected,
        guessing=place.guessing,
        non_private=place.limit,
        effective=effective,
        sought=missing[0],
        interval=interval or (expected.low, expected.high),
        basis=place.basis,
        **more,
    )


Step = Callable[[FloatArray], FloatArray]


def _steps(tell: Callable[[float], None] | None, total: int) -> Step:
    """Passes errors on, and tells how much of the work is done."""
    done = count(1)

    def step(errors: FloatArray) -> FloatArray:
        if tell is not None:
            tell(min(1.0, next(done) / total))
        return errors

    return step


def _summary(trials: Trials, place: World, step: Step, people: int, epsilon: float) -> Expected:
    errors = step(trials.errors(people, epsilon))
    mean, low, high = errors.mean(), *np.quantile(errors, [0.05, 0.95])
    # A sample's own luck comes on top of that of the study.
    apart = 1.645 * place.doubt
    return Expected(
        people=people,
        epsilon=epsilon,
        error=float(mean),
        low=float(max(0, mean - np.hypot(mean - low, apart))),
        high=float(min(1, mean + np.hypot(high - mean, apart))),
        standard_error=float(errors.std(ddof=1) / np.sqrt(len(errors))),
        better=float(np.mean(errors < place.guessing - _MARGIN)),
    )


def _found(
    trials: Trials, place: World, given: Mapping[str, Any], step: Step
) -> tuple[int, float, tuple[float, float]]:
    """People and ε at which the mean error is reached, and the interval of the one sought."""
    wanted = _validate.fraction("error", given["error"])
    if not place.limit < wanted < place.guessing:
        rule = f"above {place.limit:.3g} (no privacy) and below {place.guessing:.3g} (guessing)"
        raise InvalidParameter("error", rule, wanted)
    people, epsilon = given["n_people"], given["epsilon"]
    levels: Sequence[float] = _PEOPLE if people is None else _EPSILONS
    rows = []
    for level in levels:
        size, price = (int(level), epsilon) if people is None else (people, level)
        rows.append(step(trials.errors(size, price)))
    errors = np.stack(rows)
    found = search.crossing(levels, errors, wanted)
    interval = search.crossing_interval(levels, errors, wanted)
    if np.isinf(found):
        left = search.falling(errors.mean(axis=1))[-1]
        most = f"{levels[-1]:,} people" if people is None else f"ε = {levels[-1]:g}"
        raise InvalidParameter("error", f"within reach: {most} would leave {left:.3g}", wanted)
    if people is None:
        return _round_up(found), epsilon, interval
    return people, float(f"{found:.2g}"), interval


def _round_up(people: float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(0, len(str(int(people))) - 2)
    return int(-(-people // unit) * unit)


def _detectable(errors: Callable[[float], FloatArray], place: World) -> tuple[float, float] | None:
    """The weakest signal that four of five studies find, between those that were tried."""
    limits = [place.guessing * (1 - strength) for strength in _STRENGTHS]
    better = [float(np.mean(errors(limit) < place.guessing - _MARGIN)) for limit in limits]
    rates = search.falling(np.array(better))
    if rates[0] < _SURE:
        return None
    found = float(np.interp(-_SURE, -rates, limits)) if rates[-1] < _SURE else limits[-1]
    return found, distance_of(found, float(place.shares[-1]))
