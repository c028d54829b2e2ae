"""Rows as they are: for studies whose questions carry their own public ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, whole
from dpfda.curves.bases import IdentityBasis
from dpfda.curves.encoder import CurveEncoder
from dpfda.curves.rescale import ClipRescaler
from dpfda.errors import InvalidParameter

_LARGEST = 1e100  # no square of an encoded number overflows


class RowEncoder(CurveEncoder):
    """Plain rows of d numbers, not moved into the box; what is missing becomes 0.

    Args:
        columns: d.

    Examples:
        >>> RowEncoder(2).encode([[20.0, -300.0]]).tolist()
        [[20.0, -300.0]]
        >>> read_encoder(RowEncoder(2).to_dict()) == RowEncoder(2)
        True
    """

    def __init__(self, columns: int) -> None:
        self._remember(columns=columns)
        self._made = None

    def _make(self, *, columns: Any) -> None:  # type: ignore[override]
        size = whole("columns", columns, most=1 << 16)
        self._settle(IdentityBasis(n_basis=size), ClipRescaler())

    def encode(self, X: Any, grid_points: Any = None, *, strict: bool = True) -> FloatArray:
        """The rows, large numbers cut where squares could overflow."""
        rows = self.coefficients(X, grid_points, strict=strict)
        return np.clip(rows, -_LARGEST, _LARGEST)

    def decode(self, z_star: npt.ArrayLike) -> FloatArray:
        """The rows themselves."""
        return np.asarray(z_star, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """The number of columns, ready for JSON."""
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
    """The encoder that a plan or a model was written with."""
    return (RowEncoder if "columns" in data else CurveEncoder).from_dict(data)
