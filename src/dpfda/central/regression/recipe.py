"""The public map from rows to features, the same in training and in prediction."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData

ANY_VALUE = (-(2.0**31), 2.0**31)
"""The range used if no public range is known; a ball inside it is then found privately."""
_LEAST = 4  # smallest number of basis functions of a channel
_REACH = math.sqrt(3)  # factor on the units of features, which are otherwise half-ranges


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe(Portable):
    """The map from a row of numbers, a record of a table or a curve to features of a regression.

    Attributes:
        names: names of the features; for curves the numbers of the basis functions.
        table: public columns; records are clipped to their ranges, which are mapped to [-1, 1].
        kept: indices of the table's numbers that are features; a reference category is omitted.
        shift, scale: the feature of a number x is (x - shift)/scale; 0 and 1 without a table.
        encoder: the encoder of curves.
        grid_points: the grid of the curves.

    Examples:
        >>> recipe = Recipe.of_table(PublicColumns.of([(0, 10), (20, 80)]), centered=True)
        >>> recipe.features([[5, 95]]).tolist()
        [[0.0, 1.0]]
    """

    names: tuple[str, ...]
    table: PublicColumns | None = None
    kept: tuple[int, ...] = ()
    shift: FloatArray
    scale: FloatArray
    encoder: CurveEncoder | None = None
    grid_points: FloatArray | None = None

    @classmethod
    def plain(cls, names: Collection[object], **more: Any) -> Recipe:
        """Features that are the given numbers, without shift and scale."""
        size = len(names)
        return cls(names=tuple(map(str, names)), shift=np.zeros(size), scale=np.ones(size), **more)

    @classmethod
    def of_table(cls, table: PublicColumns, *, centered: bool, contrasts: bool = False) -> Recipe:
        """Features in [-1, 1].

        Args:
            table: public columns.
            centered: whether to subtract the middle of each range; False if lines go through 0.
            contrasts: omit the first category of each column, the reference.
        """
        shift, scale = table.scaling(centered=centered)
        kept = table.contrasts if contrasts else list(range(len(table.names)))
        names = tuple(table.names[place] for place in kept)
        return cls(names=names, table=table, kept=tuple(kept), shift=shift[kept], scale=scale[kept])

    @property
    def boxed(self) -> bool:
        """Whether the features are in [-1, 1] by construction."""
        return self.table is not None or self.encoder is not None

    @property
    def shape(self) -> Literal["ball", "box", "curves"]:
        """Kind of the public bound: a length, a range for each column, or one for all values."""
        return "curves" if self.encoder is not None else "box" if self.table is not None else "ball"

    @property
    def stated(self) -> dict[str, Any]:
        """Public ranges, by the names of the parameters in which they are given."""
        if self.table is not None:
            ends = zip(self.table.low.tolist(), self.table.high.tolist(), strict=True)
            return {"feature_ranges": list(ends)}
        if self.encoder is None or self.encoder.basis.name != "smooth":
            return {}
        found = value_range_of(self.encoder)
        return {"value_range": "found privately" if found == ANY_VALUE else found}

    def features(
        self, X: Curves, grid_points: GridPoints = None, *, strict: bool = True
    ) -> FloatArray:
        """Features (n, D) of private rows, tables or curves; `strict` as in `CurveEncoder`."""
        if self.encoder is not None:
            points = self.grid_points if grid_points is None else grid_points
            return self.encoder.encode(X, points, strict=strict)
        if self.table is not None:
            return self._scaled(self.table.read(X))
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise InvalidData("X", f"rows of {len(self.names)} features", f"shape {rows.shape}")
        return rows

    def features_and_outside(self, X: Curves) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Features of the rows of a table, and whether each row was outside a range."""
        assert self.table is not None
        numbers, outside = self.table.read_and_mark(X)
        return self._scaled(numbers), outside

    def _scaled(self, numbers: FloatArray) -> FloatArray:
        """Convert numbers of the table to features."""
        found = numbers[:, list(self.kept)]
        found -= self.shift
        found /= self.scale
        return found


def public_encoder(
    *, value_ranges: Sequence[Any], domain: tuple[float, float], most: int
) -> CurveEncoder:
    """An encoder that is determined by the public ranges of the curves.

    It has `most` smooth functions in all channels together. Their units are such that the features
    of nearly every curve are in the unit ball: the first coefficient of a curve is about half of
    its range, and the j-th coefficient of a smooth curve decreases faster than j^-½.
    """
    size = max(_LEAST, most // len(value_ranges))
    length = math.sqrt(domain[1] - domain[0])
    units = length * _REACH / np.sqrt(np.arange(1, size + 1))
    channels = []
    for given in value_ranges:
        low, high = _validate.interval("value_range", given)
        center = np.append((low + high) / 2 * length, np.zeros(size - 1))
        channels.append(
            CurveEncoder(
                "smooth",
                n_basis=size,
                domain_range=domain,
                rescale="clip",
                scale=((high - low) / 2 * units).tolist(),
                center=center.tolist(),
            )
        )
    return CurveEncoder.side_by_side(channels)


def value_range_of(encoder: CurveEncoder) -> tuple[float, float]:
    """The public range of values of a `public_encoder` with one channel."""
    start, end = encoder.basis.domain_range
    unit, middle = (
        float(numbers[0]) / math.sqrt(end - start)
        for numbers in (encoder.rescaler.scale, encoder.rescaler.center)  # type: ignore[attr-defined]
    )
    half = unit / _REACH
    return middle - half, middle + half
