"""Targets given as a column, as scikit-learn takes them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning


def one_column(y: Any) -> Any:
    """Targets of shape (n, 1) as (n,), with scikit-learn's warning; anything else unchanged.

    Example:
        >>> one_column([1.0, 2.0])
        [1.0, 2.0]
    """
    try:
        shape = np.asarray(y).shape
    except ValueError:  # ragged: whoever checks y says so
        return y
    if len(shape) != 2 or shape[1] != 1:
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples,), for example using ravel().",
        DataConversionWarning,
        stacklevel=2,
    )
    return np.asarray(y)[:, 0]
