"""The catalogue of data files (source, hash, reader), and `Dataset`, which every loader returns."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from gzip import BadGzipFile
from importlib.resources import files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import DpfdaError, InvalidData, MissingExtra, UnknownName


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """A public data set, or a simulated one.

    Attributes:
        name: short name.
        description: meaning of rows, X, y and groups.
        X: one curve (n, T) or one vector (n, d) per row; NaN where missing.
        y: labels −1 and +1, class names, or a number to predict; None if there is none.
        grid_points: the T points of the curves; None for vectors.
        groups: rows with the same entry belong together (one person, or copies of one row).
            A train/test split must keep groups together, and a guarantee per row is m times weaker
            for a person with m rows (correction C21).
        train: whether the source calls the row a training row; None if it has no such split.
        feature_names: names of the columns of vectors.
        categories: for a text column, the words of the codes 0, 1, 2, ...
        extra: further columns by name, one entry per row.
        truth: true values of a simulation, such as the slope function on the grid.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> simulate_001(3, random_state=0)
        Dataset('simulation_001', X (3, 101), y (3,), grid_points (101,), truth: slope)
    """

    name: str
    description: str
    X: FloatArray
    y: npt.NDArray[Any] | None = None
    grid_points: FloatArray | None = None
    groups: npt.NDArray[Any] | None = None
    train: npt.NDArray[np.bool_] | None = None
    feature_names: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    truth: Mapping[str, FloatArray] = field(default_factory=dict)

    def take(self, rows: npt.ArrayLike) -> Dataset:
        """The same data set with these rows only (indices or a mask)."""
        chosen = np.asarray(rows)
        return replace(
            self,
            X=self.X[chosen],
            y=None if self.y is None else self.y[chosen],
            groups=None if self.groups is None else self.groups[chosen],
            train=None if self.train is None else self.train[chosen],
            extra={name: column[chosen] for name, column in self.extra.items()},
        )

    def __repr__(self) -> str:
        shapes = {
            "X": self.X,
            "y": self.y,
            "grid_points": self.grid_points,
            "groups": self.groups,
            "train": self.train,
        }
        parts = [f"{key} {value.shape}" for key, value in shapes.items() if value is not None]
        for title, names in (("extra", self.extra), ("truth", self.truth)):
            parts += [f"{title}: {', '.join(names)}"] if names else []
        return f"Dataset({self.name!r}, {', '.join(parts)})"


def signs(positive: npt.NDArray[np.bool_]) -> FloatArray:
    """Labels +1 where `positive`, −1 elsewhere."""
    return np.where(positive, 1.0, -1.0)


#: The folder that holds the data files.
ENVIRONMENT = "DPFDA_DATA"
#: Default folders, relative to the working directory.
USUAL_PLACES = ("data", "../shared/data")

PathLike = str | Path | None


class DataFileMissing(DpfdaError, FileNotFoundError):
    """The file is missing. The message states where to get it."""


@dataclass(frozen=True)
class DataFile:
    """One file of the papers' data. Files are not included, because few licences permit that.

    Attributes:
        file: name of the file.
        sha256: hash of the file.
        contents: checksum of its contents (function `contents`), equal for all conversions of the
            source.
        shape: shape of X.
        source: where it comes from.
        licence: licence of the data.
        originals: names of the original files that ``dpfda data import`` converts.
        columns: column names, for originals without names.
    """

    file: str
    sha256: str
    shape: tuple[int, int]
    source: str
    contents: str = ""
    licence: str = "not stated"
    originals: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def to_do(self) -> str:
        """Instructions for a missing file."""
        if not self.originals:
            return f"get {self.file}: {self.source}"
        return f"get {' and '.join(self.originals)}: {self.source}; then dpfda data import"


def _catalogue() -> dict[str, DataFile]:
    text = (files(__package__) / "catalogue.toml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = tomllib.loads(text)
    for entry in entries.values():
        entry |= {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return {name: DataFile(**entry) for name, entry in entries.items()}


CATALOGUE = _catalogue()


class Columns(dict[str, npt.NDArray[Any]]):
    """The contents of a file of the catalogue: columns or arrays by name."""

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]], name: str, *, verify: bool) -> None:
        super().__init__(columns)
        self._name, self._verify = name, verify

    def check(self) -> None:
        """Refuse contents that differ from the catalogue."""
        entry, found = CATALOGUE[self._name], contents(self)
        if found != entry.contents:
            rule = f"a file whose contents have the checksum {entry.contents[:12]} (or unverified)"
            raise InvalidData(entry.file, rule, found[:12])

    def only(self, *names: str) -> dict[str, npt.NDArray[Any]]:
        """Some of the columns."""
        return {name: self[name] for name in names}

    def joined(self) -> dict[str, npt.NDArray[Any]]:
        """Training and test rows together, with a mask of training rows."""
        rows = np.vstack([self["X_train"], self["X_test"]])
        labels = np.concatenate([self["y_train"], self["y_test"]])
        return {"X": rows, "y": labels, "train": np.arange(len(rows)) < len(self["X_train"])}

    def dataset(self, description: str, *, X: npt.NDArray[Any], **fields: Any) -> Dataset:
        """Create the data set, after checking the shape of X."""
        entry = CATALOGUE[self._name]
        if self._verify and X.shape != entry.shape:
            raise InvalidData(entry.file, f"data of shape {entry.shape}", f"shape {X.shape}")
        return Dataset(name=self._name, description=description, X=X, **fields)


def read(name: str, path: PathLike = None, *, verify: bool = True) -> Columns:
    """Read a file of the catalogue and verify its contents."""
    if name not in CATALOGUE:
        raise UnknownName("data set", name, sorted(CATALOGUE))
    entry = CATALOGUE[name]
    found = locate(entry, path)
    if found is None:
        raise DataFileMissing(
            f"{entry.file} not found: pass path=, or set {ENVIRONMENT} to the folder that holds "
            f"it. To have it, {entry.to_do}. Licence: {entry.licence}."
        )
    known = not verify or hashlib.sha256(found.read_bytes()).hexdigest() == entry.sha256
    columns = Columns(_held(found), name, verify=verify)
    if not known:
        columns.check()
    return columns


def contents(columns: Mapping[str, npt.NDArray[Any]]) -> str:
    """A checksum of numbers (to seven digits) and words, for every file format.

    Examples:
        >>> contents({"x": np.array([1, 2])}) == contents({"x": np.array([1.0, 2.0])})
        True
    """
    digest = hashlib.sha256()
    for name in sorted(columns):
        column = np.asarray(columns[name])
        digest.update(f"{name} {column.shape}\n".encode())
        if column.dtype.kind in "fiub":
            numbers = column.astype("<f4") + np.float32(0)  # no -0
            numbers[np.isnan(numbers)] = np.nan  # one bit pattern for all NaN
            digest.update(numbers.tobytes())
        else:
            digest.update("\n".join(map(str, column.ravel().tolist())).encode())
    return digest.hexdigest()


def copies(rows: npt.NDArray[Any]) -> IntArray:
    """Number the distinct rows in the order in which they first appear."""
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[which.ravel()]


def places(path: PathLike = None) -> list[Path]:
    """The folders of data files; imports write to the first one."""
    set_by_user = os.environ.get(ENVIRONMENT) if path is None else path
    return [Path(place) for place in ((set_by_user,) if set_by_user else USUAL_PLACES)]


def locate(entry: DataFile, path: PathLike = None) -> Path | None:
    """The path of the file; None if it is missing."""
    for place in places(path):
        candidate = place / entry.file if place.is_dir() else place
        if candidate.is_file():
            return candidate
    return None


def _held(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        if path.suffix != ".npz":
            return _read_table(path)
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, EOFError, BadZipFile, BadGzipFile) as error:
        raise InvalidData(path.name, "a file that can be read", type(error).__name__) from error


def _read_table(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", "files") from None
    frame = pd.read_csv(path, low_memory=False)
    return {str(name): frame[name].to_numpy() for name in frame.columns}
