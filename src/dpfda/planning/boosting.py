"""The planner of boosting studies: number of owners, ε, and expected error.

The planner simulates whole studies with the estimators, on synthetic people from public facts. 004
§III-D and §IV state only the order of the noise of a base learner, √(s log s)/(ε √H) for the mean
of H reports of s numbers. Whether a base learner beats guessing also depends on the data.
Therefore the plan follows from the simulations, and the bound is only reported.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.curves.ranges import FeatureRanges
from dpfda.errors import InvalidParameter
from dpfda.estimators.boosting_base import BoostingClassifier
from dpfda.estimators.local_ada_boost_classifier import RULES, LocalAdaBoostClassifier
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.local.boosting.samme_study import SammeDesign
from dpfda.local.recipe import plan_study
from dpfda.planning.forecast import crossing, crossing_interval, falling
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.planning.trials import Expected
from dpfda.planning.world import Source, World, class_shares, made_up
from dpfda.protocol.plan import Label, StudyPlan
from dpfda.report.contents import Outcome

Base = Literal["gradient", "sample", "statistic", "classifier"]
BASES: tuple[Base, ...] = get_args(Base)
OWNERS = (100, 300, 1000, 3000, 10_000, 30_000)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_OTHERS = 2000  # number of test rows, which belong to no participant
_MOST_ROWS = 200_000  # largest number of rows of a simulated study
_MARGIN = 0.01  # an error smaller than guessing by this margin counts as better
_SURE = 0.95  # share of better studies from which a study is said to work


@dataclass(frozen=True, kw_only=True)
class BoostingForecast:
    """The plan of a boosting study, and its expected error.

    Attributes:
        plan: the plan of the study.
        base: the kind of reports.
        rows_per_owner: largest number of rows of an owner that are used.
        expected: the expected error.
        guessing: the error of always predicting the most frequent class.
        non_private: the assumed error without privacy.
        by_owners: expected errors for other numbers of owners at this ε.
        by_epsilon: expected errors for the same owners at other ε.
        sought: the quantity that was computed: ``error``, ``owners`` or ``epsilon``.
        interval: 90 % interval of this quantity, over studies (error) or repeated searches.
        owners_per_round: H; None if the study chooses it in each round.
        share: s, the number of entries of a report; None for gradients, which are codewords.
        order: √(s log s)/(ε √H), the order of the noise of a round in 004 §III-D.
        noise: standard deviation of an entry in the mean of H reports.
    """

    plan: StudyPlan
    base: Base
    rows_per_owner: int
    expected: Expected
    guessing: float
    non_private: float
    by_owners: tuple[Expected, ...] = ()
    by_epsilon: tuple[Expected, ...] = ()
    sought: str
    interval: tuple[float, float]
    owners_per_round: int | None = None
    share: int | None = None
    order: float | None = None
    noise: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the study can work, in one sentence."""
        found, better = self.expected, self.expected.better
        outcome = "works" if better >= _SURE else "may work" if better >= 0.5 else "cannot work"
        return (
            f"This study {outcome}: {better:.0%} of the simulated studies are better than "
            "guessing. "
            f"Expect {100 * found.error:.1f} % wrong, between guessing "
            f"({100 * self.guessing:.1f} %) and no privacy ({100 * self.non_private:.1f} %)."
        )

    @property
    def notes(self) -> list[str]:
        """The forecast in sentences."""
        low, high = self.interval
        said = [self.verdict]
        if self.sought == "owners":
            said.append(
                f"{self.plan.n_people:,} owners are needed (nine times of ten {low:,.0f} to "
                f"{high:,.0f})."
            )
        elif self.sought == "epsilon":
            told = f"(nine times of ten {low:.2g} to {high:.2g})"
            said.append(f"ε = {self.plan.epsilon:g} is needed {told}.")
        said.append(
            f"Owners were made up with {self.rows_per_owner} rows each, drawn independently from a "
            "family of tables. Rows of one owner that are alike tell less."
        )
        if self.order is not None:
            said.append(
                f"004 §III-D: the noise of a round is of the order √(s log s)/(ε √H) = "
                f"{self.order:.2g} for shares of s = {self.share} numbers and H = "
                f"{self.owners_per_round} owners{self._parts}. The standard deviation of a number "
                f"in their mean is {self.noise:.2g}, and numbers lie in [-1, 1]. The bound states "
                "no constant and knows no data: it does not tell whether a base learner beats "
                "guessing (§IV)."
            )
        return said

    @property
    def _parts(self) -> str:
        if self.base != "sample" or self.rows_per_owner == 1:
            return ""
        return f", who send {self.rows_per_owner} shares each with an equal part of ε"

    @property
    def outcome(self) -> Outcome:
        """The rows and the notes as an `Outcome`."""
        named = [("this study", self.expected)]
        named += [("other owners", one) for one in self.by_owners if one != self.expected]
        named += [("other ε", one) for one in self.by_epsilon if one != self.expected]
        return Outcome(rows=[_row(name, one) for name, one in named], notes=self.notes)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        plain = {name: value for name, value in vars(self).items() if name != "plan"}
        plain["expected"] = asdict(self.expected)
        for name in ("by_owners", "by_epsilon"):
            plain[name] = [asdict(one) for one in plain[name]]
        return plain | {"notes": self.notes, "plan": self.plan.to_dict()}


def plan_boosting(
    owners: int | None = None,
    epsilon: float | None = None,
    *,
    error: float | None = None,
    classes: Sequence[Label],
    feature_ranges: FeatureRanges,
    rows_per_owner: int,
    base: Base = "gradient",
    hostile_share: float = 0.0,
    n_rounds: int = 10,
    non_private_error: float,
    shares: float | Sequence[float] | None = None,
    unit: str = "owner",
    seed: int = 0,
    studies: int = 10,
    others: bool = True,
    sweep: Sweep = ALONE,
) -> BoostingForecast:
    """Plan a boosting study that reaches an error, or compute the expected error of a study.

    Two of owners, ε and error are given; the third is computed.

    Args:
        owners: number of owners.
        epsilon: ε of each owner, for all of their rows.
        error: the error to reach, if owners or ε is not given.
        classes: the labels.
        feature_ranges: public (low, high) of each column in order, or a mapping from columns to
            (low, high) or to categories.
        rows_per_owner: largest number of rows of an owner that are used.
        base: the kind of reports: ``gradient`` (`LocalGradientBoostingClassifier`), or the rules of
            004: ``sample``, ``statistic`` or ``classifier`` (`LocalAdaBoostClassifier` with
            ``validation="feedback"``).
        hostile_share: for gradients, upper bound on the share of owners who send worst-case
            reports. The simulated owners are honest.
        n_rounds: number of rounds.
        non_private_error: expected error of a classifier without privacy.
        shares: shares of the classes, in the order of the sorted labels; by default equal.
        unit: the protected unit to which all rows of one owner belong.
        seed: seed of the public randomness of the study.
        studies: number of simulated studies for each expected error.
        others: whether other numbers of owners and other ε are simulated as well.
        sweep: settings of the simulations, including the file that stores their results.

    Privacy:
        Only public facts are used; no data are read and no budget is spent.

    Examples:
        >>> found = plan_boosting(
        ...     1000, 2.0, classes=("no", "yes"), feature_ranges={"age": (18, 99), "bmi": (15, 50)},
        ...     rows_per_owner=4, non_private_error=0.1, studies=2, others=False,
        ... )
        >>> found.plan.n_people, found.guessing, found.expected.error < 0.3
        (1000, 0.5, True)
    """
    given = {"owners": owners, "epsilon": epsilon, "error": error}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise InvalidParameter("owners, epsilon and error", "two of the three", given)
    _validate.one_of("base", base, BASES)
    if hostile_share and base != "gradient":
        raise InvalidParameter("hostile_share", "0 unless owners send gradients", hostile_share)
    _validate.whole("rows_per_owner", rows_per_owner, most=1 << 12)
    _validate.whole("studies", studies, least=2, most=10_000)
    labels = tuple(sorted(classes))
    known = plan_study(1000, 1.0, classes=labels, feature_ranges=feature_ranges)
    of_classes = class_shares(shares, stated=None, classes=len(labels))
    place = made_up(known, "table", shares=of_classes, non_private_error=non_private_error)
    common: dict[str, Any] = {"n_rounds": n_rounds, "rows_per_owner": rows_per_owner}
    if base == "gradient":
        common["hostile_share"] = hostile_share
    make = partial(_classifier, base, common)
    crowd = _Owners(
        place=place,
        populations=place.populations(studies, place.limit),
        make=make,
        rows=rows_per_owner,
        columns=known.encoder.n_features,
    )
    facts = (labels, feature_ranges, non_private_error, shares, studies)
    own = sweep.of(*facts, base, common)
    work = partial(_study, crowd)

    def errors(people: int, price: float) -> FloatArray:
        names = [(people, price, number) for number in range(studies)]
        return np.array(own.run(work, names, bound="owners"))

    def expected(people: int, price: float) -> Expected:
        return _expected(errors(people, price), people, price, place.guessing)

    interval = None
    if error is not None:
        owners, epsilon, interval = _reached(
            errors, place, owners, epsilon, error, rows=rows_per_owner
        )
    assert owners is not None
    assert epsilon is not None
    found = expected(_validate.whole("owners", owners), _validate.positive("epsilon", epsilon))
    made = make(epsilon, classes=list(labels), feature_ranges=feature_ranges, seed=seed, unit=unit)
    plan = made.planned(owners)
    return BoostingForecast(
        plan=plan,
        base=base,
        rows_per_owner=rows_per_owner,
        expected=found,
        guessing=place.guessing,
        non_private=place.limit,
        by_owners=tuple(expected(n, epsilon) for n in _around(owners, rows_per_owner) if others),
        by_epsilon=tuple(expected(owners, one) for one in EPSILONS[1:-1] if others),
        sought=missing[0],
        interval=interval or (found.low, found.high),
        **_noise(plan),
    )


def _classifier(
    base: Base, common: Mapping[str, Any], epsilon: float, *, seed: int, **facts: Any
) -> BoostingClassifier:
    facts |= {**common, "random_state": seed}
    if base == "gradient":
        return LocalGradientBoostingClassifier(epsilon, **facts)
    assert base in RULES
    return LocalAdaBoostClassifier(epsilon, rule=base, validation="feedback", **facts)


@dataclass(frozen=True, kw_only=True)
class _Owners:
    """The populations from which owners are drawn, and the estimator of their studies."""

    place: World
    populations: Sequence[Source]
    make: Callable[..., BoostingClassifier]
    rows: int
    columns: int


def _study(crowd: _Owners, owners: int, epsilon: float, number: int) -> float:
    """The error of one study on rows that belong to no participant."""
    population, rows = crowd.populations[number], crowd.rows
    features, labels = population.people(owners * rows, [number, 0])
    made = crowd.make(
        epsilon,
        seed=number,
        classes=list(range(len(crowd.place.shares))),
        feature_ranges=[(-1.0, 1.0)] * crowd.columns,
    )
    with warnings.catch_warnings():  # warnings about few owners
        warnings.simplefilter("ignore", UserWarning)
        made.fit(features, labels, groups=np.repeat(np.arange(owners), rows))
    tested, truth = population.others(_OTHERS, [number, 1])
    return float(np.mean(made.predict(tested) != truth))


def _expected(errors: FloatArray, owners: int, epsilon: float, guessing: float) -> Expected:
    low, high = np.quantile(errors, [0.05, 0.95])
    return Expected(
        people=owners,
        epsilon=epsilon,
        error=float(errors.mean()),
        low=float(low),
        high=float(high),
        standard_error=float(errors.std(ddof=1) / np.sqrt(len(errors))),
        better=float(np.mean(errors < guessing - _MARGIN)),
    )


def _reached(
    errors: Callable[[int, float], FloatArray],
    place: World,
    owners: int | None,
    epsilon: float | None,
    error: float,
    *,
    rows: int,
) -> tuple[int, float, tuple[float, float]]:
    """Owners and ε at which the mean error is reached, and the interval of the computed one."""
    wanted = _validate.fraction("error", error)
    if not place.limit < wanted < place.guessing:
        rule = f"above {place.limit:.3g} (no privacy) and below {place.guessing:.3g} (guessing)"
        raise InvalidParameter("error", rule, wanted)
    levels: Sequence[float] = EPSILONS
    if owners is None:
        levels = [n for n in OWNERS if n * rows <= _MOST_ROWS]
    pairs = [(int(n), epsilon) if owners is None else (owners, n) for n in levels]
    found = np.stack([errors(n, price) for n, price in pairs])  # type: ignore[arg-type]
    at = crossing(levels, found, wanted)
    if math.isinf(at):
        left = falling(found.mean(axis=1))[-1]
        most = f"{levels[-1]:,} owners" if owners is None else f"ε = {levels[-1]:g}"
        raise InvalidParameter("error", f"within reach: {most} would leave {left:.3g}", wanted)
    interval = crossing_interval(levels, found, wanted)
    if owners is None:
        assert epsilon is not None
        unit = 10 ** max(0, len(str(int(at))) - 2)
        return int(-(-at // unit) * unit), epsilon, interval
    return owners, float(f"{at:.2g}"), interval


def _around(owners: int, rows: int) -> list[int]:
    sizes = {max(10, round(owners * by)) for by in (0.25, 0.5, 1, 2, 4)}
    return sorted(n for n in sizes if n * rows <= _MOST_ROWS)


def _noise(plan: StudyPlan) -> dict[str, Any]:
    """H, s, the order of 004 §III-D, and the exact standard deviation if all true values are 0."""
    design = plan.built_design
    if not isinstance(design, SammeDesign):
        return {}
    asked, owners = design.first(plan), design.owners_per_round
    # With `sample`, an owner sends one report for each row, each with an equal share of ε.
    rows = design.n_rows if design.rule == "sample" else 1
    size, epsilon, reports = asked.sent // rows, plan.epsilon / rows, owners * rows
    order = math.sqrt(size * math.log(max(size, 2)) / reports) / epsilon
    return {
        "owners_per_round": owners,
        "share": size,
        "order": order,
        "noise": math.sqrt(asked.noise_variance / owners),
    }


def _row(name: str, one: Expected) -> dict[str, Any]:
    return {
        "study": name,
        "owners": one.people,
        "ε": one.epsilon,
        "error, %": round(100 * one.error, 1),
        "low, %": round(100 * one.low, 1),
        "high, %": round(100 * one.high, 1),
        "better than guessing": f"{one.better:.0%}",
    }
