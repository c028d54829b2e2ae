"""`LocalCurveRegressor`: scalar-on-function regression under local differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.metrics import r2_score

from dpfda._validate import AnyArray, ArrayLike, FloatArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.curves.ranges import FeatureRanges
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.base import PrivateEstimator
from dpfda.estimators.local_base import (
    LOCAL_STREAM,
    account,
    allows_gaps,
    curves_and_points,
    new_features,
    new_rows,
    one_row,
    range_facts,
    read_people,
)
from dpfda.estimators.reading import ValueRange, count_rows, read_targets, tags_of_predictor
from dpfda.estimators.study_report import StudyResult, draw_study, study_contents
from dpfda.local.recipe import plan_study
from dpfda.protocol.estimate import Estimate, non_private_regression
from dpfda.protocol.model import CurveRegression
from dpfda.protocol.person import Entries, Groups, one_by_one
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.report import Contents
from dpfda.simulate import people_from, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sklearn.utils import Tags

_NON_PRIVATE = (
    "Non-private: ridge regression on standardized features that saw every curve, its penalty "
    "chosen by cross-validation."
)


@dataclass(eq=False, repr=False)
class LocalCurveRegressor(PrivateEstimator):
    """Predict a number from curves under local differential privacy; each person replies once.

    The study planner `plan_study` determines the queries. The first people report the location of
    their numbers and features, the next ones how features correlate with the number, and the last
    ones the sign of the prediction error.

    Args:
        epsilon: ε of each person.
        target_range: public (low, high) of y; values outside are clipped, predictions lie inside.
        value_range: public (low, high) of x(t), or one pair per channel; values outside are
            clipped. It is required for curves.
        domain_range: public (start, end) of t. The default is the domain of the shared grid
            points or of an FDataGrid, otherwise [0, 1]. It is required for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair per
            column, or a mapping from columns to (low, high) or to categories.
        ordered: whether the features of a table are in order of importance; those of curves are.
        center_known: whether the center of the public range is that of the data by construction.
        evaluation_share: share of people reserved to estimate the error, see `error_estimate_`.
        protects: ``both``, or ``features`` if y is public; the study is the same.
        n_features: number of leading features that are used; by default the study planner decides.
        unit: the protected unit to which a row, or all rows of one group, belong.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        random_state: None for noise of the operating system; an integer, a seed sequence or a
            source for a simulation.

    Privacy:
        ε-LDP for the curve and the number of one person, by randomized response on k questions or
        by one codeword.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 1)) + np.sin(np.linspace(0, 3, 30))
        >>> y = 3 * X[:, 0] + rng.normal(size=4000)
        >>> regressor = LocalCurveRegressor(
        ...     epsilon=2.0, value_range=(-5, 5), target_range=(-20, 20), random_state=0
        ... )
        >>> regressor = regressor.fit(X, y)
        >>> print(regressor.guarantee_)
        ε = 2, local, unit = person, sampler = simulation (seeded)
        >>> bool(regressor.score(X, y) > 0.6)
        True
    """

    _stream: ClassVar[int | None] = LOCAL_STREAM

    epsilon: float = 1.0
    _: KW_ONLY
    target_range: tuple[float, float] | None = None
    value_range: ValueRange = None
    domain_range: tuple[float, float] | None = None
    feature_ranges: FeatureRanges | None = None
    ordered: bool = False
    center_known: bool = False
    evaluation_share: float = 0.0
    protects: Literal["both", "features"] = "both"
    n_features: int | None = None
    plan_: StudyPlan = field(init=False)
    server_: Server = field(init=False)
    model_: CurveRegression = field(init=False)
    grid_points_: Any = field(init=False)

    def fit(
        self, X: Curves, y: Entries, *, grid_points: GridPoints = None, groups: Groups = None
    ) -> Self:
        """Simulate the study: every person answers once, privately.

        Args:
            X: an array (n, T), or (n, T, C) for C channels; scikit-fda curves; a list of pairs
                (t, x); or a table.
            y: the number that goes with each row.
            grid_points: the T points of an array, equidistant by default; or a list of grids, one
                for each curve.
            groups: the person of each row, if people have several rows; each person then
                reports one randomly chosen row, so that ε is per person.
        """
        if self.target_range is None:
            raise InvalidParameter("target_range", "given: the public (low, high) of y", None)
        X, grid_points = curves_and_points(self, X, grid_points)
        seed = self._public_seed()
        rows = read_people(self, X, reset=True)
        rows, targets = one_row(rows, self._numbers_of(y, count_rows(rows)), groups, seed=seed)
        self.grid_points_ = grid_points
        self.plan_ = plan_study(
            len(targets),
            self.epsilon,
            target_range=self.target_range,
            ordered=self.ordered,
            center_known=self.center_known,
            evaluation_share=self.evaluation_share,
            protects=self.protects,
            n_features=self.n_features,
            unit=self.unit,
            seed=seed,
            **range_facts(self, rows, grid_points),
        )
        source = self._source()
        people = people_from(self.plan_, rows, targets, grid_points=grid_points)
        self.server_ = simulate(self.plan_, people, source=source, **account(self))
        self.guarantee_ = self.plan_.guarantee.drawn_from(source)
        self.model_ = replace(self.server_.model, guarantee=self.guarantee_)
        self.result_ = StudyResult.of(self.server_.findings)
        self._non_private: Any = None
        if self._is_simulation:
            features = self.plan_.encoder.coefficients(rows, grid_points, strict=False)
            self._non_private = non_private_regression(features, targets)
        return self

    def _numbers_of(self, y: Entries, count: int) -> AnyArray:
        """The targets. With real noise no value raises an error; invalid ones become the center."""
        if self._is_simulation or y is None:
            return read_targets(y, count)
        values = one_by_one(y)
        if values.shape != (count,):
            raise InvalidData("y", f"{count} numbers, one for each row", f"shape {values.shape}")
        return values

    def predict(self, X: Curves, *, grid_points: GridPoints = None) -> FloatArray:
        """The predicted number of each row, inside the public range."""
        features = new_features(self, X, grid_points)
        return np.asarray(self.model_.values(features))

    def score(
        self,
        X: Curves,
        y: Entries,
        sample_weight: ArrayLike | None = None,
        *,
        grid_points: GridPoints = None,
    ) -> float:
        """R² of the predictions; not private."""
        predicted = self.predict(X, grid_points=grid_points)
        truth = read_targets(y, len(predicted))
        return float(r2_score(truth, predicted, sample_weight=sample_weight))

    def evaluate(self, X: Curves, y: Entries, *, grid_points: GridPoints = None) -> StudyResult:
        """Root mean squared errors on held-out people, with those of their mean and of no privacy.

        The non-private regression is fitted to raw curves, so it is available in simulations only.
        """
        predicted = self.predict(X, grid_points=grid_points)
        truth = read_targets(y, len(predicted))
        found = {"private": predicted, "mean": np.full(len(truth), truth.mean())}
        notes = self.server_.findings.said
        if self._non_private is not None:
            rows = new_rows(self, X, grid_points)
            features = self.model_.encoder.coefficients(*rows, strict=False)
            found["non-private"] = self._non_private.predict(features)
            notes.append(_NON_PRIVATE)
        errors = {name: _root_mean_square(values - truth) for name, values in found.items()}
        private, mean = errors["private"], errors["mean"]
        better = "Better" if private.interval()[1] < mean.value else "No better"
        errors_in_words = f"{private.value:.4g}, against {mean.value:.4g}"
        notes.insert(0, f"{better} than the mean: root mean squared error {errors_in_words}.")
        result = self.result_
        result.errors = dict(errors)
        result.held_out, result.notes = len(truth), notes
        return result

    @property
    def error_estimate_(self) -> Estimate | None:
        """The private estimate of the error, from people who evaluate the finished model.

        None unless people were reserved for it (``evaluation_share``).
        """
        return self.server_.findings.error

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) at `points`; for tables, feature weights.

        It describes the prediction if no feature is clipped.
        """
        return self.model_.slope(points)

    def plot(self) -> Figure:
        """Draw the slope function, the estimates with intervals, and the people of each phase."""
        return draw_study(self.model_, self.server_.findings)

    def _contents(self) -> Contents:
        return study_contents(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allows_gaps(self)
        return tags_of_predictor(tags, classes=False)


def _root_mean_square(errors: FloatArray) -> Estimate:
    """Root mean square of errors on held-out people, with its standard error."""
    squares = errors**2
    root = float(np.sqrt(squares.mean()))
    known = float(squares.std() / np.sqrt(len(squares)))
    return Estimate(root, known / (2 * root) if root else 0.0, len(squares))
