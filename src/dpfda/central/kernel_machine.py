"""Regression and classification in a reproducing kernel space, under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.density import as_box, read_points
from dpfda.central.estimator import CentralEstimator
from dpfda.central.kernel_machine_look import KernelMachineRelease
from dpfda.central.kernels import Kernel, Matern
from dpfda.central.losses import Loss
from dpfda.errors import InvalidData, InvalidParameter


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateKernelMachine(CentralEstimator):
    """Release f minimizing mean loss + ψ‖f‖², for inputs of one or two numbers.

    Privacy:
        (ε, δ)-DP for replacing one pair (x, y): noise is calibrated to how far one pair can move
        the computed minimizer (`KernelMachine`: 003 Theorem 9 with C14, tightened). Inputs are
        rounded to a public grid, targets clipped to `target_bound`; classes are -1 and +1, whatever
        the data. The solver takes a public number of steps.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        domain_range: public range of the inputs, as for `PrivateDensity`.
        target_bound: Y with |y| ≤ Y, for ``loss="squared"``.
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
        ...     epsilon=2.0, loss="logistic", domain_range=(0, 1), random_state=0
        ... ).fit(x, y)
        >>> machine.predict([0.05, 0.95])
        array([-1.,  1.])
    """

    domain_range: Any = None
    target_bound: float | None = None
    loss: str = "squared"
    kernel: Kernel | None = None
    psi: float | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Release the minimizer for inputs (n,), (n, 1) or (n, 2) and targets (n,)."""
        loss = Loss.named(self.loss)()
        box = as_box(self.domain_range)
        points = read_points(X, box)
        targets, largest = self._targets(y, loss, len(points))
        machine = KernelMachineRelease(
            **self._budget,
            n=len(points),
            box=box,
            loss=self.loss,
            target_bound=largest,
            kernel=Matern(nu=2.5, length=0.3) if self.kernel is None else self.kernel,
            psi=None if self.psi is None else _validate.positive("psi", self.psi),
        )
        self._ask(machine, (points, targets), public={"loss": self.loss})
        self.n_features_in_ = len(box)
        if loss.classification:
            self.classes_ = np.array([-1.0, 1.0])  # fixed: never read off the data
        self._look = machine.look
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """f(x), inputs outside the public range being moved to its border."""
        values = self._values().ravel()
        box = tuple(zip(self._look.low, self._look.high, strict=True))
        points = read_points(X, box, least=1)
        return np.asarray(values[self._look.places(points)])

    def predict(self, X: Any) -> FloatArray:
        """f(x) for squared loss, its sign otherwise."""
        f = self.decision_function(X)
        return np.where(f >= 0, 1.0, -1.0) if Loss.named(self.loss).classification else f

    def _targets(self, y: Any, loss: Loss, n: int) -> tuple[FloatArray, float]:
        values = _validate.vector("y", y)
        if len(values) != n:
            raise InvalidData("y", "one target a point", f"{len(values)} targets")
        if loss.classification:
            return _validate.signs("y", values), 1.0
        if self.target_bound is None:
            raise InvalidParameter("target_bound", "given: a public bound on |y|", None)
        bound = _validate.positive("target_bound", self.target_bound)
        return np.clip(values, -bound, bound), bound
