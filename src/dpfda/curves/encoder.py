"""Encoders: from the curve that a person holds to a vector in [-1, 1]^d.

    curve  ── read ──>  points t, values x(t)  ── project ──>  coefficients z  ── rescale ──>  z*
              observations.py                     basis.py                        rescale.py

Everything here is public except the curves, which are arguments and are not stored. `RowEncoder`
leaves plain rows unscaled, for studies whose questions contain their own public ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, interval, whole
from dpfda.curves.bases import ChannelBasis, IdentityBasis
from dpfda.curves.basis import Basis, project
from dpfda.curves.observations import (
    Curves,
    GridPoints,
    on_grid,
    read_channels,
    read_curves,
    read_vectors,
)
from dpfda.curves.ranges import FeatureRanges, PublicColumns
from dpfda.curves.rescale import ClipRescaler, Rescaler
from dpfda.curves.transformer import Transformer
from dpfda.errors import InvalidData, InvalidParameter


class CurveEncoder(Transformer):
    """A public map from curves to vectors in [-1, 1]^d.

    It is a scikit-learn transformer that learns nothing from data, so it can precede any estimator
    in a pipeline, including private ones. Outside of pipelines, scikit-learn is not needed.

    Args:
        basis: a registered name, or a `Basis` object.
        rescale: a registered name, or a `Rescaler` object; by default `clip` if `feature_ranges`
            are given, and `tanh` otherwise.
        scale: public scale of coefficients: one number, or one per coefficient.
        center: public center of coefficients: one number, or one per coefficient.
        feature_ranges: public (low, high) of all coefficients, or one pair per coefficient, instead
            of scale and center. For tables (``identity``) also a mapping from column to (low, high)
            or to its categories, each of which becomes one number.
        **parameters: parameters of the named basis: `n_basis`, `domain_range`, `order`, ...

    Invalid parameters raise an error when the encoder is first used.

    Examples:
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

    _made: tuple[Basis, Rescaler, PublicColumns | None] | None

    def __init__(
        self,
        basis: str | Basis = "bspline",
        *,
        rescale: str | Rescaler | None = None,
        scale: float | Sequence[float] | None = None,
        center: float | Sequence[float] | None = None,
        feature_ranges: FeatureRanges | None = None,
        **parameters: Any,
    ) -> None:
        own = {"basis": basis, "rescale": rescale, "scale": scale, "center": center}
        self._remember(**own, feature_ranges=feature_ranges, **parameters)
        self._made = None

    @property
    def _parts(self) -> tuple[Basis, Rescaler, PublicColumns | None]:
        """Created at first use, because scikit-learn's constructors must not validate."""
        if self._made is None:
            self._make(**self._given)
        assert self._made is not None
        return self._made

    def _make(
        self,
        *,
        basis: str | Basis,
        rescale: str | Rescaler | None,
        scale: float | Sequence[float] | None,
        center: float | Sequence[float] | None,
        feature_ranges: FeatureRanges | None,
        **parameters: Any,
    ) -> None:
        sizes: dict[str, Any] = {"scale": scale, "center": center}
        table = None
        named = isinstance(basis, str) and basis == "identity"
        if feature_ranges is not None:
            if scale is not None or center is not None:
                rule = "given without scale and center"
                raise InvalidParameter("feature_ranges", rule, feature_ranges)
            if named:
                table = PublicColumns.of(feature_ranges, width=parameters.get("n_basis"))
                if table.named or any(column.categories for column in table.columns):
                    parameters["n_basis"] = len(table.names)
                    sizes = {"scale": tuple(table.half), "center": tuple(table.center)}
                else:
                    table = None
            if table is None:
                sizes = _sizes(feature_ranges)
                if named and not isinstance(sizes["scale"], float):
                    parameters.setdefault("n_basis", len(feature_ranges))
        if rescale is None:
            rescale = "tanh" if feature_ranges is None else "clip"
        given = {name: value for name, value in sizes.items() if value is not None}
        built = _member(Basis, "basis", basis, parameters)
        self._settle(built, _member(Rescaler, "rescale", rescale, given), table)

    def _settle(self, basis: Basis, rescaler: Rescaler, table: PublicColumns | None = None) -> None:
        """Check and store the parts."""
        size = basis.n_basis
        if table is not None and len(table.names) != size:
            raise InvalidParameter("table", f"of {size} numbers", len(table.names))
        rescaler.scales(size)
        rescaler.centers(size)
        self._made = basis, rescaler, table

    @classmethod
    def side_by_side(cls, channels: Sequence[CurveEncoder]) -> CurveEncoder:
        """An encoder of curves of several channels, with one encoder per channel.

        Features are interleaved: the first ones of all channels, then the second ones.

        Examples:
            >>> both = CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=2)] * 2)
            >>> both.encode(np.zeros((5, 30, 2))).shape
            (5, 4)
        """
        if len(channels) == 1:
            return channels[0]
        basis = ChannelBasis(parts=tuple(one.basis for one in channels))
        name = channels[0].rescaler.name
        if any(one.rescaler.name != name or one.table is not None for one in channels):
            raise InvalidParameter("encoder", "of curves, with one rescaler for all channels", name)
        scales = [one.rescaler.scales(one.n_features) for one in channels]
        centers = [one.rescaler.centers(one.n_features) for one in channels]
        sizes = {}
        if scales[0] is not None:
            kept = [one for one in scales if one is not None]
            sizes = {"scale": basis.in_turns(kept), "center": basis.in_turns(centers)}
        plain = {name: tuple(values.tolist()) for name, values in sizes.items()}
        return cls(basis, rescale=Rescaler.from_dict({"name": name, **plain}))

    # -- the path of a curve ----------------------------------------------------------------

    def encode(
        self, X: Curves, grid_points: GridPoints = None, *, strict: bool = True
    ) -> FloatArray:
        """Encode curves as z* of shape (n, d), inside [-1, 1]^d.

        Args:
            X: an array (n, T), or (n, T, C) for C channels, NaN where a point is missing; a
                scikit-fda FDataGrid or FDataIrregular, with its own grid; a list of pairs (t, x),
                one per person; a table for the identity basis.
            grid_points: the T points of an array, or a list of them, one grid for each curve;
                equidistant on the domain by default.
            strict: refuse curves that cannot be encoded (for a curator's data). A client in a study
                uses False, because refusing would reveal something: such a curve is encoded as 0.

        Raises:
            InvalidData: with `strict`, a curve is unusable. The message never shows a value.
        """
        return self.rescaler.rescale(self.coefficients(X, grid_points, strict=strict))

    def coefficients(
        self, X: Curves, grid_points: GridPoints = None, *, strict: bool = True
    ) -> FloatArray:
        """Least-squares coefficients z of shape (n, d), before rescaling; arguments as `encode`.

        Without `strict`, unknown coefficients become the public center, which is encoded as 0.
        """
        if self.table is not None:
            z = self.table.read(X, strict=strict)
        elif self.basis.functional:
            channels = read_channels(X, grid_points, count=self.channels, strict=strict)
            z = self.basis.in_turns(
                [
                    project(part, *read_curves(*one, domain_range=part.domain_range, strict=strict))
                    for part, one in zip(self.basis.parts, channels, strict=True)
                ]
            )
        else:
            z = read_vectors(X, n_basis=self.n_features, strict=strict)
        return np.where(np.isnan(z), self.rescaler.centers(self.n_features), z)

    def check_grid(self, X: Curves, grid_points: GridPoints = None) -> None:
        """Refuse a *public* grid or columns that do not fit, before anybody gets a task.

        A shared grid is the same for everybody, so an error about it reveals nothing. In contrast,
        an unusable curve of one person is encoded as 0 without an error.
        """
        if self.table is not None:
            self.table.check(X)
        elif on_grid(X):
            if X.dim_domain != 1:
                raise InvalidData("X", "of one variable", f"{X.dim_domain} variables")
            self.encode(np.zeros((1, *X.data_matrix.shape[1:])), X.grid_points[0])
        elif isinstance(X, np.ndarray) and X.ndim in (2, 3):
            grid = None if grid_points is None else np.asarray(grid_points)
            if grid is not None and grid.ndim == 2:
                grid = grid[0]
            self.encode(np.zeros((1, *X.shape[1:])), grid)

    # -- and back -----------------------------------------------------------------------------

    def decode(self, z_star: npt.ArrayLike) -> FloatArray:
        """The coefficients z of exact or noisy z*; not for `max_abs`, which loses the scale."""
        return self.rescaler.restore(z_star)

    def draw(self, z_star: npt.ArrayLike, points: npt.ArrayLike | None = None) -> FloatArray:
        """The curves (n, T) of z* at `points`, by default 101 points of the domain.

        For several channels the shape is (n, C, T).
        """
        return self.evaluate(self.decode(z_star), points)

    def lost(self, X: Curves, grid_points: GridPoints = None) -> float:
        """The share of the variation among public curves that the basis does not represent.

        This is Σ ‖(I - Π)(x - x̄)‖² / Σ ‖x - x̄‖² (‖δ‖² in Lemma 1 of 000), with the projection Π
        on the basis before rescaling and the mean curve x̄. It is computed without noise: use
        public or simulated curves to choose a basis and its size.

        Args:
            X: an array (n, T), or (n, T, C) for C channels, without gaps.
            grid_points: the T points, equidistant on the domain by default.

        Examples:
            >>> turns = np.pi * np.linspace(0, 1, 201)
            >>> waves = np.array([[1.0], [-1.0]]) * (np.cos(turns) + 0.5 * np.cos(3 * turns))
            >>> [round(CurveEncoder("cosine", n_basis=k).lost(waves), 2) for k in (2, 3, 4)]
            [0.2, 0.2, 0.0]
        """
        if not self.basis.functional:
            raise InvalidParameter("basis", "one of functions: a table loses nothing", None)
        curves = np.asarray(X, dtype=np.float64)
        if curves.ndim not in (2, 3) or len(curves) < 2 or not np.isfinite(curves).all():
            rule = "two curves or more at shared points, without gaps"
            raise InvalidData("X", rule, f"shape {curves.shape}")
        values = np.moveaxis(curves, 1, -1)  # (n, T) or (n, C, T)
        low, high = self.basis.domain_range
        size = values.shape[-1]
        t = np.linspace(low, high, size) if grid_points is None else np.asarray(grid_points)
        rest = values - self.evaluate(self.coefficients(curves, t), t).reshape(values.shape)
        missing, whole = (
            float(np.trapezoid((part - part.mean(axis=0)) ** 2, t, axis=-1).sum())
            for part in (rest, values)
        )
        return missing / whole if whole > 0 else 0.0

    def slope(self, coefficients: npt.ArrayLike, points: npt.ArrayLike | None = None) -> FloatArray:
        """The slope function β̂ of a linear rule b̂ᵀz*, at `points` (by default 101).

        β̂ = Σ_k (G⁻¹ D⁻¹ b̂)_k φ_k, so that b̂ᵀz* = ∫ x β̂ + `offset`. This is exact for `clip`
        inside its range and of first order for `tanh` (correction C2: Σ b̂_k φ_k is not a slope
        function). For plain vectors the result is the weight D⁻¹b̂ of each variable; for several
        channels the shape is (..., C, T).

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
        return self.evaluate(np.asarray(dual, dtype=np.float64), points)

    def offset(self, coefficients: npt.ArrayLike) -> FloatArray:
        """The constant −Σ_k b̂_k center_k / D_k that belongs to `slope`."""
        weights = self._per_coefficient(coefficients)
        return np.asarray(-weights @ self.rescaler.centers(self.n_features))

    # -- what everybody may know --------------------------------------------------------------

    @property
    def basis(self) -> Basis:
        """The basis functions."""
        return self._parts[0]

    @property
    def rescaler(self) -> Rescaler:
        """The map of coefficients into the box."""
        return self._parts[1]

    @property
    def table(self) -> PublicColumns | None:
        """The columns of a table with names or categories, if the encoder reads one."""
        return self._parts[2]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._parts == self._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        said = ", ".join(f"{k}={v!r}" for k, v in self._given.items() if v is not None)
        return f"{type(self).__name__}({said})"

    @property
    def n_features(self) -> int:
        """The length d of z*."""
        return self.basis.n_basis

    @property
    def channels(self) -> int:
        """Number of functions of t in a curve."""
        return len(self.basis.parts)

    def _feature_names(self) -> list[str]:
        if self.table is not None:
            return self.table.names
        return [f"{self.basis.name or 'feature'}{k}" for k in range(self.n_features)]

    def gram(self) -> FloatArray:
        """The matrix G_kl = ∫ φ_k φ_l of the basis."""
        return self.basis.gram()

    def to_dict(self) -> dict[str, Any]:
        """The encoder as plain values for JSON."""
        parts = {"basis": self.basis.to_dict(), "rescale": self.rescaler.to_dict()}
        return parts if self.table is None else parts | {"table": self.table.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; unknown names and parameters are refused."""
        for key in data:
            if key not in ("basis", "rescale", "table"):
                raise InvalidParameter(key, "a part of an encoder (basis, rescale)", data[key])
        for key in ("basis", "rescale"):
            if key not in data:
                raise InvalidParameter(key, "given (an encoder needs it)", None)
        basis, rescaler = Basis.from_dict(data["basis"]), Rescaler.from_dict(data["rescale"])
        encoder = cls(basis, rescale=rescaler)
        if data.get("table") is not None:
            encoder._settle(basis, rescaler, PublicColumns.from_dict(data["table"]))
        return encoder

    # -- helpers --------------------------------------------------------------------------------

    def evaluate(self, z: FloatArray, points: npt.ArrayLike | None = None) -> FloatArray:
        """The curves with coefficients z at `points`; z itself for plain vectors."""
        if not self.basis.functional:
            return z if points is None else z @ self.basis.evaluate(points).T
        t = np.linspace(*self.basis.domain_range, 101) if points is None else points
        parts = zip(self.basis.parts, self.basis.apart(z), strict=True)
        curves = [values @ part.evaluate(t).T for part, values in parts]
        return curves[0] if len(curves) == 1 else np.stack(curves, axis=-2)

    def _per_coefficient(self, coefficients: npt.ArrayLike) -> FloatArray:
        """D⁻¹b̂, the linear rule in terms of z instead of z*."""
        scales = self.rescaler.scales(self.n_features)
        if scales is None:
            rule = "one with a slope function (tanh, clip)"
            raise InvalidParameter("rescale", rule, self.rescaler.name)
        return np.asarray(np.asarray(coefficients, dtype=np.float64) / scales)


def _member(family: Any, argument: str, choice: Any, parameters: Mapping[str, Any]) -> Any:
    """The member of `family` with this name and these parameters, or the given object."""
    if isinstance(choice, str):
        return family.from_dict({"name": choice, **parameters})
    if not isinstance(choice, family):
        raise InvalidParameter(argument, f"a name or a {family.__name__}", choice)
    if parameters:
        raise InvalidParameter(argument, f"a name where {', '.join(parameters)} is given", choice)
    return choice


def _sizes(feature_ranges: FeatureRanges) -> dict[str, Any]:
    """Half width and center of one public range, or of one range per coefficient."""
    if not any(isinstance(pair, Sized) for pair in feature_ranges):
        low, high = interval("feature_ranges", feature_ranges)
        return {"scale": high / 2 - low / 2, "center": low / 2 + high / 2}
    pairs = [interval("feature_ranges", pair) for pair in feature_ranges]
    return {
        "scale": tuple(high / 2 - low / 2 for low, high in pairs),
        "center": tuple(low / 2 + high / 2 for low, high in pairs),
    }


_LARGEST = 1e100  # no square of an encoded number overflows


class RowEncoder(CurveEncoder):
    """An encoder that leaves rows of d numbers unscaled; missing numbers become 0.

    Args:
        columns: the number d of columns.

    Examples:
        >>> RowEncoder(2).encode([[20.0, -300.0]]).tolist()
        [[20.0, -300.0]]
        >>> read_encoder(RowEncoder(2).to_dict()) == RowEncoder(2)
        True
    """

    def __init__(self, columns: int) -> None:
        self._remember(columns=columns)
        self._made = None

    def _make(self, *, columns: int) -> None:  # type: ignore[override]
        size = whole("columns", columns, most=1 << 16)
        self._settle(IdentityBasis(n_basis=size), ClipRescaler())

    def encode(
        self, X: Curves, grid_points: GridPoints = None, *, strict: bool = True
    ) -> FloatArray:
        """The rows; numbers are clipped at 10^100, so that squares do not overflow."""
        rows = self.coefficients(X, grid_points, strict=strict)
        return np.clip(rows, -_LARGEST, _LARGEST)

    def decode(self, z_star: npt.ArrayLike) -> FloatArray:
        """The rows themselves."""
        return np.asarray(z_star, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """The number of columns as a plain value for JSON."""
        return {"columns": self.n_features}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`."""
        if set(data) != {"columns"}:
            raise InvalidParameter("encoder", "columns alone, for rows", sorted(map(str, data)))
        encoder = cls(data["columns"])
        encoder._make(**encoder._given)
        return encoder


def read_encoder(data: Mapping[str, Any]) -> CurveEncoder:
    """The encoder of a stored plan or model."""
    return (RowEncoder if "columns" in data else CurveEncoder).from_dict(data)
