"""Forecast the error of a study by simulating whole studies on synthetic or public people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.local.recipe import plan_study
from dpfda.local.study.moments import effective_people
from dpfda.mechanisms.randomized_response import effective_answers
from dpfda.planning import numbers, world
from dpfda.planning.sample import expected_by_theory
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.planning.trials import Expected, Planned, Trials
from dpfda.protocol.plan import MOST_PEOPLE, Label, StudyPlan
from dpfda.report.progress import progress
from dpfda.report.report import fragment

ALSO = ("epsilons", "people", "second", "difference")
"""Additional simulations: other ε, other numbers of people, a second study, and smaller differences
between the classes."""

PEOPLE = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
_AROUND = (0.1, 0.2, 0.5, 1, 2, 5)
_STRENGTHS = (0.9, 0.7, 0.5, 0.35, 0.2, 0.1)  # signals, as shares of the error of guessing
_SURE = 0.8  # share of studies that must find a difference that counts as detectable
_RESAMPLES = 200  # number of bootstrap samples
_STEPS = {"epsilons": len(EPSILONS), "people": 6, "second": 2, "difference": 6}
"""Number of simulated settings for each entry of `ALSO`."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The result of a forecast; `dpfda.planning.words` and `page` present it.

    Attributes:
        plan: the plan of the study.
        expected: the expected error.
        guessing: the error of always predicting the most frequent class; for numbers, the error of
            a private estimate of their mean.
        non_private: the error of a model without privacy.
        effective: the effective sample size.
        by_epsilon: expected errors of the same people at other ε; empty if not simulated.
        by_people: expected errors of other numbers of people; empty if not simulated.
        second: expected errors with a second study, of other people or of the same people.
        sought: the quantity that was computed: ``error``, ``n_people`` or ``epsilon``.
        interval: 90 % interval of this quantity, over studies (error) or over repetitions of the
            search.
        detectable: the weakest signal that four of five such studies detect: its error without
            privacy, and the corresponding distance of normal classes or correlation of a number
            with its prediction. None if it was not simulated or if there is no such signal.
        also: the additional simulations, of `ALSO`.
        theory: the error by `expected_by_theory`, or None if it does not apply.
        basis: the source of the simulated people, in words.
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
    also: tuple[str, ...] = ()
    theory: float | None = None
    basis: str

    def _repr_html_(self) -> str:
        """HTML for notebooks: the sentences, the table and the picture."""
        from dpfda.planning import page  # imports this module

        return fragment(page.report(self))


def forecast(
    n_people: int | StudyPlan | None = None,
    epsilon: float | None = None,
    *,
    classes: Sequence[Label] | None = None,
    error: float | None = None,
    family: str | None = None,
    typical: world.Sample | None = None,
    sample: world.Sample | None = None,
    non_private_error: float | None = None,
    class_shares: float | Sequence[float] | None = None,
    studies: int = 40,
    also: Collection[str] = ALSO,
    most: int = 20_000,
    sweep: Sweep = ALONE,
    tell: Callable[[float], None] | None = None,
    **facts: object,
) -> Forecast:
    """Forecast the error of a study by `plan_study`, or the people or ε that reach a given error.

    Two of people, ε and error are given; the third is computed. With `target_range` the study
    predicts a number. Errors are then mean squared errors in units of its variance, so that the
    error of its mean is 1.

    Args:
        n_people: number of people, or a whole plan, such as one read from a file. With a plan, no
            other facts are needed, and its design is also used for other ε and numbers of people.
        epsilon: ε of each person.
        classes: the labels.
        error: the error to reach, if people or ε is not given.
        family: the kind of curves (``smooth``, ``rough``, ``spectra``), or ``table``.
        typical: with a family of curves, a *public* curve of each class, such as published means:
            (X, y) or (X, y, grid_points). They determine how the classes differ.
        sample: instead of a family, *public* people: (X, y) or (X, y, grid_points) with a hundred
            rows or more. A sample gives the most accurate forecast.
        non_private_error: expected error of a classifier without privacy; for numbers, the share of
            the variance that a regression without privacy leaves. It is required with a family, and
            improves a forecast from a sample.
        class_shares: expected shares of the classes, in the order of the sorted labels (for two
            classes, that of the last is enough). The default is `class_share`, the shares in the
            sample, or equal shares.
        studies: number of simulated studies for each expected error.
        also: additional simulations, of ``epsilons``, ``people``, ``second`` and ``difference``; by
            default all.
        most: largest number of people in a simulated study; larger studies are replaced by smaller
            ones with the same effective sample size.
        sweep: settings of the simulations, including a file that stores their results, so that an
            interrupted forecast can continue (`dpfda.planning.sweep.Sweep`). By default they run in
            this process and are not stored.
        tell: called with the finished share of the work; by default a progress bar is shown.
        facts: further arguments of `plan_study`.

    Privacy:
        Only public facts are used; no private data are read and no budget is spent.

    Examples:
        >>> plan = plan_study(300, 0.2, value_range=(-1, 1), classes=("no", "yes"))
        >>> found = forecast(plan, non_private_error=0.1, studies=4, also=())
        >>> round(found.effective), found.guessing, found.non_private
        (3, 0.5, 0.1)
    """
    _validate.whole("studies", studies, least=2, most=10_000)
    for name in also:
        _validate.one_of("also", name, ALSO)
    size: int | None
    if isinstance(n_people, StudyPlan):
        rest = {"epsilon": epsilon, "error": error, "classes": classes, **facts}
        plan, planned, sought = n_people, _with_design_of(n_people, rest), "error"
        size, class_share = plan.n_people, plan.design.get("class_share")
    else:
        sought, first = _left_open(n_people, epsilon, error)
        planned = _by_recipe(classes, facts)
        plan = planned(*first)
        size, class_share = n_people, facts.get("class_share")
    if sample is not None:
        _leave_out("with a sample", family=family, typical=typical)
    if plan.target_range is not None:
        _leave_out("with target_range", class_shares=class_shares, typical=typical)
        limit = {"non_private_error": non_private_error}
        if sample is None:
            place = numbers.numbers_made_up(plan, family, **limit)
        else:
            place = numbers.numbers_redrawn(plan, sample, **limit)
    else:
        shares = world.class_shares(class_shares, stated=class_share, classes=plan.n_classes)
        known: dict[str, Any] = {"shares": shares, "non_private_error": non_private_error}
        if sample is None:
            place = world.made_up(plan, family, typical=typical, **known)
        else:
            place = world.redrawn(plan, sample, **known)
    steps = 1 + len(PEOPLE) * (error is not None) + sum(_STEPS[name] for name in also)
    supposed = (family, typical, sample, non_private_error, class_shares, studies, most)
    own = sweep.of(plan.hash, classes, facts, supposed)
    with progress("forecast", tell) as done:
        trials = Trials(
            place, planned, studies=studies, most=most, sweep=own, tell=_share_of(steps, done)
        )
        people, price, interval = plan.n_people, plan.epsilon, None
        if error is not None:
            people, price, interval = reached(trials, size, epsilon, error)
        expected = trials.expected(people, price)
        here = planned(people, price)
        effective = (effective_people if place.numbers else effective_answers)(people, price)
        found = Forecast(
            plan=here,
            expected=expected,
            guessing=trials.guessing(people, price),
            non_private=place.limit,
            effective=min(effective, people),
            by_epsilon=by_epsilon(trials, people, price) if "epsilons" in also else (),
            by_people=by_people(trials, people, price) if "people" in also else (),
            second=second_study(trials, people, price) if "second" in also else (),
            sought=sought,
            interval=interval or (expected.low, expected.high),
            detectable=detectable(trials, people, price) if "difference" in also else None,
            also=tuple(also),
            theory=_theory(here, place, effective),
            basis=place.basis,
        )
        done(1.0)
    return found


def _left_open(
    n_people: int | None, epsilon: float | None, error: float | None
) -> tuple[str, tuple[int, float]]:
    """The quantity to compute, and people and ε of an initial plan."""
    given = {"n_people": n_people, "epsilon": epsilon, "error": error}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise InvalidParameter("n_people, epsilon and error", "two of the three", given)
    return missing[0], (1000 if n_people is None else n_people, 1.0 if epsilon is None else epsilon)


def _leave_out(why: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidParameter(name, f"left out {why}", "given")


def _by_recipe(classes: Sequence[Label] | None, facts: dict[str, Any]) -> Planned:
    if classes is None and facts.get("target_range") is None:
        rule = "given: the labels (or target_range for a number, or a whole plan)"
        raise InvalidParameter("classes", rule, None)

    def planned(people: int, epsilon: float) -> StudyPlan:
        return plan_study(people, epsilon, classes=classes, **facts)

    return planned


def _with_design_of(plan: StudyPlan, rest: dict[str, Any]) -> Planned:
    """The same plan for other people and ε; an error if facts are given that the plan states."""
    for name, value in rest.items():
        if value is not None:
            raise InvalidParameter(name, "left out: the plan says it", value)

    def planned(people: int, epsilon: float) -> StudyPlan:
        return replace(plan, n_people=people, epsilon=epsilon)

    return planned


def _share_of(steps: int, tell: Callable[[float], None]) -> Callable[[float], None]:
    """A callback that turns the number of finished simulations into the share of the work."""
    return lambda simulations: tell(min(0.99, simulations / steps))


def _theory(plan: StudyPlan, place: world.World, effective: float) -> float | None:
    """The error by theory, which applies to two private classes with features of equal spread."""
    if plan.n_classes != 2 or plan.protects == "labels" or plan.design.get("spread_differs"):
        return None
    return expected_by_theory(
        place.limit,
        float(place.shares[1]),
        effective=effective,
        dimension=plan.encoder.n_features,
    )


# -- other people, other ε -----------------------------------------------------------------------


def falling(errors: FloatArray) -> FloatArray:
    """The nearest nonincreasing curve, because more people or a larger ε do not increase errors.

    Examples:
        >>> falling(np.array([0.5, 0.3, 0.4, 0.1])).round(2).tolist()
        [0.5, 0.35, 0.35, 0.1]
    """
    return np.asarray(isotonic_regression(errors, increasing=False).x)


def crossing(levels: Sequence[float], errors: FloatArray, wanted: float) -> float:
    """The level at which the mean error decreases to `wanted`; infinite if it does not.

    Args:
        levels: numbers of people or ε, increasing.
        errors: errors of the same studies at every level, (levels, studies).
        wanted: the error to reach.
    """
    curve = falling(errors.mean(axis=1))
    if curve[-1] > wanted:
        return float("inf")
    place = int(np.argmax(curve <= wanted))
    if place == 0:
        return float(levels[0])
    above, below = curve[place - 1], curve[place]
    share = (above - wanted) / (above - below)
    low, high = np.log(levels[place - 1]), np.log(levels[place])
    return float(np.exp(low + share * (high - low)))


def crossing_interval(
    levels: Sequence[float], errors: FloatArray, wanted: float, *, level: float = 0.9
) -> tuple[float, float]:
    """Bootstrap interval of the crossing, over the simulated studies."""
    rng = np.random.default_rng(0)
    studies = errors.shape[1]
    found = [
        crossing(levels, errors[:, rng.integers(0, studies, studies)], wanted)
        for _ in range(_RESAMPLES)
    ]
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="nearest")
    return float(low), float(high)


def _is_reached(levels: Sequence[float], errors: FloatArray, wanted: float) -> bool:
    """Whether every resample is below `wanted` at the last level: higher ones change nothing."""
    highest = crossing_interval(levels, errors, wanted, level=1.0)[1]
    return bool(np.isfinite([crossing(levels, errors, wanted), highest]).all())


def reached(
    trials: Trials, people: int | None, epsilon: float | None, error: float
) -> tuple[int, float, tuple[float, float]]:
    """People and ε at which the mean error is reached, and the interval of the computed one."""
    place, wanted = trials.place, _validate.fraction("error", error)
    if not place.limit < wanted < place.guessing:
        guess = "the mean" if place.numbers else "guessing"
        rule = f"above {place.limit:.3g} (no privacy) and below {place.guessing:.3g} ({guess})"
        raise InvalidParameter("error", rule, wanted)
    levels: Sequence[float] = PEOPLE if people is None else EPSILONS
    tried: list[FloatArray] = []
    for level in levels:
        size, price = (int(level), epsilon) if people is None else (people, level)
        tried.append(trials.errors(size, price))  # type: ignore[arg-type]
        if _is_reached(levels, np.stack(tried), wanted):
            break
    errors = np.stack(tried)
    found = crossing(levels, errors, wanted)
    interval = crossing_interval(levels, errors, wanted)
    if np.isinf(found):
        left = falling(errors.mean(axis=1))[-1]
        most = f"{levels[-1]:,} people" if people is None else f"ε = {levels[-1]:g}"
        raise InvalidParameter("error", f"within reach: {most} would leave {left:.3g}", wanted)
    if people is None:
        assert epsilon is not None
        return _round_up(found), epsilon, interval
    return people, float(f"{found:.2g}"), interval


def by_epsilon(trials: Trials, people: int, epsilon: float) -> tuple[Expected, ...]:
    """Expected errors of the same people at other ε."""
    levels = sorted({*EPSILONS[1:-1], epsilon})
    return tuple(trials.expected(people, level) for level in levels)


def by_people(trials: Trials, people: int, epsilon: float) -> tuple[Expected, ...]:
    """Expected errors of a tenth to five times as many people."""
    sizes = sorted({min(max(10, round(people * by)), MOST_PEOPLE) for by in _AROUND})
    return tuple(trials.expected(size, epsilon) for size in sizes)


def second_study(trials: Trials, people: int, epsilon: float) -> tuple[tuple[str, Expected], ...]:
    """Expected errors of twice as many people, and of the same people at twice the ε."""
    return (
        ("as many other people", trials.expected(min(2 * people, MOST_PEOPLE), epsilon)),
        ("the same people again", trials.expected(people, 2 * epsilon)),
    )


def detectable(trials: Trials, people: int, epsilon: float) -> tuple[float, float] | None:
    """The weakest signal that four of five studies detect, interpolated between simulated signals.

    Returns:
        Its error without privacy, and the distance of normal classes with this error in standard
        deviations, or the correlation of a number with its prediction. None if no signal is
        detected this often.
    """
    place = trials.place
    limits = [place.guessing * (1 - strength) for strength in _STRENGTHS]
    found = [trials.apart(limit).expected(people, epsilon).better for limit in limits]
    rates = falling(np.array(found))
    if rates[0] < _SURE:
        return None
    weakest = float(np.interp(-_SURE, -rates, limits)) if rates[-1] < _SURE else limits[-1]
    return weakest, place.distance(weakest)


def _round_up(people: float) -> int:
    """Round up to two digits."""
    unit = 10 ** max(0, len(str(int(people))) - 2)
    return int(-(-people // unit) * unit)
