"""Checks of arguments, composed in one place so that errors read alike.

Functions named after a rule (`positive`, `fraction`, ...) check *public* parameters and show the
offending value. `batch`, `vector` and `signs` check *private* data; their errors state only shape
and rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from dpfda.errors import DpfdaError, InvalidData, InvalidParameter

ArrayLike = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyArray = npt.NDArray[Any]  # labels of any type


def finite(name: str, value: object) -> float:
    """A finite real number."""
    if not _is_number(value) or not _is_finite(value):
        raise InvalidParameter(name, "a finite number", value)
    return float(value)


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    if not _is_number(value) or not _is_finite(value) or value <= 0:
        raise InvalidParameter(name, "a finite number above 0", value)
    return float(value)


def non_negative(name: str, value: object) -> float:
    """A finite number, 0 or above."""
    if not _is_number(value) or not _is_finite(value) or value < 0:
        raise InvalidParameter(name, "a finite number, 0 or above", value)
    return float(value)


def fraction(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    if not _is_number(value) or not 0 < value < 1:
        raise InvalidParameter(name, "strictly between 0 and 1", value)
    return float(value)


def delta(name: str, value: object) -> float:
    """A δ: 0, which is pure ε, or a number strictly between 0 and 1."""
    if not _is_number(value) or not 0 <= value < 1:
        raise InvalidParameter(name, "0 (pure ε) or strictly between 0 and 1", value)
    return float(value)


def whole(name: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """An integer in a range."""
    rule = f"an integer, {least} or above" if most is None else f"an integer from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidParameter(name, rule, value)
    if value < least or (most is not None and value > most):
        raise InvalidParameter(name, rule, value)
    return int(value)


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """Check that a value is one of a few names."""
    options = list(allowed)
    if value not in options:
        raise InvalidParameter(name, "one of " + ", ".join(map(repr, options)), value)
    return str(value)


def interval(name: str, value: object) -> tuple[float, float]:
    """A pair (low, high) of finite numbers with low < high."""
    rule = "a pair (low, high) of finite numbers with low < high"
    if isinstance(value, str) or not isinstance(value, Collection) or len(value) != 2:
        raise InvalidParameter(name, rule, value)
    low, high = tuple(value)
    if not (_is_number(low) and _is_number(high) and _is_finite(low) and _is_finite(high)):
        raise InvalidParameter(name, rule, value)
    if low >= high:
        raise InvalidParameter(name, rule, value)
    return float(low), float(high)


def batch(
    name: str,
    values: ArrayLike,
    *,
    columns: int | None = None,
    bound: float | None = None,
    clip: bool = False,
) -> FloatArray:
    """A private batch as a finite float array of shape (n, columns), n ≥ 1.

    Args:
        name: the argument's name, for messages.
        values: the private values.
        columns: required second dimension; None accepts any.
        bound: every entry must lie in [-bound, bound].
        clip: clip entries outside the bounds instead of refusing them.
    """
    array = _numeric(name, values, dimensions=2)
    if columns is not None and array.shape[1] != columns:
        raise InvalidData(name, f"an array with {columns} columns", f"shape {array.shape}")
    return _inside(name, array, bound, clip)


def vector(name: str, values: ArrayLike) -> FloatArray:
    """A private batch of single numbers as a finite float array of shape (n,), n ≥ 1."""
    return _numeric(name, values, dimensions=1)


def signs(name: str, values: ArrayLike) -> FloatArray:
    """A private array with every entry exactly -1 or +1, at least one row."""
    array = _numeric(name, values)
    if not np.all(np.abs(array) == 1.0):
        raise InvalidData(name, "made of -1 and +1 only")
    return array


def _numeric(name: str, values: ArrayLike, *, dimensions: int | None = None) -> FloatArray:
    """At least one row of finite numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        # `from None`: the numeric library's own message quotes the values.
        raise InvalidData(name, "a rectangular array of real numbers") from None
    if not np.all(np.isfinite(array)):
        raise InvalidData(name, "finite (no NaN, no infinity)")
    if dimensions not in (None, array.ndim):
        wanted = {1: "a one-dimensional array (n,)", 2: "a two-dimensional array (n, d)"}
        raise InvalidData(name, wanted[dimensions], f"shape {array.shape}")
    if array.ndim == 0 or array.shape[0] == 0:
        raise InvalidData(name, "a batch of at least one row", f"shape {array.shape}")
    return array


def _inside(name: str, array: FloatArray, bound: float | None, clip: bool) -> FloatArray:
    if bound is None:
        return array
    if clip:
        return np.clip(array, -bound, bound)
    if np.any(np.abs(array) > bound):
        raise InvalidData(name, f"inside [-{bound:g}, {bound:g}] (or pass clip=True)")
    return array


def _is_finite(value: float) -> bool:
    """Whether a number is finite as a float; an integer may be too large for that."""
    try:
        return math.isfinite(value)  # not a comparison, in which single precision would overflow
    except OverflowError:
        return False


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


_QUOTING = {
    "array=": "an array (n, T), one row a person. Reshape your data: one curve is reshape(1, -1)",
    "Complex data not supported": "real: Complex data not supported",
    "could not convert": "an array of real numbers",
    "inhomogeneous": "a rectangular array (n, T), or a list of pairs (t, x)",
    "setting an array element": "a rectangular array (n, T), or a list of pairs (t, x)",
}
"""Messages of numpy and scikit-learn that quote private values, and their replacements."""
_SHAPES = re.compile(
    r"Found array|Input [Xy] contains|X has \d|y should be|Expected|[Ss]parse|The feature"
)
"""Messages that mention only shapes and types; every other message may quote a value."""


@contextmanager
def unquoted(name: str) -> Iterator[None]:
    """Replace errors about private values by messages that do not show them."""
    try:
        yield
    except OverflowError:  # a Python integer that is too large for a float
        raise InvalidData(name, "finite: a number in it is too large") from None
    except ValueError as error:
        first = str(error).partition("\n")[0]  # without the advice in further lines
        sentences = [rule for part, rule in _QUOTING.items() if part in str(error)]
        sentences += [f"usable: {first}" if _SHAPES.match(first) else "an array of real numbers"]
        raise InvalidData(name, sentences[0]) from None


@contextmanager
def unquoted_engine(given: object, *, name: str = "X") -> Iterator[None]:
    """Replace errors of a data frame engine, which may quote a cell, by messages without values."""
    try:
        yield
    except DpfdaError:
        raise
    except Exception as error:
        rule = f"a table that {type(given).__name__} can read to its end ({type(error).__name__})"
        raise InvalidData(name, rule) from None
