"""The document of a regression, as it is written and read."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dpfda.central.regression.released import ReleasedBody
from dpfda.curves.ranges import PublicColumns
from dpfda.report.documents import Body

Label = str | int | float | bool
ModelLink = Literal["linear", "logistic", "discriminant"]


class FitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Fitted` in a document; a radius of null is infinite. K classes have K slopes."""

    slope: list[float | list[float]]
    offset: float | list[float]
    center: list[float]
    radius: float | None
    clips: bool
    released: ReleasedBody | None
    explained: float | None
    clarity: float | None
    spread: float | None
    warnings: tuple[str, ...]


class Coefficient(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A coefficient in the units of its feature; its 95 % interval, where that is known."""

    feature: str
    value: float
    low: float | None
    high: float | None


class RecipeBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Recipe` in a document."""

    names: tuple[str, ...]
    table: PublicColumns | None
    kept: tuple[int, ...]
    shift: list[float]
    scale: list[float]
    encoder: dict[str, Any] | None
    grid_points: list[float] | None


class RegressionBody(Body):
    """The document of a `RegressionModel`; from `intercept` on it is for readers."""

    link: ModelLink
    mechanism: str
    rows: int
    stages: int
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    recipe: RecipeBody
    fit: FitBody
    intercept: float | list[float]
    coefficients: list[Coefficient]
    notes: list[str]
    warnings: tuple[str, ...]
