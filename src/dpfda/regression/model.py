"""A finished regression: public, portable, with its guarantee."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import msgspec
import numpy as np

from dpfda import _validate
from dpfda._registry import plain
from dpfda._validate import AnyArray, FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.band import PATHS, Band, Of, around, whose
from dpfda.curves.channels import ChannelBasis
from dpfda.curves.ranges import PublicColumns
from dpfda.documents import Body, Documented
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.linear_scores import chances, decided
from dpfda.regression.methods import Fitted, RegressionMechanism
from dpfda.regression.recipe import Recipe
from dpfda.report import Contents, Verdict

Label = str | int | float | bool
ModelLink = Literal["linear", "logistic", "discriminant"]


class FitBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Fitted` in a document; a radius of null is infinite. K classes have K slopes."""

    slope: list[float | list[float]]
    offset: float | list[float]
    center: list[float]
    radius: float | None
    inflation: float
    inflation_error: float
    clips: bool
    covariance: list[list[float]] | None
    sampling: list[list[float]] | None
    lost: list[list[float]] | None
    explains: list[float] | None
    explained: float | None
    clarity: float | None
    spread: float | None
    warnings: tuple[str, ...]


class Coefficient(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A coefficient in the units of its feature."""

    feature: str
    value: float
    privacy_standard_error: float | None


class RecipeBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A `Recipe` in a document."""

    names: tuple[str, ...]
    table: PublicColumns | None
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


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel(Documented):
    """What a private regression ends with: predictions for new rows or curves.

    Attributes:
        guarantee: what the people behind it were promised.
        link: ``linear``, ``logistic``, or ``discriminant`` for several classes.
        mechanism: how the budget was spent.
        rows: how many rows it was fitted to (public).
        stages: how many questions were asked.
        classes: the labels; None for a linear link.
        target_range: of a linear link.
        recipe: how rows in their own units, or curves, become features.
        fit: the predictor of features.

    Examples:
        >>> from dpfda.regression.estimators import PrivateLinearRegression
        >>> X = np.random.default_rng(0).uniform(0, 10, (9000, 2))
        >>> y = X @ [0.8, -0.4]
        >>> model = PrivateLinearRegression(
        ...     epsilon=1.0, feature_ranges=(0, 10), target_range=(-4, 8), random_state=0
        ... ).fit(X, y).model_
        >>> again = RegressionModel.from_json(model.to_json())
        >>> bool(np.abs(again.predict(X) - y).mean() < 0.3)
        True
    """

    kind: ClassVar[str] = "regression"
    body: ClassVar[type[Body]] = RegressionBody

    guarantee: Guarantee
    link: ModelLink
    mechanism: str
    rows: int
    stages: int
    classes: tuple[Label, ...] | None
    target_range: tuple[float, float] | None
    recipe: Recipe
    fit: Fitted

    def decision_function(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """The target's value, or the log-odds of the second class; of several, a score each."""
        return self.fit.predict(self.recipe.features(X, grid_points))

    def predict(self, X: Any, *, grid_points: Any = None) -> AnyArray:
        """Targets inside their public range, or labels."""
        score = self.decision_function(X, grid_points=grid_points)
        if self.classes is not None:
            return np.asarray(np.asarray(self.classes)[decided(score.reshape(len(score), -1))])
        return score if self.target_range is None else np.clip(score, *self.target_range)

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities of the classes, shape (n, K)."""
        score = self.decision_function(X, grid_points=grid_points)
        return chances(score.reshape(len(score), -1))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.recipe.names

    def named(self, features: Sequence[str]) -> Self:
        """The same with other names for its features."""
        return replace(self, recipe=replace(self.recipe, names=tuple(features)))

    @property
    def encoder(self) -> CurveEncoder | None:
        """How curves become features; None for tables."""
        return self.recipe.encoder

    @property
    def of_curves(self) -> bool:
        """Whether it was fitted to curves."""
        return self.encoder is not None

    @property
    def slopes(self) -> FloatArray:
        """Coefficients in the units of the table, or of encoded curves."""
        return np.asarray(self.fit.slope / self.recipe.scale)

    @property
    def intercept(self) -> Any:
        """Where all numbers of a row are 0: a number, or one a class."""
        found = self.fit.intercept - self.slopes @ self.recipe.shift
        return float(found) if np.ndim(found) == 0 else found

    @property
    def standard_errors(self) -> FloatArray | None:
        """Of the slopes, from the known privacy noise alone.

        Clipping biases slopes by more than noise does: no error bar is better than a tiny one.
        """
        if self.fit.clips or self.fit.covariance is None:
            return None
        return np.asarray(np.sqrt(np.diag(self.fit.covariance)) / self.recipe.scale)

    def coefficients(self) -> tuple[Any, list[Coefficient]]:
        """Intercept and coefficients in the units of the features; class by class."""
        names, values = list(self.features), self.slopes.ravel().tolist()
        if self.slopes.ndim == 2 and self.classes is not None:
            names = [f"{name} ({label})" for label in self.classes for name in names]
        errors = self.standard_errors
        told = [None] * len(names) if errors is None else errors.tolist()
        return self.intercept, [
            Coefficient(feature=name, value=value, privacy_standard_error=error)
            for name, value, error in zip(names, values, told, strict=True)
        ]

    def slope(self, points: Any = None) -> FloatArray:
        """The slope function β(t) of a model of curves, by default at 101 points.

        Of several classes, or channels: one row each.
        """
        assert self.encoder is not None
        return self.encoder.slope(self.fit.slope, points)

    @property
    def has_band(self) -> bool:
        """Whether `slope_band` is known: of a linear model of curves by `moments`."""
        fit = self.fit
        parts = (self.encoder, fit.covariance, fit.sampling, fit.lost, fit.explains)
        return all(part is not None for part in parts)

    def slope_band(
        self,
        level: float = 0.95,
        *,
        points: Any = None,
        of: Of = "population",
        simultaneous: bool = True,
    ) -> Band:
        """The slope function of a linear model of curves with a band, by default at 101 points.

        It is made of a few smooth functions and pulled towards 0 where noise hides how curves vary;
        the factor by which shortened curves make it too large (`fit.inflation`) is taken out. The
        band speaks of privacy noise, of sampling error and of the pull. How large a hidden slope is
        no answer says: the band takes one that is of like size in all functions and explains all of
        the target together. Where most of it is hidden, a `UserWarning` says so (`pulled`).

        Args:
            level: probability of the band.
            points: where.
            of: ``population``, noise, pull and sampling error; ``sample``, without sampling error.
            simultaneous: for the whole curve at once (all channels); otherwise point by point.
        """
        level = _validate.fraction("level", level)
        fit = self.fit
        if not self.has_band:
            rule = "'moments', and linear, for a band of a slope: others do not know their errors"
            raise InvalidParameter("mechanism", rule, self.mechanism)
        assert self.encoder is not None
        factor = fit.inflation_error**2 * np.outer(fit.slope, fit.slope)
        covariance = np.asarray(fit.covariance) + factor
        if whose(of) == "population":
            covariance = covariance + np.asarray(fit.sampling)
        if self.pulled:
            warnings.warn(self.pulled, UserWarning, stacklevel=3)
        lost: FloatArray = np.asarray(fit.lost)
        whole = covariance / fit.inflation**2 + (lost * self.likely_slopes) @ lost.T
        drawn = NoiseLaw.normal(whole).draw(PATHS, np.random.default_rng(0))
        middle, paths = (
            self.encoder.slope(one, points) for one in (fit.slope / fit.inflation, drawn)
        )
        return around(middle, paths, level=level, simultaneous=simultaneous)

    @property
    def likely_slopes(self) -> FloatArray:
        """Variances of slopes of like size in all functions that explain the targets together."""
        assert self.encoder is not None
        basis = self.encoder.basis
        scales = np.asarray(self.encoder.rescaler.scales(len(self.fit.slope)), dtype=np.float64)
        if isinstance(basis, ChannelBasis):  # whose units have nothing to do with each other
            scales = basis.in_turns([one / one.max() for one in basis.apart(scales)])
        return np.asarray(scales**2 / float(scales**2 @ np.asarray(self.fit.explains)))

    @property
    def pulled(self) -> str | None:
        """A warning where noise hides how curves vary, so that a band may miss; or None."""
        from dpfda.regression.judged import pulled  # which stands on this file

        return pulled(self)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw the slope function, with its band where that is known, or the coefficients.

        Returns the axes.
        """
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        if self.encoder is not None and self.of_curves:
            known = self.has_band
            band = self.slope_band(level) if known else Band(*[self.slope()] * 3)
            t = np.linspace(*self.encoder.basis.domain_range, band.middle.shape[-1])
            rows = (part.reshape(-1, len(t)) for part in band)  # one a channel
            for line, low, high in zip(*rows, strict=True):
                (drawn,) = ax.plot(t, line)
                if known:
                    shade = {"color": drawn.get_color(), "alpha": 0.15, "linewidth": 0}
                    told = f"{100 * level:g} % band of noise, sampling and pull, whole curve"
                    ax.fill_between(t, low, high, label=told, **shade)
            ax.axhline(0, color="0.6", linewidth=0.8)
            ax.set(xlabel="t", ylabel="slope function β(t)")
            if known:
                ax.legend(fontsize="small")
        else:
            found = self.coefficients()[1]
            bars = {"xerr": [row.privacy_standard_error or 0.0 for row in found]}
            ax.barh([row.feature for row in found], [row.value for row in found], **bars)
            ax.set_xlabel("coefficient")
        ax.set_title(f"{self.link} regression: {self.guarantee}", fontsize="small")
        return ax

    @property
    def notes(self) -> list[str]:
        """How to read the coefficients, and what nothing shows."""
        found = [self._reading()]
        if self.link == "discriminant":
            return found
        if not RegressionMechanism.named(self.mechanism).shows_rows:
            found.append(
                f"nothing that {self.mechanism} releases shows whether the public range of a "
                "feature is far too small, as other mechanisms do"
            )
        return found

    def _reading(self) -> str:
        if self.link == "discriminant":
            return (
                "a row belongs to the class of the largest score; coefficients hold for rows "
                "shortened to the clipping ball, as predictions use them"
            )
        if self.fit.clips:
            return (
                "the coefficients hold for rows shortened to the clipping ball, as predictions use "
                f"them. They are about {self.fit.inflation:.2g} times what unclipped rows would "
                "give, each by another factor, so no error is stated. To interpret coefficients, "
                "use --mechanism gaussian_fm"
            )
        if self.fit.covariance is None:
            return "the privacy noise of these coefficients has no simple form"
        return (
            "± is one standard deviation of the privacy noise alone, without the sampling error of "
            "the rows or the pull of a ridge. The intercept has none: it is the value where all "
            "features are 0, and mixes the errors of all coefficients"
        )

    def _deployment(self) -> Deployment:
        known = {"target_range": self.target_range, "classes": self.classes, **self.recipe.stated}
        what = "discriminant analysis" if self.link == "discriminant" else f"{self.link} regression"
        return Deployment(
            product=f"a {what} of {'curves' if self.of_curves else 'rows'}",
            mechanism=self.mechanism,
            guarantee=self.guarantee,
            records=self.rows,
            domain={name: value for name, value in known.items() if value is not None},
            computed="Predictions for others are computed from the model and cost nothing more.",
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know, the sentences of a doubtful `verdict` among it."""
        return self.verdict.added_to(filter(None, (*self.fit.warnings, self.pulled)))

    def _judged(self) -> Verdict:
        from dpfda.regression.judged import judged  # which stands on this file

        return judged(self)

    def _contents(self) -> Contents:
        from dpfda.regression.shown import contents  # which stands on this file

        return contents(self)

    def _fields(self) -> dict[str, Any]:
        fit = {part.name: plain(getattr(self.fit, part.name)) for part in fields(self.fit)}
        fit["radius"] = self.fit.radius if math.isfinite(self.fit.radius) else None
        intercept, found = self.coefficients()
        own = {"fit": fit, "intercept": intercept, "coefficients": msgspec.to_builtins(found)}
        return super()._fields() | own | {"notes": self.notes, "warnings": self.warnings}

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Self:
        for name in ("intercept", "coefficients", "notes", "warnings"):
            del body[name]
        fit, recipe = (msgspec.structs.asdict(body[name]) for name in ("fit", "recipe"))
        for parts in (fit, recipe):
            parts |= {name: _array(part) for name, part in parts.items() if type(part) is list}
        several = body["link"] == "discriminant"
        if fit["slope"].ndim != 1 + several or np.ndim(fit["offset"]) != several:
            raise InvalidData("fit.slope", "one row for each class of a discriminant link")
        if several and not len(fit["slope"]) == len(fit["offset"]) == len(body["classes"] or ()):
            raise InvalidData("fit.slope", "as many rows as classes", f"{len(fit['slope'])}")
        width = fit["slope"].shape[-1]
        sizes = [fit["center"], *(recipe[n] for n in ("names", "shift", "scale"))]
        if {len(part) for part in sizes} != {width}:
            raise InvalidData("fit.slope", "one number for each feature", f"{width}")
        fit["radius"] = math.inf if fit["radius"] is None else fit["radius"]
        if recipe["encoder"] is not None:
            recipe["encoder"] = CurveEncoder.from_dict(recipe["encoder"])
        return cls(**(body | {"fit": Fitted(**fit), "recipe": Recipe(**recipe)}))


def _array(part: list[Any]) -> Any:
    """Numbers of a document; rows of different lengths are refused by whoever needs a matrix."""
    try:
        return np.array(part, dtype=np.float64)
    except ValueError:
        return np.empty((0, 0, 0))
