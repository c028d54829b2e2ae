"""Contracts that every registered class must satisfy, found through the registries.

A contract is a module of this package with ``FAMILY``, the base class of a family, and
``check(subject)``, which raises `AssertionError` when an instance breaks the contract. Instances
come from the ``examples`` of every class that is registered in the family (or from the module's own
``examples(member)``), so new classes are checked automatically, including those defined outside
this package.

Examples:
    >>> "mechanism" in {case.family for case in cases()}
    True
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dpfda
from dpfda._registry import Registered, import_if_possible

_LONGEST = 120


@dataclass(frozen=True)
class Case:
    """One instance and the contract that it must satisfy."""

    family: str
    subject: object
    check: Callable[[Any], None]
    title: str = ""

    def __call__(self) -> None:
        """Run the contract on the instance."""
        self.check(self.subject)

    def __str__(self) -> str:
        return f"{self.family}: {self.title or repr(self.subject)}"


def load_all() -> None:
    """Import every layer below this one, so that all of its classes are registered.

    Layers whose optional dependency is not installed are skipped.
    """
    above = {"checks", "cli", "collector"}
    layers = {entry.name for entry in pkgutil.iter_modules(dpfda.__path__)} - above
    for layer in sorted(layers):
        module = import_if_possible(f"dpfda.{layer}")
        for entry in pkgutil.walk_packages(getattr(module, "__path__", []), f"dpfda.{layer}."):
            import_if_possible(entry.name)


def cases() -> list[Case]:
    """Every contract on every example of every registered class."""
    load_all()
    found = []
    for entry in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{entry.name}")
        family = getattr(module, "FAMILY", None)
        if family is None:  # a helper, not a contract
            continue
        for member in family.members().values():
            own = getattr(module, "examples", None)
            examples = member.examples() if own is None else own(member)
            expect(bool(examples), f"{member.__name__}.examples() must not be empty")
            found += [
                Case(family.family, example, module.check, _title(member, number, example))
                for number, example in enumerate(examples)
            ]
    return found


def _title(member: type[Registered], number: int, example: object) -> str:
    """The title of a case: the repr of the instance, or its number if the repr is long."""
    written = repr(example)
    return written if len(written) <= _LONGEST else f"{member.name} {number}"


def check_all() -> int:
    """Run every contract; return the number of checked instances.

    Raises:
        AssertionError: an instance breaks its contract; the message names both.
    """
    found = cases()
    for case in found:
        try:
            case()
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from error
    return len(found)


def expect(kept: bool, message: str) -> None:
    """Raise if a rule is broken; unlike `assert`, also under ``python -O``."""
    if not kept:
        raise AssertionError(message)
