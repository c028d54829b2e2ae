"""Pictures of a study: what was asked, what was learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.errors import MissingExtra
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.model import CurveModel


def draw_study(model: CurveModel, correlations: list[list[Estimate]], phases: list[Any]) -> Any:
    """Slope function (or weights), stump correlations with intervals, people by phase."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _draw_slopes(left, model)
    for score, row in enumerate(correlations):
        place = np.arange(len(row)) + 0.1 * score
        values = [estimate.value for estimate in row]
        errors = [min(1.96 * estimate.standard_error, 10.0) for estimate in row]
        middle.errorbar(place, values, yerr=errors, fmt="o", capsize=3)
    middle.axhline(0, color="0.6", linewidth=0.8)
    middle.set(title="is this stump right? (95 %)", xlabel="feature", ylabel="correlation")
    names = [f"{number + 1}. {phase.kind}" for number, phase in enumerate(phases)]
    right.barh(names, [phase.people for phase in phases])
    right.invert_yaxis()
    right.set(title="who was asked what", xlabel="people")
    return figure


def _draw_slopes(axes: Any, model: CurveModel) -> None:
    """β(t) for curves, one weight a feature for vectors; on the scale inside the clipping."""
    d = model.coefficients.shape[1]
    weights = np.zeros((len(model.coefficients), model.encoder.n_features))
    weights[:, :d] = model.coefficients / model.scales
    slope = model.encoder.slope(weights)
    if model.encoder.basis.functional:
        points = np.linspace(*model.encoder.basis.domain_range, slope.shape[1])
        axes.plot(points, slope.T)
        axes.set(title="slope function β(t)", xlabel="t")
    else:
        axes.bar(np.arange(slope.shape[1]), slope[0])
        axes.set(title="weights", xlabel="feature")
    axes.axhline(0, color="0.6", linewidth=0.8)
