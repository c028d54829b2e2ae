"""Loaders of curves. Each takes `path` (a file or folder; by default the folder DPFDA_DATA)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda.datasets.catalogue import Dataset, PathLike, copies, read, signs
from dpfda.errors import InvalidParameter


def load_phoneme(
    path: PathLike = None, *, classes: tuple[str, str] | None = None, verify: bool = True
) -> Dataset:
    """Log-periodograms of 4509 speech frames, five phonemes, 437 speakers.

    Args:
        path: the file or its folder.
        classes: two of aa, ao, dcl, iy, sh: only these, labeled +1 and −1 in this order.
        verify: refuse a file that holds anything else than the catalogue says.
    """
    data = read("phoneme", path, verify=verify)
    parts = np.array([name.split(".") for name in data["speaker"]])  # train.dr1.mcpm0.sa1
    dataset = data.dataset(
        "A row is a 32 ms frame; y is its phoneme; groups are the speakers, 7 to 12 frames each.",
        # The source has five decimals; float32 lost them, rounding brings them back exactly.
        X=np.round(data["X"].astype(np.float64), 5),
        y=data["g"],
        grid_points=data["freq_index"].astype(np.float64),
        groups=parts[:, 2],
        train=parts[:, 0] == "train",
    )
    return dataset if classes is None else _pair(dataset, classes)


def load_gunpoint(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Hand motions of 200 trials, drawing a gun (+1) or pointing (−1)."""
    return _split("gunpoint", path, verify, "A row is one trial; y is +1 for a drawn gun.")


def load_italy_power_demand(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Daily power demand of 1096 days, October to March (+1) or April to September (−1)."""
    return _split("italy_power_demand", path, verify, "A row is one day; y is +1 in winter.")


def load_growth(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Heights of 54 girls (+1) and 39 boys (−1) at 31 ages, in centimetres."""
    data, text = read("growth", path, verify=verify), "A row is a child; y is +1 for a girl."
    girls = signs(data["sex"] == "F")
    return data.dataset(text, X=data["X"], y=girls, grid_points=data["age"])


def load_tecator(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Near-infrared spectra of 215 pieces of meat, with their fat content in percent."""
    data = read("tecator", path, verify=verify)
    spectra = data["X"]
    return data.dataset(
        "A row is a spectrum; y is the fat content; groups number the 193 distinct "
        "spectra, 22 rows are exact copies.",
        X=spectra,
        y=data["fat"],
        grid_points=data["wavelength_nm"],
        groups=copies(spectra),
        extra=data.only("water", "protein"),
    )


def load_dti(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Fractional anisotropy along a brain tract, 382 scans of 142 people."""
    data = read("dti", path, verify=verify)
    return data.dataset(
        "A row is a scan, X its cca profile (NaN where missing); y is the PASAT "
        "score (NaN for controls); groups are the people.",
        X=data["cca"],
        y=data["pasat"],
        grid_points=np.linspace(0, 1, data["cca"].shape[1]),
        groups=data["ID"],
        extra=data.only("rcst", "visit", "visit_time", "Nscans", "case", "sex"),
    )


def load_activity(path: PathLike = None, *, complete: bool = True, verify: bool = True) -> Dataset:
    """Activity over the day of 6680 adults (NHANES 2003-2006) and their HDL cholesterol.

    Args:
        path: the file or its folder.
        complete: keep only the 5742 people with both a curve and an HDL value.
        verify: refuse a file that holds anything else than the catalogue says.
    """
    data = read("activity", path, verify=verify)
    names = ("age", "gender", "race", "bmi", "lbxtc", "sys", "sddsrvyr", "mortstat")
    dataset = data.dataset(
        "A row is a person, X log-activity in twelve 2-hour windows; y is HDL in mg/dL.",
        X=np.column_stack([data[f"tlac.{i}"] for i in range(1, 13)]),
        y=data["lbdhdd"].astype(np.float64),
        grid_points=np.arange(1.0, 24.0, 2.0),
        extra=data.only(*names),
    )
    if not complete or dataset.y is None:
        return dataset
    return dataset.take(~np.isnan(dataset.X).any(axis=1) & ~np.isnan(dataset.y))


def load_un_mortality(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Mortality rates by age, for places, both sexes and 14 periods from 1950 to 2020 (UN)."""
    data = read("un_mortality", path, verify=verify)
    ages = np.unique(data["age"])
    first = slice(None, None, len(ages))  # rows come in blocks of one place and sex over all ages
    periods = [name for name in data if name[:4].isdigit()]
    rates = np.column_stack([data[period] for period in periods])
    curves = rates.reshape(-1, len(ages), len(periods)).transpose(0, 2, 1)
    names = ("name", "region", "location_type", "sex")
    return data.dataset(
        "A row is one place, sex and period; location_type 4 is a country; groups are the places.",
        X=curves.reshape(-1, len(ages)),
        grid_points=ages.astype(np.float64),
        groups=np.repeat(data["country_code"][first], len(periods)),
        extra={name: np.repeat(data[name][first], len(periods)) for name in names}
        | {"period": np.tile(periods, len(curves))},
    )


def load_un_deaths(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Deaths 2015 to 2020 by 5-year age group in 201 countries, in thousands (UN)."""
    data = read("un_deaths", path, verify=verify)
    ages = np.unique(data["age_start"])

    def by_country(column: str) -> npt.NDArray[Any]:
        return data[column].reshape(-1, len(ages))

    return data.dataset(
        "A row is a country; y is its region.",
        X=by_country("deaths_thousands_2015_2020"),
        y=by_country("region")[:, 0],
        grid_points=ages.astype(np.float64),
        extra={"country": by_country("country")[:, 0], "population": by_country("pop_2020")},
    )


def load_canadian_weather(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Daily temperature at 35 Canadian stations, in °C, with their climate region."""
    data = read("canadian_weather", path, verify=verify)
    return data.dataset(
        "A row is a station; y is its region.",
        X=data["temp_C"],
        y=data["region"],
        grid_points=data["day"].astype(np.float64),
        extra=data.only("precip_mm", "log10_precip", "place", "province"),
    )


def load_aemet(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Daily temperature at 73 Spanish stations, in °C, averaged over 1980 to 2009."""
    data = read("aemet", path, verify=verify)
    names = ("wind_ms", "logprec", "name", "province", "altitude", "longitude", "latitude")
    return data.dataset(
        "A row is a station.",
        X=data["temp_C"],
        grid_points=data["day"],
        extra=data.only(*names),
    )


def load_adelaide_demand(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Half-hourly electricity demand in Adelaide on 3556 consecutive days from July 1997."""
    data = read("adelaide_demand", path, verify=verify)
    return data.dataset(
        "A row is a day; weekday counts from 0 for Sunday.",
        X=data["Y"],
        grid_points=data["halfhour"].astype(np.float64),
        extra={"weekday": (data["day_index"] - 1) % 7},
    )


def _split(name: str, path: PathLike, verify: bool, description: str) -> Dataset:
    """A UCR data set: training and test rows in one, classes 1 and 2 as +1 and −1."""
    data = read(name, path, verify=verify)
    rows = data.joined()
    rows["y"] = signs(rows["y"] == 1)
    grid = np.arange(rows["X"].shape[1], dtype=np.float64)
    return data.dataset(description, grid_points=grid, **rows)


def _pair(dataset: Dataset, classes: tuple[str, str]) -> Dataset:
    labels = np.asarray(dataset.y)
    known = np.unique(labels).tolist()
    if len(classes) != 2 or not set(classes) <= set(known) or classes[0] == classes[1]:
        raise InvalidParameter("classes", f"two of {', '.join(known)}", classes)
    chosen = np.isin(labels, classes)
    return replace(dataset.take(chosen), y=signs(labels[chosen] == classes[0]))
