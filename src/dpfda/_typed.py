"""Whether plain values, as JSON has them, are what the annotations of a class say."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from dpfda.errors import InvalidParameter

_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a word",
    type(None): "None",
}


def require_types(kind: type[Any], given: Mapping[str, Any]) -> None:
    """Refuse values of another type than their field is declared with.

    Fields of other than plain types, such as arrays and objects, check themselves.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Shape:
        ...     side: float = 1.0
        ...     corners: tuple[int, ...] | None = None
        >>> require_types(Shape, {"side": 2, "corners": [1, 2]})
        >>> require_types(Shape, {"side": "2"})
        Traceback (most recent call last):
        dpfda.errors.InvalidParameter: side must be a number, got '2'
        >>> require_types(Shape, {"corners": [True]})
        Traceback (most recent call last):
        dpfda.errors.InvalidParameter: corners must be a list (an integer each) or None, got [True]
    """
    plain: dict[str, Any] = _plain(kind)  # type: ignore[arg-type]  # of a hashable class
    for name, hint in plain.items():
        if name in given and not _fits(given[name], hint):
            raise InvalidParameter(name, _in_words(hint), given[name])


@cache
def _plain(kind: Any) -> dict[str, Any]:
    """Annotations of fields that hold plain values."""
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind) if _is_plain(hints[one.name])}


def _is_plain(hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType, tuple):
        return all(part is Ellipsis or _is_plain(part) for part in parts)
    return hint in _WORDS or origin is Literal


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            return False
        wanted = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
        return len(wanted) == len(value) and all(map(_fits, value, wanted))
    if isinstance(value, (bool, np.bool_)):
        return hint is bool
    return isinstance(value, {int: Integral, float: Real}.get(hint, hint))


def _in_words(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_in_words, parts))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin is tuple:
        each = [_in_words(part) for part in parts if part is not Ellipsis]
        return f"a list ({each[0]} each)" if parts[-1] is Ellipsis else f"a list of {len(each)}"
    return _WORDS[hint]
