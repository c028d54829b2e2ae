"""scikit-learn estimators: private linear and logistic regression for a trusted curator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda.central.moments.discriminant import Discriminant
from dpfda.central.regression.base import Fitted, Regression
from dpfda.central.regression.problem import Link
from dpfda.curate import Passes, curate
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.blocks import is_dask
from dpfda.estimators.curve_reader import public_classes
from dpfda.estimators.reading import check_classes, set_classes
from dpfda.estimators.regression_base import PrivateRegression, stated_range
from dpfda.estimators.sum_estimator import SumEstimator
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.holder import Exchange
from dpfda.protocol.person import label_numbers
from dpfda.protocol.query import Records


@dataclass(eq=False, repr=False, kw_only=True)
class CuratedRegression(PrivateRegression, SumEstimator):
    """A regression of one curator's rows, at once or in chunks. Not for use by itself."""

    def fit(self, X: Any, y: Any, *, grid_points: Any = None, groups: Any = None) -> Self:
        """Fit privately: one pass over the rows for each question of the mechanism.

        Args:
            X: private rows (n, D), a DataFrame, or curves: an array (n, T), or (n, T, C) for C
                channels; scikit-fda curves; a list of pairs (t, x).
            y: private targets.
            grid_points: the points of curves given as an array, or a list of grids, one for each
                curve.
            groups: the person behind each row, where people have several: one row of each is
                used, chosen by public randomness, and ε is per person.
        """
        self._require_raw_rows()
        self._begin_anew()
        if is_dask(X):
            return self._fit_dask(X, y, grid_points=grid_points, groups=groups)
        X, grid_points = self._with_grids(X, grid_points)
        X = self._checked(X, reset=True, least=2)
        read = self._read_all(X, y, grid_points=grid_points, groups=groups)
        if self._link == "logistic":
            set_classes(self, read[1])
        regression, source = self._regression(rows=len(read[0])), self._next_source()
        records = self._records(*read)
        fitted, curator = curate(regression, records, source=source, ledger=self.ledger)
        promise = regression.guarantee.drawn_from(source)
        return self._finish(fitted, regression, curator.transcript, promise)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, grid_points: Any = None) -> Self:
        """Add a chunk of people to the stage in progress; call `next_stage` after the last one.

        Every stage needs all chunks again: see `fit_stream`, which also divides the budget by the
        number of rows as `fit` does. Nothing is released before `next_stage`, and each person may
        appear in one row of one chunk of a stage only.
        """
        first = not hasattr(self, "_passes")
        X, grid_points = self._with_grids(X, grid_points)
        X = self._checked(X, reset=first)
        if first:
            self._recipe = self._make_recipe(X, grid_points)
        read = self._read(X, y, grid_points)
        if self._link == "logistic":
            set_classes(self, read[1], classes) if first else check_classes(self, read[1])
        if first:
            source = self._next_source()
            self._passes = Passes(self._regression(), source=source, ledger=self.ledger)
        self._passes.add(self._records(*read))
        return self

    def next_stage(self) -> bool:
        """Release the stage in progress; True while another pass over the chunks is needed."""
        if not hasattr(self, "_passes"):
            raise InvalidData("X", "given through partial_fit before next_stage")
        passes = self._passes
        passes.release()
        if passes.result is None:
            return True
        del self._passes
        regression: Any = passes.conversation
        stream = passes.stream
        promise = regression.guarantee.drawn_from(stream.source)
        self._finish(passes.result, regression, stream.transcript, promise)
        return False

    def _fit_like(self, X: Any, y: Any, blocks: Any, *, grid_points: Any) -> Self:
        self._begin_anew()
        return super()._fit_like(X, y, blocks, grid_points=grid_points)

    def _form(self, X: Any, y: Any, *, grid_points: Any) -> None:
        X, grid_points = self._with_grids(X, grid_points)
        X = self._checked(X, reset=True)
        self._recipe = self._make_recipe(X, grid_points)
        if self._classifies:
            set_classes(self, self._read(X, y, grid_points)[1])

    def _asks(self, form: None, *, rows: int) -> Regression:
        return self._regression(rows=rows)

    def _chunk(self, X: Any, y: Any, *, grid_points: Any) -> Records:
        X, grid_points = self._with_grids(X, grid_points)
        read = self._read(self._checked(X, reset=False), y, grid_points)
        if self._classifies:
            check_classes(self, read[1])
        return read

    def _held(self, asked: Any, chunk: Records) -> Records:
        return self._records(*chunk)

    def _concluded(
        self,
        asked: Any,
        form: None,
        result: Any,
        *,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        return self._finish(result, asked, transcript, guarantee)

    def _names_of_y(self) -> Sequence[Any] | None:
        return public_classes(self)

    def _records(self, rows: Any, values: Any, outside: Any = None) -> Records:
        """Records for the queries: rows, targets and, for tables, flags of rows outside."""
        given = self._targets(values)
        targets = np.clip(given, *self._target_ends())
        return (rows, targets) if outside is None else (rows, targets, outside | (given != targets))

    def _count(self, rows: int | None) -> int:
        """How many rows there are, which some questions must know beforehand."""
        if rows is None:
            rule = "given at once or through fit_stream: several classes, and curves without a "
            raise InvalidData("X", rule + "value_range, need the number of rows")
        return rows

    def _begin_anew(self) -> None:
        """The same seed, the same fit; chunks of one that was never finished are dropped."""
        self.__dict__.pop("_passes", None)
        self._begun = 0

    def _next_source(self) -> Source:
        """Of a seed, what no earlier pass has drawn: same noise on other sums would cancel."""
        self._begun = self.__dict__.get("_begun", 0) + 1
        return self._source(self._begun - 1)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearRegression(CuratedRegression):
    """Least squares of a bounded target on bounded features, with differential privacy.

    For tables; `PrivateCurveRegression` predicts from curves.

    Privacy:
        (ε, δ)-DP (pure ε for δ = 0, where the mechanism allows it) for replacing one row, or with
        `groups` all rows of one person. All ranges are public arguments; none is taken from the
        data, and what lies outside is moved to the nearest end. People outside their ranges are
        counted, for 1 % to 5 % of the budget, by mechanisms that add up over rows; a warning says
        if they are more than a few. Each mechanism states its own proof
        (`dpfda.central.regression`).

    Args:
        epsilon, delta: the budget of the whole fit.
        feature_ranges: public ranges of a table: (low, high) for all columns, one pair a column, or
            a mapping column → (low, high) or its categories (then X is a DataFrame). Beside an
            intercept the first category is the reference: a coefficient of another one is its
            difference from the first.
        target_range: public range (low, high) of y.
        mechanism: how the budget is spent: ``moments`` (default), ``gaussian_fm``, ``adassp``,
            ``objective_perturbation``, ``noisy_gradient``, ``output_perturbation``, or a
            `RegressionMechanism`.
        fit_intercept: allow a constant term.
        feature_norm_bound, feature_center: instead of ranges, for experts: public bound on
            |x - feature_center|₂, the center one number (0) or one for each feature.
        unit: whom one row (or group) stands for.
        ledger: the data set's budget over all fits; spent before noise is drawn, and refused
            before anything is spent where it cannot pay for the whole fit.
        random_state: None for exact noise; a seed for simulations.

    Attributes:
        coef_, intercept_: in the units of X. They are those of the line inside the clipping ball;
            `predict` clips as in training. ``moments`` shortens rows, so its `coef_` is too large
            as a statement about unclipped rows: use it to predict, and ``gaussian_fm`` (clips at
            the public ranges only) where coefficients are the question.
        model_: the same as a public `RegressionModel` that can be saved. ``model_.interval()``
            holds the coefficients of these rows that least squares without noise finds; for
            ``gaussian_fm`` and ``adassp``, and for ``moments`` where it shortens no row.
            ``model_.warnings`` names features that noise hides.
        guarantee_: what the fit promises.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(20, 60, (20_000, 3))
        >>> y = X @ [0.8, -0.4, 0.0] + 10
        >>> model = PrivateLinearRegression(
        ...     epsilon=1.0, feature_ranges=(20, 60), target_range=(0, 50), random_state=0
        ... ).fit(X, y)
        >>> np.abs(model.predict(X) - y).mean() < 1.5
        np.True_
        >>> print(model.guarantee_)  # doctest: +ELLIPSIS
        ε = 1, δ = 1e-06, central, unit = person, sampler = simulation (seeded), assuming ...
    """

    _link: ClassVar[Link] = "linear"

    target_range: tuple[float, float] | None = None

    def _target_range(self) -> tuple[float, float]:
        return stated_range(self.target_range)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(CuratedRegression):
    """Classification of a table's rows by private lines, with differential privacy.

    Two classes by logistic regression. More by discriminant analysis from one joint release of
    class means, class sizes and the covariance within classes: the whole budget serves all classes
    at once, and log-odds are linear in the features as well. `PrivateCurveClassifier` is for
    curves.

    Privacy:
        As `PrivateLinearRegression`; the label counts as private. With real noise a label that is
        not among `classes` counts as the first of them.

    Args:
        epsilon, delta, feature_ranges: as in `PrivateLinearRegression`, like all others.
        classes: the public labels. Which labels there are is private: only a seeded simulation
            may find them in the data, and its guarantee says so.
        mechanism, fit_intercept: of two classes only.

    Attributes:
        coef_, intercept_: of the log-odds of `classes_[1]`, inside the clipping ball; of more than
            two classes one row and one number for each.
        model_: as in `PrivateLinearRegression`; its coefficients have no intervals.
        classes_: the labels, sorted.
        guarantee_: what the fit promises.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(20, 60, (20_000, 3))
        >>> y = (X @ [1.0, -1.0, 0.0] > 4).astype(int)
        >>> model = PrivateLogisticRegression(
        ...     epsilon=1.0, feature_ranges=(20, 60), classes=(0, 1), random_state=0
        ... ).fit(X, y)
        >>> bool(model.score(X, y) > 0.95)
        True
    """

    _link: ClassVar[Link] = "logistic"

    classes: Sequence[Any] | None = None

    @property
    def _several(self) -> bool:
        return len(self.classes_) > 2

    def _target_range(self) -> tuple[float, float]:
        return 0.0, 1.0

    def _records(self, rows: Any, values: Any, outside: Any = None) -> Records:
        if not self._several:
            return super()._records(rows, values, outside)
        numbers = label_numbers(values, self.classes_)
        return (np.column_stack([rows - self._bounds().center, numbers]),)

    def _regression(self, *, rows: int | None = None) -> Any:
        if not self._several:
            return super()._regression(rows=rows)
        if self.mechanism != "moments" or not self.fit_intercept:
            name = "fit_intercept" if self.mechanism == "moments" else "mechanism"
            rule = "left as it is for more than two classes: they have one way"
            raise InvalidParameter(name, rule, getattr(self, name))
        bounds = self._bounds()
        return Discriminant(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            n=self._count(rows),
            bound=bounds.radius,
            groups=tuple(np.asarray(self.classes_).tolist()),
            features=bounds.dimension,
            found_classes=not self._classes_given,
        )

    def _finish(
        self,
        fitted: Fitted,
        regression: Any,
        transcript: Sequence[Exchange],
        guarantee: Guarantee,
    ) -> Self:
        if not self._several:
            return super()._finish(fitted, regression, transcript, guarantee)
        fitted = replace(fitted, center=fitted.center + self._bounds().center)
        return self._keep(fitted, "discriminant", regression.name, transcript, guarantee)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags
