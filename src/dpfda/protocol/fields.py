"""Declared fields of a query, with type, shape and range, checked in one place.

A query is built from JSON that may be hostile. Every field declares its possible values;
`check_fields` checks all of them and refuses the query before anything is computed, spent or
stored. Lengths have names: ``array("whole", "people", "k")`` has ``query.people`` rows and k
columns, and all fields that use k must have the same length.

Examples:
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Cuts:
    ...     people: int = whole(least=0)
    ...     thresholds: FloatArray = array("real", "people", "k", least=-1, most=1)
    ...     def __post_init__(self) -> None:
    ...         check_fields(self)
    >>> Cuts(people=2, thresholds=[[0.1], [0.5]]).thresholds.shape
    (2, 1)
    >>> Cuts(people=1, thresholds=[[0.1], [0.5]])
    Traceback (most recent call last):
    dpfda.errors.InvalidParameter: thresholds must be real numbers from -1 to 1 of shape (1, k), \
got 'shape (2, 1)'
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal, TypedDict, Unpack, cast

import numpy as np

from dpfda import _validate
from dpfda._registry import Portable
from dpfda._validate import AnyArray, FloatArray
from dpfda.errors import InvalidParameter

LARGEST = 1e100
"""Largest absolute value of a public number of a query; its square does not overflow."""
MOST_NUMBERS = 1 << 26
"""Largest number of entries of an array of a query."""
_KEY = "dpfda"
_LONGEST_WORD = 200
_MOST_PARTS = 1 << 12
Sizes = dict[str, int]
_declared: dict[type[Any], Mapping[str, tuple[Rule, Any]]] = {}


class Rule(ABC):
    """The rule for the values of a field."""

    late = False
    """Whether the field is an array. Arrays are read last, because other fields may be lengths."""

    @abstractmethod
    def read(self, name: str, given: object, sizes: Sizes) -> object:
        """The checked value; raises `InvalidParameter` if it breaks the rule."""


@dataclass(frozen=True)
class Number(Rule):
    """One finite number in a range; also None if `optional`."""

    least: float = -LARGEST
    most: float = LARGEST
    above: float | None = None
    optional: bool = False

    def read(self, name: str, given: object, sizes: Sizes) -> object:
        """The value as a float."""
        if given is None and self.optional:
            return None
        value = _validate.finite(name, given)
        if self.above is not None and not self.above < value <= self.most:
            raise InvalidParameter(name, f"above {self.above:g}, at most {self.most:g}", given)
        if not self.least <= value <= self.most:
            raise InvalidParameter(name, f"from {self.least:g} to {self.most:g}", given)
        return value


@dataclass(frozen=True)
class Whole(Rule):
    """One integer in a range; also None if `optional`."""

    least: int = 1
    most: int = 1 << 31
    optional: bool = False

    def read(self, name: str, given: object, sizes: Sizes) -> object:
        """An int, which may be the length of an array."""
        if given is None and self.optional:
            return None
        sizes[name] = _validate.whole(name, given, least=self.least, most=self.most)
        return sizes[name]


@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def read(self, name: str, given: object, sizes: Sizes) -> bool:
        """The value, which must be a bool."""
        if not isinstance(given, (bool, np.bool_)):
            raise InvalidParameter(name, "true or false", given)
        return bool(given)


@dataclass(frozen=True)
class Choice(Rule):
    """One of a few words; any short word if no list is given.

    Attributes:
        given: the words, or a function that returns them, such as the names in a registry.
    """

    given: tuple[str, ...] | Callable[[], tuple[str, ...]]

    @property
    def options(self) -> tuple[str, ...]:
        """The current list of words."""
        return self.given() if callable(self.given) else self.given

    def read(self, name: str, given: object, sizes: Sizes) -> str:
        """The value, which must be a string."""
        if not isinstance(given, str) or not 0 < len(given.strip()) <= len(given) <= _LONGEST_WORD:
            raise InvalidParameter(
                name, f"a text of at most {_LONGEST_WORD} characters that is not blank", given
            )
        return _validate.one_of(name, given, self.options) if self.options else given


@dataclass(frozen=True)
class Array(Rule):
    """An array of finite numbers in a range; the lengths in its shape are numbers or names."""

    late = True
    kind: Literal["real", "whole"]
    shape: tuple[int | str, ...]
    least: float = -LARGEST
    most: float = LARGEST

    def read(self, name: str, given: object, sizes: Sizes) -> AnyArray:
        """A read-only copy of the array."""
        try:
            array = np.array(given)
        except ValueError:
            raise self._refusal(name, sizes, "rows of different lengths") from None
        if array.size == 0 and array.dtype.kind == "f" and self.kind == "whole":
            array = array.astype(np.int64)
        if array.dtype.kind not in ("iu" if self.kind == "whole" else "fiu"):
            raise self._refusal(name, sizes, f"dtype {array.dtype}")
        fits = array.ndim == len(self.shape) and array.size <= MOST_NUMBERS
        for length, want in zip(array.shape, self._wanted(sizes), strict=False):
            fits = fits and (isinstance(want, str) or length == want)
        if not fits:
            raise self._refusal(name, sizes, f"shape {array.shape}")
        # If an entry is NaN, so are the minimum and the maximum, and the comparison fails.
        if array.size and not (self.least <= array.min() and array.max() <= self.most):
            raise self._refusal(name, sizes, "a number outside")
        for length, want in zip(array.shape, self.shape, strict=True):
            if isinstance(want, str) and sizes.setdefault(want, length) != length:
                rule = f"of length {sizes[want]} ({want})"
                raise InvalidParameter(name, rule, f"length {length}")
        array = array.astype(np.int64 if self.kind == "whole" else np.float64, copy=False)
        array.flags.writeable = False
        return array

    def _wanted(self, sizes: Sizes) -> list[int | str]:
        """The shape, with the lengths that are already known."""
        return [sizes.get(want, want) if isinstance(want, str) else want for want in self.shape]

    def _refusal(self, name: str, sizes: Sizes, found: str) -> InvalidParameter:
        shape = ", ".join(map(str, self._wanted(sizes)))
        numbers = f"{self.kind} numbers from {self.least:g} to {self.most:g}"
        return InvalidParameter(name, f"{numbers} of shape ({shape})", found)


@dataclass(frozen=True)
class Part(Rule):
    """A public object that checks its own fields; read from JSON by its `from_dict`."""

    kind: Callable[[], type[Any]]

    def read(self, name: str, given: object, sizes: Sizes) -> object:
        """The checked object."""
        kind = self.kind()
        if isinstance(given, Mapping):
            return kind.from_dict(given)
        if not isinstance(given, kind):
            raise InvalidParameter(name, f"a {kind.__name__}", type(given).__name__)
        return given


@dataclass(frozen=True)
class Parts(Part):
    """A tuple of public objects that check their own fields."""

    def read(self, name: str, given: object, sizes: Sizes) -> object:
        """The checked objects as a tuple."""
        if not isinstance(given, (list, tuple)) or len(given) > _MOST_PARTS:
            raise InvalidParameter(name, f"a list of at most {_MOST_PARTS}", type(given).__name__)
        return tuple(super(Parts, self).read(name, one, sizes) for one in given)


class Limits(TypedDict, total=False):
    """The arguments of `number` that set its limits."""

    least: float
    most: float
    above: float
    optional: bool


class WholeLimits(TypedDict, total=False):
    """The arguments of `whole` that set its limits."""

    least: int
    most: int
    optional: bool


def number(*, default: object = MISSING, **limits: Unpack[Limits]) -> float:
    """One finite number: from `least` to `most`, or above `above`; with `optional`, also None."""
    return cast("float", _field(Number(**limits), default))


def whole(*, default: object = MISSING, **limits: Unpack[WholeLimits]) -> int:
    """One integer from `least` to `most`; with `optional`, also None."""
    return cast("int", _field(Whole(**limits), default))


def flag(*, default: object = MISSING) -> bool:
    """True or False."""
    return cast("bool", _field(Flag(), default))


def choice(*options: str | Callable[[], tuple[str, ...]], default: object = MISSING) -> Any:
    """One of the given words, or of those that a function returns; without them, any short word."""
    words = tuple(one for one in options if isinstance(one, str))
    named = [one for one in options if callable(one)]
    return _field(Choice(named[0] if named else words), default)


def array(
    kind: Literal["real", "whole"],
    *shape: int | str,
    least: float = -LARGEST,
    most: float = LARGEST,
    default: object = MISSING,
) -> AnyArray:
    """An array; each length in its shape is a number, the name of a field, or a free name."""
    low = max(least, -(2.0**62)) if kind == "whole" else least
    high = min(most, 2.0**62) if kind == "whole" else most
    return cast("AnyArray", _field(Array(kind, shape, low, high), default))


def vector(like: str = "size", *, least: float = -LARGEST, most: float = LARGEST) -> FloatArray:
    """A vector of real numbers; all vectors with the same `like` have equal lengths."""
    return array("real", like, least=least, most=most)


def part(kind: Callable[[], type[Any]], *, default: object = MISSING) -> Any:
    """A public object with declared fields; `kind` is a function that returns its class."""
    return _field(Part(kind), default)


def parts(kind: Callable[[], type[Any]], *, default: object = MISSING) -> Any:
    """A tuple of public objects."""
    return _field(Parts(kind), default)


def _field(rule: Rule, default: object) -> Any:
    if default is MISSING:
        return dataclasses.field(metadata={_KEY: rule})
    return dataclasses.field(default=default, metadata={_KEY: rule})


def check_fields(subject: object) -> Sizes:
    """Check types, shapes and ranges of all fields; arrays are copied and made read-only.

    Every init field must be declared; an undeclared one is an error in the class.

    Returns:
        The lengths of named axes.
    """
    sizes: Sizes = {}
    for name, (rule, _) in declared(type(subject)).items():
        object.__setattr__(subject, name, rule.read(name, getattr(subject, name), sizes))
    return sizes


def declared(kind: type[Any]) -> Mapping[str, tuple[Rule, Any]]:
    """The rule and default of each init field, arrays last; computed once per class."""
    if kind not in _declared:
        fields = [field for field in dataclasses.fields(kind) if field.init]
        fields.sort(key=lambda field: rule_of(field).late)
        _declared[kind] = {field.name: (rule_of(field), field.default) for field in fields}
    return _declared[kind]


class Declared(Portable):
    """A public object with declared fields, all checked on construction."""

    def __post_init__(self) -> None:
        check_fields(self)


def rule_of(field: dataclasses.Field[Any]) -> Rule:
    """The rule that a field declares."""
    rule = field.metadata.get(_KEY)
    if not isinstance(rule, Rule):
        raise TypeError(f"the field {field.name} does not say what it may be")
    return rule
