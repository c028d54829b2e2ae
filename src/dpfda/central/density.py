"""A probability density under differential privacy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.cell_looks import Box
from dpfda.central.density_mechanism import DensityMechanism, DensityRelease
from dpfda.central.release import Release
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise.source import source_for
from dpfda.privacy.ledger import BaseLedger


class PrivateDensity(BaseEstimator):  # type: ignore[misc]
    """Release the density of numbers or of points in the plane held by a trusted curator.

    Privacy:
        (ε, δ)-DP for replacing one point (pure ε with ``delta=0``). Points outside the public
        `domain_range` are moved to its border; n is public.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        domain_range: public range (low, high), or one range a variable: ((low, high), (low, high)).
        mechanism: ``"histogram"`` (default), ``"kernel"``, or an instance with parameters.
        project: make the released function a density: not negative, of integral 1.
        unit: whose data one point is.
        ledger: budget of the data over all releases: spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Example:
        >>> ages = np.random.default_rng(0).beta(8, 2, size=2000) * 100
        >>> density = PrivateDensity(epsilon=1.0, domain_range=(0, 100), random_state=0).fit(ages)
        >>> int(np.argmax(density.release_.values(np.arange(101)))) in range(80, 95)
        True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        domain_range: Any = None,
        delta: float = 0.0,
        mechanism: str | DensityMechanism = "histogram",
        project: bool = True,
        unit: str = "person",
        ledger: BaseLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain_range = domain_range
        self.delta = delta
        self.mechanism = mechanism
        self.project = project
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, points: Any, y: Any = None) -> Self:
        """Release the density of `points`, shape (n,), (n, 1) or (n, 2)."""
        box = as_box(self.domain_range)
        inside = read_points(points, box)
        chosen = self.mechanism
        density = DensityRelease(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=len(inside),
            box=box,
            mechanism=DensityMechanism.named(chosen)() if isinstance(chosen, str) else chosen,
        )
        source = source_for(self.random_state)
        released = density.ask((inside,), source=source, ledger=self.ledger)
        self.release_: Release = replace(
            released,
            density=bool(self.project),
            parameters={"n": density.n, "domain_range": box, **released.parameters},
        )
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = len(box)
        return self

    @property
    def density_(self) -> FloatArray:
        """The released density on the release's grid."""
        check_is_fitted(self, "release_")
        return self.release_.values()


def as_box(domain_range: Any) -> Box:
    """One or two public ranges."""
    if domain_range is None:
        raise InvalidParameter("domain_range", "given: the public range of the points", None)
    nested = isinstance(domain_range, Collection) and any(
        isinstance(side, Collection) for side in domain_range
    )
    sides = tuple(domain_range) if nested else (domain_range,)
    if len(sides) > 2:
        raise InvalidParameter("domain_range", "one or two ranges", domain_range)
    return tuple(_validate.interval("domain_range", side) for side in sides)


def read_points(points: Any, box: Box, *, least: int = 2) -> FloatArray:
    """Private points as rows inside a public box."""
    try:
        single = isinstance(points, (list, tuple, np.ndarray)) and np.ndim(points) == 1
    except ValueError:  # rows of unequal length, which `batch` refuses in its own words
        single = False
    if single:
        rows = _validate.vector("points", points)[:, None]
    else:
        rows = _validate.batch("points", points, columns=len(box))
    if rows.shape[1] != len(box):
        raise InvalidData("points", f"points of {len(box)} numbers", f"shape {rows.shape}")
    if len(rows) < least:
        raise InvalidData("points", f"at least {least} points", f"{len(rows)}")
    return np.clip(rows, [side[0] for side in box], [side[1] for side in box])
