"""Names of a package that are loaded when they are first used, so that importing it stays light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from dpfda.errors import MissingExtra


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: its name.
        homes: module names, each with the names that it defines, separated by spaces.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in home_of:
            near = get_close_matches(name, home_of, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{meant}")
        try:
            value = getattr(import_module(home_of[name]), name)
        except ModuleNotFoundError as error:
            raise MissingExtra.of(error) or error from None
        vars(import_module(package))[name] = value  # the next access needs no `__getattr__`
        return value

    def listed() -> list[str]:
        return sorted({*vars(import_module(package)), *home_of})

    return found, listed, sorted(home_of)
