"""Regression and classification in a reproducing kernel space, under differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray
from dpfda.central.estimator import Reading
from dpfda.central.kernel_machine_look import KernelMachineRelease
from dpfda.central.kernels import Kernel, Matern
from dpfda.central.losses import Loss
from dpfda.central.points import PointEstimator
from dpfda.central.release import Release
from dpfda.curves.ranges import middle
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.protocol.person import label_numbers


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateKernelMachine(PointEstimator):
    """Release f minimizing mean loss + ψ‖f‖², for inputs of one or two numbers.

    Privacy:
        (ε, δ)-DP for replacing one pair (x, y): noise is calibrated to how far one pair can move
        the computed minimizer (`KernelMachine`: 003 Theorem 9 with C14, tightened). Inputs are
        rounded to a public grid, targets clipped to `target_range`; classes are public. The solver
        takes a public number of steps.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        feature_ranges: public range of the inputs, as for `PrivateDensity`.
        target_range: public range (low, high) of y, for ``loss="squared"``.
        classes: the two public labels, for the other losses.
        loss: ``"squared"``, ``"logistic"`` or ``"smoothed_hinge"``.
        kernel: the space; Matérn 5/2 with length 0.3 by default.
        psi: ψ; by default chosen from n, ε and the kernel alone (privacy-safe selection).
        ledger: budget of the data over all releases: spent before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=4000)
        >>> y = np.where(rng.uniform(size=4000) < x, 1, -1)
        >>> machine = PrivateKernelMachine(
        ...     epsilon=2.0, loss="logistic", feature_ranges=(0, 1), random_state=0
        ... ).fit(x, y)
        >>> machine.predict([0.05, 0.95])
        array([-1,  1])
    """

    target_range: tuple[float, float] | None = None
    classes: Sequence[Any] = (-1, 1)
    loss: str = "squared"
    kernel: Kernel | None = None
    psi: float | None = None

    def _read(self, X: Any, y: Any, *, grid_points: Any, reset: bool) -> Reading:
        read = super()._read(X, None, grid_points=grid_points, reset=reset)
        return read._replace(rows=(*read.rows, self._targets(y, len(read.rows[0]))))

    def _conversation(self, read: Reading, n: int) -> KernelMachineRelease:
        return KernelMachineRelease(
            **self._budget,
            n=n,
            box=self._box,
            loss=self.loss,
            target_bound=self._segment()[1],
            kernel=Matern(nu=2.5, length=0.3) if self.kernel is None else self.kernel,
            psi=None if self.psi is None else _validate.positive("psi", self.psi),
        )

    def _keep(self, asked: Any, read: Reading, found: Release) -> Self:
        if self._classifies:
            self.classes_ = np.asarray(self.classes)
        self._look = asked.look
        return super()._keep(asked, read, found)

    def decision_function(self, X: Any) -> FloatArray:
        """f(x), inputs outside the public range being moved to its border."""
        values = self.release_.values().ravel()
        return np.asarray(values[self._look.places(self._points(X))] + self._segment()[0])

    def predict(self, X: Any) -> AnyArray:
        """f(x) for squared loss, the likelier class otherwise."""
        f = self.decision_function(X)
        return self.classes_[(f >= 0).astype(int)] if self._classifies else f

    @property
    def _classifies(self) -> bool:
        return Loss.named(self.loss).classification

    def _segment(self) -> tuple[float, float]:
        """Public middle and half width of the targets."""
        if self._classifies:
            return 0.0, 1.0
        if self.target_range is None:
            raise InvalidParameter("target_range", "given: the public (low, high) of y", None)
        return middle("target_range", self.target_range)

    def _targets(self, y: Any, n: int) -> FloatArray:
        """Targets about their middle; a class is -1 or +1, the first one where it is unknown."""
        if self._classifies:
            if self.classes is None or len(self.classes) != 2 or self.classes[0] == self.classes[1]:
                raise InvalidParameter("classes", "two different labels", self.classes)
            if self._is_simulation and not np.all(np.isin(y, self.classes)):
                raise InvalidData("y", "among the given classes")
            targets = 2.0 * label_numbers(y, self.classes) - 1
        else:
            center, half = self._segment()
            targets = np.clip(_validate.vector("y", y) - center, -half, half)
        if len(targets) != n:
            raise InvalidData("y", "one target a point", f"{len(targets)} targets")
        return np.asarray(targets, dtype=np.float64)

    def _public(self, read: Reading) -> dict[str, Any]:
        return {**super()._public(read), "loss": self.loss}
