"""Conversion of original files to those of the catalogue: ``DTI.RData`` becomes ``dti.npz``.

A converter is named after its data set, takes the paths of the original files in the order of the
catalogue and returns columns by name. `catalogue.contents` verifies them.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from dpfda.datasets.catalogue import CATALOGUE
from dpfda.errors import InvalidData

_UNREADABLE = (
    AttributeError, EOFError, IndexError, KeyError, NotImplementedError, TypeError, ValueError,
    MatReadError, gzip.BadGzipFile, zlib.error,
)  # fmt: skip
"""Exceptions of format readers for invalid files."""
Array = npt.NDArray[Any]
Found = dict[str, Array]


def convert(name: str, paths: list[Path]) -> Found:
    """Convert the original files of a data set to the file that loaders read."""
    try:
        return _CONVERTERS[name](*paths)
    except _UNREADABLE as error:
        rule = f"laid out as in the source of {name}"
        text = ", ".join(path.name for path in paths)
        raise InvalidData(text, rule, "something else") from error


def write(name: str, columns: Mapping[str, Array], folder: Path) -> Path:
    """Write the file of a data set atomically."""
    path = folder / CATALOGUE[name].file
    folder.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=folder, suffix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            if path.suffix == ".npz":
                np.savez_compressed(file, allow_pickle=False, **columns)
            else:
                text = _table(columns).encode()
                file.write(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    path.chmod(0o644)
    return path


def _table(columns: Mapping[str, Array]) -> str:
    import pandas as pd

    return str(pd.DataFrame(dict(columns)).to_csv(index=False, lineterminator="\n"))


# -- R ------------------------------------------------------------------------------------------


def _r(path: Path, name: str) -> Any:
    """An object from an R file, with lists and data frames as dictionaries."""
    import rdata

    known: dict[Any, Any] = dict(rdata.conversion.DEFAULT_CLASS_MAP)
    known |= {kind: lambda found, _: found for kind in _CLASSES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unknown classes and guessed formats
        return rdata.read_rda(path, constructor_dict=known, default_encoding="utf-8")[name]


_CLASSES = ("data.frame", "fds", "fts", "sfts", "fdata", "ldata", "tbl_df", "tbl", "data.table")


def _words(column: object) -> Array:
    return np.asarray(np.asarray(column), dtype=str)


def _phoneme(path: Path) -> Found:
    frame = _r(path, "phoneme")
    rows = np.column_stack([frame[f"x.{i}"] for i in range(1, 257)])
    return {
        "X": rows.astype(np.float32),
        "freq_index": np.arange(1, 257),
        "g": _words(frame["g"]),
        "speaker": _words(frame["speaker"]),
    }


def _dti(path: Path) -> Found:
    frame = _r(path, "DTI")
    curves = {key: np.asarray(frame[key], dtype=float) for key in ("cca", "rcst")}
    numbers = {key: np.asarray(frame[key]) for key in ("ID", "visit", "Nscans", "case")}
    rest = {"visit_time": np.asarray(frame["visit.time"]), "sex": _words(frame["sex"])}
    return curves | numbers | rest | {"pasat": np.asarray(frame["pasat"], dtype=float)}


def _adelaide_demand(path: Path) -> Found:
    days = np.asarray(_r(path, "SAelectdemand")["y"], dtype=float).T
    places = (np.arange(1, size + 1) for size in days.shape)
    return {"Y": days} | dict(zip(("day_index", "halfhour"), places, strict=True))


def _growth(path: Path) -> Found:
    found = _r(path, "growth")
    boys, girls = (np.asarray(found[key], dtype=float).T for key in ("hgtm", "hgtf"))
    return {
        "X": np.vstack([boys, girls]),
        "age": np.asarray(found["age"], dtype=float),
        "sex": np.repeat(["M", "F"], [len(boys), len(girls)]),
    }


def _tecator(path: Path) -> Found:
    found = _r(path, "tecator")
    spectra, contents = found["absorp.fdata"], found["y"]
    return {
        "X": np.asarray(spectra["data"], dtype=float),
        "wavelength_nm": np.asarray(spectra["argvals"], dtype=float),
    } | {key.lower(): np.asarray(contents[key]) for key in ("Fat", "Water", "Protein")}


def _canadian_weather(path: Path) -> Found:
    found = _r(path, "CanadianWeather")
    daily = np.asarray(found["dailyAv"], dtype=float).transpose(2, 1, 0)
    days = dict(zip(("temp_C", "precip_mm", "log10_precip"), daily, strict=True))
    words = {key: _words(found[key]) for key in ("place", "province", "region")}
    where = np.asarray(found["coordinates"], dtype=float)
    return days | words | {"day": np.arange(1, daily.shape[2] + 1), "lat_N_lon_W": where}


def _aemet(path: Path) -> Found:
    found = _r(path, "aemet")
    kinds = {"temp_C": "temp", "wind_ms": "wind.speed", "logprec": "logprec"}
    days = {ours: np.asarray(found[key]["data"], dtype=float) for ours, key in kinds.items()}
    stations = found["df"]
    words = {key: _words(stations[key]) for key in ("name", "province")}
    places = {key: np.asarray(stations[key]) for key in ("altitude", "longitude", "latitude")}
    return days | words | places | {"day": np.asarray(found["temp"]["argvals"], dtype=float)}


def _activity(path: Path) -> Found:
    frame = {key: np.asarray(column) for key, column in _r(path, "nhanesdat").items()}
    return {
        key: np.round(column, 6) if column.dtype.kind == "f" else column
        for key, column in frame.items()
    }


# -- text, MATLAB, idx -----------------------------------------------------------------------------


def _lines(path: Path) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def _typed(rows: list[list[str]], names: Sequence[str]) -> Found:
    """Columns of text, converted to numbers if all cells are numbers."""

    def typed(column: tuple[str, ...]) -> Array:
        try:
            return np.array(column, dtype=float)
        except ValueError:
            return np.array(column)

    return {name: typed(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}


def _archive(train: Path, test: Path) -> Found:
    """Training and test file of the UCR archive (``.ts``): values, a colon, the class."""
    found = {}
    for part, path in (("train", train), ("test", test)):
        lines = _lines(path)
        data = lines[[line.lower() for line in lines].index("@data") + 1 :]
        values, labels = zip(*(line.rsplit(":", 1) for line in data), strict=True)
        found[f"X_{part}"] = np.array([row.split(",") for row in values], dtype=float)
        found[f"y_{part}"] = np.array(labels, dtype=float).astype(np.int8)
    return found


def _prepared(path: Path) -> Found:
    """Rows and targets as prepared for 002."""
    held = loadmat(path)
    return {"X": held["X"].astype(np.float32), "y": held["y"].ravel().astype(np.float32)}


def _adult(data: Path, test: Path) -> Found:
    parts = {"train": _lines(data), "test": _lines(test)}
    rows = [
        [cell.strip() for cell in line.removesuffix(".").split(",")] + [part]
        for part, lines in parts.items()
        for line in lines
        if line.count(",") == 14
    ]
    return _typed(rows, CATALOGUE["adult"].columns)


def _phishing(path: Path) -> Found:
    rows = [line.split(",") for line in _lines(path) if line[0] not in "@%"]
    return _typed(rows, CATALOGUE["phishing"].columns)


def _kdd(path: Path) -> Found:
    lines = _lines(path)
    chosen = np.sort(np.random.default_rng(20240101).choice(len(lines), 50_000, replace=False))
    rows = [[str(i), *lines[i].removesuffix(".").split(",")] for i in chosen.tolist()]
    return _typed(rows, CATALOGUE["kdd"].columns)


def _warfarin(path: Path) -> Found:
    import pandas as pd

    table = pd.read_csv(path, low_memory=False).dropna(subset=["PharmGKB Subject ID"])
    return {str(key): table[key].to_numpy() for key in table.dropna(axis="columns", how="all")}


def _with_names(path: Path) -> Found:
    names, *rows = (line.split(",") for line in _lines(path))
    return _typed(rows, [name.replace(" ", "") for name in names])


def _mnist_4_9(*paths: Path) -> Found:
    """Two classes of the four idx files."""
    found = {}
    for part, images, labels in zip(("train", "test"), paths[::2], paths[1::2], strict=True):
        y = _idx(labels)
        places = np.flatnonzero(np.isin(y, (4, 9)))
        found[f"X_{part}"] = _idx(images).reshape(len(y), -1)[places]
        found[f"y_{part}"], found[f"idx_{part}"] = y[places], places
    return found


def _fashion(tops: Path, shirts: Path) -> Found:
    """Per class, the first 1000 pictures for tests and the others for training; shuffled."""
    rng, parts = np.random.default_rng(0), []
    for path in (tops, shirts):
        held = np.array(json.loads(path.read_text(encoding="utf-8"))["data"], dtype=float)
        grey = held * (255 if held.max() <= 1 else 1)
        parts.append(np.rint(grey).astype(np.uint8).reshape(-1, 784))
    found = {}
    for part, where in (("train", slice(1000, None)), ("test", slice(None, 1000))):
        rows = [held[where] for held in parts]
        order = rng.permutation(sum(map(len, rows)))
        found[f"X_{part}"] = np.concatenate(rows)[order]
        found[f"y_{part}"] = np.repeat([0, 6], [len(held) for held in rows])[order]
    return found


def _idx(path: Path) -> Array:
    held = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    axes = held[3]
    shape = np.frombuffer(held, dtype=">u4", count=axes, offset=4)
    return np.frombuffer(held, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


_CONVERTERS: dict[str, Callable[..., Found]] = {
    "phoneme": _phoneme, "dti": _dti, "adelaide_demand": _adelaide_demand, "activity": _activity,
    "growth": _growth, "tecator": _tecator, "canadian_weather": _canadian_weather,
    "aemet": _aemet, "gunpoint": _archive, "italy_power_demand": _archive, "diabetes": _with_names,
    "employee": _with_names, "crime": _prepared, "twitter": _prepared, "adult": _adult,
    "phishing": _phishing, "kdd": _kdd, "warfarin": _warfarin, "mnist_4_9": _mnist_4_9,
    "fashion": _fashion,
}  # fmt: skip
