"""Classes that register by name, so that adding one touches one file.

A *family* is a base class declared with ``family=``; each subclass declared with ``name=`` enters
that family's registry. A family's package imports all its modules through `discover`, so no list
of classes is edited anywhere.

Example:
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
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

from dpfda.errors import InvalidParameter, UnknownName


class Registered:
    """Base of every family of named, interchangeable classes."""

    name: ClassVar[str] = ""
    family: ClassVar[str] = ""
    _members: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(
        cls, *, name: str | None = None, family: str | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if family is not None:
            cls.family = family
            cls._members = {}
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
        try:
            return cls._members[name]
        except (KeyError, TypeError):
            raise UnknownName(cls.family, name, sorted(cls._members)) from None

    @classmethod
    def members(cls) -> dict[str, type[Self]]:
        """Every registered class of this family, by name, in alphabetical order."""
        return dict(sorted(cls._members.items()))

    def to_dict(self) -> dict[str, Any]:
        """Name and public parameters, ready for JSON."""
        assert is_dataclass(self)
        return {"name": self.name} | {
            field.name: getattr(self, field.name) for field in fields(self) if field.init
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`: only registered names, only known parameters."""
        if "name" not in data:
            raise InvalidParameter("name", f"given (the {cls.family}'s registered name)", None)
        member = cls.named(data["name"])
        parameters = {key: value for key, value in data.items() if key != "name"}
        known = {field.name for field in fields(member) if field.init}  # type: ignore[arg-type]
        for key, value in parameters.items():
            if key not in known:
                raise InvalidParameter(key, f"a parameter of {data['name']}", value)
        return member(**parameters)


def discover(package: str, path: list[str]) -> None:
    """Import every module of `package`, which makes its classes register."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")
