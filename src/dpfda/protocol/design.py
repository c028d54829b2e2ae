"""Designs: the tasks that a study may ask, against which participants check every task.

A design is what a person's device knows of a way to learn: frozen public parameters, and `asks`.
What a server makes of replies is the study of the same name (`protocol.study`), which may need more
than a device has.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpfda._registry import Registered
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.protocol.fields import Array, Part, declared
from dpfda.protocol.task import Task

if TYPE_CHECKING:  # a plan checks tasks against its design, so it imports this file
    from dpfda.protocol.plan import StudyPlan

Terms = Mapping[str, Any]
"""Fields of a task and lengths of its arrays, by name. Each has one value, or a `range` that all
entries lie in, or a tuple of possible values."""


@dataclass(frozen=True, kw_only=True)
class Design(
    Registered,
    family="design",
    homes=(
        "dpfda.local.study.design",
        "dpfda.local.moment_reports",
        "dpfda.local.noisy_labels",
        "dpfda.local.mrma",
        "dpfda.local.boosting",
    ),
):
    """The public parameters of a way to learn: MRMA, moments, answers, ..."""

    predicts_numbers: ClassVar[bool] = False
    """Whether people hold a number of the plan's target range instead of a label."""

    @abstractmethod
    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Every task that it may ask under this plan, by name, and what is fixed of each.

        ``epsilon`` and ``unit`` are the plan's where nothing else is said. What is not said of a
        field means its default; arrays of real numbers are free within their declared ranges, but
        every length must be said, or is 0.
        """


def check_shares(design: Any) -> None:
    """Refuse invalid shares of participants for evaluation and recalibration."""
    total = 0.0
    for name in ("evaluation_share", "temperature_share"):
        share = getattr(design, name, 0.0)
        total += share
        if not 0 <= share < 1:
            raise InvalidParameter(name, "0, or strictly between 0 and 1", share)
        if total >= 1:
            raise InvalidParameter(name, "below 1 together with evaluation_share", share)


def check_terms(task: Task, terms: Terms) -> None:
    """Refuse a task that is not what its design may ask."""
    rules = declared(type(task))
    for name, (rule, default) in rules.items():
        free = isinstance(rule, Part) or (isinstance(rule, Array) and rule.kind == "real")
        if name == "people" or (free and name not in terms):
            continue
        wanted = terms.get(name, default)
        if not _agrees(getattr(task, name), wanted):
            raise ProtocolError(f"{name} of a {task.name} task must be {wanted} here")
    for name, size in task.sizes.items():
        if name not in rules and not _agrees(size, terms.get(name, 0)):
            raise ProtocolError(f"a {task.name} task of {name} = {size} is not asked here")


def _agrees(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return any(_agrees(given, one) for one in wanted)
    if isinstance(wanted, range):
        entries = np.asarray(given)
        return bool(np.all((entries >= wanted.start) & (entries < wanted.stop)))
    same = given == wanted
    return same if isinstance(same, bool) else bool(np.all(same))
