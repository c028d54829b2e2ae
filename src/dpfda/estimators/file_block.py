"""Files as blocks of rows: whoever reads one, here or on a worker, reads it the same way.

What is taken out of a file's table: features within public ranges, labels that are known.
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

    path: File | Opened
    target: str | None = None
    public: PublicColumns | None = None
    names: Sequence[Any] | None = None
    reading: Reading = Reading()
    features: tuple[str, ...] | None = None

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """A pass over it."""
        opened = self.opened()
        for table in opened.only(self._needed(opened)).chunks(CHUNK):
            yield self.chunk(opened, table)

    @property
    def rows(self) -> int | None:
        """How many there are, where the file says so and none is left out."""
        return None if self.reading.drop_empty else count_in(self.path)

    def _needed(self, opened: Opened) -> list[str]:
        """The columns that are read, by the names that the file gives them."""
        roles = (self.reading.label, self.reading.id, self.reading.groups, self.target)
        features = self.features or self._reading.chosen(opened, aside=self._aside)
        places = {place_of(name, opened.names) for name in (*features, *filter(None, roles))}
        return [opened.names[place] for place in sorted(places)]

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
    """The rows of a file as the command line reads them: curves, or points.

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
        """A pass over it; a file in long form is one chunk."""
        opened, reading = self.reading.open(self.path, aside=self.aside), self.reading
        how: Any = {"aside": self.aside, "curves": self.curves}
        count = 0
        for table in opened.chunks(None if reading.id is not None else CHUNK):
            part = replace(opened, chunks=partial(_alone, table))
            rows = reading.rows(part, least=0, **how)
            count += len(rows.X)
            yield self._chunk(rows)
            if reading.columns is None:  # what columns look like, the first rows say
                reading = reading.at(opened, aside=self.aside)
        if not count:
            self.reading.rows(self.path, least=1, **how)  # refuses

    @property
    def rows(self) -> int | None:
        """How many there are, where the file says so, each is a curve and none is left out."""
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
    """Chunks (X, y) of frames that a function yields: what an engine has in one place.

    Attributes:
        frames: starts a pass over them.
        like: how to take X and y out of each.
    """

    frames: Callable[[], Iterable[Any]]
    like: FileBlock

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """A pass over them."""
        for one in self.frames():
            for part in tables_at(one):
                yield from replace(self.like, path=part)()


def grid_of(rows: Rows) -> tuple[float, ...] | None:
    """The grid points of a file, if it has any."""
    return None if rows.grid_points is None else tuple(rows.grid_points.tolist())


def blocks_of(given: Any, like: FileBlock) -> list[Block]:
    """Functions that start a pass: the given ones, and one for each file or frame."""
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
