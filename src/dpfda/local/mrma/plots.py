"""Pictures of an MRMA study: slope function, member accuracies, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.errors import InvalidParameter, MissingExtra
from dpfda.local.mrma.result import MRMAResult
from dpfda.protocol.model import CurveModel


def draw(result: MRMAResult, model: CurveModel, *, level: float = 0.95) -> Any:
    """A matplotlib figure with three panels."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    draw_slope(axes[0], model)
    draw_members(axes[1], result, level=level)
    draw_weights(axes[2], result)
    return figure


def draw_slope(axis: Any, model: CurveModel) -> None:
    """The slope function β(t) of the averaged members (C2), or the weight of each feature.

    Of several classes, a line each, or the weights for the first.
    """
    encoder, coefficients = model.encoder, model.coefficients
    axis.axhline(0, color="0.7", linewidth=0.8)
    try:
        slope = encoder.slope(coefficients)
    except InvalidParameter:  # max_abs forgets sizes: there is no slope function
        slope = None
    if slope is None or not encoder.basis.functional:
        heights = coefficients[0] if slope is None else slope[0]
        axis.bar(np.arange(len(heights)), heights)
        axis.set(title="weight of each feature", xlabel="feature")
        return
    points = np.linspace(*encoder.basis.domain_range, slope.shape[-1])
    axis.plot(points, slope.reshape(-1, slope.shape[-1]).T)  # one for each class and channel
    axis.set(title="slope function", xlabel="t", ylabel="β(t)")


def draw_members(axis: Any, result: MRMAResult, *, level: float) -> None:
    """Accuracies of members as they were made, sorted; reversed ones are marked."""
    found = result.judgement.accuracy
    order = np.argsort(found.value)
    places = np.arange(len(order))
    low, high = found.interval(level)
    heard = np.isfinite(found.standard_error[order])
    spread = np.vstack([found.value - low, high - found.value])[:, order]
    turned = result.judgement.reversed[order]
    for chosen, marker, label in ((~turned, "o", "kept"), (turned, "v", "reversed")):
        shown = chosen & heard
        if shown.any():
            axis.errorbar(
                places[shown], found.value[order][shown], yerr=spread[:, shown],
                fmt=marker, markersize=4, linewidth=0.8, label=label,
            )  # fmt: skip
    axis.axhline(0.5, color="0.7", linewidth=0.8)
    axis.set(title=f"accuracy of members, {level:.0%} intervals", xlabel="member, sorted")
    if heard.any():
        axis.legend()


def draw_weights(axis: Any, result: MRMAResult) -> None:
    """How much each member counts; negative where it is reversed."""
    weight = result.judgement.signed_weight
    order = np.argsort(result.judgement.accuracy.value)
    axis.bar(np.arange(len(weight)), weight[order])
    axis.axhline(0, color="0.7", linewidth=0.8)
    axis.set(title="weights (below 0: reversed)", xlabel="member, sorted")
