"""What a plan asks of a site's table: an inquiry, and the columns that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpfda.curves.ranges import PublicColumns
from dpfda.documents import Documented
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.face.from_files import Frame, frame
from dpfda.files import Table
from dpfda.files.cells import label
from dpfda.inquiry import Inquiry
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Exchange
from dpfda.protocol.query import Records
from dpfda.protocol.site import addable

_LEFT = ("model_", "release_", "moments_")  # what a fit leaves to be published
EVERY_OTHER = "*"
"""Stands for the columns that have no range of their own."""


class Task:
    """An `Inquiry` and the columns of y: all that a site needs to read its table.

    Args:
        inquiry: estimator, parameters, columns of X.
        targets: columns of y: none, one, or the points of curves.

    Examples:
        >>> ranges = {"age": [18, 99]}
        >>> inquiry = Inquiry(
        ...     estimator="PrivateLinearRegression", rows=500, columns=("age",),
        ...     parameters={"epsilon": 1.0, "delta": 1e-6, "feature_ranges": ranges,
        ...                 "target_range": [0, 100]},
        ... )
        >>> Task(inquiry, ("dose",)).columns
        {'age': [18.0, 99.0], 'dose': [0, 100]}
    """

    def __init__(self, inquiry: Inquiry, targets: Sequence[str] = ()) -> None:
        self.inquiry, self.targets = inquiry, tuple(targets)
        if set(targets) & set(inquiry.columns) or len(set(targets)) < len(targets):
            raise InvalidParameter("target", "a column that is not among the others", targets)
        _ = self.columns  # a site reads nothing that has no public range
        if not addable(first := next(self.conversation.questions())):
            rule = "one whose questions are sums with Gaussian noise (delta above 0)"
            raise InvalidParameter("estimator", rule, f"{inquiry.estimator}, {first.name}")

    @property
    def conversation(self) -> Conversation[Any]:
        """All questions that may be asked."""
        return self.inquiry.conversation

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns it reads, each with the range or the categories that it takes for public."""
        given, names = self.inquiry.parameters, list(self.inquiry.columns)
        found: dict[str, list[Any]] = {}
        if self._features is not None:
            for name, column in zip(names, self._features.columns, strict=True):
                found[name] = list(column.categories) or [column.low, column.high]
        curves = list(self.targets) if found else names
        if given.get("value_range") is not None:
            found |= {name: list(given["value_range"]) for name in curves}
        for kind in ("target_range", "classes", "groups"):
            if given.get(kind) is not None and len(self.targets) == 1:
                found[self.targets[0]] = list(given[kind])
        for name in (*names, *self.targets):
            if name not in found:
                raise ProtocolError(f"the plan says no public range of the column {name!r}")
        return found

    @property
    def _features(self) -> PublicColumns | None:
        """Public columns of X, where it is a table."""
        ranges, names = self.inquiry.parameters.get("feature_ranges"), self.inquiry.columns
        if ranges is None:
            return None
        if isinstance(ranges, Mapping):
            if set(ranges) != set(names):
                raise ProtocolError("the plan's columns are not those that it gives ranges for")
            ranges = {name: ranges[name] for name in names}
        return PublicColumns.of(ranges, width=len(names))

    def records(self, table: Table) -> Records:
        """A site's private rows, as the questions need them."""
        for name in (*self.inquiry.columns, *self.targets):
            if name not in table.names:
                raise InvalidData("data", f"a table with the column {name!r}")
        if isinstance(self.inquiry.parameters.get("feature_ranges"), Mapping):
            assert self._features is not None
            X = frame(table, self._features, gaps=True)
        else:
            columns = list(self.inquiry.columns)
            X = Frame(zip(columns, table.numbers(columns).T, strict=True))
        return self.inquiry.records(X, self._target(table))

    def _target(self, table: Table) -> Any:
        """Labels as the plan writes them, or numbers."""
        if not self.targets:
            return None
        for kind in ("classes", "groups"):
            if self.inquiry.parameters.get(kind) is not None:
                known = {label(str(one)): one for one in self.inquiry.parameters[kind]}
                return np.array([known.get(word, word) for word in table.text(self.targets[0])])
        numbers = table.numbers(list(self.targets))
        return numbers[:, 0] if len(self.targets) == 1 else numbers

    def document(
        self, result: Any, transcript: Sequence[Exchange], guarantee: Guarantee
    ) -> Documented:
        """What is published in the end."""
        fitted = self.inquiry.conclude(result, transcript=transcript, guarantee=guarantee)
        for name in _LEFT:
            if isinstance(left := getattr(fitted, name, None), Documented):
                return left
        raise ProtocolError(f"{self.inquiry.estimator} leaves nothing to be published")


def differences(asked: Mapping[str, Any], offered: Mapping[str, Any]) -> str:
    """Why a task's columns are not those that a site offers; nothing if they are.

    Examples:
        >>> differences({"age": [18, 99]}, {"age": [18, 99], "sex": ["f", "m"]})
        ''
        >>> differences({"hiv": [0, 1]}, {"age": [18, 99]})
        "it asks for the column 'hiv', which this site does not offer"
    """
    for name, known in asked.items():
        own = offered.get(name, offered.get(EVERY_OTHER))
        if own is None:
            return f"it asks for the column {name!r}, which this site does not offer"
        if list(known) != list(own):
            return (
                f"it takes {list(known)} for the public range of {name!r}, "
                f"and this site {list(own)}"
            )
    return ""
