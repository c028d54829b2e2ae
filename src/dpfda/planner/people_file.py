"""A file of public people, as a forecast takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidParameter
from dpfda.face.from_files import check_labels, frame
from dpfda.files import File, Reading


def public_people(
    file: File, reading: Reading, *, classes: Sequence[str], feature_ranges: Any = None
) -> tuple[tuple[Any, ...], str]:
    r"""The `sample` of a forecast: rows, labels and grid points; and how the file was read.

    Example:
        >>> from dpfda.files import Handed
        >>> file = Handed("public.csv", b"sex;0;0,5;1\nf;1;2;3,5\nm;4;5;6\n")
        >>> (X, y, points), said = public_people(file, Reading(label="sex"), classes=["f", "m"])
        >>> X.tolist(), y.tolist(), points.tolist()
        ([[1.0, 2.0, 3.5], [4.0, 5.0, 6.0]], ['f', 'm'], [0.0, 0.5, 1.0])
    """
    if reading.label is None:
        rule = "given with a file of public people: the column of classes"
        raise InvalidParameter("--label", rule, None)
    if isinstance(feature_ranges, dict):
        opened = reading.open(file, aside=feature_ranges)
        table = opened.table(least=2)
        said = reading.said(opened, len(table))
        labels, row = table.text(reading.label), lambda place: place + 1
        found: tuple[Any, ...] = (
            frame(table, PublicColumns.of(feature_ranges), gaps=reading.fill),
            labels,
        )
    else:
        rows = reading.rows(file, curves=feature_ranges is None)
        said, labels, row = rows.said, rows.text(reading.label), rows.row
        found = rows.X, labels, rows.grid_points
    check_labels(labels, classes, reading.label, row=row)
    return found, said
