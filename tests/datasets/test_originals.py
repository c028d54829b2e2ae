"""Original files become the files of the catalogue, or nothing is written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy.io import savemat

from dpfda.cli.data import command
from dpfda.datasets import originals
from dpfda.datasets.catalogue import CATALOGUE, contents, read
from dpfda.datasets.loaders import load_dti
from dpfda.errors import InvalidData

rdata = pytest.importorskip("rdata", reason="rdata is not installed")


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments])


def save_r(path: Path, name: str, held: dict[str, Any]) -> None:
    rdata.write_rda(path, {name: held})


def factor(values: Any) -> Any:
    """As R keeps words in data frames."""
    return pd.Categorical([str(value) for value in values])


def dti(held: Any, folder: Path) -> None:
    frame = {("visit.time" if key == "visit_time" else key): held[key] for key in held}
    save_r(folder / "DTI.RData", "DTI", frame | {"sex": factor(held["sex"])})


def growth(held: Any, folder: Path) -> None:
    rows = {key: held["X"][held["sex"] == sex].T for key, sex in (("hgtm", "M"), ("hgtf", "F"))}
    save_r(folder / "growth.rda", "growth", rows | {"age": held["age"]})


def canadian_weather(held: Any, folder: Path) -> None:
    daily = np.stack([held[key].T for key in ("temp_C", "precip_mm", "log10_precip")], axis=2)
    texts = {key: factor(held[key]) for key in ("place", "province", "region")}
    where = {"coordinates": held["lat_N_lon_W"]}
    save_r(folder / "CanadianWeather.rda", "CanadianWeather", {"dailyAv": daily} | texts | where)


def aemet(held: Any, folder: Path) -> None:
    days = {"temp": "temp_C", "wind.speed": "wind_ms", "logprec": "logprec"}
    found = {key: {"data": held[ours], "argvals": held["day"]} for key, ours in days.items()}
    words = {key: factor(held[key]) for key in ("name", "province")}
    where = {key: held[key] for key in ("altitude", "longitude", "latitude")}
    save_r(folder / "aemet.rda", "aemet", found | {"df": words | where})


def adult(held: Any, folder: Path) -> None:
    names, part = CATALOGUE["adult"].columns[:-1], held["split"]
    rows = list(zip(*(map(str, held[name]) for name in names), strict=True))
    for own, file, dot in (("train", "adult.data", ""), ("test", "adult.test", ".")):
        lines = [
            ", ".join(row) + dot for row, which in zip(rows, part, strict=True) if which == own
        ]
        head = [] if own == "train" else ["|1x3 Cross validator"]
        (folder / file).write_text("\n".join([*head, *lines]), encoding="utf-8")


def tecator(held: Any, folder: Path) -> None:
    spectra = {"data": held["X"], "argvals": held["wavelength_nm"]}
    parts = {key.title(): held[key] for key in ("fat", "water", "protein")}
    save_r(folder / "tecator.rda", "tecator", {"absorp.fdata": spectra, "y": parts})


def gunpoint(held: Any, folder: Path) -> None:
    for part in ("train", "test"):
        rows = (",".join(f"{value!r}" for value in row) for row in held[f"X_{part}"].tolist())
        lines = [f"{row}:{label}" for row, label in zip(rows, held[f"y_{part}"], strict=True)]
        text = "\n".join(["# of the archive", "@problemName GunPoint", "@data", *lines])
        (folder / f"GunPoint_{part.upper()}.ts").write_text(text, encoding="utf-8")


def crime(held: Any, folder: Path) -> None:
    savemat(folder / "crime_D_101_N_1800.mat", {"X": held["X"], "y": held["y"][:, None], "N": 1800})


def phishing(held: Any, folder: Path) -> None:
    rows = np.column_stack([held[name] for name in CATALOGUE["phishing"].columns])
    lines = ["@relation phishing", "@data", *(",".join(map(str, row)) for row in rows.tolist())]
    (folder / "Training Dataset.arff").write_text("\n".join(lines), encoding="utf-8")


def mnist_4_9(held: Any, folder: Path) -> None:
    for part, stem in (("train", "train"), ("test", "t10k")):
        places = held[f"idx_{part}"]
        images = np.zeros((places.max() + 1, 28, 28), dtype=np.uint8)
        labels = np.zeros(len(images), dtype=np.uint8)
        images[places], labels[places] = held[f"X_{part}"].reshape(-1, 28, 28), held[f"y_{part}"]
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
            packed = gzip.compress(head + array.tobytes(), compresslevel=1)
            (folder / f"{stem}-{name}-ubyte.gz").write_bytes(packed)


MAKERS = (
    dti, growth, canadian_weather, aemet, adult, tecator, gunpoint, crime, phishing,
    mnist_4_9,
)  # fmt: skip


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_what_the_source_holds_becomes_the_file_of_the_catalogue(
    make: Any, shared_data: Path, tmp_path: Path
) -> None:
    """An original is remade from the catalogue's file; the conversion passes its checksum."""
    name = make.__name__
    if not (shared_data / CATALOGUE[name].file).is_file():
        pytest.skip(f"{CATALOGUE[name].file} is not in the folder of data sets")
    make(read(name, shared_data), tmp_path)
    done = invoke("import", tmp_path, "--folder", tmp_path / "data")
    assert done.stdout == f"wrote {tmp_path / 'data' / CATALOGUE[name].file}\n"
    read(name, tmp_path / "data")  # verified


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file that is laid out like DTI.RData and holds three scans."""
    rng, path = np.random.default_rng(0), tmp_path / "DTI.RData"
    numbers = {key: np.arange(3) for key in ("ID", "visit", "visit.time", "Nscans", "case")}
    curves = {"cca": rng.random((3, 93)), "rcst": rng.random((3, 55))}
    pasat = np.array([np.nan, 40.0, 50.0])
    save_r(
        path, "DTI", numbers | curves | {"sex": factor(["male", "female", "male"]), "pasat": pasat}
    )
    return path


def test_other_contents_are_not_written_unless_asked_for(small: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = invoke("import", small, "--folder", data)
    assert done.exit_code != 0
    assert "contents have the checksum" in str(done.exception)
    assert not data.exists()
    assert invoke("import", small, "--folder", data, "--unverified").exit_code == 0
    assert [path.name for path in data.iterdir()] == ["dti.npz"]
    found = load_dti(data, verify=False)
    assert found.X.shape == (3, 93)
    assert found.extra["sex"].tolist() == ["male", "female", "male"]
    assert json.loads(invoke("list", "--json", "--folder", data).stdout)["dti"]["state"] == "other"


def test_a_file_of_another_layout_is_refused_in_factor(tmp_path: Path) -> None:
    save_r(tmp_path / "DTI.RData", "DTI", {"cca": np.zeros((2, 93))})
    done = invoke("import", tmp_path / "DTI.RData", "--folder", tmp_path / "data")
    assert "DTI.RData must be laid out as in the source of dti" in str(done.exception)
    done = invoke("import", tmp_path / "DTI.RData", "--as", "adult")
    assert "PATHS must be adult.data and adult.test for adult" in str(done.exception)
    done = invoke("import", tmp_path / "DTI.RData", "--as", "un_deaths")
    assert "2015_2020.csv.gz for un_deaths" in str(done.exception)
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    done = invoke("import", tmp_path / "notes.txt")
    assert "PATHS must be the original files of at least one data set" in str(done.exception)


@pytest.mark.parametrize(
    "junk", [b"", b"RDX2\nX\n", b"\x1f\x8bnothing", b"a,b\n1", b"\xff\xfe\x00"]
)
def test_junk_is_refused_for_every_data_set(junk: bytes, tmp_path: Path) -> None:
    for name in originals._CONVERTERS:
        for file in CATALOGUE[name].originals:
            (tmp_path / file).write_bytes(junk)
    for name, entry in CATALOGUE.items():
        if entry.originals:
            files = [tmp_path / file for file in entry.originals]
            done = invoke("import", *files, "--as", name, "--folder", tmp_path / "data")
            assert isinstance(done.exception, InvalidData), (name, repr(done.exception))
    assert not (tmp_path / "data").exists()


def test_missing_files_are_a_line_each_with_what_to_do(tmp_path: Path) -> None:
    lines = invoke("list", "--folder", tmp_path).stdout.splitlines()
    assert len(lines) == 2 * len(CATALOGUE)
    assert lines[2].startswith("dti                 missing  get DTI.RData: R package refund")
    assert "licence: package GPL (>= 2)" in lines[3]


def test_every_original_has_a_converter_and_the_reverse() -> None:
    named = {name for name, entry in CATALOGUE.items() if entry.originals}
    assert named == set(originals._CONVERTERS)
    assert all(len(entry.contents) == 64 for entry in CATALOGUE.values())


def test_a_checksum_tells_values_names_shapes_and_words_apart() -> None:
    plain = {"x": np.array([[1.0, np.nan]]), "w": np.array(["a", "b"])}
    same = {"w": np.array(["a", "b"], dtype=object), "x": np.array([[1, -np.nan]], dtype="<f4")}
    assert contents(plain) == contents(same)
    others: list[dict[str, Any]] = [
        {"x": np.array([[1.001, np.nan]])}, {"x": np.array([1.0, np.nan])},
        {"w": np.array(["a", "c"])}, {"v": np.array([0])},
    ]  # fmt: skip
    assert len({contents(plain | other) for other in others} | {contents(plain)}) == 5
