"""A mean curve under differential privacy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.function_mechanism import FunctionMechanism, MeanRelease
from dpfda.central.quadrature import norm_bound
from dpfda.central.records import public_centre, read_records
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.noise.source import source_for
from dpfda.privacy.ledger import BaseLedger


class PrivateMean(BaseEstimator):  # type: ignore[misc]
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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bound: float | None = None,
        delta: float = 0.0,
        centre: Any = 0.0,
        mechanism: str | FunctionMechanism = "adaptive",
        domain_range: tuple[float, float] | None = None,
        unit: str = "person",
        ledger: BaseLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bound = bound
        self.delta = delta
        self.centre = centre
        self.mechanism = mechanism
        self.domain_range = domain_range
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Missing points are welcome: they are filled along the curve."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, curves: Any, y: Any = None, *, grid_points: Any = None) -> Self:
        """Release the mean of `curves`: (n, T), (n, T1, T2), an ``FDataGrid``, or pairs (t, x)."""
        if self.bound is None:
            raise InvalidParameter("bound", "given: a public bound on the norm of a curve", None)
        records, grid = read_records(curves, grid_points, domain_range=self.domain_range)
        bound = _validate.positive("bound", self.bound)
        chosen = self.mechanism
        mechanism = FunctionMechanism.named(chosen)() if isinstance(chosen, str) else chosen
        own = bound if mechanism.bounds_largest else norm_bound(bound, grid)
        mean = MeanRelease(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=len(records),
            bound=own,
            grid=grid,
            mechanism=mechanism,
        )
        centre = public_centre(self.centre, records.shape[1])
        source = source_for(self.random_state)
        released = mean.ask(mean.records(records - centre), source=source, ledger=self.ledger)
        self.release_: Release = replace(
            released,
            centre=centre,
            parameters={"n": mean.n, "bound": bound, **released.parameters},
        )
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = records.shape[1]
        return self

    @property
    def mean_(self) -> FloatArray:
        """The released mean on the grid of the data."""
        check_is_fitted(self, "release_")
        return np.asarray(self.release_.values())
