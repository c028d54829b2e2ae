"""Loaders of curves, then of tables and images.

Each takes `path` (a file or folder; by default the folder DPFDA_DATA). Text columns of tables are
coded 0, 1, 2, ... in alphabetical order; `categories` keeps the words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda.datasets.catalogue import Columns, Dataset, PathLike, copies, read, signs
from dpfda.errors import InvalidParameter


def load_phoneme(
    path: PathLike = None, *, classes: tuple[str, str] | None = None, verify: bool = True
) -> Dataset:
    """Log-periodograms of 4509 speech frames, five phonemes, 437 speakers.

    Args:
        path: the file or its folder.
        classes: load only these two of aa, ao, dcl, iy, sh, labeled +1 and −1 in this order.
        verify: whether to refuse a file whose contents differ from the catalogue.
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
        verify: whether to refuse a file whose contents differ from the catalogue.
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


def load_diabetes(
    path: PathLike = None, *, deduplicate: bool = False, verify: bool = True
) -> Dataset:
    """Eight health measurements of 2768 rows, of which only 778 are distinct (C21).

    With `deduplicate`, only the first of equal rows is kept.
    """
    text = (
        "A row is a visit; y is +1 for diabetes; groups number the distinct rows, so a split by "
        "groups keeps copies together. Zeros in Glucose, BloodPressure, SkinThickness, Insulin and "
        "BMI stand for missing."
    )
    data = read("diabetes", path, verify=verify)
    return _with_copies(data, "Id", label="Outcome", text=text, deduplicate=deduplicate)


def load_employee(
    path: PathLike = None, *, deduplicate: bool = False, verify: bool = True
) -> Dataset:
    """Eight facts about 4653 employees, 2764 of them distinct rows, and whether they leave (+1).

    With `deduplicate`, only the first of equal rows is kept.
    """
    text = "A row is an employee; y is +1 for one who leaves; groups number the distinct rows."
    data = read("employee", path, verify=verify)
    return _with_copies(data, label="LeaveOrNot", text=text, deduplicate=deduplicate)


def load_adult(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Census records of 48842 adults, labeled +1 if they earn more than 50 000 dollars a year."""
    data = read("adult", path, verify=verify)
    return data.dataset(
        "A row is a person; y is +1 above 50K. The word '?' is an unknown value.",
        **_coded(data, "income", "split"),
        y=signs(data["income"] == ">50K"),
        train=data["split"] == "train",
    )


def load_phishing(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Thirty marks −1, 0, 1 of 11055 web sites, legitimate (+1) or phishing (−1)."""
    data = read("phishing", path, verify=verify)
    return data.dataset(
        "A row is a web site; 5206 rows repeat an earlier one.",
        **_coded(data, "Result"),
        y=signs(data["Result"] == 1),
    )


def load_kdd(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Network connections of KDD Cup 1999, 50000 sampled rows, attack (+1) or normal (−1)."""
    data = read("kdd", path, verify=verify)
    return data.dataset(
        "A row is a connection; y is +1 for an attack; 30743 rows repeat another.",
        **_coded(data, "source_row", "label"),
        y=signs(data["label"] != "normal"),
        extra=data.only("label"),
    )


def load_crime(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Communities and Crime as prepared for paper 002: 1800 communities, 101 columns."""
    return _regression("crime", path, verify, "A row is a community; y is its crime rate.")


def load_twitter(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Buzz in social media as prepared for paper 002: 10000 topics, 77 columns."""
    return _regression("twitter", path, verify, "A row is a topic; y is its (skewed) buzz.")


def load_warfarin(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Nine predictors of the warfarin dose of 5528 patients, in mg per week (IWPC).

    The nine are those of the consortium's dose model: age in decades, height, weight, two race
    indicators, enzyme inducers, amiodarone, and how many variant alleles of VKORC1 −1639 (A) and
    of CYP2C9 a patient has. Unknown measurements and genotypes are NaN; an unknown medication
    counts as not taken, as in the consortium's model.
    """
    data = read("warfarin", path, verify=verify)
    inducers = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
    columns = {
        "age_decade": np.array([_number(str(age)[:1]) for age in data["Age"]]),
        "height_cm": data["Height (cm)"],
        "weight_kg": data["Weight (kg)"],
        "asian": data["Race"] == "Asian",
        "black": data["Race"] == "Black or African American",
        "enzyme_inducer": np.any([data[name] == 1 for name in inducers], axis=0),
        "amiodarone": data["Amiodarone (Cordarone)"] == 1,
        "vkorc1_a_alleles": _alleles(data["VKORC1 -1639 consensus"], lambda allele: allele == "A"),
        "cyp2c9_variants": _alleles(data["CYP2C9 consensus"], lambda allele: allele != "*1"),
    }
    dose = data["Therapeutic Dose of Warfarin"].astype(np.float64)
    dataset = data.dataset(
        "A row is a patient with a known dose; y is the dose in mg per week.",
        X=np.column_stack([column.astype(np.float64) for column in columns.values()]),
        y=dose,
        feature_names=tuple(columns),
        extra={"stable": data["Subject Reached Stable Dose of Warfarin"] == 1},
    )
    return dataset.take(~np.isnan(dose))


def load_mnist_4_9(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Handwritten digits 9 (+1) and 4 (−1), 28 × 28 grey values in [0, 1] as float32."""
    return _images("mnist_4_9", path, verify, positive=9)


def load_fashion(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Pictures of shirts (+1) and T-shirts (−1), 28 × 28 grey values in [0, 1] as float32."""
    return _images("fashion", path, verify, positive=6)


def _with_copies(data: Columns, *others: str, label: str, text: str, deduplicate: bool) -> Dataset:
    """A table of two classes with repeated rows, which `deduplicate` removes."""
    columns = _coded(data, *others, label)
    dataset = data.dataset(
        text,
        **columns,
        y=signs(data[label] == 1),
        groups=copies(np.column_stack([columns["X"], data[label]])),
    )
    if not deduplicate:
        return dataset
    _, first = np.unique(np.asarray(dataset.groups), return_index=True)
    return dataset.take(first)


def _regression(name: str, path: PathLike, verify: bool, description: str) -> Dataset:
    data = read(name, path, verify=verify)
    note = " Scaled with the data's own extremes, which is not private; norms reach 1 + 2e-8."
    X, y = (data[key].astype(np.float64) for key in ("X", "y"))
    return data.dataset(description + note, X=X, y=y)


def _images(name: str, path: PathLike, verify: bool, positive: int) -> Dataset:
    data = read(name, path, verify=verify)
    rows = data.joined()
    rows["X"] = rows["X"].astype(np.float32) / np.float32(255)
    rows["y"] = signs(rows["y"] == positive)
    return data.dataset("A row is a picture, read line by line.", **rows)


def _coded(data: Columns, *others: str) -> dict[str, Any]:
    """All columns except `others` as numbers, and the words of coded text columns."""
    columns, categories = {}, {}
    for name in data:
        column = data[name]
        if name in others:
            continue
        if column.dtype.kind not in "fiub":
            words, column = np.unique(column.astype(str), return_inverse=True)
            categories[name] = tuple(words.tolist())
        columns[name] = column.astype(np.float64)
    features = np.column_stack(list(columns.values()))
    return {"X": features, "feature_names": tuple(columns), "categories": categories}


def _alleles(genotypes: npt.NDArray[Any], counts: Callable[[str], int]) -> npt.NDArray[np.float64]:
    """Number of minor alleles of a genotype such as "A/G"; NaN if it is unknown."""
    return np.array(
        [sum(map(counts, g.split("/"))) if isinstance(g, str) else np.nan for g in genotypes]
    )


def _number(text: str) -> float:
    return float(text) if text.isdigit() else np.nan
