"""What is supposed of the people of a study: made up by a family, or redrawn from a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.planner.families import FAMILIES, Tables
from dpfda.planner.sample import Pilot
from dpfda.planner.separation import set_apart
from dpfda.planner.trials import Source
from dpfda.protocol.plan import StudyPlan


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Populations to run studies on, and the two errors that every study lies between.

    Attributes:
        shares: how frequent each class is.
        limit: the error of a classifier without privacy.
        basis: what people are drawn from, in words.
        populations: so many of them, whose classes are so far apart as this limit says.
        told: the error to tell for the error of a simulated study.
        doubt: standard error of any share that is read off the sample; 0 for a family.
    """

    shares: FloatArray
    limit: float
    basis: str
    populations: Callable[[int, float], Sequence[Source]]
    told: Callable[[FloatArray], FloatArray] = lambda errors: errors
    doubt: float = 0.0

    @property
    def guessing(self) -> float:
        """The error of always naming the most frequent class."""
        return 1 - float(self.shares.max())


def made_up(
    plan: StudyPlan,
    family: str | None,
    *,
    non_private_error: float | None,
    class_shares: Any,
    facts: Mapping[str, Any],
) -> World:
    """People of a family, as far apart as the user expects."""
    kind = family or ("smooth" if plan.encoder.basis.functional else "table")
    generator = FAMILIES[_validate.one_of("family", kind, FAMILIES)]
    if isinstance(generator, Tables) == plan.encoder.basis.functional:
        fitting = [name for name, one in FAMILIES.items() if type(one) is not type(generator)]
        raise InvalidParameter("family", f"one of {', '.join(fitting)} for these ranges", family)
    if non_private_error is None:
        rule = "given: the error you expect of a classifier without privacy (or pass a sample)"
        raise InvalidParameter("non_private_error", rule, None)
    shares = _shares(class_shares, plan.n_classes)
    limit = _below(non_private_error, shares)
    ranges = np.atleast_2d(np.asarray(facts.get("value_range") or [], dtype=np.float64))

    def populations(count: int, error: float) -> Sequence[Source]:
        found = []
        for number in range(count):
            rng = np.random.default_rng([number, 2])
            one = generator.population(plan.encoder, ranges, shares, rng)
            found.append(set_apart(one, error, [number, 3]))
        return found

    basis = "a family of tables" if kind == "table" else f"the family of curves {kind!r}"
    return World(shares=shares, limit=limit, basis=basis, populations=populations)


def redrawn(
    plan: StudyPlan, sample: Any, *, non_private_error: float | None, class_shares: Any
) -> World:
    """People of a public sample.

    A hundred rows say how quickly a study comes near what is possible, but not what is possible:
    where the user knows better, studies keep the same share of what there is to gain.
    """
    X, y, *grid = sample
    shares = None if class_shares is None else _shares(class_shares, plan.n_classes)
    pilot = Pilot.of(plan, X, y, shares=shares, grid_points=grid[0] if grid else None)
    shares = pilot.shares
    guessing = 1 - float(shares.max())
    found = min(pilot.non_private_error(), guessing - 0.01)
    limit = found if non_private_error is None else _below(non_private_error, shares)
    gain = (guessing - limit) / (guessing - found)

    def told(errors: FloatArray) -> FloatArray:
        return np.where(errors < guessing, guessing - gain * (guessing - errors), errors)

    rows = len(pilot.labels)
    return World(
        shares=shares,
        limit=limit,
        basis=f"a public sample of {rows} rows",
        populations=lambda count, _: pilot.parts(count),
        told=told,
        doubt=float(np.sqrt(guessing * (1 - guessing) / rows)),
    )


def _below(error: float, shares: FloatArray) -> float:
    limit = _validate.fraction("non_private_error", error)
    guessing = 1 - float(shares.max())
    if limit >= guessing:
        raise InvalidParameter("non_private_error", f"below guessing ({guessing:.3g})", limit)
    return limit


def _shares(given: Any, classes: int) -> FloatArray:
    """One share a class; of two classes, that of the last one may stand alone."""
    if given is None:
        return np.full(classes, 1 / classes)
    values = [given] if isinstance(given, (int, float)) else list(given)
    values = [_validate.fraction("class_shares", value) for value in values]
    values = [1 - values[0], *values] if len(values) == 1 and classes == 2 else values
    if len(values) != classes or abs(sum(values) - 1) > 1e-6:
        raise InvalidParameter("class_shares", f"{classes} shares that add up to 1", given)
    return np.asarray(values) / sum(values)
