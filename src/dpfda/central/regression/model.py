"""A finished regression: public, portable, with its guarantee."""

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

_COLUMN_POINTS = 101  # of a slope function that is written as columns


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel(Documented):
    """The result of a private regression: predictions for new rows or curves.

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
        weight_bound: public bound on the weights that rows had; None where they had none.

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
        """The target's value, or the log-odds of the second class; of several, a score each."""
        return self.fit.predict(self.recipe.features(X, grid_points))

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> AnyArray:
        """Targets inside their public range, or labels."""
        score = self.decision_function(X, grid_points=grid_points)
        if self.classes is not None:
            return np.asarray(np.asarray(self.classes)[decided(score.reshape(len(score), -1))])
        return score if self.target_range is None else np.clip(score, *self.target_range)

    def predict_proba(self, X: Curves, *, grid_points: GridPoints = None) -> FloatArray:
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
        """Whether `interval` is known: of linear models whose released moments tell it."""
        released = self.fit.released
        return released is not None and not self.fit.clips and len(released.vector) <= WIDEST

    def interval(
        self, level: float = 0.95, *, of: Of | None = None, simultaneous: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of intervals that hold the coefficients, or the slope function at 101 points.

        Coefficients are those that least squares without noise finds for rows moved into their
        public ranges (``of="sample"``). Intervals follow from the released moments and the known
        law of their noise (`dpfda.noise.law`). They are wide where features move together:
        then noise hides which of them counts, and intervals rest on the belief that standardized
        coefficients are of the order of 4 at most.

        Args:
            level: probability of each interval.
            of: ``sample``; of curves also ``population``, as `slope_band`.
            simultaneous: for all coefficients at once; otherwise for each by itself.
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
        """Intercept and coefficients in the units of the features; class by class."""
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

        Of several classes, or channels: one row each.
        """
        assert self.encoder is not None
        return self.encoder.slope(self.fit.slope, points)

    @property
    def has_band(self) -> bool:
        """Whether `slope_band` is known: of linear models of curves with released moments."""
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

        Slope functions are made of a few smooth functions, the encoder's, and y = a + ∫ β x holds
        with integrals of curves that these functions are fitted to. The band follows from the
        released moments and the known law of their noise (`dpfda.noise.law`). What noise
        hides of a slope no answer says: there the band holds slopes of like size in all functions
        that explain all of the target together, and where this is most of the band, a
        `UserWarning` says so (`pulled`).

        Args:
            level: probability of the band.
            points: where.
            of: ``population``; ``sample`` leaves out the error that is there because others might
                have been asked, and holds the slope of these curves weighted by how central they
                are.
            simultaneous: for the whole curve at once (all channels); otherwise point by point.
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
        """The slope function with the ends of its 95 % band; none where no band is known."""
        if not self.has_band or self.encoder is None:
            return {}
        points = np.linspace(*self.encoder.basis.domain_range, _COLUMN_POINTS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # among the warnings of the model
            band = self.slope_band(points=points)
        rows = [part.reshape(-1, len(points)) for part in band]
        found = {"t": points.tolist()}
        for name, *kinds in zip(slope_names(self, len(rows[0])), *rows, strict=True):
            known = zip(("", " low", " high"), kinds, strict=True)
            found |= {f"{name}{end}": row.tolist() for end, row in known}
        return found

    def plausible_slopes(self, *, sampling: bool) -> FloatArray:
        """Slopes of the features of curves that agree with what was released."""
        released = self.fit.released
        assert released is not None
        return released.slopes(released.draws, sampling=sampling, sizes=self.slope_sizes)

    @property
    def slope_sizes(self) -> FloatArray:
        """Relative slopes of features, of like size in all functions."""
        assert self.encoder is not None
        basis = self.encoder.basis
        scales = np.asarray(self.encoder.rescaler.scales(len(self.fit.slope)), dtype=np.float64)
        if isinstance(basis, ChannelBasis):  # whose units have nothing to do with each other
            scales = basis.in_turns([one / one.max() for one in basis.apart(scales)])
        return scales

    @property
    def pulled(self) -> str | None:
        """A warning where noise hides how curves vary, so that a band may miss; or None."""
        from dpfda.central.regression import model_report  # which imports this file

        return model_report.pulled(self)

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the slope function with its band, or the coefficients; returns the axes.

        Slope functions of several classes or channels have a panel each; then the first one is
        returned. A bar is a coefficient times the width of its feature's public range: features
        with different units have one scale.
        """
        title = f"{self.link} regression: {self.guarantee}"
        if self.encoder is None:
            return self._plot_coefficients(headed(axes_or_new(ax), title))
        known, told = self.has_band, f"{100 * level:g} % band for the whole curve"
        band = self.slope_band(level) if known else Band(*[self.slope()] * 3)
        t = np.linspace(*self.encoder.basis.domain_range, band.middle.shape[-1])
        rows = [part.reshape(-1, len(t)) for part in band]
        names = slope_names(self, len(rows[0]))
        several = len(names) > 1
        places = panels(ax, names, title=f"{title}\n{told}" if several and known else title)
        for place, line, low, high in zip(places, *rows, strict=True):
            (drawn,) = place.plot(t, line)
            if known:
                shade = {"color": drawn.get_color(), "alpha": 0.15, "linewidth": 0}
                place.fill_between(t, low, high, label=told, **shade)
            place.axhline(0, color="0.6", linewidth=0.8)
        if not several:
            places[0].set(xlabel="t", ylabel="slope function β(t)")
            if known:
                legend_below(places[0])
        return places[0]

    def _plot_coefficients(self, ax: Axes) -> Axes:
        """Bars of coefficients over the public ranges of their features."""
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
        counted = method.additive and self.recipe.table is not None  # people outside its ranges
        if not (method.shows_rows or counted):
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
        """Warnings for the reader, including the sentences of a doubtful `verdict`."""
        text = (*self.fit.warnings, *self.hidden_features, self.pulled)
        return self.verdict.added_to(filter(None, text))

    @property
    def hidden_features(self) -> tuple[str, ...]:
        """A warning that names features whose variation noise hides, or none."""
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
        if fit["released"] is not None:
            fit["released"] = Released.read(fit["released"])
        if recipe["encoder"] is not None:
            recipe["encoder"] = CurveEncoder.from_dict(recipe["encoder"])
        return cls(**(body | {"fit": Fitted(**fit), "recipe": Recipe(**recipe)}))


def _array(part: list[FloatArray]) -> FloatArray:
    """Numbers of a document; rows of unequal lengths give an empty array, refused by its shape."""
    try:
        return np.array(part, dtype=np.float64)
    except ValueError:
        return np.empty((0, 0, 0))
