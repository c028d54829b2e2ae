"""A finished regression: public, portable, with its guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from dpfda._registry import plain
from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.documents import Body, Documented
from dpfda.errors import InvalidData
from dpfda.privacy.guarantee import Guarantee
from dpfda.regression.methods import Fitted
from dpfda.regression.problem import Task

Label = str | int | float | bool


class FitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Fitted` in a document; a radius of null is infinite."""

    slope: list[float]
    offset: float
    center: list[float]
    radius: float | None
    inflation: float
    clips: bool
    covariance: list[list[float]] | None
    warnings: tuple[str, ...]


class Coefficient(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A coefficient in the units of its feature."""

    feature: str
    value: float
    privacy_standard_error: float | None


class RegressionBody(Body):
    """The document of a `RegressionModel`; intercept, coefficients and notes are for readers."""

    task: Task
    mechanism: str
    rows: int
    stages: int
    features: tuple[str, ...]
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    encoder: dict[str, Any] | None
    grid_points: list[float] | None
    fit: FitBody
    intercept: float
    coefficients: list[Coefficient]
    notes: list[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel(Documented):
    """What a private regression ends with: predictions for new rows or curves.

    Attributes:
        guarantee: what the people behind it were promised.
        task: ``linear`` or ``logistic``.
        mechanism: how the budget was spent.
        rows: how many rows it was fitted to (public).
        stages: how many questions were asked.
        features: names of the features; of the basis functions for curves.
        classes: the two labels of a logistic task.
        target_range: of a linear task.
        encoder: how rows in their own units, or curves, become features.
        grid_points: where curves were known.
        fit: the predictor of features.

    Example:
        >>> from dpfda.regression.estimators import PrivateLinearRegression
        >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (9000, 2))
        >>> y = X @ [0.8, -0.4]
        >>> model = PrivateLinearRegression(epsilon=1.0, random_state=0).fit(X, y).model_
        >>> again = RegressionModel.from_json(model.to_json())
        >>> bool(np.abs(again.predict(X) - y).mean() < 0.05)
        True
    """

    kind: ClassVar[str] = "regression"
    body: ClassVar[type[Body]] = RegressionBody

    guarantee: Guarantee
    task: Task
    mechanism: str
    rows: int
    stages: int
    features: tuple[str, ...]
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    encoder: CurveEncoder | None
    grid_points: FloatArray | None
    fit: Fitted

    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """The target's value, or the log-odds of the second class."""
        if self.encoder is not None:
            points = self.grid_points if grid_points is None else grid_points
            X = self.encoder.encode(X, points)
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.fit.slope):
            rule = f"rows of {len(self.fit.slope)} features"
            raise InvalidData("X", rule, f"shape {rows.shape}")
        return self.fit.predict(rows)

    def predict(self, X: Any, *, grid_points: Any = None) -> Any:
        """Targets inside their public range, or labels."""
        score = self.decision_function(X, grid_points=grid_points)
        if self.classes is not None:
            return np.asarray(self.classes)[(score >= 0).astype(int)]
        return score if self.target_range is None else np.clip(score, *self.target_range)

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities of the two classes, shape (n, 2)."""
        score = self.decision_function(X, grid_points=grid_points)
        likely = 1 / (1 + np.exp(-np.clip(score, -500, 500)))
        return np.stack([1 - likely, likely], axis=1)

    @property
    def of_curves(self) -> bool:
        """Whether it was fitted to curves."""
        return self.encoder is not None and self.encoder.basis.functional

    def coefficients(self) -> tuple[float, list[Coefficient]]:
        """Intercept and coefficients in the units of the features."""
        scale, center = np.ones(len(self.features)), np.zeros(len(self.features))
        if self.encoder is not None and not self.of_curves:
            rescaler = self.encoder.rescaler
            scale = np.asarray(rescaler.scales(len(scale)))
            center = np.asarray(rescaler.centers(len(scale)))
        slope = self.fit.slope / scale
        # Clipping biases slopes by more than noise does: no error bar is better than a tiny one.
        covariance = None if self.fit.clips else self.fit.covariance
        errors = None if covariance is None else np.sqrt(np.diag(covariance)) / scale
        found = [
            Coefficient(
                feature=name,
                value=float(slope[place]),
                privacy_standard_error=None if errors is None else float(errors[place]),
            )
            for place, name in enumerate(self.features)
        ]
        return float(self.fit.intercept - slope @ center), found

    def slope(self, points: Any = None) -> FloatArray:
        """The slope function β(t) of a model of curves, by default at 101 points."""
        assert self.encoder is not None
        return self.encoder.slope(self.fit.slope, points)

    def plot(self, ax: Any = None) -> Any:
        """Draw the slope function, or the coefficients; returns the axes."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        if self.encoder is not None and self.of_curves:
            slope = self.slope()
            ax.plot(np.linspace(*self.encoder.basis.domain_range, slope.size), slope)
            ax.axhline(0, color="0.6", linewidth=0.8)
            ax.set(xlabel="t", ylabel="slope function β(t)")
        else:
            found = self.coefficients()[1]
            bars = {"xerr": [row.privacy_standard_error or 0.0 for row in found]}
            ax.barh([row.feature for row in found], [row.value for row in found], **bars)
            ax.set_xlabel("coefficient")
        ax.set_title(f"{self.task} regression: {self.guarantee}", fontsize="small")
        return ax

    @property
    def notes(self) -> list[str]:
        """How to read the coefficients."""
        if self.fit.clips:
            return [
                "the coefficients hold for rows shortened to the clipping ball, as predictions use "
                f"them. They are about {self.fit.inflation:.2g} times what unclipped rows would "
                "give, each by another factor, so no error is stated. To interpret coefficients, "
                "use --mechanism gaussian_fm"
            ]
        if self.fit.covariance is None:
            return ["the privacy noise of these coefficients has no simple form"]
        return [
            "± is one standard deviation of the privacy noise alone, without the sampling error of "
            "the rows or the pull of a ridge. The intercept has none: it is the value where all "
            "features are 0, and mixes the errors of all coefficients"
        ]

    def _fields(self) -> dict[str, Any]:
        fit = {part.name: plain(getattr(self.fit, part.name)) for part in fields(self.fit)}
        fit["radius"] = self.fit.radius if math.isfinite(self.fit.radius) else None
        intercept, found = self.coefficients()
        readers = {"intercept": intercept, "coefficients": msgspec.to_builtins(found)}
        return super()._fields() | {"fit": fit, **readers, "notes": self.notes}

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Self:
        for name in ("intercept", "coefficients", "notes"):
            del body[name]
        fit = msgspec.structs.asdict(body["fit"])
        for name in ("slope", "center", "covariance"):
            fit[name] = None if fit[name] is None else np.array(fit[name])
        if not len(fit["slope"]) == len(fit["center"]) == len(body["features"]):
            raise InvalidData("fit.slope", "one number for each feature", f"{len(fit['slope'])}")
        fit["radius"] = math.inf if fit["radius"] is None else fit["radius"]
        encoder = body["encoder"]
        own = {
            "fit": Fitted(**fit),
            "encoder": None if encoder is None else CurveEncoder.from_dict(encoder),
        }
        return cls(**(body | own))
