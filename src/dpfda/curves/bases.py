"""The bases: B-splines, cosine, Fourier and Demmler–Reinsch functions, vectors, tables.

B-splines are local functions that add up to 1; the papers use them. Cosine and Fourier functions
are smooth and orthonormal, ordered from slow to fast. Demmler–Reinsch functions are a constant, a
line, and waves of growing roughness. For plain vectors the numbers are the coefficients. A basis
can also be a table of values, or any list of functions. A curve of several channels has one basis
per channel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray, finite, interval, whole
from dpfda.curves.basis import Basis, frozen
from dpfda.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class BSplineBasis(Basis, name="bspline"):
    """Clamped B-splines on equidistant or given knots.

    Args:
        n_basis: number of functions; 0 means the smallest number that order and knots allow.
        order: polynomial degree plus one; 4 is cubic.
        knots: interior knots, strictly inside the domain and increasing; None for equidistant ones.
        domain_range: the domain of the curves.

    Examples:
        >>> BSplineBasis(n_basis=5).evaluate([0.0, 0.5, 1.0]).tolist()
        [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.25, 0.5, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
        >>> BSplineBasis(knots=(0.2, 0.9)).n_basis
        6
    """

    n_basis: int = 0
    order: int = 4
    knots: Sequence[float] | None = None
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        order = whole("order", self.order)
        domain_range = interval("domain_range", self.domain_range)
        if self.knots is None:
            n_basis = whole("n_basis", self.n_basis or order, least=order)
            knots = None
        else:
            knots = tuple(finite("knots", knot) for knot in self.knots)
            ends = (domain_range[0], *knots, domain_range[1])
            if np.any(np.diff(ends) <= 0):
                raise InvalidParameter("knots", "increasing and strictly inside the domain", knots)
            fewest = order + len(knots)
            n_basis = whole("n_basis", self.n_basis or fewest, least=fewest, most=fewest)
        self._settle(n_basis=n_basis, order=order, knots=knots, domain_range=domain_range)

    @classmethod
    def examples(cls) -> list[Self]:
        """Cubic, with a knot, given knots, steps, and a domain of years."""
        return [
            cls(),
            cls(n_basis=6),
            cls(knots=(0.1, 0.15, 0.8)),
            cls(order=1, n_basis=3),
            cls(n_basis=7, order=3, domain_range=(1.0, 18.0)),
        ]

    def _quadrature(self) -> tuple[FloatArray, int]:
        low, high = self.domain_range
        if self.knots is None:
            ends = np.linspace(low, high, self.n_basis - self.order + 2)
        else:
            ends = np.array([low, *self.knots, high])
        return ends, self.order  # exact: products of two pieces have degree 2(order - 1)

    def _functions(self, t: FloatArray) -> FloatArray:
        # Imported here because it takes longer than the rest of the package together, and a
        # server or a ledger that only reads an encoder never evaluates a spline.
        from scipy.interpolate import BSpline

        ends, _ = self._quadrature()
        degree = self.order - 1
        clamped = np.concatenate([[ends[0]] * degree, ends, [ends[-1]] * degree])
        return np.asarray(BSpline.design_matrix(t, clamped, degree).toarray())


@dataclass(frozen=True, kw_only=True)
class _Waves(Basis):
    """Base of orthonormal bases of a constant and waves times √2, divided by √L on length L."""

    ordered: ClassVar[bool] = True

    n_basis: int = 4
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._settle(
            n_basis=whole("n_basis", self.n_basis),
            domain_range=interval("domain_range", self.domain_range),
        )

    def gram(self) -> FloatArray:
        """The identity: the functions are orthonormal."""
        return np.eye(self.n_basis)

    @abstractmethod
    def _waves(self, unit: FloatArray) -> FloatArray:
        """Waves number 1, 2, ... at points (T, 1) of [0, 1]."""

    def _functions(self, t: FloatArray) -> FloatArray:
        low, high = self.domain_range
        waves = self._waves(((t - low) / (high - low))[:, None])
        functions = np.column_stack([np.ones_like(t), math.sqrt(2) * waves])
        return functions / math.sqrt(high - low)


@dataclass(frozen=True, kw_only=True)
class CosineBasis(_Waves, name="cosine"):
    """Orthonormal 1, √2 cos(πt), √2 cos(2πt), ..., `n_basis` functions in all.

    They impose no boundary conditions on curves. On a domain of length L every function is divided
    by √L, so a curve's first coefficient is its mean times √L.

    Examples:
        >>> CosineBasis(n_basis=3).evaluate([0.0, 0.5, 1.0]).round(3).tolist()
        [[1.0, 1.414, 1.414], [1.0, 0.0, -1.414], [1.0, -1.414, 1.414]]
    """

    @classmethod
    def examples(cls) -> list[Self]:
        """One function, several, and another domain."""
        return [cls(), cls(n_basis=1), cls(n_basis=6, domain_range=(-2.0, 5.0))]

    def _waves(self, unit: FloatArray) -> FloatArray:
        return np.cos(np.pi * unit * np.arange(1, self.n_basis))


@dataclass(frozen=True, kw_only=True)
class FourierBasis(_Waves, name="fourier"):
    """Orthonormal 1, √2 sin(2πt), √2 cos(2πt), √2 sin(4πt), ..., cut after `n_basis` functions.

    For curves that repeat with the domain's length.

    Examples:
        >>> FourierBasis(n_basis=3).evaluate([0.0, 0.25]).round(3).tolist()
        [[1.0, 0.0, 1.414], [1.0, 1.414, 0.0]]
    """

    @classmethod
    def examples(cls) -> list[Self]:
        """Even and odd sizes, and a year of days."""
        return [cls(), cls(n_basis=5, domain_range=(0.0, 365.0))]

    def _waves(self, unit: FloatArray) -> FloatArray:
        # k = 1, 2, 3, 4, ... runs sin, cos, sin, cos, ... at frequency 1, 1, 2, 2, ...
        k = np.arange(1, self.n_basis)
        angle = 2 * np.pi * unit * ((k + 1) // 2)
        return np.where(k % 2 == 1, np.sin(angle), np.cos(angle))


MOST_FUNCTIONS = 64


@dataclass(frozen=True, kw_only=True)
class SmoothBasis(Basis, name="smooth"):
    """Orthonormal functions ordered by ∫(f'')²: a constant, a line, then waves with free ends.

    Unlike cosines, the first few functions represent a curve that rises from one end to the other.
    On a domain of length L every function is divided by √L.

    They are the vibration modes of a free rod: second and third derivatives are 0 at both ends, and
    the fourth derivative is f times a constant. On [-1, 1] they are, alternately, cos(mx)/cos m +
    cosh(mx)/cosh m with tan m = -tanh m, and sin(mx)/sin m + sinh(mx)/sinh m with tan m = tanh m.

    Examples:
        >>> SmoothBasis(n_basis=2).evaluate([0.0, 0.5, 1.0]).round(2).tolist()
        [[1.0, -1.73], [1.0, 0.0], [1.0, 1.73]]
    """

    ordered: ClassVar[bool] = True

    n_basis: int = 4
    domain_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._settle(
            n_basis=whole("n_basis", self.n_basis, most=MOST_FUNCTIONS),
            domain_range=interval("domain_range", self.domain_range),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """One function, several, and another domain."""
        return [cls(), cls(n_basis=1), cls(n_basis=6, domain_range=(-2.0, 5.0))]

    def _functions(self, t: FloatArray) -> FloatArray:
        low, high = self.domain_range
        x = 2 * (t - low) / (high - low) - 1
        line = [np.ones_like(x), math.sqrt(3) * x][: self.n_basis]
        waves = [_wave(k, x) for k in range(2, self.n_basis)]
        return np.stack([*line, *waves], axis=-1) / math.sqrt(high - low)


def _wave(k: int, x: FloatArray) -> FloatArray:
    """Function number k ≥ 2 on [-1, 1], even for even k."""
    half, sign = math.pi * (k // 2), 1 if k % 2 else -1
    m = half
    for _ in range(20):  # each step divides the error by more than 30
        m = half + sign * math.atan(math.tanh(m))
    if k % 2:
        return np.sin(m * x) / math.sin(m) + np.sinh(m * x) / math.sinh(m)
    return np.cos(m * x) / math.cos(m) + np.cosh(m * x) / math.cosh(m)


def demmler_reinsch(axis: FloatArray) -> FloatArray:
    """An orthonormal basis (J, T) under the trapezoid rule, one function per point."""
    unit = (axis - axis[0]) / (axis[-1] - axis[0])
    gaps = np.diff(unit)
    root = np.sqrt(np.convolve(gaps, [0.5, 0.5]))  # square roots of the weights of the points
    line = np.stack([np.ones_like(unit), unit - 0.5])
    rows = line * root
    if unit.size > 2:
        slopes = np.diff(np.eye(unit.size), axis=0) / gaps[:, None]
        middle = (gaps[1:] + gaps[:-1]) / 2
        curvature = np.diff(slopes, axis=0) / np.sqrt(middle)[:, None]
        penalty = curvature.T @ curvature / root[:, None] / root
        _, vectors = np.linalg.eigh(penalty)
        rows = np.vstack([rows, vectors[:, 2:].T])
    # `eigh` returns the null space in an arbitrary rotation; QR puts constant and line first.
    q, r = np.linalg.qr(rows.T)
    functions = q * np.sign(np.diag(r)) / root[:, None] / np.sqrt(axis[-1] - axis[0])
    return np.asarray(functions.T)


@dataclass(frozen=True, kw_only=True)
class IdentityBasis(Basis, name="identity"):
    """The basis of plain vectors: `n_basis` numbers are their own coefficients.

    Examples:
        >>> IdentityBasis(n_basis=2).gram().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    n_basis: int

    functional: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._settle(n_basis=whole("n_basis", self.n_basis))

    @classmethod
    def examples(cls) -> list[Self]:
        """One number and several."""
        return [cls(n_basis=1), cls(n_basis=3)]

    def gram(self) -> FloatArray:
        """The identity."""
        return np.eye(self.n_basis)

    def evaluate(self, points: object) -> FloatArray:
        """Raise an error: a vector has no t."""
        raise InvalidParameter(
            "basis", "a basis of functions of t (others cannot be evaluated)", self.name
        )

    def _functions(self, t: FloatArray) -> FloatArray:
        return self.evaluate(t)


@dataclass(frozen=True, kw_only=True)
class CustomBasis(Basis, name="custom"):
    """Functions given by their values on a grid, with linear interpolation.

    The table is part of the public description of a study, so everybody encodes with the same
    functions. Python functions cannot be stored; `from_functions` tabulates them.

    Args:
        points: the grid (T,), increasing; its ends are the domain.
        values: a table (T, d), one column per function, linearly independent.

    Examples:
        >>> hats = CustomBasis(points=(0, 1, 2), values=[(1, 0), (0, 1), (1, 0)])
        >>> hats.evaluate([0.5, 2.0]).tolist()
        [[0.5, 0.5], [1.0, 0.0]]
        >>> CustomBasis.from_functions([np.ones_like, np.square], domain_range=(0, 2)).n_basis
        2
    """

    points: Sequence[float] = field(repr=False)
    values: Sequence[Sequence[float]] = field(repr=False)
    n_basis: int = field(init=False)
    domain_range: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        points, values = _numbers("points", self.points), _numbers("values", self.values)
        if points.ndim != 1 or points.size < 2 or np.any(np.diff(points) <= 0):
            found = f"an array of shape {points.shape}"
            raise InvalidParameter("points", "two or more increasing numbers", found)
        if values.ndim != 2 or values.shape[0] != points.size or values.shape[1] == 0:
            rule = f"a table with one row for each of the {points.size} points"
            raise InvalidParameter("values", rule, f"an array of shape {values.shape}")
        rank = int(np.linalg.matrix_rank(values))
        if rank < values.shape[1]:
            found = f"rank {rank} of {values.shape[1]}"
            raise InvalidParameter("values", "linearly independent columns", found)
        self._settle(
            points=tuple(points.tolist()),
            values=tuple(map(tuple, values.tolist())),
            n_basis=values.shape[1],
            domain_range=(float(points[0]), float(points[-1])),
        )

    @classmethod
    def from_functions(
        cls,
        functions: Sequence[Callable[[FloatArray], FloatArray]],
        *,
        domain_range: tuple[float, float] = (0.0, 1.0),
        n_points: int = 257,
    ) -> Self:
        """Tabulate vectorized functions on `n_points` equidistant points."""
        points = np.linspace(
            *interval("domain_range", domain_range), whole("n_points", n_points, least=2)
        )
        columns = [np.broadcast_to(function(points), points.shape) for function in functions]
        return cls(points=points.tolist(), values=np.column_stack(columns).tolist())

    @classmethod
    def examples(cls) -> list[Self]:
        """A hand-written table and tabulated functions."""
        hats = cls(points=(0.0, 0.5, 2.0), values=((1.0, 0.0), (0.0, 1.0), (1.0, 0.0)))
        return [hats, cls.from_functions([np.ones_like, np.exp, np.sin])]

    def _quadrature(self) -> tuple[FloatArray, int]:
        return np.array(self.points), 2  # exact: products of two linear pieces have degree 2

    def _functions(self, t: FloatArray) -> FloatArray:
        points, values = np.array(self.points), np.array(self.values)
        left = np.clip(np.searchsorted(points, t, side="right") - 1, 0, points.size - 2)
        share = ((t - points[left]) / (points[left + 1] - points[left]))[:, None]
        return np.asarray((1 - share) * values[left] + share * values[left + 1])


def _numbers(name: str, table: object) -> FloatArray:
    try:
        array = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.all(np.isfinite(array)):
        raise InvalidParameter(name, "a rectangular table of finite numbers", type(table).__name__)
    return array


_MOST_CHANNELS = 1 << 10


@dataclass(frozen=True, kw_only=True)
class ChannelBasis(Basis, name="channels"):
    """The bases of several channels, interleaved: all first functions, then all second ones.

    So the most important functions come first, for any number of channels.

    Args:
        parts: the basis of each channel.

    Examples:
        >>> basis = ChannelBasis(parts=(CosineBasis(n_basis=2), CosineBasis(n_basis=1)))
        >>> basis.in_turns([np.array([1.0, 2.0]), np.array([10.0])]).tolist()
        [1.0, 10.0, 2.0]
    """

    parts: tuple[Basis, ...] = ()
    n_basis: int = field(init=False)
    domain_range: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        read = [Basis.from_dict(one) if isinstance(one, Mapping) else one for one in self.parts]
        if not 1 <= len(read) <= _MOST_CHANNELS:
            raise InvalidParameter("parts", f"1 to {_MOST_CHANNELS} bases", len(read))
        for one in read:
            if not isinstance(one, Basis) or isinstance(one, (IdentityBasis, ChannelBasis)):
                raise InvalidParameter("parts", "bases of one channel's curves", type(one).__name__)
        if len({one.domain_range for one in read}) > 1:
            raise InvalidParameter("parts", "bases on the same domain", "several domains")
        self._settle(
            parts=tuple(read),
            n_basis=sum(one.n_basis for one in read),
            domain_range=read[0].domain_range,
        )

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether the first functions of every channel matter most."""
        return all(one.ordered for one in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The bases as plain values for JSON."""
        return {"name": self.name, "parts": [one.to_dict() for one in self.parts]}

    def in_turns(self, channels: Sequence[FloatArray]) -> FloatArray:
        """Interleave numbers: the first ones of all channels, then the second ones."""
        return np.concatenate(channels, axis=-1)[..., self._turns]

    def apart(self, numbers: FloatArray) -> list[FloatArray]:
        """Split interleaved numbers into those of each channel."""
        side_by_side = np.empty_like(numbers)
        side_by_side[..., self._turns] = numbers
        return np.split(side_by_side, np.cumsum([p.n_basis for p in self.parts])[:-1], axis=-1)

    def gram(self) -> FloatArray:
        """The Gram matrix; functions of different channels are orthogonal."""
        blocks = [one.gram() for one in self.parts]
        rows = [
            np.hstack(
                [
                    block if k == j else np.zeros((len(block), len(other)))
                    for j, other in enumerate(blocks)
                ]
            )
            for k, block in enumerate(blocks)
        ]
        return frozen(np.vstack(rows)[np.ix_(self._turns, self._turns)])

    @property
    def _turns(self) -> IntArray:
        """For each interleaved position, the number of the function counted channel by channel."""
        sizes = [one.n_basis for one in self.parts]
        place = np.concatenate([np.arange(size) for size in sizes])
        return np.argsort(place, kind="stable")

    @classmethod
    def examples(cls) -> list[Self]:
        """Two channels of different size."""
        return [cls(parts=(CosineBasis(n_basis=2), CosineBasis(n_basis=1)))]

    def evaluate(self, points: object) -> FloatArray:
        """Raise an error: evaluate each of `parts`, which are bases of one channel."""
        raise InvalidParameter(
            "basis", "a basis of one channel (evaluate each of its parts)", self.name
        )

    def _functions(self, t: FloatArray) -> FloatArray:
        return self.evaluate(t)
