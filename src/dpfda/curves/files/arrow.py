"""Columns read by Apache Arrow, where pyarrow is installed: lines of text, and record batches.

Numbers are those of the readers without it, bit for bit: both round correctly. Cells that only one
of them accepts are left to the other one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves.files.cells import MISSING

LARGE = 1 << 20  # bytes of text: fewer are read before pyarrow is loaded
_BLOCK = 1 << 23  # bytes that are parsed at a time
_EMPTY = sorted({word for one in MISSING for word in (one, one.upper(), one.title())} | {"NaN"})


def floats(
    body: bytes, sep: str, decimal: str, *, width: int, places: Sequence[int]
) -> list[FloatArray] | None:
    """Columns of lines as numbers, NaN where a cell is empty; None: for another reader."""
    try:
        import pyarrow as arrow
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(place) for place in range(width)]
    wanted = [names[place] for place in places]
    try:
        table = csv.open_csv(
            arrow.BufferReader(body),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=sep, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, arrow.float64()),
                include_columns=wanted,
                null_values=_EMPTY,
                decimal_point=decimal,
                check_utf8=False,
            ),
        ).read_all()
    except arrow.ArrowException:
        return None
    found = [np.array(column.to_numpy(), dtype=np.float64) for column in table.columns]
    gaps = [int(np.isnan(values).sum()) for values in found]
    if gaps != [column.null_count for column in table.columns]:
        return None  # a word that Arrow alone takes for NaN
    return found
