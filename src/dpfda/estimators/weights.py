"""Private weights of rows, such as survey weights, below a public bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, unquoted
from dpfda.errors import InvalidData, InvalidParameter


class Weighted(NamedTuple):
    """The y of a fit, and the weights of the rows."""

    y: Any
    weights: Any


def weighted(estimator: Any, y: Any, sample_weight: Any) -> Any:
    """y with the weights of its rows, if there are any; an error without a public bound."""
    if sample_weight is None:
        return y
    if estimator.weight_bound is None:
        rule = "given with sample_weight: a public bound on all weights, not taken from the data"
        raise InvalidParameter("weight_bound", rule, None)
    return Weighted(y, sample_weight)


def weights_of(estimator: Any, y: Any) -> tuple[Any, Any]:
    """y, and the weights of its rows or None; an error if a bound is given without weights."""
    if isinstance(y, Weighted):
        return y
    if getattr(estimator, "weight_bound", None) is not None:
        rule = "given with weight_bound, to fit: rows in chunks, files and sites have no weights"
        raise InvalidParameter("sample_weight", rule, None)
    return y, None


def checked_weights(estimator: Any, weights: Any, rows: int) -> FloatArray:
    """The weight of each row, clipped to [0, weight_bound]."""
    bound = _validate.positive("weight_bound", estimator.weight_bound)
    with unquoted("sample_weight"):
        found = np.asarray(weights, dtype=np.float64)
    if found.shape != (rows,):
        rule = f"one number for each of {rows} rows"
        raise InvalidData("sample_weight", rule, f"shape {found.shape}")
    if np.isnan(found).any():
        raise InvalidData("sample_weight", "without missing values (NaN)")
    return np.asarray(np.clip(found, 0.0, bound))
