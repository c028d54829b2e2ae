"""Prints, for every estimator, what a user sees of it; every cell is tried, none is claimed.

    python tools/estimators.py [NAME ...]

Columns: constructor with the arguments that were used, signature of `fit`, scikit-learn's
`check_estimator` (passed of those that ran; what scikit-learn skipped is named below the table),
`predict_proba`, the forms of input that `fit` reads,
`ledger=`. A form that is refused is shown with the refusal.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from skfda import FDataGrid
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import dpfda

N, T = 240, np.linspace(0.0, 1.0, 20)
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 2
CURVES = (LABELS[:, None] - 0.5) * np.sin(3 * T) + RNG.normal(0, 0.3, (N, 20))
CHANNELS = np.stack([CURVES, CURVES[:, ::-1]], axis=2)
RAGGED = [10 + k % 8 for k in range(N)]
TABLE = RNG.uniform(-1, 1, (N, 3))
WORDS = pd.DataFrame({"a": TABLE[:, 0], "s": np.where(TABLE[:, 1] > 0, "u", "v")})
RANGES = {"a": (-1, 1), "s": ["u", "v"]}
OWN = {"domain_range": (0, 1)}

SEEN_AS_CURVES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "(n, T)": (CURVES, {}, {}),
    "(n, T, C)": (CHANNELS, {}, {}),
    "FDataGrid": (FDataGrid(CURVES, T), {}, {}),
    "FDataGrid of 2 channels": (FDataGrid(CHANNELS, T), {}, {}),
    "pairs (t, x)": ([(T[:k], x[:k]) for k, x in zip(RAGGED, CURVES, strict=True)], OWN, {}),
    "lists with grids": (
        [x[:k] for k, x in zip(RAGGED, CURVES, strict=True)],
        OWN,
        {"grid_points": [T[:k] for k in RAGGED]},
    ),
    "DataFrame": (pd.DataFrame(CURVES), {}, {}),
}
"""Name of a form: the data, parameters that it needs, arguments of `fit`."""
OF_SURFACES = SEEN_AS_CURVES | {
    "(n, T1, T2) with two axes": (CHANNELS, {}, {"grid_points": (T, np.array([0.0, 1.0]))})
}
SEEN_AS_ROWS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "(n, d)": (TABLE, {}, {}),
    "DataFrame": (pd.DataFrame(TABLE, columns=list("abc")), {}, {}),
    "categories": (WORDS, {"feature_ranges": RANGES}, {}),
}
OF_CURVES, OF_ROWS = {"value_range": (-2, 2)}, {"feature_ranges": (-1, 1)}
OF_FIRST = {"feature_ranges": {0: (-1, 1)}}
SEEN_AS_POINTS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "a column of (n, d)": (TABLE, {}, {}),
    "(n,)": (TABLE[:, 0], OF_ROWS, {}),
    "(n, 1)": (TABLE[:, :1], OF_ROWS, {}),
    "(n, 2)": (TABLE[:, :2], OF_ROWS, {}),
    "DataFrame": (pd.DataFrame(TABLE[:, :1], columns=["a"]), OF_ROWS, {}),
    "a column of a DataFrame": (
        pd.DataFrame(TABLE, columns=list("abc")),
        {"feature_ranges": {"b": (-1, 1)}},
        {},
    ),
}

TARGET = {"target_range": (-1, 1)}
FORCED = {"force": True}  # few people: the checks' tables are small
SMALL = {"n_classifiers": 5, "member_size": 5}
CASES: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
    ("PrivateMean", OF_CURVES, OF_SURFACES, None),
    ("PrivateCovariance", OF_CURVES, SEEN_AS_CURVES, None),
    ("PrivateFPCA", OF_CURVES, SEEN_AS_CURVES, None),
    ("PrivateMoments", OF_CURVES, SEEN_AS_CURVES, None),
    ("PrivateGroupComparison", OF_CURVES, SEEN_AS_CURVES, LABELS),
    ("PrivateFunctionOnScalar", OF_ROWS | OF_CURVES, SEEN_AS_ROWS, CURVES),
    ("PrivateDensity", OF_FIRST, SEEN_AS_POINTS, None),
    ("PrivateKernelMachine", OF_FIRST | TARGET, SEEN_AS_POINTS, TABLE[:, 0]),
    ("PrivateKernelMachine", OF_FIRST | {"loss": "logistic"}, SEEN_AS_POINTS, LABELS),
    ("PrivateLinearRegression", OF_ROWS | TARGET, SEEN_AS_ROWS, TABLE[:, 0]),
    ("PrivateCurveRegression", OF_CURVES | TARGET, SEEN_AS_CURVES, TABLE[:, 0]),
    ("PrivateLogisticRegression", OF_ROWS, SEEN_AS_ROWS, LABELS),
    ("PrivateCurveClassifier", OF_CURVES, SEEN_AS_CURVES, LABELS),
    ("PrivateCurveClassifier", OF_CURVES, SEEN_AS_CURVES, np.arange(N) % 3),
    ("LocalCurveClassifier", OF_CURVES, SEEN_AS_CURVES, LABELS),
    ("LocalCurveClassifier", OF_ROWS, SEEN_AS_ROWS, LABELS),
    ("LocalCurveRegressor", OF_CURVES | TARGET | FORCED, SEEN_AS_CURVES, TABLE[:, 0]),
    ("LocalCurveRegressor", OF_ROWS | TARGET | FORCED, SEEN_AS_ROWS, TABLE[:, 0]),
    ("MomentClassifier", OF_CURVES, SEEN_AS_CURVES, LABELS),
    ("MRMAClassifier", OF_CURVES | SMALL, SEEN_AS_CURVES, LABELS),
    ("OnlineMRMA", OF_CURVES | SMALL | {"new_classifiers": 2}, SEEN_AS_CURVES, LABELS),
    ("MultiServerMRMA", OF_CURVES | SMALL, SEEN_AS_CURVES, LABELS),
    ("LocalGradientBoostingClassifier", OF_ROWS, SEEN_AS_ROWS, LABELS),
    ("LocalAdaBoostClassifier", OF_ROWS | {"validation": "feedback"}, SEEN_AS_ROWS, LABELS),
]


SKIPPED: dict[str, str] = {}
"""Checks that scikit-learn leaves out, and why it says it does."""


def checked(model: Any) -> str:
    """How many of scikit-learn's checks ran and passed; which failed or were skipped."""
    found = check_estimator(clone(model), on_fail=None, on_skip=None)
    SKIPPED.update({one["check_name"]: str(one["exception"]) for one in found if _skipped(one)})
    ran = [one for one in found if not _skipped(one)]
    failed = [one["check_name"] for one in ran if one["status"] == "failed"]
    told = f"{len(ran) - len(failed)} of {len(ran)}" + "".join(f", not {name}" for name in failed)
    skipped = len(found) - len(ran)
    return told + (f" ({skipped} skipped)" if skipped else "")


def _skipped(one: Any) -> bool:
    return bool(one["status"] == "skipped")


def reads(model: Any, forms: dict[str, Any], y: Any) -> str:
    """The forms of X that are read, and why others are not."""
    told = []
    for name, (X, needs, how) in forms.items():
        try:
            asked = clone(model).set_params(**needs)
            use = getattr(asked, "fit_transform", asked.fit)
            use(X, *([] if y is None else [y]), **how)
            told.append(name)
        except ValueError as refusal:
            told.append(f"not {name} ({refusal})")
    return "; ".join(told)


def row(name: str, given: dict[str, Any], forms: dict[str, Any], y: Any) -> str:
    """One line of the table."""
    model = getattr(dpfda, name)(4.0, **given, random_state=0)
    said = ", ".join(["epsilon", *(f"{key}={value!r}" for key, value in given.items())])
    parameters = list(inspect.signature(model.fit).parameters.values())
    keywords = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    places = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    fit = f"fit({', '.join(places)}, *, {', '.join(keywords)})"
    chances = "yes" if hasattr(model, "predict_proba") else "–"
    ledger = "yes" if "ledger" in model.get_params() else "no"
    cells = [f"{name}({said})", fit, checked(model), chances, reads(model, forms, y), ledger]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # few people, and what scikit-learn's checks say of them
    print("| constructor | fit | check_estimator | predict_proba | reads | ledger= |")
    print("|---|---|---|---|---|---|")
    if not sys.argv[1:] or "CurveEncoder" in sys.argv:
        encoder = dpfda.CurveEncoder()
        read = reads(encoder, SEEN_AS_CURVES, None)
        fit = "fit(X, y, *, grid_points)"
        print(f"| CurveEncoder() | {fit} | {checked(encoder)} | – | {read} | costs nothing |")
    for case in CASES:
        if not sys.argv[1:] or case[0] in sys.argv:
            print(row(*case), flush=True)
    for name, reason in SKIPPED.items():
        print(f"\nskipped by scikit-learn: {name} ({reason})")
