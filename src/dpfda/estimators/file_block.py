"""Files as blocks of rows: whoever reads one, here or on a worker, reads it the same way.

What is taken out of a file's table: features within public ranges, labels that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.curves.files import Opened, Reading, Rows, Table
from dpfda.curves.files.cells import label, place_of
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData


class Frame(dict[str, Any]):
    """Columns by name, as a DataFrame has them."""

    @property
    def columns(self) -> Any:
        """Their names."""
        return self.keys()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(next(iter(self.values()))), len(self)


def frame(table: Table | Rows, public: PublicColumns, *, gaps: bool) -> Frame:
    """The columns that public ranges name; gaps become the middle of a range, or no category."""
    found = Frame()
    for column in public.columns:
        if column.categories:
            known = {label(str(one)): one for one in column.categories}
            words = [known.get(word, word) for word in table.text(column.key, gaps=gaps)]
            found[column.key] = np.array(words, dtype=object)
        else:
            numbers = table.numbers([column.key], gaps=gaps)[:, 0]
            center = public.column_centers[column.key]
            found[column.key] = np.where(np.isnan(numbers), center, numbers)
    return found


def check_labels(
    labels: Any,
    classes: Sequence[Any],
    column: str,
    *,
    row: Callable[[int], int],
) -> None:
    """Refuse a label that is none of the classes, by its row in the file."""
    known = np.isin(labels, classes)
    if not known.all():
        where = f"row {row(int(np.argmin(known)))}, column {column!r}"
        raise InvalidData(where, f"one of the classes {','.join(map(str, classes))}")


CHUNK = 100_000  # rows read at a time


@dataclass(frozen=True)
class FileBlock:
    """Chunks (X, y) of a table in a file; small, so that a worker can be sent it.

    Attributes:
        path: where the file is for whoever reads it.
        target: the column that is y.
        public: the columns of X, where ranges name them; otherwise all others are numbers.
        names: the public labels of the target, where it is one.
        reading: how the file is to be read.
        features: the columns of X, where the holder of the file chose them at a console; then
            those that look like something else than numbers are refused, and labels that are none.
    """

    path: Path
    target: str | None = None
    public: PublicColumns | None = None
    names: Sequence[Any] | None = None
    reading: Reading = Reading()
    features: tuple[str, ...] | None = None

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """A pass over it."""
        opened = self.opened()
        for table in opened.chunks(CHUNK):
            yield self.chunk(opened, table)

    def opened(self) -> Opened:
        """The file, before its rows are read."""
        return self._reading.open(self.path, aside=self._aside)

    def chunk(self, opened: Opened, table: Table) -> tuple[Any, Any]:
        """Rows of a part of it."""
        table = self.kept(opened, table)
        features = self.features or self._reading.chosen(opened, aside=self._aside)
        if self.features and table.first == 1:  # what a column looks like, the first rows say
            self.reading.refuse_others(table, self._numbers(features))
        table.read_ahead([place_of(name, table.names) for name in self._numbers(features)])
        return self._rows(table, features), self._target(table)

    def _numbers(self, features: Sequence[str]) -> list[str]:
        """The columns that are numbers, read in one go."""
        public = () if self.public is None else self.public.columns
        words = {column.key for column in public if column.categories}
        target = [] if self.target is None or self.names is not None else [self.target]
        return [*(name for name in features if name not in words), *target]

    def kept(self, opened: Opened, table: Table) -> Table:
        """Its rows without those that are left out because they hold no data."""
        features = self.features or self._reading.chosen(opened, aside=self._aside)
        return self.reading.prepared(table, features, beside=self._aside)

    @property
    def _aside(self) -> dict[str, str]:
        return {} if self.target is None else {self.target: "target"}

    @property
    def _reading(self) -> Reading:
        """The same for the columns that ranges name, where no others are asked for."""
        if self.public is None or self.reading.columns is not None:
            return self.reading
        return self.reading.choosing([str(column.key) for column in self.public.columns])

    def _rows(self, table: Table, features: Sequence[str]) -> Any:
        if self.public is not None:
            return frame(table, self.public, gaps=self.reading.fill)
        # The middle of a ball about 0, as the middle of a range where there is one.
        return np.nan_to_num(table.numbers(features, gaps=self.reading.fill))

    def _target(self, table: Table) -> Any:
        if self.target is None:
            return None
        if self.names is None:
            return table.numbers([self.target])[:, 0]
        known = {label(str(one)): one for one in self.names}
        words = table.text(self.target)
        if self.features:  # its holder reads the complaint, before anything is asked
            check_labels(words, list(known), self.target, row=table.row_number)
        found = [known.get(word, word) for word in words]
        # What is none of the labels is left to the estimator, whose rule is that of arrays.
        return np.array(found, dtype=None if set(words) <= set(known) else object)


@dataclass(frozen=True)
class RowsBlock:
    """All rows of a file at once, as the command line reads them: curves, or points.

    Attributes:
        path: where the file is for whoever reads it.
        reading: how it is to be read.
        aside: columns with a role, and the option that gave it to them.
        curves: whether columns are grid points.
        grid: those of the first file; others must have the same.
        covariates: public columns that are X, where the curves are y.
        label: column of y, one of `names`.
        target: column of y, a number.
    """

    path: Path
    reading: Reading
    aside: dict[str, str] = field(default_factory=dict)
    curves: bool = True
    grid: tuple[float, ...] | None = None
    covariates: PublicColumns | None = None
    label: str | None = None
    names: Sequence[Any] | None = None
    target: str | None = None

    def __call__(self) -> list[tuple[Any, Any]]:
        """One chunk."""
        rows = self.reading.rows(self.path, aside=self.aside, curves=self.curves, least=1)
        if grid_of(rows) != self.grid or isinstance(rows.X, list):
            raise InvalidData(self.path.name, "a file with the grid points of the first one")
        if self.covariates is not None:
            return [(frame(rows, self.covariates, gaps=self.reading.fill), rows.X)]
        if self.label is not None:
            words = rows.text(self.label)
            check_labels(words, list(self.names or ()), self.label, row=rows.row)
            return [(rows.X, words.astype(str))]
        return [(rows.X, None if self.target is None else rows.numbers([self.target])[:, 0])]


def grid_of(rows: Rows) -> tuple[float, ...] | None:
    """The grid points of a file, if it has any."""
    return None if rows.grid_points is None else tuple(rows.grid_points.tolist())
