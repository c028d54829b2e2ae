"""Regression and classification in a reproducing kernel space, under differential privacy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.basis import FunctionBasis, eigenpairs
from dpfda.central.density import as_box, read_points
from dpfda.central.density_mechanism import Box, nearest
from dpfda.central.function_mechanism import Task, additive, ellipsoid_noise, noise_law
from dpfda.central.kernels import Kernel, Matern
from dpfda.central.losses import Loss
from dpfda.central.release import Release
from dpfda.central.sources import source_for
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter
from dpfda.mechanisms.base import Mechanism

_CELLS = {1: 200, 2: 24}
_SMALLEST = 1e-8  # of the largest feature weight; smaller ones are dropped from model and noise
_TOLERANCE = 1e-9  # of the gradient, charged to the sensitivity
_NEWTON_STEPS = 200


class PrivateKernelMachine(BaseEstimator):  # type: ignore[misc]
    """Release f minimising mean loss + ψ‖f‖², for inputs of one or two numbers.

    Privacy:
        (ε, δ)-DP for replacing one pair (x, y). By strong convexity two minimisers differ by at
        most
        R = Mκ/(ψn) in the kernel's norm (003 Theorem 9 with C14), plus what the solver's tolerance
        adds. Noise is calibrated to that ball: coefficients j of f lie in ‖h_j/λ_j^{η/2}‖₂ ≤ R.
        Inputs are rounded to a public grid, targets clipped to `target_bound` (or ±1).

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        domain_range: public range of the inputs, as for `PrivateDensity`.
        target_bound: Y with |y| ≤ Y, for ``loss="squared"``.
        loss: ``"squared"``, ``"logistic"`` or ``"smoothed_hinge"``.
        kernel: the space; Matérn 5/2 with length 0.3 by default.
        eta: the space's kernel is the given one to the power η.
        psi: ψ; by default chosen from n, ε and the kernel alone (privacy-safe selection).
        published: independent Laplace noise with the scales of C14 instead of spherical noise.
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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        domain_range: Any = None,
        target_bound: float | None = None,
        loss: str = "squared",
        kernel: Kernel | None = None,
        eta: float = 1.0,
        psi: float | None = None,
        delta: float = 0.0,
        published: bool = False,
        unit: str = "person",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain_range = domain_range
        self.target_bound = target_bound
        self.loss = loss
        self.kernel = kernel
        self.eta = eta
        self.psi = psi
        self.delta = delta
        self.published = published
        self.unit = unit
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Release the minimiser for inputs (n,), (n, 1) or (n, 2) and targets (n,)."""
        loss = Loss.named(self.loss)()
        box = as_box(self.domain_range)
        points = read_points(X, box)
        targets, largest = self._targets(y, loss, len(points))
        task = Task(
            n=len(points), bound=1.0, epsilon=self.epsilon, delta=self.delta, unit=self.unit
        )
        basis, weights, kappa = self.space(box)
        psi = self.psi or self.safe_psi(task, weights, kappa=kappa, target_bound=largest)
        psi = _validate.positive("psi", psi)
        size = basis.grid[0].size
        table = basis.functions.T * weights
        solution = _minimise(table[nearest(points, box, size=size)], targets, loss, psi)
        reach = self.reach(task, psi, kappa=kappa, target_bound=largest)
        mechanism = self.mechanism(task, weights, reach)
        source = source_for(self.random_state)
        noisy = mechanism.randomize((solution * weights)[None, :], source)[0]
        self.release_ = Release(
            summary="kernel machine",
            coefficients=noisy,
            noisy=noisy,
            noise=(noise_law(mechanism),),
            basis=basis,
            centre=np.zeros(basis.weights.size),
            guarantee=task.guarantee.drawn_from(source),
            sensitivity=reach,
            parameters={"n": task.n, "loss": self.loss, "psi": psi, "kappa": kappa},
        )
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = len(box)
        self._box = box
        return self

    def space(self, box: Box) -> tuple[FunctionBasis, FloatArray, float]:
        """Functions φ_j on the cells' grid, feature weights λ_j^{η/2}, and κ = sup √C^η(x, x)."""
        size = _CELLS[len(box)]
        kernel = self.kernel or Matern(nu=2.5, length=0.3)
        pairs = eigenpairs(kernel, tuple(np.linspace(*side, size) for side in box))
        weights = pairs.eigenvalues ** (_validate.positive("eta", self.eta) / 2)
        kept = int(np.sum(weights > _SMALLEST**0.5 * weights[0]))
        pairs, weights = pairs.first(kept), weights[:kept]
        kappa = float(np.sqrt(((pairs.functions * weights[:, None]) ** 2).sum(axis=0)).max())
        return pairs, weights, kappa

    def reach(self, task: Task, psi: float, *, kappa: float, target_bound: float) -> float:
        """R: how far apart two computed minimisers can be in the kernel's norm."""
        loss = Loss.named(self.loss)()
        constant = loss.lipschitz(kappa=kappa, psi=psi, target_bound=target_bound)
        # Each computed minimiser is within _TOLERANCE/(2ψ) of the true one.
        return (constant * kappa / (psi * task.n) + _TOLERANCE / psi) * (1 + 1e-9)

    def safe_psi(
        self, task: Task, weights: FloatArray, *, kappa: float, target_bound: float
    ) -> float:
        """ψ of least noise plus smoothing bias, both known without data (PSS).

        The bias is taken as ψ times the squared norm of a function of size `target_bound` that
        wiggles a little: six times that of a constant.
        """
        bias = 6 * (target_bound / kappa) ** 2
        candidates = np.geomspace(1e-4, 10.0, 41)
        risks = []
        for psi in candidates:
            reach = self.reach(task, psi, kappa=kappa, target_bound=target_bound)
            risks.append(
                noise_law(self.mechanism(task, weights, reach)).variance.sum() + bias * psi
            )
        return float(candidates[int(np.argmin(risks))])

    def mechanism(self, task: Task, weights: FloatArray, reach: float) -> Mechanism:
        """Noise for coefficients with ‖h/weights‖₂ ≤ reach."""
        if not self.published or task.delta:
            return ellipsoid_noise(task, axes=weights, radius=reach)
        # C14: b_j = (R/ε) λ_j^{η/4} √(Σ λ_i^{η/2}).
        root = np.sqrt(weights)
        return additive(task, sensitivity=reach * float(np.linalg.norm(root)), axes=root)

    def decision_function(self, X: Any) -> FloatArray:
        """f(x), inputs outside the public range being moved to its border."""
        check_is_fitted(self, "release_")
        points = read_points(X, self._box, least=1)
        size = self.release_.basis.grid[0].size
        return np.asarray(self.release_.values().ravel()[nearest(points, self._box, size=size)])

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


def _minimise(rows: FloatArray, y: FloatArray, loss: Loss, psi: float) -> FloatArray:
    """argmin of mean loss(y, rows·w) + ψ‖w‖² up to a gradient of `_TOLERANCE`, by damped Newton."""
    n, size = rows.shape
    w = np.zeros(size)

    def objective(w: FloatArray) -> float:
        return float(loss.value(y, rows @ w).mean() + psi * w @ w)

    for _ in range(_NEWTON_STEPS):
        f = rows @ w
        gradient = rows.T @ loss.slope(y, f) / n + 2 * psi * w
        if float(np.linalg.norm(gradient)) <= _TOLERANCE:
            return w
        hessian = (rows * loss.curvature(y, f)[:, None]).T @ rows / n + 2 * psi * np.eye(size)
        step = np.linalg.solve(hessian, gradient)
        length, here, slope = 1.0, objective(w), float(gradient @ step)
        while length > 1e-8 and objective(w - length * step) > here - 1e-4 * length * slope:
            length /= 2
        w = w - length * step
    raise DpfdaError("the kernel machine's solver did not reach its tolerance; raise psi")
