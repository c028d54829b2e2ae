"""`PrivateCurveRegression`: a number predicted from a curve, and the slope function with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpfda.central.regression.base import RegressionMechanism
from dpfda.central.regression.problem import Link
from dpfda.central.regression.two_stage import TwoStageMoments
from dpfda.curves import CurveEncoder
from dpfda.curves.band import Band, Of
from dpfda.estimators.regression_base import PrivateRegression, stated_range
from dpfda.estimators.regression_rows import CurveRows


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCurveRegression(PrivateRegression):
    """Predict a number from a curve with differential privacy: y ≈ a + ∫ β(t) x(t) dt.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0) for replacing one person, including curve and number. Ranges
        are public arguments; values outside are moved to the nearest end.

    Args:
        epsilon, delta: the budget of the whole fit.
        value_range: public range (low, high) of x(t), or one pair per channel. If None, it is found
            privately with a share of the budget; this requires one channel and n·ε ≥ 500 (1000 with
            δ = 0).
        target_range: public range (low, high) of y.
        domain_range: public range of t, if the data do not contain it.
        encoder: for experts, a `CurveEncoder` instead of `value_range`.
        mechanism, fit_intercept: for experts, as in `PrivateLinearRegression`.
        unit, ledger, random_state: as in `PrivateLinearRegression`.

    Attributes:
        model_: a public `RegressionModel` that can be saved.
        guarantee_: the privacy guarantee of the fit.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> t = np.linspace(0, 24, 49)
        >>> day = rng.normal(size=(8000, 1)) + rng.normal(size=(8000, 1)) * np.sin(t / 4)
        >>> y = np.trapezoid(day * (t > 12), t, axis=1) + rng.normal(size=8000)
        >>> model = PrivateCurveRegression(
        ...     epsilon=1.0, value_range=(-5, 5), target_range=(-60, 60), random_state=0
        ... ).fit(day, y, grid_points=t)
        >>> bool(np.mean((model.predict(day) - y) ** 2) < 0.1 * y.var())
        True
        >>> beta = model.slope(points=[6.0, 18.0])  # of an hour
        >>> bool(beta.middle[1] > beta.middle[0])
        True
    """

    _link: ClassVar[Link] = "linear"

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    encoder: CurveEncoder | None = None
    target_range: tuple[float, float] | None = None

    @property
    def _rows(self) -> CurveRows:
        return CurveRows.of(self)

    def _target_range(self) -> tuple[float, float]:
        return stated_range(self.target_range)

    def _method(self) -> RegressionMechanism:
        """The method; `moments` is weighted here, because clipping rows alone would bias slopes."""
        if self.mechanism == TwoStageMoments.name:
            return TwoStageMoments(weighted=True)
        return super()._method()

    def slope(
        self,
        level: float = 0.95,
        *,
        points: Any = None,
        of: Of = "population",
        simultaneous: bool = True,
    ) -> Band:
        """The slope function β(t), by default at 101 points, with a band.

        Its unit is that of the target over those of x and t. By default the band covers the slope
        function of the population. A warning says if the band depends on its prior more than on
        data: see `RegressionModel.slope_band`, the same method of the fitted model.
        """
        return self.model_.slope_band(level, points=points, of=of, simultaneous=simultaneous)
