"""A file as a block of rows: whoever reads it, here or on a worker, reads it the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.curves.ranges import PublicColumns
from dpfda.face.from_files import check_labels, frame
from dpfda.files import Reading, Table
from dpfda.files.cells import label

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
    """

    path: Path
    target: str | None = None
    public: PublicColumns | None = None
    names: Sequence[Any] | None = None
    reading: Reading = Reading()

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """A pass over it."""
        aside = {} if self.target is None else {self.target: "target"}
        reading = self.reading
        if self.public is not None and reading.columns is None:
            reading = reading.choosing([str(column.key) for column in self.public.columns])
        opened = reading.open(self.path, aside=aside)
        features = reading.chosen(opened, aside=aside)
        for table in opened.chunks(CHUNK):
            yield self._rows(table, features), self._target(table)

    def _rows(self, table: Table, features: list[str]) -> Any:
        if self.public is not None:
            return frame(table, self.public, gaps=self.reading.fill)
        return table.numbers(features, gaps=self.reading.fill)

    def _target(self, table: Table) -> Any:
        if self.target is None:
            return None
        if self.names is None:
            return table.numbers([self.target])[:, 0]
        known = {label(str(one)): one for one in self.names}
        words = table.text(self.target)
        check_labels(words, list(known), self.target, row=lambda place: table.first + place)
        return np.array([known[word] for word in words])
