"""Pictures of a boosting study, round by round (Figures 4, 5, 7 and 8 of 004)."""

from __future__ import annotations

from typing import Any

from dpfda.errors import MissingExtra


def draw_rounds(history: list[dict[str, Any]]) -> Any:
    """Weighted error and α of every rule, or step and directions of every gradient round."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    boosted = bool(history) and "alpha" in history[0]
    names = ("error", "alpha") if boosted else ("step", "directions")
    titles = {
        "error": "weighted error",
        "alpha": "weight α",
        "step": "how far the model moved",
        "directions": "directions asked about",
    }
    places = range(1, len(history) + 1)
    for axes, name in zip((left, right), names, strict=True):
        axes.plot(places, [row[name] for row in history], "o-")
        dropped = [p for p, row in zip(places, history, strict=True) if not row.get("kept", True)]
        axes.plot(dropped, [history[p - 1][name] for p in dropped], "x", color="crimson", ms=10)
        axes.set(title=titles[name], xlabel="round")
    return figure
