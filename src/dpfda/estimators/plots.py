"""Pictures of a study: what was asked, what was learnt."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from dpfda.errors import MissingExtra
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import CurveModel

_TITLE_WIDTH = 48  # characters of a line above one of three panels


def draw_study(model: CurveModel, findings: Findings) -> Any:
    """Slope function (or weights), what was learnt with intervals, people by phase."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    model.plot(left)
    names = list(model.classes) if len(model.coefficients) > 1 else [None]
    for score, row in enumerate(findings.features):
        place = np.arange(1, len(row) + 1) + 0.1 * score
        values = [estimate.value for estimate in row]
        errors = [min(1.96 * estimate.standard_error, 10.0) for estimate in row]
        middle.errorbar(place, values, yerr=errors, fmt="o", capsize=3, label=names[score])
    middle.axhline(0, color="0.6", linewidth=0.8)
    title = fill(f"{findings.title} (± 1.96 SE of the noise)", _TITLE_WIDTH)
    middle.set_title(title, fontsize="small")
    middle.set_xlabel("feature")
    places = range(max((len(row) for row in findings.features), default=1))
    middle.set_xticks([place + 1 for place in places])
    if findings.folded:
        middle.set_xticklabels(
            [findings.called(place).replace("distance ", "±") for place in places]
        )
        middle.set_xlabel("feature (±: its distance from the middle)")
    asked = [phase for phase in findings.phases if phase.people]
    steps = [f"{number + 1}. {phase.kind}" for number, phase in enumerate(asked)]
    right.barh(steps, [phase.people for phase in asked], height=0.6)
    right.set_ylim(-0.9, max(len(asked), 3) - 0.1)
    if names[0] is not None:
        left.legend(names, title="class")
    right.invert_yaxis()
    right.set_title("people by phase", fontsize="small")
    right.set_xlabel("people")
    left.title.set_fontsize("small")
    return figure
