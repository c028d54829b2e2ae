"""The public result of a regression, with its guarantee; it can be written to a document."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec
import numpy as np

from dpfda import _validate
from dpfda._registry import plain
from dpfda._validate import AnyArray, ArrayLike, FloatArray
from dpfda.central.regression.base import Fitted, RegressionMechanism
from dpfda.central.regression.recipe import Recipe
from dpfda.central.regression.released import (
    WIDEST,
    Coefficient,
    Label,
    ModelLink,
    RegressionBody,
    Released,
)
from dpfda.curves import CurveEncoder
from dpfda.curves.band import Band, Of, between, whose
from dpfda.curves.bases import ChannelBasis
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.linear_scores import chances, decided
from dpfda.protocol.model import slope_names
from dpfda.report import Contents, Verdict
from dpfda.report.documents import Body, Documented
from dpfda.report.panels import axes_or_new, headed, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMN_POINTS = 101  # number of points of a slope function written as columns


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel(Documented):
    """The result of a private regression: predictions for new rows or curves.

    Attributes:
        guarantee: the privacy guarantee.
        link: ``linear``, ``logistic``, or ``discriminant``: the log-odds of the second of two
            classes, or one score for each of several classes.
        mechanism: name of the method.
        rows: number of rows in the fit (public).
        stages: number of queries.
        classes: the labels; None for a linear link.
        target_range: public range of the targets of a linear link.
        recipe: the map from rows in their own units, or from curves, to features.
        fit: the predictor for features.
        weight_bound: public bound on the weights of the rows; None if they had no weights.

    Examples:
        >>> from dpfda.estimators.private_linear_regression import PrivateLinearRegression
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
    weight_bound: float | None = None

    def decision_function(self, X: Curves, *, grid_points: GridPoints = None) -> FloatArray:
        """Predicted targets, or log-odds of the second class, or one score for each class."""
        return self.fit.predict(self.recipe.features(X, grid_points))

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> AnyArray:
        """Predicted targets, clipped to their public range, or labels."""
        score = self.decision_function(X, grid_points=grid_points)
        if self.classes is not None:
            return np.asarray(np.asarray(self.classes)[decided(score.reshape(len(score), -1))])
        return score if self.target_range is None else np.clip(score, *self.target_range)

    def predict_proba(self, X: Curves, *, grid_points: GridPoints = None) -> FloatArray:
        """Probabilities of the classes, shape (n, K)."""
        score = self.decision_function(X, grid_points=grid_points)
        return chances(score.reshape(len(score), -1))

    @property
    def what(self) -> str:
        """The kind of analysis."""
        return "discriminant analysis" if self.link == "discriminant" else f"{self.link} regression"

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.recipe.names

    def named(self, features: Sequence[str]) -> Self:
        """A copy with other names of the features."""
        return replace(self, recipe=replace(self.recipe, names=tuple(features)))

    @property
    def encoder(self) -> CurveEncoder | None:
        """The encoder of curves; None for tables."""
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
        """The prediction for a row of zeros: one number, or one for each class."""
        found = self.fit.intercept - self.slopes @ self.recipe.shift
        return float(found) if np.ndim(found) == 0 else found

    @property
    def has_interval(self) -> bool:
        """Whether `interval` is available: for linear models with released moments."""
        released = self.fit.released
        return released is not None and not self.fit.clips and len(released.vector) <= WIDEST

    def interval(
        self, level: float = 0.95, *, of: Of | None = None, simultaneous: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of intervals for the coefficients, or for the slope function at 101 points.

        The intervals cover the coefficients that least squares without noise finds for rows moved
        into their public ranges (``of="sample"``). They follow from the released moments and the
        known law of their noise (`dpfda.noise.law`). If features are collinear, noise hides their
        separate effects. The intervals are then wide, and assume that standardized coefficients are
        at most of the order of 4.

        Args:
            level: coverage probability of each interval.
            of: ``sample``; for curves also ``population``, as in `slope_band`.
            simultaneous: whether the intervals cover all coefficients at once or each separately.
        """
        if self.of_curves:
            band = self.slope_band(level, of=of or "population", simultaneous=simultaneous)
            return band.low, band.high
        level = _validate.fraction("level", level)
        released = self.fit.released
        if released is None:
            rule = "'gaussian_fm', with link='linear', for intervals: coefficients of others have "
            raise InvalidParameter("mechanism", rule + "no known error", self.mechanism)
        if len(released.vector) > WIDEST:
            rule = f"at most {WIDEST}, including the intercept, for intervals"
            raise InvalidParameter("features", rule, len(released.vector))
        if of is not None and whose(of) == "population":
            rule = "'sample': the release does not say how much curves of other people vary"
            raise InvalidParameter("of", rule, of)
        slopes = released.slopes(released.draws) / self.recipe.scale
        band = between(slopes, level=level, simultaneous=simultaneous)
        return np.minimum(band.low, self.slopes), np.maximum(band.high, self.slopes)

    @property
    def target(self) -> str:
        """The target of intervals and bands, in words."""
        if self.of_curves:
            return "the slope function of the population, made of a few smooth functions"
        weighted = "weighted " * (self.weight_bound is not None)
        return (
            f"the {weighted}least-squares coefficients of these rows, moved into their public "
            "ranges"
        )

    def coefficients(self) -> tuple[Any, list[Coefficient]]:
        """Intercept and coefficients in the units of the features, class by class."""
        names, values = list(self.features), self.slopes.ravel().tolist()
        if self.slopes.ndim == 2 and self.classes is not None:
            names = [f"{name} ({label})" for label in self.classes for name in names]
        ends: Any = [[None] * len(names)] * 2
        if self.has_interval and not self.of_curves:
            ends = [end.tolist() for end in self.interval()]
        return self.intercept, [
            Coefficient(feature=name, value=value, low=low, high=high)
            for name, value, low, high in zip(names, values, *ends, strict=True)
        ]

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) of a model of curves, by default at 101 points.

        Several classes or channels have one row each.
        """
        assert self.encoder is not None
        return self.encoder.slope(self.fit.slope, points)

    @property
    def has_band(self) -> bool:
        """Whether `slope_band` is available: for linear models of curves with released moments."""
        return self.of_curves and self.has_interval

    def slope_band(
        self,
        level: float = 0.95,
        *,
        points: ArrayLike | None = None,
        of: Of = "population",
        simultaneous: bool = True,
    ) -> Band:
        """The slope function of a linear model of curves with a band, by default at 101 points.

        The slope function is a combination of the encoder's smooth functions, and the model is
        y = a + ∫ β x, where x is the projection of a curve on these functions. The band follows
        from the released moments and the known law of their noise (`dpfda.noise.law`). For the part
        of the slope that noise hides, the band uses a prior: slopes of similar size in all
        functions, which together explain the whole target. If the prior determines most of the
        band, a `UserWarning` says so (`pulled`).

        Args:
            level: coverage probability of the band.
            points: points of evaluation.
            of: ``population``; ``sample`` omits the sampling error, and covers the slope of the
                curves in the data, weighted by their distance from the center.
            simultaneous: whether the band covers all points (and channels) at once or each
                separately.
        """
        level = _validate.fraction("level", level)
        if not self.has_band:
            rule = (
                "'moments', with link='linear', for a band of the slope: other fits give no "
                "error of it"
            )
            raise InvalidParameter("mechanism", rule, self.mechanism)
        assert self.encoder is not None
        if self.pulled:
            warnings.warn(self.pulled, UserWarning, stacklevel=3)
        drawn = self.plausible_slopes(sampling=whose(of) == "population")
        band = between(self.encoder.slope(drawn, points), level=level, simultaneous=simultaneous)
        middle = self.slope(points)
        return Band(middle, np.minimum(band.low, middle), np.maximum(band.high, middle))

    def columns(self) -> dict[str, list[float]]:
        """The slope function with the ends of its 95 % band; empty if there is no band."""
        if not self.has_band or self.encoder is None:
            return {}
        points = np.linspace(*self.encoder.basis.domain_range, _COLUMN_POINTS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # also in `warnings` of the model
            band = self.slope_band(points=points)
        rows = [part.reshape(-1, len(points)) for part in band]
        found = {"t": points.tolist()}
        for name, *kinds in zip(slope_names(self, len(rows[0])), *rows, strict=True):
            known = zip(("", " low", " high"), kinds, strict=True)
            found |= {f"{name}{end}": row.tolist() for end, row in known}
        return found

    def plausible_slopes(self, *, sampling: bool) -> FloatArray:
        """Draws of the slopes that are plausible given the released moments."""
        released = self.fit.released
        assert released is not None
        return released.slopes(released.draws, sampling=sampling, sizes=self.slope_sizes)

    @property
    def slope_sizes(self) -> FloatArray:
        """Relative prior sizes of the slopes of features, for equal sizes in all functions."""
        assert self.encoder is not None
        basis = self.encoder.basis
        scales = np.asarray(self.encoder.rescaler.scales(len(self.fit.slope)), dtype=np.float64)
        if isinstance(basis, ChannelBasis):  # units of channels are not comparable
            scales = basis.in_turns([one / one.max() for one in basis.apart(scales)])
        return scales

    @property
    def pulled(self) -> str | None:
        """A warning if noise hides how curves vary, so that the band may be wrong; or None."""
        from dpfda.central.regression import model_report  # which imports this file

        return model_report.pulled(self)

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the slope function with its band, or the coefficients, and return the axes.

        Slope functions of several classes or channels have one panel each; the first panel is
        returned. A bar is a coefficient times the width of its feature's public range, so that
        features with different units are comparable.
        """
        title = f"{self.what}: {self.guarantee}"
        if self.encoder is None:
            return self._plot_coefficients(headed(axes_or_new(ax), title))
        known, label = self.has_band, f"{100 * level:g} % band for the whole curve"
        band = self.slope_band(level) if known else Band(*[self.slope()] * 3)
        t = np.linspace(*self.encoder.basis.domain_range, band.middle.shape[-1])
        rows = [part.reshape(-1, len(t)) for part in band]
        names = slope_names(self, len(rows[0]))
        several = len(names) > 1
        places = panels(ax, names, title=f"{title}\n{label}" if several and known else title)
        for place, line, low, high in zip(places, *rows, strict=True):
            (drawn,) = place.plot(t, line)
            if known:
                shade = {"color": drawn.get_color(), "alpha": 0.15, "linewidth": 0}
                place.fill_between(t, low, high, label=label, **shade)
            place.axhline(0, color="0.6", linewidth=0.8)
        if not several:
            places[0].set(xlabel="t", ylabel="slope function β(t)")
            if known:
                legend_below(places[0])
        return places[0]

    def _plot_coefficients(self, ax: Axes) -> Axes:
        """Draw bars of the coefficients times the public ranges of their features."""
        found, table = self.coefficients()[1], self.recipe.table
        widths = np.ones(len(self.features))
        if table is not None:
            widths = (table.high - table.low)[list(self.recipe.kept)]
        widths = np.tile(widths, len(found) // len(widths))
        sides = [[row.value - row.low, row.high - row.value] for row in found
                 if row.low is not None and row.high is not None]  # fmt: skip
        bars = {"xerr": np.transpose(sides) * widths} if sides else {}
        names, values = [row.feature for row in found], [row.value for row in found]
        ax.barh(names, np.multiply(values, widths), **bars)
        ax.axvline(0, color="0.6", linewidth=0.8)
        if ax.figure.axes == [ax]:
            ax.figure.set_figheight(max(ax.figure.get_figheight(), 0.25 * len(names) + 1))
        text = "coefficient" if table is None else "coefficient × width of the public range"
        ax.set_xlabel(text + ", with its 95 % interval" * bool(sides))
        return ax

    @property
    def notes(self) -> list[str]:
        """Notes on reading the coefficients, and on coefficients that may be noise."""
        found = [self._reading()]
        if self.link == "discriminant":
            return found
        method = RegressionMechanism.named(self.mechanism)
        counted = (
            method.additive and self.recipe.table is not None
        )  # counts people outside the ranges
        if not (method.shows_rows or counted):
            found.append(
                f"nothing that {self.mechanism} releases shows whether the public range of a "
                "feature is far too small, as other mechanisms do"
            )
        return found

    def _reading(self) -> str:
        if self.link == "discriminant" and self.slopes.ndim == 1:
            return (
                "coefficients are of the log-odds of the second class; they hold for rows "
                "shortened to the clipping ball, as predictions use them"
            )
        if self.link == "discriminant":
            return (
                "a row belongs to the class of the largest score; coefficients hold for rows "
                "shortened to the clipping ball, as predictions use them"
            )
        if self.fit.clips:
            return (
                "the coefficients hold for rows shortened to the clipping ball, as predictions use "
                "them. They differ from those of rows as they are: clipping makes them larger, "
                "shrinkage against the noise smaller, and of features that vary together one may "
                "stand for another, with either sign. So no interval is stated. To interpret "
                "coefficients, use gaussian_fm as the mechanism"
            )
        if self.fit.released is None:
            return "the error of these coefficients has no simple form, so no interval is stated"
        if not self.has_interval:
            return f"of more than {WIDEST} coefficients no interval is stated"
        return (
            f"each interval holds {self.target}, with 95 %: it counts the privacy noise and what "
            "the fit leaves out because of it, not which other rows there might have been. The "
            "intercept, the value where all features are 0, has none"
        )

    def _deployment(self) -> Deployment:
        known = {"target_range": self.target_range, "classes": self.classes, **self.recipe.stated,
                 "weight_bound": self.weight_bound}  # fmt: skip
        return Deployment(
            product=f"a {self.what} of {'curves' if self.of_curves else 'rows'}",
            mechanism=self.mechanism,
            guarantee=self.guarantee,
            records=self.rows,
            domain={name: value for name, value in known.items() if value is not None},
            computed="Predictions for others are computed from the model and cost nothing more.",
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the reader, including the sentences of a doubtful `verdict`."""
        text = (*self.fit.warnings, *self.hidden_features, self.pulled)
        return self.verdict.added_to(filter(None, text))

    @property
    def hidden_features(self) -> tuple[str, ...]:
        """A warning that names features whose variation is hidden by noise, if any."""
        from dpfda.central.regression import model_report  # which imports this file

        return model_report.hidden_features(self)

    def _judged(self) -> Verdict:
        from dpfda.central.regression import model_report  # which imports this file

        return model_report.verdict_of(self)

    def _contents(self) -> Contents:
        from dpfda.central.regression import model_report  # which imports this file

        return model_report.contents(self)

    def _fields(self) -> dict[str, Any]:
        fit = {part.name: plain(getattr(self.fit, part.name)) for part in fields(self.fit)
               if part.name != "released"}  # fmt: skip
        fit["radius"] = self.fit.radius if math.isfinite(self.fit.radius) else None
        released = self.fit.released
        fit["released"] = None if released is None else released.document()
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
        several = body["link"] == "discriminant" and len(body["classes"] or ()) != 2
        if fit["slope"].ndim != 1 + several or np.ndim(fit["offset"]) != several:
            raise InvalidData("fit.slope", "one row for each class of a discriminant link")
        if several and not len(fit["slope"]) == len(fit["offset"]) == len(body["classes"] or ()):
            raise InvalidData("fit.slope", "as many rows as classes", f"{len(fit['slope'])}")
        width = fit["slope"].shape[-1]
        sizes = [fit["center"], *(recipe[n] for n in ("names", "shift", "scale"))]
        if {len(part) for part in sizes} != {width}:
            raise InvalidData("fit.slope", "one number for each feature", f"{width}")
        fit["radius"] = math.inf if fit["radius"] is None else fit["radius"]
        if fit["released"] is not None:
            fit["released"] = Released.read(fit["released"])
        if recipe["encoder"] is not None:
            recipe["encoder"] = CurveEncoder.from_dict(recipe["encoder"])
        return cls(**(body | {"fit": Fitted(**fit), "recipe": Recipe(**recipe)}))


def _array(part: list[FloatArray]) -> FloatArray:
    """Numbers of a document; rows of unequal lengths give an empty array with an invalid shape."""
    try:
        return np.array(part, dtype=np.float64)
    except ValueError:
        return np.empty((0, 0, 0))
