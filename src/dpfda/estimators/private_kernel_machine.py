"""Regression and classification in a reproducing kernel space, under differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.central.functions import Kernel, Matern
from dpfda.central.kernel_machine import KernelMachineRelease
from dpfda.central.losses import Loss
from dpfda.central.release import Release
from dpfda.curves.ranges import FeatureRanges, middle
from dpfda.errors import InvalidParameter
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.reading import (
    check_classes,
    classifies,
    no_grid,
    public_classes,
    read_points,
    read_values,
    scored,
    set_classes,
    tags_of_points,
    tags_of_predictor,
)
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC
from dpfda.protocol.linear_scores import chances
from dpfda.protocol.person import label_numbers


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateKernelMachine(CentralEstimator):
    """Release the f that minimizes mean loss + ψ‖f‖², for inputs of one or two numbers.

    Privacy:
        (ε, δ)-DP for replacing one pair (x, y). The noise is calibrated to the largest change of
        the computed minimizer by one pair (`KernelMachine`: 003 Theorem 9 with C14, tightened).
        Inputs are rounded to a public grid, and targets are clipped to `target_range`; classes are
        public. The solver makes a public number of steps.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        feature_ranges: public ranges of the inputs, as for `PrivateDensity`.
        target_range: public range (low, high) of y, for ``loss="squared"``.
        classes: the two public labels, for the other losses; must be given unless a seed makes
            this a simulation.
        loss: ``"squared"``, ``"logistic"`` or ``"smoothed_hinge"``.
        kernel: ``"matern"``, ``"gaussian"`` or an instance with parameters; by default Matérn 5/2
            with length 0.3.
        psi: ψ; by default chosen from n, ε and the kernel alone (privacy-safe selection).
        unit: the protected unit to which one pair belongs.
        ledger: budget of the data over all releases; it is spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=4000)
        >>> y = np.where(rng.uniform(size=4000) < x, 1, -1)
        >>> machine = PrivateKernelMachine(
        ...     epsilon=2.0, loss="logistic", feature_ranges=(0, 1), random_state=0
        ... ).fit(x, y)
        >>> machine.predict([0.05, 0.95])
        array([-1,  1])
    """

    feature_ranges: FeatureRanges | None = None
    target_range: tuple[float, float] | None = None
    classes: Sequence[Any] | None = None
    loss: str = "squared"
    kernel: str | Kernel | None = None
    psi: float | None = None
    classes_: AnyArray = field(init=False)
    _classes_given: bool = field(init=False)

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        no_grid(grid_points)
        points, self._box = read_points(self, X, self.feature_ranges, reset=reset, least=least)
        values = read_values(self, y, len(points))
        if self._classifies:
            several = " (PrivateLogisticRegression and PrivateCurveClassifier take several)"
            set_classes(self, values, instead=several) if reset else check_classes(self, values)
            targets = 2.0 * label_numbers(values, self.classes_) - 1  # unknown: the first one
        else:
            center, half = self._segment()
            targets = np.clip(values - center, -half, half)
        public = {"feature_ranges": self._box, "loss": self.loss}
        return HeldRecords((points, targets), public=public)

    def _names_of_y(self) -> Sequence[Any] | None:
        return public_classes(self)

    def _conversation(self, read: HeldRecords, n: int) -> KernelMachineRelease:
        return KernelMachineRelease(
            **self._budget,
            n=n,
            box=self._box,
            loss=self.loss,
            target_bound=self._segment()[1],
            kernel=self._space(),
            psi=None if self.psi is None else _validate.positive("psi", self.psi),
            either=True,
        )

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        self._look = asked.query
        if self._classifies and not self._classes_given:
            found = replace(found, guarantee=found.guarantee.assuming(CLASSES_ARE_PUBLIC))
        return super()._keep(asked, read, found)

    # -- prediction -------------------------------------------------------------------------------

    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """f(x) for squared loss, otherwise the more likely class; x is clipped to its range."""
        f = self._at(X, grid_points)
        return self.classes_[(f >= 0).astype(int)] if self._classifies else f

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, grid_points: Any = None) -> float:
        """R² of the predictions, or the share of correct labels; not private."""
        return scored(self, self.predict(X, grid_points=grid_points), y, sample_weight)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """f(x): log-odds of ``classes_[1]`` for logistic loss."""
        return self._at(X, grid_points)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities (n, 2) in the order of ``classes_``: 1/(1 + e^-f).

        They are not calibrated. With logistic loss, the penalty shrinks f towards 0 and
        probabilities towards ½; the shrinkage is larger with fewer people and more columns. The
        hinge estimates classes, not probabilities. Expected calibration errors at ε = 2 and 10 000
        people (`tools/calibration.py`): 0.01 with logistic loss and 0.03 with the hinge for one
        column of simulated data, 0.17 and 0.09 on two columns of Adult.
        """
        return chances(self._at(X, grid_points)[:, None])

    def _at(self, X: Any, grid_points: Any) -> FloatArray:
        no_grid(grid_points)
        values = self.release_.values().ravel()  # raises `NotFittedError` first
        points, _ = read_points(self, X, self.feature_ranges, reset=False, least=1)
        places = self._look.cells.places(points)
        return np.asarray(values[places] + self._segment()[0])

    # -- what is public ---------------------------------------------------------------------------

    @property
    def _classifies(self) -> bool:
        return Loss.named(self.loss).classification

    def _segment(self) -> tuple[float, float]:
        """Public center and half-width of the targets."""
        if self._classifies:
            return 0.0, 1.0
        if self.target_range is None:
            raise InvalidParameter("target_range", "given: the public (low, high) of y", None)
        return middle("target_range", self.target_range)

    def _space(self) -> Kernel:
        """The kernel, which is given as an instance or by its name."""
        chosen = Matern(nu=2.5, length=0.3) if self.kernel is None else self.kernel
        if isinstance(chosen, str):
            return Kernel.named(chosen)()
        if not isinstance(chosen, Kernel):
            names = ", ".join(map(repr, Kernel.members()))
            rule = f"None, a kernel or the name of one ({names})"
            raise InvalidParameter("kernel", rule, chosen)
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = tags_of_points(super().__sklearn_tags__(), self.feature_ranges)
        return tags_of_predictor(tags, classes=self._classifies)
