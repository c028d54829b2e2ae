"""Files as blocks of rows, which this process and workers read in the same way.

A file's table gives features within public ranges and labels of the public classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.files import File, Opened, Reading, Rows, Table, count_in, is_frame, tables_at
from dpfda.curves.files.cells import label, place_of
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData

if TYPE_CHECKING:  # loads scikit-learn
    from dpfda.estimators.blocks import Block


class Frame(dict[str, Any]):
    """Columns by name, with the interface of a DataFrame that readers need."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""
        return self.keys()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(next(iter(self.values()))), len(self)


def frame(table: Table | Rows, public: PublicColumns, *, gaps: bool) -> Frame:
    """The columns of the public ranges; missing values become the range's middle or no category."""
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
    """Raise an error for a label outside the classes, which names its row in the file."""
    known = np.isin(labels, classes)
    if not known.all():
        where = f"row {row(int(np.argmin(known)))}, column {column!r}"
        raise InvalidData(where, f"one of the classes {','.join(map(str, classes))}")


CHUNK = 100_000  # number of rows read at a time


@dataclass(frozen=True)
class FileBlock:
    """Chunks (X, y) of a table in a file; the object is small and can be sent to a worker.

    Attributes:
        path: path of the file for the process that reads it.
        target: the column that is y.
        public: the columns of X, if ranges name them; otherwise all other columns are numbers.
        names: the public labels, if the target is a label.
        reading: options for reading the file.
        features: the columns of X, if the data holder chose them at a console. Columns that do not
            look like numbers, and labels outside the classes, then raise an error.
    """

    path: File | Opened
    target: str | None = None
    public: PublicColumns | None = None
    names: Sequence[Any] | None = None
    reading: Reading = Reading()
    features: tuple[str, ...] | None = None

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """One pass over the file."""
        opened = self.opened()
        for table in opened.only(self._needed(opened)).chunks(CHUNK):
            yield self.chunk(opened, table)

    @property
    def rows(self) -> int | None:
        """Number of rows, if the file states it and no row is omitted; otherwise None."""
        return None if self.reading.drop_empty else count_in(self.path)

    def _needed(self, opened: Opened) -> list[str]:
        """The names in the file of the columns that are read."""
        roles = (self.reading.label, self.reading.id, self.reading.groups, self.target)
        features = self.features or self._reading.chosen(opened, aside=self._aside)
        places = {place_of(name, opened.names) for name in (*features, *filter(None, roles))}
        return [opened.names[place] for place in sorted(places)]

    def opened(self) -> Opened:
        """The file, before its rows are read."""
        return self._reading.open(self.path, aside=self._aside)

    def chunk(self, opened: Opened, table: Table) -> tuple[Any, Any]:
        """X and y of a part of the table."""
        table = self.kept(opened, table)
        features = self.features or self._reading.chosen(opened, aside=self._aside)
        if self.features and table.first == 1:  # the first rows show whether columns are numbers
            self.reading.refuse_others(table, self._numbers(features))
        table.read_ahead([place_of(name, table.names) for name in self._numbers(features)])
        return self._rows(table, features), self._target(table)

    def _numbers(self, features: Sequence[str]) -> list[str]:
        """The numeric columns, which are read together."""
        public = () if self.public is None else self.public.columns
        words = {column.key for column in public if column.categories}
        target = [] if self.target is None or self.names is not None else [self.target]
        return [*(name for name in features if name not in words), *target]

    def kept(self, opened: Opened, table: Table) -> Table:
        """The rows of a table, without omitted rows that hold no data."""
        features = self.features or self._reading.chosen(opened, aside=self._aside)
        return self.reading.prepared(table, features, beside=self._aside)

    @property
    def _aside(self) -> dict[str, str]:
        return {} if self.target is None else {self.target: "target"}

    @property
    def _reading(self) -> Reading:
        """The reading options, with the columns of the ranges unless others are chosen."""
        if self.public is None or self.reading.columns is not None:
            return self.reading
        return self.reading.choosing([str(column.key) for column in self.public.columns])

    def _rows(self, table: Table, features: Sequence[str]) -> Any:
        if self.public is not None:
            return frame(table, self.public, gaps=self.reading.fill)
        # Missing values become 0, the center of the ball.
        return np.nan_to_num(table.numbers(features, gaps=self.reading.fill))

    def _target(self, table: Table) -> Any:
        if self.target is None:
            return None
        if self.names is None:
            return table.numbers([self.target])[:, 0]
        known = {label(str(one)): one for one in self.names}
        words = table.text(self.target)
        if self.features:  # only the data holder sees this error, before any query
            check_labels(words, list(known), self.target, row=table.row_number)
        found = [known.get(word, word) for word in words]
        # Unknown labels are left to the estimator, which treats them as in arrays.
        return np.array(found, dtype=None if set(words) <= set(known) else object)


@dataclass(frozen=True)
class RowsBlock:
    """The rows of a file as the command line reads them: curves, or points.

    Attributes:
        path: path of the file for the process that reads it.
        reading: options for reading the file.
        aside: columns with other roles, and the options that assign these roles.
        curves: whether columns are grid points.
        grid: grid points of the first file; other files must have the same.
        covariates: public columns of X, if the curves are y.
        label: the column of labels, which are in `names`.
        target: the column of numeric targets.
    """

    path: File | Opened
    reading: Reading
    aside: dict[str, str] = field(default_factory=dict)
    curves: bool = True
    grid: tuple[float, ...] | None = None
    covariates: PublicColumns | None = None
    label: str | None = None
    names: Sequence[Any] | None = None
    target: str | None = None

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """One pass over the file; a file in long form is one chunk."""
        opened, reading = self.reading.open(self.path, aside=self.aside), self.reading
        how: Any = {"aside": self.aside, "curves": self.curves}
        count = 0
        for table in opened.chunks(None if reading.id is not None else CHUNK):
            part = replace(opened, chunks=partial(_alone, table))
            rows = reading.rows(part, least=0, **how)
            count += len(rows.X)
            yield self._chunk(rows)
            if reading.columns is None:  # the first rows determine the columns
                reading = reading.at(opened, aside=self.aside)
        if not count:
            self.reading.rows(self.path, least=1, **how)  # raises an error

    @property
    def rows(self) -> int | None:
        """Number of rows, if the file states it and every row is a used curve; otherwise None."""
        if self.reading.drop_empty or self.reading.id is not None:
            return None
        return count_in(self.path)

    def _chunk(self, rows: Rows) -> tuple[Any, Any]:
        if grid_of(rows) != self.grid or isinstance(rows.X, list):
            raise InvalidData(self.path.name, "a file with the grid points of the first one")
        if self.covariates is not None:
            return frame(rows, self.covariates, gaps=self.reading.fill), rows.X
        if self.label is not None:
            words = rows.text(self.label)
            check_labels(words, list(self.names or ()), self.label, row=rows.row)
            return rows.X, words.astype(str)
        return rows.X, None if self.target is None else rows.numbers([self.target])[:, 0]


def _alone(table: Table, _: int | None) -> Iterator[Table]:
    return iter([table])


@dataclass(frozen=True)
class FrameBlock:
    """Chunks (X, y) of frames that a function yields, such as one partition of an engine.

    Attributes:
        frames: a function that starts a pass over the frames.
        like: a file block that defines X and y of a frame.
    """

    frames: Callable[[], Iterable[Any]]
    like: FileBlock

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """One pass over the frames."""
        for one in self.frames():
            for part in tables_at(one):
                yield from replace(self.like, path=part)()


def grid_of(rows: Rows) -> tuple[float, ...] | None:
    """The grid points of a file, or None."""
    return None if rows.grid_points is None else tuple(rows.grid_points.tolist())


def blocks_of(given: Any, like: FileBlock) -> list[Block]:
    """Blocks: the given functions, and one for each given file or frame."""
    several = (
        isinstance(given, Iterable) and not isinstance(given, (str, Path)) and not is_frame(given)
    )
    found: list[Block] = []
    for one in given if several else [given]:
        if not callable(one):
            found += (replace(like, path=part) for part in tables_at(one))
        else:
            found.append(one if like.target is None else FrameBlock(one, like))
    return found
