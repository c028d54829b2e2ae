"""The density of points held by a curator, released with differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from dpfda._validate import FloatArray
from dpfda.central.density import DensityMechanism, DensityRelease
from dpfda.central.release import Release
from dpfda.curves.ranges import FeatureRanges
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.reading import no_grid, read_points, tags_of_points


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateDensity(CentralEstimator):
    """Release the density of numbers, or of points in the plane, of a trusted curator.

    Privacy:
        (ε, δ)-DP for replacing one point (pure ε with ``delta=0``, or if that has less noise).
        Points outside the public `feature_ranges` are counted and excluded from the density; with
        ``"kernel"`` they are moved to the border. n is public.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        feature_ranges: public range (low, high), one range for each variable, or a mapping from
            columns to (low, high).
        mechanism: ``"histogram"`` (default), ``"kernel"``, or an instance with parameters.
        project: whether to make the released function a density: nonnegative with integral 1.
        unit: the protected unit to which one point belongs.
        ledger: budget of the data over all releases; it is spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Examples:
        >>> import numpy as np
        >>> ages = np.random.default_rng(0).beta(8, 2, size=2000) * 100
        >>> density = PrivateDensity(epsilon=1.0, feature_ranges=(0, 100), random_state=0).fit(ages)
        >>> int(np.argmax(density.release_.values(np.arange(101)))) in range(80, 95)
        True
    """

    feature_ranges: FeatureRanges | None = None
    mechanism: str | DensityMechanism = "histogram"
    project: bool = True

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        no_grid(grid_points)
        points, self._box = read_points(self, X, self.feature_ranges, reset=reset, least=least)
        return HeldRecords((points,), public={"feature_ranges": self._box})

    def _conversation(self, read: HeldRecords, n: int) -> DensityRelease:
        chosen = self.mechanism
        mechanism = DensityMechanism.named(chosen)() if isinstance(chosen, str) else chosen
        known: dict[str, Any] = {**self._budget, "n": n, "box": self._box}
        return DensityRelease(**known, mechanism=mechanism, either=True)

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        return super()._keep(asked, read, replace(found, density=bool(self.project)))

    def __sklearn_tags__(self) -> Any:
        return tags_of_points(super().__sklearn_tags__(), self.feature_ranges)

    @property
    def density_(self) -> FloatArray:
        """The released density on the grid of the release."""
        return self.release_.values()
