"""Loaders of plain vectors and images; `path` as in `curve_sets`.

Text columns are coded 0, 1, 2, ... in alphabetical order; `categories` keeps the words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda.datasets.catalogue import Columns, Dataset, PathLike, copies, read, signs


def load_diabetes(
    path: PathLike = None, *, deduplicate: bool = False, verify: bool = True
) -> Dataset:
    """Eight health measurements of 2768 rows, of which only 778 are distinct (C21).

    With `deduplicate` the first of equal rows only.
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
    """Eight facts about 4653 employees, of which 2764 are distinct; who leaves (+1)?

    With `deduplicate` the first of equal rows only.
    """
    text = "A row is an employee; y is +1 for one who leaves; groups number the distinct rows."
    data = read("employee", path, verify=verify)
    return _with_copies(data, label="LeaveOrNot", text=text, deduplicate=deduplicate)


def load_adult(path: PathLike = None, *, verify: bool = True) -> Dataset:
    """Census records of 48842 adults; does one earn more than 50 000 dollars a year (+1)?"""
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
    """A table of two classes in which rows repeat: all of them, or the first of each."""
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
    """All columns but `others` as numbers, and the words behind those that were text."""
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
