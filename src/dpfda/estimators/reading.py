"""Functions that read private input: curves, points, labels of public classes, numbers.

An error names the argument, the rule and at most a shape, never a value. In a simulation, invalid
values raise an error. With real noise, a value of one person must not stop a fit, because the error
would reveal it. Unknown labels then count as the first class, and values that are not finite as the
center.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from dpfda._validate import AnyArray, FloatArray, IntArray, unquoted, unquoted_engine
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import depth, own_grids
from dpfda.curves.ranges import NO_GAPS, FeatureRanges, PublicColumns
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra
from dpfda.protocol.person import one_by_one

if TYPE_CHECKING:
    from dpfda.central.cell_queries import Box
    from dpfda.estimators.base import PrivateEstimator
    from dpfda.estimators.central_base import CentralEstimator

ValueRange = tuple[float, float] | Sequence[tuple[float, float]] | None
"""The public (low, high) of x(t), or one pair for each channel."""


# -- curves and tables -----------------------------------------------------------------------------


def read_curves(
    estimator: PrivateEstimator, X: Any, *, reset: bool, own_points: bool = False
) -> Any:
    """Check arrays as scikit-learn does; return curves with their own grids unchanged.

    Args:
        estimator: the estimator that is fitted, or that predicts.
        X: arrays (n, T), or (n, T, C) for C channels, or curves with their own grids.
        reset: whether this is the first X of a fit.
        own_points: whether a grid is given for these curves, so that any number of points is valid.
    """
    # Evaluate curves of scikit-fda in a basis, but not irregular curves: their common grid would
    # reveal private points.
    if hasattr(X, "to_grid") and not hasattr(X, "start_indices"):
        X = X.to_grid()
    if own_grids(X):
        return X
    gaps = "allow-nan" if getattr(estimator, "feature_ranges", None) is None else True
    rules: dict[str, Any] = {
        "ensure_all_finite": gaps if estimator._is_simulation else False,
        "allow_nd": depth(X) == 3,
    }
    if not own_points:
        return estimator._numbers(X, reset=reset, **rules)
    with unquoted("X"):
        return np.asarray(check_array(X, dtype=np.float64, **rules))


def in_memory(X: Any) -> Any:
    """Convert a lazy frame of polars, a table of Arrow or a relation of DuckDB to a data frame.

    Other inputs are returned unchanged.
    """
    library = type(X).__module__.partition(".")[0]
    if library == "polars" and hasattr(X, "collect"):
        with unquoted_engine(X):
            return X.collect()
    of_arrow = hasattr(X, "columns") and hasattr(X, "__arrow_c_stream__")
    if library not in {"pyarrow", "duckdb", "_duckdb"} or not of_arrow:
        return X
    try:
        import pandas  # noqa: F401
        import pyarrow
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "files") from None
    with unquoted_engine(X):
        return pyarrow.table(X).to_pandas()


def count_rows(X: Any) -> int:
    """Number of rows of the input."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take(X: Any, index: IntArray) -> Any:
    """The rows with these numbers, in any container."""
    if isinstance(X, (list, tuple)):
        return [X[i] for i in index]
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


def count_channels(X: Any) -> int:
    """Number of channels, which are the functions of t in a row.

    Examples:
        >>> count_channels(np.zeros((5, 30, 2))), count_channels(np.zeros((5, 30)))
        (2, 1)
    """
    if hasattr(X, "dim_codomain"):
        return int(X.dim_codomain)
    if isinstance(X, (list, tuple)) and own_grids(X):
        return int(np.shape(X[0][1])[1]) if np.ndim(X[0][1]) == 2 else 1
    try:
        shape = np.shape(X)
    except ValueError:  # rows of different lengths raise an error when they are read
        return 1
    return int(shape[2]) if len(shape) == 3 else 1


def value_ranges(given: Any, channels: int) -> list[Any]:
    """The public range of each channel: the same for all unless there is one pair for each.

    Examples:
        >>> value_ranges((0, 1), 2), value_ranges([(0, 1), (5, 9)], 2)
        ([(0, 1), (0, 1)], [(0, 1), (5, 9)])
    """
    if not isinstance(given, Sequence) or not any(isinstance(one, Sized) for one in given):
        return [given] * channels
    if len(given) != channels:
        raise InvalidParameter("value_range", f"one pair, or {channels} of them", given)
    return list(given)


def every_channel(encoder: CurveEncoder, X: Any) -> CurveEncoder:
    """The encoder; if it is for one channel, repeated for each channel of X."""
    channels = count_channels(X) if encoder.channels == 1 else 1
    return CurveEncoder.side_by_side([encoder] * channels)


def no_grid(grid_points: Any, instead: str = "") -> None:
    """Raise an error if grid points are given for rows of a table."""
    if grid_points is not None:
        raise InvalidParameter("grid_points", f"None: rows of a table have no t{instead}", "some")


# -- points of one or two numbers ------------------------------------------------------------------


def read_points(
    estimator: CentralEstimator, X: Any, ranges: FeatureRanges | None, *, reset: bool, least: int
) -> tuple[FloatArray, Box]:
    """Private points as rows, and the public box; points may be outside the box.

    Args:
        estimator: the estimator that is fitted, or that predicts.
        X: rows of one or two numbers, or a table with the columns named in `ranges`.
        ranges: one range for all columns, or a range for each.
        reset: whether this is the first X of a fit.
        least: smallest number of rows.
    """
    picks = isinstance(ranges, Mapping)
    if hasattr(X, "to_frame"):  # a column of a DataFrame
        X = X.to_frame()
    elif depth(X) == 1 and not picks:
        X = np.reshape(X, (-1, 1))
    rows = estimator._checked_table(ranges, X, reset=reset, ensure_min_samples=least)
    table = PublicColumns.of(ranges)
    if not table.named and not any(isinstance(one, Collection) for one in ranges or ()):
        table = PublicColumns.of(ranges, width=estimator.n_features_in_)
    if len(table.names) > 2:
        rule = (
            "of one or two columns; a mapping picks them: {column: (low, high)} (on a grid in "
            "three variables noise exceeds what most cells hold)"
        )
        raise InvalidParameter("feature_ranges", rule, ranges)
    box = tuple(zip(table.low.tolist(), table.high.tolist(), strict=True))
    if not table.named and rows.shape[1] != len(box):
        rule = f"as wide as feature_ranges, one or two columns, here {len(box)}"
        raise InvalidData("X", rule, f"shape {rows.shape}")
    return table.numbers(rows), box


def tags_of_points(tags: Tags, ranges: FeatureRanges | None) -> Tags:
    """Tell scikit-learn that rows have one or two numbers.

    If `ranges` is a mapping, X may have any number of columns, from which the mapping selects one
    or two.
    """
    picks = isinstance(ranges, Mapping)
    tags.input_tags.one_d_array = not picks
    tags.input_tags.two_d_array = picks  # if False, as for scikit-learn's IsotonicRegression
    return tags


# -- labels and numbers ----------------------------------------------------------------------------


def read_labels(y: Any, count: int, *, strict: bool) -> AnyArray:
    """Labels as a vector; with `strict`, in a simulation, invalid labels raise an error."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None")
    if not strict:
        values = one_by_one(y)
    else:
        values = np.asarray(column_or_1d(y, warn=True))
        if values.dtype.kind == "O" and len({type(value) for value in values}) > 1:
            raise InvalidData("y", "all of one kind (numbers or words), none missing")
    if values.shape != (count,):
        raise InvalidData("y", f"{count} labels, one for each row", f"shape {values.shape}")
    if strict:
        if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
            raise ValueError("Input y contains NaN or infinity.")
        check_classification_targets(values)
    return values


def read_targets(y: Any, count: int) -> FloatArray:
    """Numbers to predict, one for each row."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None")
    with unquoted("y"):
        values = np.asarray(column_or_1d(y, dtype=np.float64, warn=True))
    if np.isnan(values).any():
        raise InvalidData("y", f"without missing values (NaN): {NO_GAPS}")
    with unquoted("y"):
        assert_all_finite(values, input_name="y")
    if len(values) != count:
        raise InvalidData("y", f"{count} numbers, one for each row", f"{len(values)}")
    return values


def set_classes(
    estimator: Any, y: AnyArray, classes: Sequence[Any] | None = None, *, instead: str = ""
) -> None:
    """Set `classes_`, the public labels: those given, or in a simulation those that occur.

    Args:
        estimator: a classifier with a parameter `classes`.
        y: the labels of all rows.
        classes: the public labels, instead of that parameter, for `partial_fit`.
        instead: in an error for a binary classifier, the estimators that take several classes.
    """
    given = estimator.classes if classes is None else classes
    if given is None and not estimator._is_simulation:
        rule = "given where random_state is None: a set read off private labels is not private"
        raise InvalidParameter("classes", rule, None)
    estimator._classes_given = given is not None
    estimator.classes_ = np.unique(y if given is None else np.asarray(given))
    if len(estimator.classes_) < 2:
        rule = "of at least 2 classes, not one class only (or pass classes=)"
        raise InvalidData("y" if given is None else "classes", rule)
    several = estimator.__sklearn_tags__().classifier_tags.multi_class
    if len(estimator.classes_) != 2 and not several:
        found = f"there are {len(estimator.classes_)} classes"
        raise ValueError(f"Only binary classification is supported: {found}{instead}")
    check_classes(estimator, y)


def check_classes(estimator: Any, y: AnyArray) -> None:
    """Raise an error for unknown labels, in a simulation only, because it reveals labels."""
    if estimator._is_simulation and not np.all(np.isin(y, estimator.classes_)):
        raise InvalidData("y", "among the given classes")


def read_values(estimator: Any, y: Any, count: int) -> AnyArray:
    """The targets: numbers, or labels for a classifier."""
    if estimator._classifies:
        return read_labels(y, count, strict=estimator._is_simulation)
    return read_targets(y, count)


def public_classes(estimator: Any) -> Sequence[Any] | None:
    """The public labels of a classifier, required because no process sees all rows."""
    if not estimator._classifies:
        return None
    if estimator.classes is None:
        raise InvalidParameter("classes", "given, because no process sees all labels", None)
    names: Sequence[Any] = estimator.classes
    return names


def classifies(estimator: Any) -> bool:
    """Whether the estimator is a classifier; a condition of methods for classifiers."""
    return bool(estimator._classifies)


def scored(estimator: Any, predicted: AnyArray, y: Any, weights: Any) -> float:
    """R² of predictions, or the share of correct labels; not private."""
    truth = read_values(estimator, y, len(predicted))
    if estimator._classifies:
        return float(np.average(predicted == truth, weights=weights))
    return float(r2_score(truth, predicted, sample_weight=weights))


def tags_of_predictor(tags: Tags, *, classes: bool, several: bool = False) -> Tags:
    """Tell scikit-learn whether labels or numbers are predicted, and how many classes there are."""
    tags.target_tags.required = True
    # scikit-learn's checks have about 100 rows, which are too few for an accurate private fit.
    if classes:
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=several)
    else:
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags(poor_score=True)
    return tags
