"""Flaws planted in shipped classes, and the check that must detect each of them.

A twin of `dpfda.checks.twins` is a mechanism of its own. Here the shipped class runs with one line
replaced while the check runs, so a caught flaw is a caught break of the code that people use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from dpfda.errors import DpfdaError
from dpfda.protocol.query import Query

Patches = Callable[[], list[Any]]


@dataclass(frozen=True)
class Planted:
    """A flaw and the check that must detect it.

    Attributes:
        name: a short name.
        flaw: what is wrong, in one sentence.
        patches: the replacements, made with `unittest.mock.patch`.
        check: raises if it detects the flaw.
    """

    name: str
    flaw: str
    patches: Patches
    check: Callable[[], None]

    def caught(self) -> str:
        """The message of the check, or an empty string if it detects nothing."""
        with ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for change in self.patches():
                stack.enter_context(change)
            try:
                self.check()
            except (AssertionError, DpfdaError) as seen:
                return str(seen) or type(seen).__name__
        return ""


PLANTED: list[Planted] = []


def plant(name: str, flaw: str, patches: Patches, check: Callable[[], None]) -> None:
    """Add a flaw to the list."""
    PLANTED.append(Planted(name, flaw, patches, check))


@dataclass(frozen=True)
class ContractStep:
    """One function of a contract, on every instance of some members of its family.

    Attributes:
        check: a function of the contract's module.
        instances: lists the arguments of `check` for a member.
        names: the members.
    """

    check: Callable[..., None]
    instances: Callable[[str], list[Any]]
    names: tuple[str, ...]

    def __call__(self) -> None:
        """Run the function on every instance."""
        for name in self.names:
            for arguments in self.instances(name):
                self.check(*arguments)


def on_queries(check: Callable[[Any], None], *names: str) -> ContractStep:
    """A check of every example of some queries."""
    return ContractStep(check, _queries, names)


def _queries(name: str) -> list[Any]:
    return [(query,) for query in Query.named(name).examples()]
