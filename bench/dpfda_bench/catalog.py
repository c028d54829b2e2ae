"""Finds benchmarks and reproductions by their file names."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from dpfda.errors import UnknownName
from dpfda_bench import benchmarks, reproductions


def benchmark_names() -> list[str]:
    """What ``dpfda bench`` knows.

    Examples:
        >>> "noise" in benchmark_names()
        True
    """
    return sorted(_modules(benchmarks))


def benchmark(name: str) -> ModuleType:
    """The module of a benchmark: ``GOALS`` and ``run(quick)``."""
    return _load("benchmark", name, _modules(benchmarks))


def reproduction_names() -> list[str]:
    """What ``dpfda reproduce`` knows."""
    return sorted({**_modules(reproductions), **_alike()})


def reproduction(name: str) -> Any:
    """What is known of a table or figure, by its own name or that of anything else it covers.

    Examples:
        >>> reproduction("000-table-1") is reproduction("001-table-a1")
        True
    """
    modules, wanted = _modules(reproductions), _spoken(name)
    if wanted in modules:
        return _load("reproduction", name, modules)
    alike = _alike()
    if wanted in alike:
        return alike[wanted]
    alone = (_load("reproduction", known, modules) for known in modules)
    for entry in (*alike.values(), *alone):
        if wanted in getattr(entry, "COVERS", ()):
            return entry
    raise UnknownName("reproduction", name, sorted({**modules, **alike}))


def _alike() -> dict[str, Any]:
    """Entries that share a module: those under ``ENTRIES`` in modules with an underscore."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(reproductions.__path__):
        if module.name.startswith("_"):
            loaded = importlib.import_module(f"{reproductions.__name__}.{module.name}")
            found |= getattr(loaded, "ENTRIES", {})
    return found


def _modules(package: ModuleType) -> dict[str, str]:
    """Command-line names and module names; ``p003_table_2`` is called ``003-table-2``."""
    found = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return {
        _spoken(name): f"{package.__name__}.{name}" for name in found if not name.startswith("_")
    }


def _spoken(module: str) -> str:
    # A module name cannot begin with a digit, so papers carry a `p`.
    name = module[1:] if module[0] == "p" and module[1:2].isdigit() else module
    return name.replace("_", "-")


def _load(family: str, name: str, modules: dict[str, str]) -> ModuleType:
    try:
        return importlib.import_module(modules[_spoken(name)])
    except KeyError:
        raise UnknownName(family, name, sorted(modules)) from None
