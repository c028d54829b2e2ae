"""Plain words for what designs call by short names."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan

_PHASES = {
    "vectors": "What goes with the label, or the number",
    "answers": "What goes with the label, and where",
    "location": "Where features lie",
    "spread": "How widely features are spread",
    "correlation": "Which features go together",
    "moments": "Which features matter",
    "gradient": "Improving the model",
    "temperature": "How sure the model may be",
    "evaluation": "Judging the finished model",
    "labels": "Telling labels",
    "report": "Reporting noisy curves",
    "evaluate": "Judging first models",
    "check": "Judging the finished model",
    "feedback": "Judging first models",
}
_STATUS = {
    "open": "waiting for answers",
    "closing": "drawing conclusions",
    "finished": "finished",
}
_MANY = 10**6  # more functions than a channel has
_WAVES = ("level", "beginning against end", "middle against both ends")


def phase_name(kind: str) -> str:
    """What a phase does, for people who have not read the design.

    Examples:
        >>> phase_name("location"), phase_name("new_kind")
        ('Where features lie', 'new kind')
    """
    return _PHASES.get(kind, kind.replace("_", " "))


def status_name(status: str) -> str:
    """What a study does now."""
    return _STATUS.get(status, status)


def feature_name(encoder: Any, place: int, *, folded: int = 0) -> str:
    """What a feature is, as far as it can be said in words.

    Examples:
        >>> curves = CurveEncoder("cosine", n_basis=4)
        >>> [feature_name(curves, place) for place in (0, 1, 3)]
        ['level', 'beginning against end', '3 half waves']
        >>> feature_name(curves, 4, folded=4)
        'how far from the middle: level'
    """
    if folded and place >= folded:
        inside = feature_name(encoder, place - folded)
        return f"how far from the middle: {inside}"
    if not isinstance(encoder, CurveEncoder):
        return f"feature {place + 1}"
    if encoder.table is not None:
        return str(encoder.table.names[place])
    parts = encoder.basis.parts  # features of several channels come in turns
    own = [number * _MANY + np.arange(float(part.n_basis)) for number, part in enumerate(parts)]
    channel, inside_it = divmod(int(encoder.basis.in_turns(own)[place]), _MANY)
    named = _alone(parts[channel].name or "", inside_it)
    return named if len(parts) == 1 else f"channel {channel + 1}: {named}"


def _alone(basis: str, place: int) -> str:
    if basis == "identity":
        return f"column {place + 1}"
    if basis != "cosine":
        return f"{basis} function {place + 1}"
    return _WAVES[place] if place < len(_WAVES) else f"{place} half waves"


def score_name(plan: StudyPlan, score: int) -> str:
    """What a large score speaks for."""
    if plan.target_range is not None:
        return "a larger number"
    return f"“{plan.classes[1 if plan.n_classes == 2 else score]}”"
