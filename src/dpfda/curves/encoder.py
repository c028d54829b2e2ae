"""One curve, from what a person holds to a vector in [-1, 1]^d.

    curve  ── read ──>  points t, values x(t)  ── project ──>  coefficients z  ── rescale ──>  z*
              observations.py                     projection.py, basis.py          rescale.py

Everything here is public except the curves, which are arguments and never kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, interval
from dpfda.curves.basis import Basis
from dpfda.curves.observations import read_curves, read_vectors
from dpfda.curves.projection import project
from dpfda.curves.rescale import Rescaler
from dpfda.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, init=False)
class CurveEncoder:
    """A public recipe that turns curves into vectors in [-1, 1]^d.

    Args:
        basis: a registered name, or a basis made by hand.
        rescale: a registered name, or a rescaler made by hand; by default `clip` where
            `feature_ranges` are given and `tanh` otherwise.
        scale: public size of a coefficient, one number or one for each.
        center: public middle of a coefficient, one number or one for each.
        feature_ranges: public (low, high) of all coefficients, or one pair for each: a short way
            to say scale and center.
        **parameters: parameters of the named basis: `n_basis`, `domain_range`, `order`, ...

    Example:
        >>> t = np.linspace(0, 1, 50)
        >>> curves = np.stack([1 + t, np.sin(5 * t)])
        >>> encoder = CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=2.0)
        >>> encoder.encode(curves, grid_points=t).round(2).tolist()
        [[0.46, 0.58, 0.68, 0.76], [-0.09, 0.9, -0.52, -0.48]]
        >>> float(abs(encoder.draw(encoder.encode(curves[:1]), t) - curves[:1]).max()) < 1e-12
        True
        >>> table = CurveEncoder("identity", feature_ranges=[(20, 80), (0, 200)])
        >>> table.encode([[50, 50]]).tolist()
        [[0.0, -0.5]]
    """

    basis: Basis
    rescaler: Rescaler

    def __init__(
        self,
        basis: str | Basis = "bspline",
        *,
        rescale: str | Rescaler | None = None,
        scale: float | Sequence[float] | None = None,
        center: float | Sequence[float] | None = None,
        feature_ranges: Sequence[Any] | None = None,
        **parameters: Any,
    ) -> None:
        sizes = {"scale": scale, "center": center}
        if feature_ranges is not None:
            if scale is not None or center is not None:
                rule = "given without scale and center"
                raise InvalidParameter("feature_ranges", rule, feature_ranges)
            sizes = _sizes(feature_ranges)
            if basis == "identity" and not isinstance(sizes["scale"], float):
                parameters.setdefault("n_basis", len(feature_ranges))
        if rescale is None:
            rescale = "tanh" if feature_ranges is None else "clip"
        given = {name: value for name, value in sizes.items() if value is not None}
        object.__setattr__(self, "basis", _member(Basis, "basis", basis, parameters))
        object.__setattr__(self, "rescaler", _member(Rescaler, "rescale", rescale, given))
        # Refuse now what would only fail with the first curve: sizes of the wrong length.
        self.rescaler.scales(self.n_features)
        self.rescaler.centers(self.n_features)

    # -- the path of a curve ----------------------------------------------------------------

    def encode(self, curves: Any, grid_points: Any = None, *, strict: bool = True) -> FloatArray:
        """Encode curves as z* of shape (n, d), always inside [-1, 1]^d.

        Args:
            curves: an array (n, T), NaN where a point is missing; a scikit-fda FDataGrid or
                FDataIrregular, with its own grid; a list of pairs (t, x), one per person;
                vectors (n, d) for the identity basis.
            grid_points: the T points of an array; equidistant on the domain by default.
            strict: refuse what cannot be encoded (a curator's own data). A client in a study
                says False: refusing would reveal something, so such a curve is encoded as 0.

        Raises:
            InvalidData: strict, and a curve is unusable. The message never shows a value.
        """
        return self.rescaler.rescale(self.coefficients(curves, grid_points, strict=strict))

    def coefficients(
        self, curves: Any, grid_points: Any = None, *, strict: bool = True
    ) -> FloatArray:
        """Least-squares coefficients z of shape (n, d), before rescaling; arguments as `encode`.

        What is unknown when not strict gets the public center, which is encoded as 0.
        """
        if self.basis.functional:
            points, values = read_curves(
                curves, grid_points, domain_range=self.basis.domain_range, strict=strict
            )
            z = project(self.basis, points, values)
        else:
            z = read_vectors(curves, n_basis=self.n_features, strict=strict)
        return np.where(np.isnan(z), self.rescaler.centers(self.n_features), z)

    def check_grid(self, curves: Any, grid_points: Any = None) -> None:
        """Refuse a *public* grid that does not fit, before anybody is asked for anything.

        How many points there are and where they lie is the same for everybody, so saying so
        reveals nothing; a person's own unusable curve, by contrast, is silently encoded as 0.
        """
        if hasattr(curves, "data_matrix"):
            if (curves.dim_domain, curves.dim_codomain) != (1, 1):
                found = f"dimensions {curves.dim_domain} and {curves.dim_codomain}"
                raise InvalidData("curves", "of one variable with one value each", found)
            grid_points = curves.grid_points[0]
            self.encode(np.zeros((1, len(grid_points))), grid_points)
        elif isinstance(curves, np.ndarray) and curves.ndim == 2:
            self.encode(np.zeros((1, curves.shape[1])), grid_points)

    # -- and back -----------------------------------------------------------------------------

    def decode(self, z_star: npt.ArrayLike) -> FloatArray:
        """Coefficients z behind z*, exact or noisy; not for `max_abs`, which forgets sizes."""
        return self.rescaler.restore(z_star)

    def draw(self, z_star: npt.ArrayLike, points: npt.ArrayLike | None = None) -> FloatArray:
        """The curves (n, T) behind z* at `points`, by default 101 across the domain."""
        return self.decode(z_star) @ self._functions_at(points).T

    def slope(self, coefficients: npt.ArrayLike, points: npt.ArrayLike | None = None) -> FloatArray:
        """The slope function β̂ of a linear rule b̂ᵀz*, at `points` (by default 101).

        β̂ = Σ_k (G⁻¹ D⁻¹ b̂)_k φ_k, so that b̂ᵀz* = ∫ x β̂ + `offset`: exact for `clip` inside its
        range, first order for `tanh` (correction C2: Σ b̂_k φ_k is not a slope function). For
        plain vectors it is the weight D⁻¹b̂ of each variable.

        Args:
            coefficients: b̂ of shape (d,), or a batch (..., d).
            points: where to evaluate; ignored for plain vectors.

        Raises:
            InvalidParameter: the rescaler is `max_abs`, which has no slope function.
        """
        weights = self._per_coefficient(coefficients)
        if not self.basis.functional:
            return weights
        dual = np.linalg.solve(self.gram(), weights[..., None])[..., 0]
        return np.asarray(dual @ self._functions_at(points).T)

    def offset(self, coefficients: npt.ArrayLike) -> FloatArray:
        """The constant −Σ_k b̂_k center_k / D_k that goes with `slope`."""
        weights = self._per_coefficient(coefficients)
        return np.asarray(-weights @ self.rescaler.centers(self.n_features))

    # -- what everybody may know --------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """The length d of z*."""
        return self.basis.n_basis

    def gram(self) -> FloatArray:
        """The matrix G_kl = ∫ φ_k φ_l of the basis."""
        return self.basis.gram()

    def to_dict(self) -> dict[str, Any]:
        """The whole recipe, ready for JSON."""
        return {"basis": self.basis.to_dict(), "rescale": self.rescaler.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`: registered names and known parameters only."""
        for key in data:
            if key not in ("basis", "rescale"):
                raise InvalidParameter(key, "a part of an encoder (basis, rescale)", data[key])
        return cls(Basis.from_dict(data["basis"]), rescale=Rescaler.from_dict(data["rescale"]))

    # -- helpers --------------------------------------------------------------------------------

    def _functions_at(self, points: npt.ArrayLike | None) -> FloatArray:
        if points is None and self.basis.functional:
            points = np.linspace(*self.basis.domain_range, 101)
        return np.eye(self.n_features) if points is None else self.basis.evaluate(points)

    def _per_coefficient(self, coefficients: npt.ArrayLike) -> FloatArray:
        """D⁻¹b̂: the same linear rule on z instead of z*."""
        scales = self.rescaler.scales(self.n_features)
        if scales is None:
            rule = "one with a slope function (tanh, clip)"
            raise InvalidParameter("rescale", rule, self.rescaler.name)
        return np.asarray(np.asarray(coefficients, dtype=np.float64) / scales)


def _member(family: Any, argument: str, choice: Any, parameters: Mapping[str, Any]) -> Any:
    """The member of `family` with this name and these parameters, or the one made by hand."""
    if isinstance(choice, str):
        return family.from_dict({"name": choice, **parameters})
    if not isinstance(choice, family):
        raise InvalidParameter(argument, f"a name or a {family.__name__}", choice)
    if parameters:
        raise InvalidParameter(argument, f"a name where {', '.join(parameters)} is given", choice)
    return choice


def _sizes(feature_ranges: Sequence[Any]) -> dict[str, Any]:
    """Half-range and middle of one public range, or of one for each coefficient."""
    if not any(isinstance(pair, Sized) for pair in feature_ranges):
        low, high = interval("feature_ranges", feature_ranges)
        return {"scale": high / 2 - low / 2, "center": low / 2 + high / 2}
    pairs = [interval("feature_ranges", pair) for pair in feature_ranges]
    return {
        "scale": tuple(high / 2 - low / 2 for low, high in pairs),
        "center": tuple(low / 2 + high / 2 for low, high in pairs),
    }
