"""The family of bases: a few functions φ_1..φ_d in which every curve of a study is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.errors import InvalidData


class Basis(Registered, ABC, family="basis"):
    """A public, frozen list of functions on an interval.

    A new basis is one file with one frozen dataclass: it has `n_basis` and `domain_range`, and
    says in `_functions` what its functions are worth. Everything else is inherited. Declared
    with ``name="..."`` it can be asked for by name.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Powers(Basis):
        ...     n_basis: int = 2
        ...     domain_range: tuple[float, float] = (0.0, 1.0)
        ...
        ...     def _functions(self, t):
        ...         return t[:, None] ** np.arange(self.n_basis)
        >>> Powers().gram().round(4).tolist()
        [[1.0, 0.5], [0.5, 0.3333]]
    """

    n_basis: int
    domain_range: tuple[float, float]

    #: False where there is no t at all (plain vectors).
    functional: ClassVar[bool] = True
    #: True where smooth curves need the later functions less and less.
    ordered: ClassVar[bool] = False

    @property
    def parts(self) -> tuple[Basis, ...]:
        """The basis of each channel of a curve: one, itself."""
        return (self,)

    def in_turns(self, channels: Sequence[FloatArray]) -> FloatArray:
        """Numbers of each channel's functions (..., d_c) as those of all functions (..., d)."""
        return channels[0]

    def apart(self, numbers: FloatArray) -> list[FloatArray]:
        """Undo `in_turns`."""
        return [numbers]

    def evaluate(self, points: npt.ArrayLike) -> FloatArray:
        """Values of all functions at `points`: shape ``points.shape + (n_basis,)``."""
        t = np.asarray(points, dtype=np.float64)
        low, high = self.domain_range
        if not np.all(within(t, self.domain_range)):
            raise InvalidData("points", f"inside the domain [{low:g}, {high:g}]")
        if t.size == 0:
            return np.empty((*t.shape, self.n_basis))
        values = self._functions(np.clip(t, low, high).ravel())
        return values.reshape(*t.shape, self.n_basis)

    def gram(self) -> FloatArray:
        """The matrix of inner products G_kl = ∫ φ_k φ_l, read-only and computed once."""
        return _gram(self)

    @classmethod
    def examples(cls) -> list[Self]:
        """Small instances for the checks that every basis must pass."""
        return [cls()]

    @abstractmethod
    def _functions(self, t: FloatArray) -> FloatArray:
        """Values at points `t` of shape (T,), all inside the domain: shape (T, n_basis)."""

    def _quadrature(self) -> tuple[FloatArray, int]:
        """Ends of the pieces on which the functions are smooth, and Gauss nodes on each piece."""
        return np.linspace(*self.domain_range, 65), 16

    def _settle(self, **values: Any) -> None:
        """Store checked parameters of a frozen dataclass, from its `__post_init__`."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def within(points: FloatArray, domain_range: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """Which points lie in the domain, up to the rounding of a grid's last point."""
    low, high = domain_range
    slack = 1e-9 * (high - low)
    return (points >= low - slack) & (points <= high + slack)  # NaN compares false


@lru_cache(maxsize=64)
def _gram(basis: Basis) -> FloatArray:
    ends, nodes = basis._quadrature()
    node, weight = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(ends)[:, None] / 2
    points = (ends[:-1, None] + half * (1 + node)).ravel()
    weights = (half * weight).ravel()
    values = basis.evaluate(points)
    return frozen(values.T @ (weights[:, None] * values))


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, read-only, because it is shared through a cache."""
    array.setflags(write=False)
    return array
