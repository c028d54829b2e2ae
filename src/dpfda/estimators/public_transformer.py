"""`PublicTransformer`: steps of scikit-learn that are fitted to public facts, never to records."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dpfda._validate import AnyArray, FloatArray
from dpfda.curves.ranges import Column, FeatureRanges, PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.scikit import BaseEstimator, TransformerMixin

_SPREAD = 33  # number of synthetic rows in which every column has even steps through its range
_MIXED = 480  # number of synthetic rows with independent columns at ends or at random places
_ALONE = 9  # number of synthetic rows that are also transformed one by one
_SAME = 1e-9  # tolerance for the relative difference between a row alone and among others
_GAPS: tuple[Callable[[Any, int], Any], ...] = (
    lambda rows, column: (rows + column) % 2 == 0,
    lambda rows, column: rows % 2 == 0,
)
"""Patterns of missing cells in tests: some cells of every column, and whole rows."""

_UNLISTED = " or another"  # appended to all categories together, to differ from each of them

_ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
_CONTAINERS = (ColumnTransformer, FeatureUnion, Pipeline)
_FROM_RANGES = ("MinMaxScaler", "MaxAbsScaler", "PolynomialFeatures")
_SCALED = "MinMaxScaler, which scales by the public range"
_INSTEAD = {
    "StandardScaler": _SCALED,
    "RobustScaler": _SCALED,
    "PowerTransformer": "FunctionTransformer of a public function such as numpy.log1p",
    "QuantileTransformer": _SCALED,
    "PCA": "PrivateFPCA of curves, which is a release and costs a budget",
    "TargetEncoder": "OneHotEncoder(handle_unknown='ignore')",
}
_ANY = "FunctionTransformer of a public function that works row by row"


@dataclass(eq=False, repr=False)
class PublicTransformer(TransformerMixin, BaseEstimator):
    """A step of a pipeline that is fitted to synthetic rows from public ranges and categories.

    A pipeline fits its steps to the private rows, and the guarantee of the private estimator at its
    end does not cover these fits. This class fits `transformer` to synthetic rows instead of
    records; afterwards the step does not change.

    Privacy:
        The fit uses no record and spends no budget. After the fit, each row is transformed
        separately (this is tested on synthetic rows), so that the guarantee of a later private
        estimator holds for the person of a row. A step that must be fitted to records, such as a
        ``StandardScaler``, raises an error.

    Args:
        transformer: a ``FunctionTransformer``, ``OneHotEncoder``, ``OrdinalEncoder``,
            ``KBinsDiscretizer`` and ``SplineTransformer`` (uniform), ``MinMaxScaler``,
            ``PolynomialFeatures``, ``SimpleImputer`` (constant), another step that learns nothing,
            or a ``ColumnTransformer``, ``FeatureUnion`` or ``Pipeline`` of such.
        feature_ranges: public ranges and categories of the input columns, as in
            `PrivateLinearRegression`. Numbers outside are moved to the nearest end.

    Examples:
        >>> import pandas as pd
        >>> from sklearn.compose import ColumnTransformer
        >>> from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
        >>> step = PublicTransformer(
        ...     ColumnTransformer([
        ...         ("log", FunctionTransformer(np.log), ["dose"]),
        ...         ("sex", OneHotEncoder(handle_unknown="ignore"), ["sex"]),
        ...     ]),
        ...     {"dose": (1, 100), "sex": ["f", "m"]},
        ... )
        >>> people = pd.DataFrame({"dose": [1.0, 500.0], "sex": ["m", "?"]})
        >>> step.fit_transform(people).round(2).tolist()
        [[0.0, 0.0, 1.0], [4.61, 0.0, 0.0]]
        >>> step.ranges_out()  # feature_ranges of the next step
        [(0.0, 4.605170185988092), (0.0, 1.0), (0.0, 1.0)]
    """

    transformer: Any
    feature_ranges: FeatureRanges

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to synthetic rows; only the number of columns of X and their names are used."""
        names = getattr(X, "columns", None)
        width = None if isinstance(self.feature_ranges, Mapping) else np.shape(X)[1]
        self._learn(None if names is None else list(names), width)
        return self

    def transform(self, X: Any) -> AnyArray:
        """Transform each row separately."""
        check_is_fitted(self, "transformer_")
        made = _dense(self.transformer_, self._inside(X))
        if len(made) != len(X):
            name = type(self.transformer).__name__
            raise InvalidData("X", f"rows for which {name} returns one row each")
        return made

    def ranges_out(self) -> list[tuple[float, float]]:
        """Public ranges of the output columns, which are the ``feature_ranges`` of the next step.

        They are the ranges of transformed synthetic rows. Before a fit, `feature_ranges` must name
        or list the columns.
        """
        if not hasattr(self, "transformer_"):
            own = PublicTransformer(clone(self.transformer), self.feature_ranges)
            keys = list(self.feature_ranges) if isinstance(self.feature_ranges, Mapping) else []
            own._learn(keys if any(isinstance(key, str) for key in keys) else None, None)
            return own.ranges_out()
        made = np.asarray(_dense(self.transformer_, self._made_up), dtype=np.float64)
        low, high = made.min(axis=0), made.max(axis=0)
        flat = low == high
        ends = zip(low - 0.5 * flat, high + 0.5 * flat, strict=True)
        return [(float(first), float(last)) for first, last in ends]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the output columns, from `transformer`."""
        check_is_fitted(self, "transformer_")
        return self.transformer_.get_feature_names_out()

    def _learn(self, names: list[Any] | None, width: int | None) -> None:
        """Fit a copy of the transformer to synthetic rows, and check that it is row-wise."""
        columns = PublicColumns.of(self.feature_ranges, width=width)
        for step in _leaves(self.transformer):
            if why := _refused(step):
                raise InvalidParameter("transformer", why, type(step).__name__)
        self._columns, self._named = columns, names is not None
        self.n_features_in_ = len(names) if names is not None else width or len(columns.columns)
        cells = _made_up(columns)
        self._made_up = self._rows(cells)
        fitted = clone(self.transformer).fit(self._made_up)
        for step in _leaves(fitted, fitted=True):
            _check_categories(step, columns)
        _check_rows(fitted, self._made_up[-_ALONE:])
        compared = [
            _check_rows(fitted, self._rows(_with_gaps(cells, columns, gaps))) for gaps in _GAPS
        ]
        if not all(compared):  # a step may reject gaps in one column and fill those in others
            for number in range(len(columns.columns)):
                gaps = partial(_in_one, number)
                _check_rows(fitted, self._rows(_with_gaps(cells, columns, gaps)))
        self.transformer_ = fitted

    def _rows(self, cells: dict[Any, AnyArray]) -> Any:
        """A table of the columns; a DataFrame if the columns have names."""
        if self._named:
            return __import__("pandas").DataFrame(cells)
        parts = list(cells.values())
        words = any(part.dtype == object for part in parts)
        return np.column_stack([part.astype(object) if words else part for part in parts])

    def _inside(self, X: Any) -> Any:
        """The columns of `feature_ranges`, with numbers clipped to their ranges."""
        if hasattr(X, "columns") != self._named:
            raise InvalidData("X", "a DataFrame" if self._named else "an array, as in the fit")
        cells = {one.key: _cells(one, _column_of(X, one.key)) for one in self._columns.columns}
        rows = self._rows(cells)
        if self._named and hasattr(X, "index"):
            rows.index = X.index
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # it is not fitted to records
        tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


def instead_of(step: Any) -> str:
    """Advice for a step that a pipeline would fit to private rows."""
    if all(not _refused(one) for one in _leaves(step)):
        name = type(step).__name__
        return (
            f"write PublicTransformer({name}(...), feature_ranges), which fits it to rows made up "
            "from public ranges"
        )
    return "give public ranges instead"


def _leaves(step: Any, *, fitted: bool = False) -> Iterator[Any]:
    """The transformers inside a container (or the step itself, if it is no container)."""
    if isinstance(step, str) or step is None:  # passthrough, drop
        return
    if type(step) not in _CONTAINERS:
        yield step
        return
    if isinstance(step, Pipeline):
        inside = [one for _, one in step.steps]
    elif isinstance(step, FeatureUnion):
        inside = [one for _, one in step.transformer_list]
    else:
        inside = [one for _, one, *_ in (step.transformers_ if fitted else step.transformers)]
        inside.append(step.remainder)
    for one in inside:
        yield from _leaves(one, fitted=fitted)


def _refused(step: Any) -> str:
    """Why a step cannot be fitted without records, with an alternative; empty if it can."""
    name, library = type(step).__name__, type(step).__module__.startswith("sklearn.")
    given = step.get_params(deep=False) if hasattr(step, "get_params") else {}
    if library and name in _ENCODERS:
        allowed = ("ignore",) if name == "OneHotEncoder" else ("use_encoded_value",)
        if given["handle_unknown"] not in allowed:
            return (
                f"a {name} with handle_unknown={allowed[0]!r}: otherwise an error would say that "
                "somebody has a category that is not public"
            )
        if given.get("min_frequency") is not None or given.get("max_categories") is not None:
            return f"a {name} without min_frequency and max_categories, which count people"
        return ""
    if library and name in ("KBinsDiscretizer", "SplineTransformer"):
        way = given["strategy"] if name == "KBinsDiscretizer" else given["knots"]
        if isinstance(way, str) and way != "uniform":
            which = "strategy" if name == "KBinsDiscretizer" else "knots"
            return (
                f"a {name} with {which}='uniform', which divides the public range evenly; for "
                "edges of your own use FunctionTransformer(numpy.digitize, kw_args={'bins': edges})"
            )
        return ""
    if library and name == "SimpleImputer":
        if given["strategy"] != "constant" or given["add_indicator"]:
            return "a SimpleImputer(strategy='constant', fill_value=...): others learn from people"
        return ""
    if (library and name in _FROM_RANGES) or not get_tags(step).requires_fit:
        return ""
    return f"a step that public ranges and categories determine: use {_INSTEAD.get(name, _ANY)}"


def _check_categories(step: Any, columns: PublicColumns) -> None:
    """Raise an error if an encoder has learned its categories from synthetic numbers of a range."""
    if type(step).__name__ not in _ENCODERS or step.categories != "auto":
        return
    known = [set(map(str, one.categories)) for one in columns.columns if one.categories]
    if any(set(map(str, found)) not in known for found in step.categories_):
        name = type(step).__name__
        rule = f"a {name} of columns whose categories feature_ranges list (or give categories=)"
        raise InvalidParameter("transformer", rule, name)


def _check_rows(fitted: Any, some: Any) -> bool:
    """Raise an error for a step whose output for a row depends on other rows.

    Returns:
        False if the step rejects these rows, alone and among others.
    """
    together = _attempt(fitted, some)
    alone = [_attempt(fitted, some[place : place + 1]) for place in range(_ALONE)]
    failed = [one is None for one in alone]
    if together is None and any(failed):
        return False
    width = None if together is None or together.ndim != 2 else together.shape[1]
    if width is None or any(one is None or one.shape != (1, width) for one in alone):
        same = False
    else:
        same = _same(np.vstack([one for one in alone if one is not None]), together)
    if not same:
        rule = "a step that turns each row into one row of as many numbers, by itself"
        raise InvalidParameter("transformer", rule, type(fitted).__name__)
    return True


def _attempt(fitted: Any, rows: Any) -> AnyArray | None:
    """The transformed rows, or None if the step rejects them."""
    try:
        return _dense(fitted, rows)
    except InvalidData:
        return None


def _same(some: AnyArray, others: AnyArray | None) -> bool:
    """Whether cells are equal up to rounding; missing cells are equal to each other."""
    if others is None or some.shape != others.shape:
        return False
    if object in (some.dtype, others.dtype):
        pairs = zip(some.ravel().tolist(), others.ravel().tolist(), strict=True)
        return all(one is other or one == other or repr(one) == repr(other) for one, other in pairs)
    if not (np.issubdtype(some.dtype, np.number) and np.issubdtype(others.dtype, np.number)):
        return bool(np.all(some == others))
    return bool(np.allclose(some, others, rtol=_SAME, atol=0, equal_nan=True))


def _with_gaps(
    cells: dict[Any, AnyArray], columns: PublicColumns, gaps: Callable[[Any, int], Any]
) -> dict[Any, AnyArray]:
    """A few synthetic rows in which some cells are missing or outside the categories."""
    found = {}
    for place, one in enumerate(columns.columns):
        column = cells[one.key][-_ALONE:].copy()
        missing = gaps(np.arange(_ALONE), place)
        column[missing] = _public(object(), one.categories) if one.categories else np.nan
        found[one.key] = column
    return found


def _made_up(columns: PublicColumns) -> dict[Any, AnyArray]:
    """Synthetic rows, which depend on the public ranges only."""
    rng = np.random.default_rng(0)
    most = max([_SPREAD, *(len(one.categories) for one in columns.columns)])
    cells: dict[Any, AnyArray] = {}
    for one in columns.columns:
        if one.categories:
            places = np.r_[np.arange(most), rng.integers(len(one.categories), size=_MIXED)]
            names = np.empty(len(one.categories), dtype=object)
            names[:] = one.categories
            cells[one.key] = names[places % len(names)]
        else:
            ends = rng.choice([0.0, 1.0, 2.0], _MIXED)
            shares = np.r_[np.linspace(0, 1, most), np.where(ends < 2, ends, rng.random(_MIXED))]
            # This formula gives both ends exactly.
            cells[one.key] = one.low * (1 - shares) + one.high * shares
    return cells


def _in_one(number: int, rows: Any, column: int) -> Any:
    """Gaps in every other row of one column."""
    return (rows % 2 == 0) & (column == number)


def _column_of(X: Any, key: Any) -> Any:
    """One column of the table, by its name or number."""
    try:
        return X[key] if hasattr(X, "columns") else np.asarray(X)[:, key]
    except (KeyError, IndexError, TypeError):
        raise InvalidData("X", f"a table with the column {key!r}") from None


def _cells(column: Column, values: Any) -> AnyArray:
    """The cells of a private column: public categories, or numbers clipped to their range."""
    if column.categories:
        found = np.empty(len(values), dtype=object)
        found[:] = [_public(cell, column.categories) for cell in values]
        return found
    try:
        numbers: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        rule = "a column of numbers (or list its categories in feature_ranges)"
        raise InvalidData(f"X[{column.key!r}]", rule) from None
    return np.clip(numbers, column.low, column.high)


def _public(cell: Any, categories: tuple[Any, ...]) -> Any:
    """The public category of a cell; all other values become one value of the same type."""
    try:
        return next(one for one in categories if one == cell)
    except (StopIteration, TypeError, ValueError):  # missing values are neither equal nor different
        words = all(isinstance(one, str) for one in categories)
        return "".join(categories) + _UNLISTED if words else None


class _WithoutWarnings:
    """A context that ignores warnings while any thread is inside.

    Filters of warnings belong to the process. If several threads saved and restored them
    separately, they could remain changed. No lock is held inside the context, so it may be nested.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._saved = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._saved = warnings.catch_warnings()
                self._saved.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._saved.__exit__(None, None, None)


_WITHOUT_WARNINGS = _WithoutWarnings()


def _dense(fitted: Any, rows: Any) -> AnyArray:
    """The transformed rows as a dense array; errors quote no value."""
    try:
        with np.errstate(all="ignore"), _WITHOUT_WARNINGS:  # a warning could reveal a value
            made = fitted.transform(rows)
    except Exception as error:
        rule = f"what {type(fitted).__name__} can transform ({type(error).__name__})"
        raise InvalidData("X", rule) from None
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made)
