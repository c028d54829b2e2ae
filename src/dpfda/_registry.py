"""Registration of classes by name, and validation of plain values against annotations.

A *family* is a base class declared with ``family=``; each subclass declared with ``name=`` enters
that family's registry. A family's package imports all its modules through `discover`, so no list of
classes has to be edited. A family with members in several packages names these in ``homes=``; they
are imported when a member is requested. Plain values, as read from JSON, are checked against the
annotations of a class.

Examples:
    >>> from dataclasses import dataclass
    >>> class Shape(Registered, family="shape"): ...
    >>> @dataclass(frozen=True)
    ... class Square(Shape, name="square"):
    ...     side: float = 1.0
    >>> Shape.named("square")
    <class 'dpfda._registry.Square'>
    >>> Shape.from_dict(Square(side=2.0).to_dict())
    Square(side=2.0)
"""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from numbers import Integral, Real
from types import ModuleType
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from dpfda.errors import DpfdaError, InvalidParameter, MissingExtra, UnknownName

Found = TypeVar("Found")

_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a word",
    type(None): "None",
}


def require_types(kind: type[Any], given: Mapping[str, Any]) -> None:
    """Refuse values whose type differs from the declared type of their field.

    Only fields of plain types are checked; arrays and objects validate themselves.

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
def _plain(kind: type[Any]) -> dict[str, Any]:
    """Return the annotations of the fields that hold plain values."""
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind) if _is_plain(hints[one.name])}


def _is_plain(hint: object) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType, tuple):
        return all(part is Ellipsis or _is_plain(part) for part in parts)
    return hint in _WORDS or origin is Literal


def _fits(value: object, hint: Any) -> bool:
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


def _in_words(hint: object) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_in_words, parts))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin is tuple:
        each = [_in_words(part) for part in parts if part is not Ellipsis]
        return f"a list ({each[0]} each)" if parts[-1] is Ellipsis else f"a list of {len(each)}"
    return _WORDS[hint]


class Portable:
    """Base of dataclasses that convert their public fields to plain JSON values and back."""

    def to_dict(self) -> dict[str, Any]:
        """Public fields, ready for JSON."""
        return public_fields(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; refuse unknown fields and missing fields without a default."""
        return built(cls, data, cls.__name__)


def public_fields(subject: Any) -> dict[str, Any]:
    """The `__init__` fields of a dataclass as plain values for JSON."""
    return {
        field.name: plain(getattr(subject, field.name)) for field in fields(subject) if field.init
    }


def built(kind: type[Found], data: Mapping[str, Any], whole: str) -> Found:
    """Build a dataclass object from its `public_fields`; error messages call it `whole`."""
    if not isinstance(data, Mapping):
        raise InvalidParameter(whole, "made of named parts", type(data).__name__)
    known = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    for key, value in data.items():
        if key not in known:
            raise InvalidParameter(key, f"a parameter of {whole}", value)
    for key, field in known.items():
        if key not in data and field.default is field.default_factory is MISSING:
            raise InvalidParameter(key, f"given ({whole} needs it)", None)
    try:
        made = kind(**data)
    except (TypeError, ValueError, AttributeError) as error:
        if not isinstance(error, DpfdaError):  # the error of the class itself is more specific
            require_types(kind, data)
        raise
    require_types(kind, data)  # also checks fields that the class itself does not validate
    return made


def revive(subject: object, name: str, read: Callable[[Mapping[str, Any]], object]) -> None:
    """Set a field of a frozen object from its `to_dict` form."""
    value = getattr(subject, name)
    if isinstance(value, Mapping):
        object.__setattr__(subject, name, read(value))


class Registered:
    """Base of every family of named, interchangeable classes, which are stored as plain values."""

    name: ClassVar[str] = ""
    family: ClassVar[str] = ""
    _members: ClassVar[dict[str, type[Any]]] = {}
    _homes: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        family: str | None = None,
        homes: tuple[str, ...] = (),
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if family is not None:
            cls.family = family
            cls._members = {}
            cls._homes = homes
        if name is not None:
            # `@dataclass(slots=True)` builds the class twice; the same qualified name may re-enter.
            holder = cls._members.get(name)
            if holder is not None and holder.__qualname__ != cls.__qualname__:
                raise InvalidParameter("name", f"unused in the family {cls.family!r}", name)
            cls.name = name
            cls._members[name] = cls

    @classmethod
    def named(cls, name: str) -> type[Self]:
        """The class registered under `name`."""
        # Stop at the first match: plugins, the last ones, may be slow to load.
        for load in (None, *cls._homes, load_plugins):
            if callable(load):
                load()
            elif load is not None:
                import_if_possible(load)
            known = cls._known()
            if isinstance(name, str) and name in known:
                return known[name]
        raise UnknownName(cls.family, name, sorted(known))

    @classmethod
    def members(cls) -> dict[str, type[Self]]:
        """Every registered subclass of this class, by name, in alphabetical order."""
        for home in cls._homes:
            import_if_possible(home)
        load_plugins()
        return dict(sorted(cls._known().items()))

    @classmethod
    def _known(cls) -> dict[str, type[Self]]:
        return {name: member for name, member in cls._members.items() if issubclass(member, cls)}

    def to_dict(self) -> dict[str, Any]:
        """Name and public parameters, ready for JSON."""
        return {"name": self.name} | public_fields(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`: only registered names, only known parameters."""
        if not isinstance(data, Mapping) or "name" not in data:
            raise InvalidParameter("name", f"given (the {cls.family}'s registered name)", None)
        parameters = {key: value for key, value in data.items() if key != "name"}
        return built(cls.named(data["name"]), parameters, data["name"])


def plain(value: object) -> Any:
    """A public value as plain JSON types."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, Fraction):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def import_if_possible(name: str) -> ModuleType | None:
    """Import a module of this package; None if it needs an optional dependency that is missing."""
    try:
        return importlib.import_module(name)
    except MissingExtra:
        return None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "dpfda":
            raise
        return None


@cache
def load_plugins() -> None:
    """Import the modules listed as entry points `dpfda.plugins`, once per process.

    Importing such a module registers its classes, so that estimators, audits, benchmarks and the
    command line find them by name.
    """
    for entry in entry_points(group="dpfda.plugins"):
        entry.load()


def discover(package: str, path: list[str]) -> None:
    """Import every module of `package`, so that its classes register; subpackages are left out."""
    for module in pkgutil.iter_modules(path):
        if not module.ispkg:
            importlib.import_module(f"{package}.{module.name}")
