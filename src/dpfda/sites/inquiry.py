"""The public description of a fit among sites: estimator, parameters, columns of the table.

It is sent as JSON and contains no row. All parties construct the same conversation from it:

    Inquiry ── coordinator: `conversation` ──> queries ──> sites: `records` ──> masked sums
                    └──────────────── `conclude`: a fitted estimator <──────────────┘
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._registry import Portable, plain
from dpfda._validate import AnyArray, FloatArray
from dpfda.curves.ranges import Table
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.central_base import CentralEstimator
from dpfda.estimators.file_block import Frame
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Exchange
from dpfda.protocol.plan import canonical
from dpfda.protocol.query import Records

_OWN = {"ledger", "random_state"}  # set by each site or curator, and not part of the agreement


@dataclass(frozen=True, kw_only=True, eq=False)
class Inquiry(Portable):
    """The public description of a fit among sites.

    Attributes:
        estimator: public name of the estimator, such as ``PrivateMean``.
        parameters: its public parameters, as plain values (a mechanism by its name).
        rows: the number of rows at all sites together.
        columns: names of the columns of X; for curves, one per grid point.
        grid_points: the grid points, if X (or y, for function-on-scalar) contains curves.

    Examples:
        >>> inquiry = Inquiry(
        ...     estimator="PrivateMean", rows=3000, columns=("1", "2", "3"),
        ...     parameters={"epsilon": 1.0, "delta": 1e-6, "value_range": [0, 2]},
        ... )
        >>> inquiry.conversation.name, len(inquiry.records(np.ones((5, 3)))[0])
        ('mean', 5)
    """

    estimator: str
    parameters: Mapping[str, Any]
    rows: int
    columns: tuple[str, ...]
    grid_points: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _validate.whole("rows", self.rows, least=2)
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "parameters", dict(self.parameters))
        if self.grid_points is not None:
            object.__setattr__(self, "grid_points", tuple(self.grid_points))
        for name, value in self.parameters.items():
            if name in _OWN:
                raise InvalidParameter(name, "left out: each site sets its own", type(value))
        _ = self.digest  # fails unless all values are plain
        _ = self.conversation

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, which sites sign."""
        return hashlib.sha256(canonical(plain(self.to_dict()))).hexdigest()

    @cached_property
    def model(self) -> CentralEstimator:
        """The estimator, which knows the form of rows but no row."""
        kind = _class(self.estimator)
        for name in self.parameters:
            if name not in kind().get_params():
                raise InvalidParameter(name, f"a parameter of {self.estimator}", "an unknown name")
        return kind(**self.parameters)

    @cached_property
    def conversation(self) -> Conversation[Any]:
        """The conversation of the fit."""
        asked: Conversation[Any] = self.model._conversation(self._form, self.rows)
        return asked.among_sites()

    def records(self, X: object, y: object = None) -> Records:
        """A site's own rows in the form that the queries need; they stay in this process."""
        conversation = self.conversation  # must be made first: it defines the form of rows
        read = self.model._read(self._columns(X), y, grid_points=self._points, reset=False)
        return self.model._records(conversation, read)

    def conclude(
        self, result: object, *, transcript: Sequence[Exchange], guarantee: Guarantee
    ) -> CentralEstimator:
        """The fitted estimator, from a public result."""
        asked = self.conversation
        return self.model._conclude(asked, self._form, result, transcript, guarantee)

    @cached_property
    def _form(self) -> Any:
        """The form of rows, determined from two rows of zeros."""
        X = self._columns(Frame({name: np.zeros(2) for name in self.columns}))
        return self.model._form(X, self._target(), grid_points=self._points)

    def _columns(self, X: Any) -> Table:
        """The agreed columns of a table, in the agreed order."""
        if not hasattr(X, "columns"):
            return X
        for name in self.columns:
            if name not in X.columns:
                raise InvalidData("X", f"a table with the column {name!r}")
        table = Frame({name: np.asarray(X[name]) for name in self.columns})
        named = isinstance(self.parameters.get("feature_ranges"), Mapping)
        return table if named else np.column_stack(list(table.values()))

    def _target(self) -> AnyArray:
        """Two valid artificial targets."""
        names = self.model._names_of_y()
        if names is not None:
            return np.array([names[0]] * 2)
        if "feature_ranges" in self.parameters and self._points is not None:
            return np.zeros((2, len(self._points)))  # curves: function-on-scalar
        return np.zeros(2)

    @property
    def _points(self) -> FloatArray | None:
        return None if self.grid_points is None else np.array(self.grid_points)


def _class(name: str) -> type[CentralEstimator]:
    """The estimator with this public name."""
    package = import_module("dpfda")
    found = getattr(package, name) if name in package.__all__ else None
    if not (isinstance(found, type) and issubclass(found, CentralEstimator)):
        raise InvalidParameter("estimator", "an estimator that works from sums", name)
    return found
