"""What is refused is refused by one rule, in arrays, chunks and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpfda
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter
from dpfda.estimators.file_block import Frame

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
LABELS = np.where(X[:, 0] > 0, "yes", "no").astype(object)
HUGE = X.astype(object)
HUGE[2, 2] = 10**400  # no float holds it
BOOSTING = "LocalGradientBoostingClassifier"
NAMED: dict[str, dict[str, Any]] = {
    "PrivateLogisticRegression": {"feature_ranges": (-4, 4), "classes": ("no", "yes")},
    "PrivateCurveClassifier": {"value_range": (-4, 4), "classes": ("no", "yes")},
    "PrivateGroupComparison": {"value_range": (-4, 4), "groups": ("no", "yes")},
    "LocalCurveClassifier": {"value_range": (-4, 4), "classes": ("no", "yes")},
    "MRMAClassifier": {"value_range": (-4, 4), "classes": ("no", "yes")},
    BOOSTING: {"feature_ranges": (-4, 4), "classes": ("no", "yes")},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_label_that_nobody_announced_is_refused_everywhere(name: str, tmp_path: Path) -> None:
    odd = LABELS.copy()
    odd[3] = "maybe"
    model = getattr(dpfda, name)(1.0, random_state=0, ledger=dpfda.Ledger(1.0), **NAMED[name])
    with pytest.raises(InvalidData, match="y must be among the given"):
        model.fit(X, odd)
    if hasattr(model, "fit_stream"):
        with pytest.raises(InvalidData, match="y must be among the given"):
            model.fit_stream(lambda: iter([(X[:300], LABELS[:300]), (X[:300], odd[:300])]))
        path = tmp_path / "rows.csv"
        lines = (f"{','.join(map(str, row))},{label}" for row, label in zip(X, odd, strict=True))
        path.write_text("a,b,c,d,ill\n" + "\n".join(lines) + "\n", encoding="utf-8")
        with pytest.raises(InvalidData, match="y must be among the given"):
            model.fit_stream([path], target="ill")
    assert model.ledger.spent.epsilon == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_with_real_noise_it_counts_as_the_first_class_in_files_too(tmp_path: Path) -> None:
    """So much budget that the noise is next to none: rows of 1 and of "1" are the same."""
    n = 4000
    y = np.where(RNG.normal(size=n) > 0, 1, 0).astype(object)
    y[::4] = "maybe"
    rows = RNG.normal(size=(n, 1)) + (y == 1).reshape(-1, 1)
    path = tmp_path / "rows.csv"
    lines = (f"{row[0]:.6f},{label}" for row, label in zip(rows, y, strict=True))
    path.write_text("a,ill\n" + "\n".join(lines) + "\n", encoding="utf-8")
    known: dict[str, Any] = {"feature_ranges": {"a": (-5, 6)}, "classes": (0, 1)}
    table = Frame(a=rows[:, 0])
    model = dpfda.PrivateLogisticRegression(
        1e3, **known, ledger=dpfda.Ledger(2e3, limit_delta=1e-2)
    )
    model.fit_stream([path], target="ill")
    counted = dpfda.PrivateLogisticRegression(1e3, random_state=0, **known)
    counted.fit(table, np.where(y == 1, 1, 0))
    shares = [float(np.mean(one.predict(table) == 1)) for one in (model, counted)]
    assert 0.1 < shares[1] < 0.6
    assert shares[0] == pytest.approx(shares[1], abs=0.01)


@pytest.mark.parametrize(
    ("name", "known", "data"),
    [
        ("PrivateMean", {"value_range": (-4, 4)}, (HUGE,)),
        ("PrivateMoments", {"value_range": (-4, 4)}, (HUGE,)),
        ("PrivateDensity", {"feature_ranges": (-4, 4)}, (HUGE,)),
        ("PrivateFunctionOnScalar", {"value_range": (-4, 4), "feature_ranges": (-4, 4)}, (HUGE, X)),
        ("PrivateLinearRegression", {"feature_ranges": (-4, 4), "target_range": (-4, 4)},
            (HUGE, X[:, 0])),
        ("PrivateLinearRegression", {"feature_ranges": (-4, 4), "target_range": (-4, 4)},
            (X, HUGE[:, 2])),
        ("PrivateCurveClassifier", NAMED["PrivateCurveClassifier"], (HUGE, LABELS)),
        ("LocalCurveClassifier", NAMED["LocalCurveClassifier"], (HUGE, LABELS)),
        (BOOSTING, NAMED[BOOSTING], (HUGE, LABELS)),
    ],
)  # fmt: skip
def test_an_integer_that_no_float_holds_is_refused_by_the_package(
    name: str, known: dict[str, Any], data: tuple[Any, ...]
) -> None:
    with pytest.raises(DpfdaError, match=r"^[Xy] must be finite: a number in it is too large$"):
        getattr(dpfda, name)(1.0, random_state=0, **known).fit(*data)


def test_so_are_grid_points() -> None:
    with pytest.raises(InvalidParameter, match="grid_points must be numbers"):
        dpfda.PrivateMean(1.0, value_range=(-4, 4)).fit(X, grid_points=[0, 1, 2, 10**400])
