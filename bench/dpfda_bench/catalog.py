"""Finds benchmarks and reproductions by their file names."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

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
    return sorted(_modules(reproductions))


def reproduction(name: str) -> ModuleType:
    """The module of a reproduction, by its own name or that of anything else it covers.

    Examples:
        >>> reproduction("000-table-1") is reproduction("001-table-a1")
        True
    """
    modules = _modules(reproductions)
    if _spoken(name) not in modules:
        for known in modules:
            module = _load("reproduction", known, modules)
            if _spoken(name) in getattr(module, "COVERS", ()):
                return module
    return _load("reproduction", name, modules)


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
