"""A class can be read without following many others: few to inherit from, one at a time.

`Registered` counts as one of them. Estimators have a test of their own.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import dpfda
from dpfda._registry import import_if_possible
from dpfda.local.boosting.request import Request
from dpfda.protocol.query import AdditiveQuery, Query, WholeQuery
from dpfda.protocol.task import Task

MOST = 4
"""Own classes in an MRO, the class itself included."""
DEEPER = {"central": 5, "collector": 5, "local": 5, "mechanisms": 5, "protocol": 5}
"""Where conversations, designs, requests, mechanisms or storages have two bases below the root."""
TWO_BASES = {"CurveMoments", "CurveModel"}  # documents that are also answers or classifiers
PACKAGES = sorted(
    module.name for module in pkgutil.iter_modules(dpfda.__path__) if module.name != "estimators"
)


def classes(package: str) -> Iterator[type]:
    """All classes that are written in a package of dpfda, or in one of its modules."""
    found = importlib.import_module(f"dpfda.{package}")
    path = getattr(found, "__path__", [])
    names = [one.name for one in pkgutil.walk_packages(path, f"dpfda.{package}.")]
    for module in filter(None, (found, *map(import_if_possible, names))):
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == module.__name__:
                yield kind


def ours(kinds: tuple[type, ...]) -> list[str]:
    return [one.__name__ for one in kinds if one.__module__.startswith("dpfda.")]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_inherits_from_few_of_ours(package: str) -> None:
    most = DEEPER.get(package, MOST)
    found = {kind.__name__: ours(kind.__mro__) for kind in classes(package)}
    assert {name: own for name, own in found.items() if len(own) > most} == {}
    if package in DEEPER:
        assert max(map(len, found.values())) == most, "fewer are enough"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_has_one_base_of_ours(package: str) -> None:
    found = {kind.__name__: ours(kind.__bases__) for kind in classes(package)}
    assert {name for name, own in found.items() if len(own) > 1} <= TWO_BASES


def test_no_query_inherits_from_another() -> None:
    """Each is written in one class: fields, mechanism, what is summed or computed."""
    bases = {
        name: kind.__bases__
        for name, kind in Query.members().items()
        if kind.__module__.startswith("dpfda.")
    }
    assert len(bases) > 30
    for name, own in bases.items():
        assert own in ((AdditiveQuery,), (WholeQuery,), (Task,), (Request,)), name
