"""Pictures: no title is cut, no legend hides a curve, each coefficient has a scale of its own."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpfda import (
    LocalCurveClassifier,
    PrivateCurveClassifier,
    PrivateCurveRegression,
    PrivateFPCA,
    PrivateFunctionOnScalar,
    PrivateGroupComparison,
    PrivateLinearRegression,
    PrivateMean,
)
from dpfda.cli._output import draw

pytest.importorskip("matplotlib").use("Agg")
RNG = np.random.default_rng(0)
T = np.linspace(0, 24, 12)
KIND = RNG.choice(["a long name", "another long name", "c", "d"], 800)
X = 400 + 90 * np.sin(T / 4 + (KIND == "c")[:, None]) + RNG.normal(0, 60, (800, 12))
AGE = RNG.uniform(30, 85, 800)
TABLE = pd.DataFrame({"age": AGE, "a feature with a name": RNG.uniform(0, 1e-3, 800)})
RANGES = {"age": (30, 85), "a feature with a name": (0, 1e-3)}
FAR: dict[str, Any] = {"value_range": (0, 1000), "random_state": 0, "unit": "household " * 6}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def _shown() -> dict[str, Any]:
    of_table: dict[str, Any] = {"feature_ranges": RANGES, "random_state": 0, "unit": FAR["unit"]}
    return {
        "mean": PrivateMean(8, **FAR).fit(X, grid_points=T).release_,
        "coefficients of curves": PrivateFunctionOnScalar(8, feature_ranges=RANGES, **FAR)
        .fit(TABLE, X, grid_points=T)
        .release_,
        "differences": PrivateGroupComparison(8, **FAR).fit(X, KIND, grid_points=T),
        "means": PrivateGroupComparison(8, **FAR).fit(X, KIND, grid_points=T).moments_,
        "components": PrivateFPCA(8, **FAR).fit(X, grid_points=T),
        "slope": PrivateCurveRegression(8, target_range=(30, 85), **FAR)
        .fit(X, AGE, grid_points=T)
        .model_,
        "slopes": PrivateCurveClassifier(8, **FAR).fit(X, KIND, grid_points=T).model_,
        "coefficients": PrivateLinearRegression(8, target_range=(0, 1000), **of_table)
        .fit(TABLE, X[:, 0])
        .model_,
    }


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    return _shown()


def _text_is_whole(figure: Any) -> None:
    figure.canvas.draw()
    whole = figure.bbox.padded(1.0)  # a pixel of rounding
    heads = [ax.title for ax in figure.axes] + [ax.xaxis.label for ax in figure.axes]
    heads += [figure._suptitle] if figure.get_suptitle() else []
    for text in heads:
        box = text.get_window_extent()
        assert whole.x0 <= box.x0, text
        assert box.x1 <= whole.x1, text
        assert box.y1 <= whole.y1, text
    for ax in figure.axes:
        assert whole.x0 <= ax.yaxis.get_tightbbox().x0
        legend = ax.get_legend()
        if legend is not None:
            box = legend.get_window_extent()
            assert not any(box.overlaps(other.get_window_extent()) for other in figure.axes)
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1


@pytest.mark.parametrize("kind", [
    "mean", "coefficients of curves", "differences", "means", "components", "slope", "slopes",
    "coefficients",
])  # fmt: skip
def test_nothing_is_cut_and_no_legend_hides_a_curve(
    shown: dict[str, Any], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import pyplot

    own = shown[kind].plot().figure
    _text_is_whole(own)
    pyplot.close(own)
    seen: list[Any] = []
    monkeypatch.setattr(pyplot, "close", seen.append)
    draw(shown[kind], tmp_path / "picture.png")  # as of the command line
    monkeypatch.undo()
    (figure,) = seen
    _text_is_whole(figure)
    pyplot.close(figure)


def test_each_coefficient_has_a_scale_of_its_own(shown: dict[str, Any]) -> None:
    figure = shown["coefficients of curves"].plot().figure
    assert [ax.get_title() for ax in figure.axes] == [*RANGES, "intercept"]
    heights = [np.ptp(ax.get_ylim()) for ax in figure.axes]
    assert heights[1] > 1e3 * heights[0]
    both = {ax.get_title() for ax in shown["differences"].plot().figure.axes}
    assert len(both) == 6
    assert "d minus c" in both or "c minus d" in both
    assert len(shown["slopes"].plot().figure.axes) == 4


def test_features_with_other_units_share_one_scale(shown: dict[str, Any]) -> None:
    model = shown["coefficients"]
    bars = [bar.get_width() for bar in model.plot().patches]
    widths = [high - low for low, high in RANGES.values()]
    np.testing.assert_allclose(bars, model.slopes * widths)


def test_panels_take_the_place_of_given_axes(shown: dict[str, Any]) -> None:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, layout="constrained")
    first = shown["coefficients of curves"].plot(left)
    assert first.figure is figure
    assert [ax.get_title() for ax in figure.axes] == ["", *RANGES, "intercept"]
    figure.canvas.draw()
    assert first.get_position().x1 < right.get_position().x0
    pyplot.close(figure)


def test_a_study_of_many_phases_names_each_of_them() -> None:
    study = LocalCurveClassifier(4, value_range=(0, 1000), random_state=0)
    figure = study.fit(X, KIND, grid_points=T).plot()
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[2].get_yticklabels()]
    tops = sorted(boxes, key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(tops))
