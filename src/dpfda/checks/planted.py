"""Flaws planted in the classes that ship: one wrong number each, and the check that must see it.

A twin of `checks.twins` is a mechanism of its own. Here the real class runs, with one line of it
replaced for as long as the check takes: what is caught is a break of the code that people use.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from dpfda.errors import DpfdaError
from dpfda.protocol.query import Query

Patches = Callable[[], list[Any]]


@dataclass(frozen=True)
class Planted:
    """A flaw and the check that must see it.

    Attributes:
        name: short.
        flaw: what is wrong, in one sentence.
        patches: what is replaced, as `unittest.mock.patch` has it.
        check: raises where it sees the flaw.
    """

    _known: ClassVar[list[Planted]] = []

    name: str
    flaw: str
    patches: Patches
    check: Callable[[], None]

    def caught(self) -> str:
        """In which words the check complains; empty if it does not."""
        with ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for change in self.patches():
                stack.enter_context(change)
            try:
                self.check()
            except (AssertionError, DpfdaError) as seen:
                return str(seen) or type(seen).__name__
        return ""

    @classmethod
    def all(cls) -> Iterator[Planted]:
        """Every flaw that is known here."""
        importlib.import_module("dpfda.checks.flaws")
        yield from cls._known


def plant(name: str, flaw: str, patches: Patches, check: Callable[[], None]) -> None:
    """Add a flaw to those that `dpfda audit --twins` plants."""
    Planted._known.append(Planted(name, flaw, patches, check))


@dataclass(frozen=True)
class Part:
    """A part of a contract, on every instance of some members of its family.

    Attributes:
        check: the part, a function of the contract's module.
        instances: of a member.
        names: which members.
    """

    check: Callable[..., None]
    instances: Callable[[str], list[Any]]
    names: tuple[str, ...]

    def __call__(self) -> None:
        """Run it."""
        for name in self.names:
            for given in self.instances(name):
                self.check(*given)


def asked(check: Callable[[Any], None], *names: str) -> Part:
    """A check of every example of some queries."""
    return Part(check, _queries, names)


def _queries(name: str) -> list[Any]:
    return [(query,) for query in Query.named(name).examples()]
