"""Where each data file comes from, how to know it is the right one, and how to read it."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda._validate import IntArray
from dpfda.datasets.dataset import Dataset
from dpfda.errors import DpfdaError, InvalidData, MissingExtra, UnknownName

#: The folder that holds the data files.
ENVIRONMENT = "DPFDA_DATA"
#: Where they are looked for, seen from the working directory, if that is not set.
USUAL_PLACES = ("data", "../shared/data")

PathLike = str | Path | None


class DataFileMissing(DpfdaError, FileNotFoundError):
    """The file is not there. The message says where to get it."""


@dataclass(frozen=True)
class DataFile:
    """One file of the papers' data. Nothing is bundled: most have no licence to pass them on."""

    file: str
    sha256: str
    shape: tuple[int, int]
    source: str
    licence: str = "not stated"


def _catalogue() -> dict[str, DataFile]:
    text = (files(__package__) / "catalogue.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text).items()
    return {name: DataFile(**entry | {"shape": tuple(entry["shape"])}) for name, entry in entries}


CATALOGUE = _catalogue()


class Columns(dict[str, npt.NDArray[Any]]):
    """What a file of the catalogue holds: columns or arrays by name."""

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]], name: str, *, verify: bool) -> None:
        super().__init__(columns)
        self._name, self._verify = name, verify

    def only(self, *names: str) -> dict[str, npt.NDArray[Any]]:
        """Some of them."""
        return {name: self[name] for name in names}

    def joined(self) -> dict[str, npt.NDArray[Any]]:
        """Training and test rows in one, and which are training rows, where a file parts them."""
        rows = np.vstack([self["X_train"], self["X_test"]])
        labels = np.concatenate([self["y_train"], self["y_test"]])
        return {"X": rows, "y": labels, "train": np.arange(len(rows)) < len(self["X_train"])}

    def dataset(self, description: str, *, X: npt.NDArray[Any], **fields: Any) -> Dataset:
        """The data set made of what was read, after a look at its shape."""
        entry = CATALOGUE[self._name]
        if self._verify and X.shape != entry.shape:
            raise InvalidData(entry.file, f"data of shape {entry.shape}", f"shape {X.shape}")
        return Dataset(name=self._name, description=description, X=X, **fields)


def read(name: str, path: PathLike = None, *, verify: bool = True) -> Columns:
    """Find a file of the catalogue, check its hash and return what it holds."""
    if name not in CATALOGUE:
        raise UnknownName("data set", name, sorted(CATALOGUE))
    entry = CATALOGUE[name]
    found = _locate(entry, path)
    if verify:
        digest = hashlib.sha256(found.read_bytes()).hexdigest()
        if digest != entry.sha256:
            rule = f"the file with sha256 {entry.sha256} (or pass verify=False)"
            raise InvalidData(entry.file, rule, f"sha256 {digest}")
    if found.suffix == ".npz":
        with np.load(found, allow_pickle=False) as arrays:
            return Columns(arrays, name, verify=verify)
    return Columns(_read_table(found), name, verify=verify)


def copies(rows: npt.NDArray[Any]) -> IntArray:
    """Number the distinct rows in the order in which they first appear."""
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[which.ravel()]


def _locate(entry: DataFile, path: PathLike) -> Path:
    set_by_user = os.environ.get(ENVIRONMENT) if path is None else path
    for place in map(Path, (set_by_user,) if set_by_user else USUAL_PLACES):
        candidate = place / entry.file if place.is_dir() else place
        if candidate.is_file():
            return candidate
    raise DataFileMissing(
        f"{entry.file} not found: pass path=, or set {ENVIRONMENT} to the folder that holds it. "
        f"Source: {entry.source}. Licence: {entry.licence}."
    )


def _read_table(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", "files") from None
    frame = pd.read_csv(path, low_memory=False)
    return {str(name): frame[name].to_numpy() for name in frame.columns}
