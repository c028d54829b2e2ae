"""What the model of a study shows, on a terminal and in a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.protocol.model import RuleModel, StudyModel
from dpfda.report import Contents, Picture, Table

_POINTS = 10  # of a slope function
_NOTHING = 1e-9  # of a range's width: what rounding leaves of an end at 0


def contents(model: StudyModel) -> Contents:
    """Its slope function or weights; a model alone does not know how good it is."""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    if isinstance(model, RuleModel):
        what = "slope function β(t)" if model.encoder.basis.functional else "weights of features"
        pictures = (Picture.of(model.plot, f"The {what} of the model, without a band."),)
        if model.encoder.basis.functional:
            tables = (slope_table(model, model.slope, common_range(model.encoder)),)
    doubts, notes = model.verdict.sentences, tuple(about(model))
    return Contents(doubts=doubts, tables=tables, pictures=pictures, notes=notes)


def about(model: StudyModel) -> list[str]:
    """What it tells apart or predicts, in sentences."""
    told = []
    if isinstance(model, RuleModel) and len(model.folds):
        count = len(model.folds)
        told.append(f"how far the first {count} features are from their middles counts, too")
    if (classes := getattr(model, "classes", None)) is not None:
        told.append(f"classes: {', '.join(map(str, classes))}")
    if (ends := getattr(model, "target_range", None)) is not None:
        told.append("target: {:g} to {:g}".format(*ends))
    return told


def slope_table(model: Any, slope: Any, ends: tuple[float, float] | None) -> Table:
    """A slope function at a few points, with the public range of values that it rests on."""
    start, end = model.encoder.basis.domain_range
    points = np.linspace(start, end, _POINTS)
    rows = slope(points).reshape(-1, len(points))
    cells = [(f"{t:.4g}", *(f"{row[place]:.4g}" for row in rows)) for place, t in enumerate(points)]
    note = ""
    if ends is not None:
        low, high = ends
        shown = (0.0 if abs(end) < _NOTHING * (high - low) else end for end in ends)
        note = "values from {:g} to {:g}".format(*shown)
    headings = ("t", *slope_names(model, len(rows)))
    return Table(headings=headings, rows=tuple(cells), note=note)


def slope_names(model: Any, slopes: int) -> list[str]:
    """Of one slope function, of one for each of several classes, or of channels."""
    classes = getattr(model, "classes", None) or ()
    if slopes == 1:
        return ["slope β(t)"]
    if slopes == len(classes) > 2:  # two classes share one function of each channel
        return [f"slope of {one}" for one in classes]
    return [f"slope {place + 1}" for place in range(slopes)]


def common_range(encoder: Any) -> tuple[float, float] | None:
    """The public range of values, where all coefficients rest on one."""
    size = encoder.n_features
    scales, centers = encoder.rescaler.scales(size), encoder.rescaler.centers(size)
    if encoder.rescaler.name != "clip" or np.ptp(scales) or np.ptp(centers):
        return None
    return float(centers[0] - scales[0]), float(centers[0] + scales[0])
