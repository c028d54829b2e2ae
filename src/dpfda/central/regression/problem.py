"""The public facts of a regression: link and bounds. Never holds data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpfda._validate import FloatArray
from dpfda.central.regression.fixed_point import MOST_FEATURES, ball, kept, segment, with_constant
from dpfda.errors import InvalidParameter
from dpfda.protocol.fields import Declared, choice, flag, number, part, vector, whole

Link = Literal["linear", "logistic"]
_LEAST = 1e-100  # no quotient by a radius overflows


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds(Declared):
    """The public ball that rows are clipped to, and the public segment of targets.

    Attributes:
        center, radius: of the rows.
        target_center, target_radius: of the targets.

    Examples:
        >>> import numpy as np
        >>> Bounds(center=np.zeros(2)).rows(np.array([[3.0, 4.0]])) / 2**18
        array([[0.59999847, 0.79999924]])
    """

    center: FloatArray = vector("features")
    radius: float = number(least=_LEAST, default=1.0)
    target_center: float = number(default=0.0)
    target_radius: float = number(least=_LEAST, default=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.center) <= MOST_FEATURES:
            raise InvalidParameter("center", f"1 to {MOST_FEATURES} numbers", len(self.center))

    @property
    def dimension(self) -> int:
        """Number of features D."""
        return len(self.center)

    def rows(self, rows: FloatArray) -> FloatArray:
        """Rows in the unit ball, as whole numbers of 2^-18."""
        return ball(rows, center=self.center, radius=self.radius)

    def kept(self, rows: FloatArray) -> FloatArray:
        """The factor by which each row is shortened: 1 inside the ball."""
        return kept(rows, center=self.center, radius=self.radius)

    def targets(self, targets: FloatArray) -> FloatArray:
        """Targets in [-1, 1], as whole numbers of 2^-18."""
        return segment(targets, center=self.target_center, radius=self.target_radius)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(Declared):
    """What everybody may know before any row is read.

    Attributes:
        link: ``linear`` (targets within their bounds) or ``logistic`` (0/1).
        bounds: every row lies in them, or is clipped to them.
        fit_intercept: whether predictions may have a constant term.
        rows: how many rows there are, where it is known beforehand (public).

    Examples:
        >>> import numpy as np
        >>> problem = Problem(link="linear", bounds=Bounds(center=np.zeros(3)))
        >>> problem.dimension, problem.size
        (3, 4)
    """

    link: Link = choice("linear", "logistic")
    bounds: Bounds = part(lambda: Bounds)
    fit_intercept: bool = flag(default=True)
    rows: int | None = whole(optional=True, default=None)

    @property
    def dimension(self) -> int:
        """Number of features D."""
        return self.bounds.dimension

    @property
    def size(self) -> int:
        """Number of coefficients: the intercept counts, where there is one."""
        return self.dimension + self.fit_intercept

    def unit_rows(self, rows: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Whole numbers, 2^18 being 1: rows (x, 1)/√2 or x, and targets in [-1, 1]."""
        x = self.bounds.rows(rows)
        return with_constant(x) if self.fit_intercept else x, self.bounds.targets(targets)
