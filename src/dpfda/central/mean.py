"""A mean curve under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpfda._validate import FloatArray
from dpfda.central.estimator import CurveEstimator
from dpfda.central.function_mechanism import FunctionMechanism, MeanRelease
from dpfda.central.quadrature import norm_bound


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateMean(CurveEstimator):
    """Release the mean of curves (or surfaces) held by a trusted curator.

    Privacy:
        (ε, δ)-DP for replacing one curve (pure ε with ``delta=0``). Curves are pulled into ‖X -
        centre‖ ≤ bound, where ‖X‖² is the average of X(t)² over the domain; n, the grid, the bound
        and the centre are public. With ``random_state=None`` noise is exact and from the operating
        system; an integer seeds a simulation, and the guarantee says so.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        bound: public bound τ on the norm √(average of X(t)²) of a curve minus the centre, in the
            units of the curve whatever its domain: if |X(t) - centre| ≤ τ everywhere, τ is true.
            For ``mechanism="bernstein"`` on its largest absolute value.
        centre: public curve (or number) to subtract first: a good guess makes a smaller bound true.
        mechanism: ``"adaptive"`` (default), ``"allocation"``, ``"iclp_qr"``, ``"iclp_ar"``,
            ``"frl"``, ``"bernstein"``, ``"gaussian_process"``, or an instance with parameters.
        unit: whose data one row is; several rows of one person multiply the price.
        ledger: budget of the data over all releases: spent look by look, before noise is drawn.
        random_state: None, or a seed for simulations.

    Example:
        >>> curves = np.linspace(0, 1, 40) + np.random.default_rng(0).normal(0, 0.1, (500, 1))
        >>> mean = PrivateMean(epsilon=1.0, bound=1.5, random_state=0).fit(curves)
        >>> bool(np.abs(mean.mean_ - np.linspace(0, 1, 40)).max() < 0.1)
        True
        >>> print(mean.guarantee_)
        ε = 1, central, unit = person, sampler = simulation (seeded), \
assuming the number of records is public
    """

    surfaces: ClassVar[bool] = True

    mechanism: str | FunctionMechanism = "adaptive"

    def fit(self, curves: Any, y: Any = None, *, grid_points: Any = None) -> Self:
        """Release the mean of `curves`: (n, T), (n, T1, T2), an ``FDataGrid``, or pairs (t, x)."""
        read = self._read(curves, grid_points)
        chosen = self.mechanism
        mechanism = FunctionMechanism.named(chosen)() if isinstance(chosen, str) else chosen
        largest = mechanism.bounds_largest
        mean = MeanRelease(
            **self._budget,
            n=len(read.rows),
            bound=read.bound if largest else norm_bound(read.bound, read.grid),
            grid=read.grid,
            mechanism=mechanism,
        )
        public = {"bound": read.bound}
        self._ask(mean, mean.records(read.rows), public=public, centre=read.centre)
        self.n_features_in_ = read.rows.shape[1]
        return self

    @property
    def mean_(self) -> FloatArray:
        """The released mean on the grid of the data."""
        return self._values()
