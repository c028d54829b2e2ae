"""Assumed populations of a study: from a family of curves or tables, or from a public sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.curves.observations import GridPoints
from dpfda.errors import InvalidParameter
from dpfda.planning.families import FAMILIES, Curves, Known, Population, Seed, Tables
from dpfda.planning.sample import Pilot, distance_of, public_labels, set_apart, set_wide
from dpfda.protocol.model import CurveModel, StudyModel
from dpfda.protocol.person import Entries
from dpfda.protocol.plan import StudyPlan

_TRIED = 3  # number of populations drawn for each one used, to select those of typical spread

Rows = tuple[FloatArray, IntArray]
Sample = tuple[Sized, Entries] | tuple[Sized, Entries, GridPoints]
"""Public rows: curves or numbers, labels or targets, and grid points if curves are on a grid."""


class Source(Protocol):
    """A population from which people are drawn."""

    def people(self, n: int, seed: Seed) -> Rows:
        """Encoded features and label numbers of participants."""

    def others(self, n: int, seed: Seed) -> Rows:
        """Encoded features and label numbers of test people."""


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Populations for simulated studies, with the errors of guessing and without privacy.

    Attributes:
        shares: shares of the classes.
        limit: the error of a classifier without privacy.
        basis: the source of the people, in words.
        populations: a function of a count and an error without privacy that returns populations.
        told: a function that maps errors of simulated studies to errors of the forecast.
        doubt: standard error of shares estimated from the sample; 0 for a family.
    """

    shares: FloatArray
    limit: float
    basis: str
    populations: Callable[[int, float], Sequence[Source]]
    told: Callable[[FloatArray], FloatArray] = lambda errors: errors
    doubt: float = 0.0

    numbers: ClassVar[bool] = False
    """Whether people hold numbers instead of labels."""
    most: ClassVar[float] = 1.0
    """The largest error."""

    @property
    def guessing(self) -> float:
        """The error of always predicting the most frequent class."""
        return 1 - float(self.shares.max())

    def guess(self, rows: Rows, others: Rows, *, epsilon: float, seed: int) -> float:
        """The error of the baseline for these people."""
        return self.guessing

    def judged(self, model: StudyModel, others: Rows) -> float:
        """The error of a finished study on test people."""
        assert isinstance(model, CurveModel)
        tested, truth = others
        return float(np.mean(model.decide(tested) != truth))

    def distance(self, error: float) -> float:
        """The distance of normal classes with this error, in standard deviations."""
        return distance_of(error, float(self.shares[-1]))


def family_for(plan: StudyPlan, family: str | None) -> tuple[str, Curves | Tables]:
    """The family by its name, or the default one for curves or tables."""
    curves = plan.encoder.basis.functional
    kind = _validate.one_of("family", family or ("smooth" if curves else "table"), FAMILIES)
    generator = FAMILIES[kind]
    if isinstance(generator, Tables) == curves:
        fitting = [name for name, one in FAMILIES.items() if isinstance(one, Tables) != curves]
        raise InvalidParameter("family", f"one of {', '.join(fitting)} for these ranges", family)
    return kind, generator


def is_loose(plan: StudyPlan, typical: Sample | None) -> bool:
    """Whether the location of people in their public range is unknown."""
    return typical is None and not plan.design.get("center_known")


def made_up(
    plan: StudyPlan,
    family: str | None,
    *,
    shares: FloatArray | None,
    non_private_error: float | None,
    typical: Sample | None = None,
) -> World:
    """People of a family, whose classes have the error without privacy that the user expects."""
    kind, generator = family_for(plan, family)
    if non_private_error is None:
        rule = "given: the error you expect of a classifier without privacy (or pass a sample)"
        raise InvalidParameter("non_private_error", rule, None)
    if shares is None:
        shares = np.full(plan.n_classes, 1 / plan.n_classes)
    known = Known(
        encoder=plan.encoder,
        shares=shares,
        center_known=bool(plan.design.get("center_known")),
        anywhere=is_loose(plan, typical),
        spread_differs=bool(plan.design.get("spread_differs")),
        typical=None if typical is None else _typical(plan, typical),
    )

    def member(number: int) -> Population:
        return generator.population(known, np.random.default_rng([number, 2]))

    def populations(count: int, error: float) -> Sequence[Source]:
        if known.typical is None:
            return [set_apart(member(number), error, [number, 3]) for number in range(count)]
        tried = [set_wide(member(number), error, [number, 3]) for number in range(_TRIED * count)]
        return [one for one, _ in sorted(tried, key=lambda pair: abs(np.log(pair[1])))[:count]]

    basis = "a family of tables" if kind == "table" else f"the family of curves {kind!r}"
    if known.spread_differs:
        basis += " whose classes differ in spread"
    return World(
        shares=shares,
        limit=_below(non_private_error, shares),
        basis=basis if typical is None else f"{basis} around typical ones",
        populations=populations,
    )


def _typical(plan: StudyPlan, rows: Sample) -> FloatArray:
    """Coefficients of the typical curve of each class; several rows are averaged."""
    if not plan.encoder.basis.functional:
        # In a trial with five tables, typical rows did not improve forecasts.
        raise InvalidParameter("typical", "left out for tables: a family says as much", "rows")
    X, y, *grid = rows
    plan.encoder.check_grid(X, grid[0] if grid else None)
    z = plan.encoder.coefficients(X, grid[0] if grid else None)
    labels = public_labels("typical", plan, y, rows=len(z), least=1)
    return np.stack([z[labels == one].mean(axis=0) for one in range(plan.n_classes)])


def redrawn(
    plan: StudyPlan, sample: Sample, *, shares: FloatArray | None, non_private_error: float | None
) -> World:
    """People of a public sample.

    A hundred rows show which share of the possible gain a study reaches, but not the possible gain
    itself. If the user states the error without privacy, errors are rescaled such that this share
    does not change.
    """
    X, y, *grid = sample
    pilot = Pilot.of(plan, X, y, shares=shares, grid_points=grid[0] if grid else None)
    shares = pilot.shares
    guessing = 1 - float(shares.max())
    found = min(pilot.non_private_error(), guessing - 0.01)
    limit = found if non_private_error is None else _below(non_private_error, shares)
    gain = (guessing - limit) / (guessing - found)

    def told(errors: FloatArray) -> FloatArray:
        return np.where(errors < guessing, guessing - gain * (guessing - errors), errors)

    def populations(count: int, error: float) -> Sequence[Source]:
        seen = guessing - (guessing - error) / gain  # the error before rescaling
        # A random row has a wrong class with the probability that two people differ in class.
        blurred = (seen - found) / (1 - float(shares @ shares) - found)
        return pilot.parts(count, blurred=min(max(blurred, 0.0), 1.0))

    rows = len(pilot.labels)
    return World(
        shares=shares,
        limit=limit,
        basis=f"a public sample of {rows} rows",
        populations=populations,
        told=told,
        doubt=float(np.sqrt(guessing * (1 - guessing) / rows)),
    )


def class_shares(
    given: float | Sequence[float] | None, *, stated: float | None, classes: int
) -> FloatArray | None:
    """One share for each class; for two classes, the share of the last one is enough.

    Args:
        given: shares given for the forecast.
        stated: share stated in the plan, if it is public.
        classes: number of classes.
    """
    if given is None and stated is None:
        return None
    given = given if given is not None else stated
    assert given is not None
    values = [given] if isinstance(given, (int, float)) else list(given)
    values = [_validate.fraction("class_shares", value) for value in values]
    values = [1 - values[0], *values] if len(values) == 1 and classes == 2 else values
    if len(values) != classes or abs(sum(values) - 1) > 1e-6:
        raise InvalidParameter("class_shares", f"{classes} shares that add up to 1", given)
    if stated is not None and abs(values[-1] - stated) > 1e-6:
        raise InvalidParameter("class_shares", f"as class_share says ({stated:g})", given)
    return np.asarray(values) / sum(values)


def _below(error: float, shares: FloatArray) -> float:
    limit = _validate.fraction("non_private_error", error)
    guessing = 1 - float(shares.max())
    if limit >= guessing:
        raise InvalidParameter("non_private_error", f"below guessing ({guessing:.3g})", limit)
    return limit
