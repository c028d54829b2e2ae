"""The data sets of 002 as bounded rows, prepared with public knowledge only.

Every feature is mapped to [-1, 1] by a range or coding that is known without looking at the rows,
then rows are divided by √D, so that |x|₂ ≤ 1 by construction. 002 scales by the data's own maxima
instead, which is not private (C11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.datasets.catalogue import Columns, PathLike, read
from dpfda.datasets.loaders import load_dti, load_tecator
from dpfda.errors import MissingExtra, UnknownName

Link = Literal["linear", "logistic"]


@dataclass(frozen=True)
class Prepared:
    """Rows in the unit ball and a bounded target.

    Attributes:
        X: rows, |x|₂ ≤ 1.
        y: target in [0, 1], or 0/1.
        link: ``linear`` or ``logistic``.
        note: what was done, and whether any of it looked at the data.
    """

    X: FloatArray
    y: FloatArray
    link: Link
    note: str

    @property
    def measure(self) -> str:
        """The error measure of predictions."""
        return "mse" if self.link == "linear" else "accuracy"


def prepare(name: str, path: PathLike = None) -> Prepared:
    """A data set by name.

    Args:
        name: crime, twitter, warfarin, adult, kdd, phishing, nhanes_hdl, tecator or dti.
        path: the folder of the data files; by default the one that DPFDA_DATA names.
    """
    try:
        recipe = _RECIPES[name]
    except KeyError:
        raise UnknownName("prepared data set", name, sorted(_RECIPES)) from None
    return recipe(path)


def folds(size: int, *, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Indices of a random 90:10 split into training and test rows, as in 002."""
    order = np.random.default_rng(seed).permutation(size)
    held_out = size // 10
    return order[held_out:], order[:held_out]


# -- the recipes ---------------------------------------------------------------------------------


def _crime(path: PathLike) -> Prepared:
    note = "UCI features in [0, 1]; the file's own common factor (its largest row) is divided out"
    return _cube(read("crime", path), note)


def _twitter(path: PathLike) -> Prepared:
    note = "columns were divided by their maxima in the file; the common factor is divided out"
    return _cube(read("twitter", path), note)


def _warfarin(path: PathLike) -> Prepared:
    table = _table("warfarin", path)
    dose = table["Therapeutic Dose of Warfarin"]
    vkorc1 = table["VKORC1 -1639 consensus"].map(_A_ALLELES)
    for column, alleles in _LINKED.items():  # strongly linked positions of the same gene
        vkorc1 = vkorc1.where(vkorc1.notna(), table[column].map(alleles))
    cyp2c9 = table["CYP2C9 consensus"].map(
        lambda pair: sum(allele != "*1" for allele in pair.split("/")), na_action="ignore"
    )
    inducers = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
    columns = [
        _range(table["Age"].str[0].astype(float), 1, 9),
        _range(table["Height (cm)"].fillna(165.0), 120, 210),
        _range(table["Weight (kg)"], 30, 170),
        _indicator(table["Race"] == "Asian"),
        _indicator(table["Race"] == "Black or African American"),
        _range(vkorc1, 0, 2),
        _range(cyp2c9.astype(float), 0, 2),
        _indicator(table["Amiodarone (Cordarone)"] == 1),
        _indicator((table[list(inducers)] == 1).any(axis=1)),
    ]
    return _ball(
        columns, np.sqrt(dose.clip(0, 100)) / 10, "linear",
        "5061 patients with dose, age, weight and both genotypes (002: 5052); "
        "y = sqrt(mg a week)/10; height, where missing, at its public middle",
    )  # fmt: skip


def _adult(path: PathLike) -> Prepared:
    table = _table("adult", path)
    work, married = table["workclass"], ("Married-civ-spouse", "Married-AF-spouse")
    columns = [
        _range(table["age"], 17, 90),
        _indicator(work.isin(["Self-emp-inc", "Federal-gov"])),
        _range(np.log(table["fnlwgt"]), np.log(1e4), np.log(1.5e6)),
        _range(table["education_num"], 1, 16),
        _indicator(table["marital_status"].isin(married)),
        table["occupation"].map(_OCCUPATIONS).fillna(-1.0).to_numpy(),
        _indicator(table["relationship"].isin(["Husband", "Wife"])),
        _indicator(table["race"] == "White"),
        _indicator(table["sex"] == "Male"),
        _range(table["capital_gain"], 0, 20_000),
        _range(table["capital_loss"], 0, 3_000),
        _range(table["hours_per_week"], 1, 99),
        _indicator(table["native_country"] == "United-States"),
    ]
    note = "13 attributes (education by its number), coded by hand"
    return _ball(columns, table["income"] == ">50K", "logistic", note)


def _kdd(path: PathLike) -> Prepared:
    table = _table("kdd", path)
    dropped = ["source_row", "label", "protocol_type", "service", "flag"]
    dropped += ["num_outbound_cmds", "is_host_login"]  # constant by the file's documentation
    numbers = table.drop(columns=dropped)
    columns = []
    for name in numbers.columns:
        values = numbers[name].to_numpy(dtype=float)
        if name in ("duration", "src_bytes", "dst_bytes"):
            columns.append(_range(np.log1p(values), 0, np.log1p(1e6)))
        else:
            columns.append(_range(values, 0, _KDD_RANGES.get(name, 1.0)))
    note = "36 numeric features; sizes by their logarithm"
    return _ball(columns, table["label"] != "normal", "logistic", note)


def _phishing(path: PathLike) -> Prepared:
    table = _table("phishing", path)
    columns = list(table.drop(columns="Result").to_numpy(dtype=float).T)
    return _ball(columns, table["Result"] == 1, "logistic", "30 attributes coded -1/0/1")


def _nhanes_hdl(path: PathLike) -> Prepared:
    table = _table("activity", path)
    bins = [f"tlac.{hour}" for hour in range(1, 13)]
    columns = [_range(table[name], 0, 900) for name in bins]
    columns += [_range(table["age"], 30, 85), _range(table["bmi"], 15, 60)]
    columns += [_indicator(table["gender"] == "Female"), _range(table["lbxtc"], 80, 400)]
    note = "activity in twelve two-hour bins, age, BMI, sex, total cholesterol; y = HDL/100"
    return _ball(columns, _unit(table["lbdhdd"] / 100), "linear", note)


def _tecator(path: PathLike) -> Prepared:
    data = load_tecator(path)
    encoder = CurveEncoder("bspline", n_basis=8, feature_ranges=(2.0, 5.5))
    columns = list(encoder.encode(data.X, grid_points=np.linspace(0, 1, data.X.shape[1])).T)
    note = "encoded spectra: 8 B-spline coefficients; y = fat/50 %"
    return _ball(columns, _unit(np.asarray(data.y) / 50), "linear", note)


def _dti(path: PathLike) -> Prepared:
    data = load_dti(path)
    score = np.asarray(data.y, dtype=float)
    first = (data.extra["visit"] == 1) & np.isfinite(score) & np.isfinite(data.X).all(axis=1)
    encoder = CurveEncoder("bspline", n_basis=6, feature_ranges=(0.2, 0.8))
    columns = list(encoder.encode(data.X[first], grid_points=data.grid_points).T)
    note = "one row a person (first visit): tract profile as 6 B-spline coefficients; y = pasat/60"
    return _ball(columns, _unit(score[first] / 60), "linear", note)


_A_ALLELES = {"G/G": 0.0, "A/G": 1.0, "A/A": 2.0}
_LINKED = {
    "VKORC1 1173 consensus": {"C/C": 0.0, "C/T": 1.0, "T/T": 2.0},
    "VKORC1 1542 consensus": {"G/G": 0.0, "C/G": 1.0, "C/C": 2.0},
    "VKORC1 2255 consensus": {"C/C": 0.0, "C/T": 1.0, "T/T": 2.0},
}
_OCCUPATIONS = {
    "Exec-managerial": 1.0, "Prof-specialty": 1.0,
    "Tech-support": 0.3, "Sales": 0.3, "Protective-serv": 0.3,
    "Craft-repair": -0.2, "Adm-clerical": -0.2, "Transport-moving": -0.2, "Armed-Forces": -0.2,
}  # fmt: skip
_KDD_RANGES = {
    "count": 511.0, "srv_count": 511.0, "dst_host_count": 255.0, "dst_host_srv_count": 255.0,
    "wrong_fragment": 3.0, "hot": 30.0, "num_failed_logins": 5.0, "num_compromised": 10.0,
    "num_root": 10.0, "num_file_creations": 10.0, "num_shells": 2.0, "num_access_files": 5.0,
    "urgent": 3.0, "su_attempted": 2.0,
}  # fmt: skip

_RECIPES: dict[str, Callable[[PathLike], Prepared]] = {
    "crime": _crime, "twitter": _twitter, "warfarin": _warfarin, "adult": _adult, "kdd": _kdd,
    "phishing": _phishing, "nhanes_hdl": _nhanes_hdl, "tecator": _tecator, "dti": _dti,
}  # fmt: skip


# -- public codings ------------------------------------------------------------------------------


def _range(values: Any, low: float, high: float) -> FloatArray:
    """A public range mapped to [-1, 1], clipped."""
    return np.asarray(
        np.clip((np.asarray(values, dtype=float) - low) / (high - low) * 2 - 1, -1, 1)
    )


def _indicator(condition: Any) -> FloatArray:
    return np.where(np.asarray(condition, dtype=bool), 1.0, -1.0)


def _unit(values: Any) -> FloatArray:
    return np.asarray(np.clip(np.asarray(values, dtype=float), 0, 1))


def _cube(data: Columns, note: str) -> Prepared:
    """[0, common maximum]^D mapped to [-1, 1]^D / √D."""
    rows = np.asarray(data["X"], dtype=float)
    return _ball(list(2 * rows.T / rows.max() - 1), _unit(data["y"]), "linear", note)


def _ball(columns: list[FloatArray], target: Any, link: Link, note: str) -> Prepared:
    """Columns in [-1, 1] as rows with |x|₂ ≤ 1; rows with something missing are left out."""
    rows, values = np.column_stack(columns), np.asarray(target, dtype=float)
    complete = np.isfinite(rows).all(axis=1) & np.isfinite(values)
    return Prepared(rows[complete] / np.sqrt(len(columns)), values[complete], link, note)


# -- files --------------------------------------------------------------------------------------


def _table(name: str, path: PathLike) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", "files") from None
    return pd.DataFrame(read(name, path))
