"""Named columns of a file for ``dpfda regress``: at once, or a CSV file in chunks.

What a reader of files complains about may quote private cells, so every complaint is replaced by
one that names the rule alone.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.errors import DpfdaError, InvalidData, InvalidParameter, MissingExtra

CHUNK = 100_000
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)


def is_csv(file: Path) -> bool:
    """Whether the name ends in .csv, or in .csv and a compression."""
    return ".csv" in [suffix.lower() for suffix in file.suffixes[-2:]]


def names(file: Path) -> list[str]:
    """The names of the columns."""
    if not is_csv(file):
        return list(columns(file))
    with _readable("a CSV file whose first line names its columns"):
        return [str(name) for name in _pandas().read_csv(file, nrows=0).columns]


def columns(file: Path) -> dict[str, Any]:
    """The columns of a whole file, by name."""
    suffix = file.suffix.lower()
    if suffix == ".npz":
        with _readable("an NPZ file of one-dimensional arrays of one length"):
            with np.load(file, allow_pickle=False) as arrays:
                table = {name: arrays[name] for name in arrays.files}
            if len({array.shape for array in table.values()}) != 1:
                raise ValueError
            if next(iter(table.values())).ndim != 1:
                raise ValueError
            return table
    if is_csv(file):
        with _readable("a CSV file with as many cells in every line as its first line has"):
            frame = _pandas().read_csv(file)
    elif suffix == ".parquet":
        with _readable("a Parquet file"):
            frame = _pandas().read_parquet(file)
    else:
        raise InvalidParameter("FILE", "a .csv, .parquet or .npz file", file.name)
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def chunks(file: Path, chosen: list[str]) -> Iterator[dict[str, Any]]:
    """Some columns of a CSV file, many lines at a time."""
    rule = "a CSV file with as many cells in every line as its first line has"
    with _readable(rule):
        frames = _pandas().read_csv(file, usecols=chosen, chunksize=CHUNK)
    with frames:
        while True:
            with _readable(rule):
                frame = next(frames, None)
            if frame is None:
                return
            yield {name: frame[name].to_numpy() for name in chosen}


@contextmanager
def _readable(rule: str) -> Iterator[None]:
    try:
        yield
    except DpfdaError:
        raise
    except _UNREADABLE:
        raise InvalidData("FILE", rule) from None


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", "files") from None
    return pd
