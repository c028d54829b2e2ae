"""What is taken out of a file's table: features within public ranges, labels that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpfda.curves.files import Rows, Table
from dpfda.curves.files.cells import label
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
    """The columns that public ranges speak of; gaps are filled by the middle of a range."""
    found = Frame()
    for column in public.columns:
        if column.categories:
            known = {label(str(one)): one for one in column.categories}
            words = [known.get(word, word) for word in table.text(column.key)]
            found[column.key] = np.array(words, dtype=object)
        else:
            numbers = table.numbers([column.key], gaps=gaps)[:, 0]
            middle = column.low / 2 + column.high / 2
            found[column.key] = np.where(np.isnan(numbers), middle, numbers)
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
