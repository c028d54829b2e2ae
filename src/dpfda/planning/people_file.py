"""A file of public people, as a forecast takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpfda.curves.files import File, Reading
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.estimators.from_files import check_labels, frame


def public_people(
    file: File, reading: Reading, *, classes: Sequence[str] | None, feature_ranges: Any = None
) -> tuple[tuple[Any, ...], str]:
    r"""The `sample` of a forecast: rows, labels and grid points; and how the file was read.

    Without classes the label is a number.

    Examples:
        >>> from dpfda.curves.files import Handed
        >>> file = Handed("public.csv", b"sex;0;0,5;1\nf;1;2;3,5\nm;4;5;6\n")
        >>> (X, y, points), said = public_people(file, Reading(label="sex"), classes=["f", "m"])
        >>> X.tolist(), y.tolist(), points.tolist()
        ([[1.0, 2.0, 3.5], [4.0, 5.0, 6.0]], ['f', 'm'], [0.0, 0.5, 1.0])
    """
    if reading.label is None:
        rule = "given with a file of public people: the column of classes, or of numbers"
        raise InvalidParameter("--label", rule, None)
    if isinstance(feature_ranges, dict):
        opened = reading.open(file, aside=feature_ranges)
        table = opened.table(least=2)
        said = reading.said(opened, len(table))
        labels = _labels(table, reading.label, numbers=classes is None)
        row: Callable[[int], int] = _below_header
        found: tuple[Any, ...] = (
            frame(table, PublicColumns.of(feature_ranges), gaps=reading.fill),
            labels,
        )
    else:
        rows = reading.rows(file, curves=feature_ranges is None)
        said, row = rows.said, rows.row
        labels = _labels(rows, reading.label, numbers=classes is None)
        found = rows.X, labels, rows.grid_points
    if classes is not None:
        check_labels(labels, classes, reading.label, row=row)
    return found, said


def _below_header(place: int) -> int:
    return place + 1


def _labels(rows: Any, column: str, *, numbers: bool) -> Any:
    return rows.numbers([column])[:, 0] if numbers else rows.text(column)
