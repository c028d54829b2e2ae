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
"""Instead of a public range where none is known: a ball is found privately in it."""
_LEAST = 4  # basis functions of a channel
_REACH = math.sqrt(3)  # half-ranges: a line from one end of the range to the other has such a slope


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe(Portable):
    """A row of numbers, a record of a table or a curve, as the numbers that a regression is about.

    Attributes:
        names: of the features; numbers of the basis functions for curves.
        table: public columns: records are moved into their ranges, and these to [-1, 1].
        kept: which of the table's numbers are features; without a reference category, for example.
        shift, scale: x is the feature (x - shift)/scale; 0 and 1 without a table.
        encoder: how curves become features.
        grid_points: where curves were known.

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
        """Features that have no units of their own."""
        size = len(names)
        return cls(names=tuple(map(str, names)), shift=np.zeros(size), scale=np.ones(size), **more)

    @classmethod
    def of_table(cls, table: PublicColumns, *, centered: bool, contrasts: bool = False) -> Recipe:
        """Features in [-1, 1].

        Args:
            table: public columns.
            centered: False where a line must go through 0.
            contrasts: leave out the first category of each column, the reference.
        """
        shift, scale = table.scaling(centered=centered)
        kept = table.contrasts if contrasts else list(range(len(table.names)))
        names = tuple(table.names[place] for place in kept)
        return cls(names=names, table=table, kept=tuple(kept), shift=shift[kept], scale=scale[kept])

    @property
    def boxed(self) -> bool:
        """Whether features lie in [-1, 1] by construction."""
        return self.table is not None or self.encoder is not None

    @property
    def shape(self) -> Literal["ball", "box", "curves"]:
        """Kind of the public bound: a length, a range for each column, or one for all values."""
        return "curves" if self.encoder is not None else "box" if self.table is not None else "ball"

    @property
    def stated(self) -> dict[str, Any]:
        """Public ranges, by the names that they are given under."""
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
        """Features of a table's rows, and which rows lay outside a range."""
        assert self.table is not None
        numbers, outside = self.table.read_and_mark(X)
        return self._scaled(numbers), outside

    def _scaled(self, numbers: FloatArray) -> FloatArray:
        """Numbers of the table as features."""
        found = numbers[:, list(self.kept)]
        found -= self.shift
        found /= self.scale
        return found


def public_encoder(
    *, value_ranges: Sequence[Any], domain: tuple[float, float], most: int
) -> CurveEncoder:
    """An encoder from what is public of curves: their ranges.

    Smooth functions first, `most` in all channels together, in such units that the features of
    nearly every curve lie in the unit ball: a curve has about half its range in the first one, and
    the j-th coefficient of a smooth curve falls faster than j^-½.
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
    """The public range of values from which an encoder of one channel was built."""
    start, end = encoder.basis.domain_range
    unit, middle = (
        float(numbers[0]) / math.sqrt(end - start)
        for numbers in (encoder.rescaler.scale, encoder.rescaler.center)  # type: ignore[attr-defined]
    )
    half = unit / _REACH
    return middle - half, middle + half
