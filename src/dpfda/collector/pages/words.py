"""Plain words for what designs call by short names."""

from __future__ import annotations

_PHASES = {
    "reach": "How far curves go up and down",
    "level": "Where curves lie",
    "location": "Where features lie",
    "center": "Where the middle of each feature is",
    "width": "How far people are from the middle",
    "spread": "How widely features are spread",
    "correlation": "Which features go together",
    "rate": "How frequent each label is",
    "direction": "Which features go with the label",
    "moment": "Which features matter",
    "moments": "Which features matter",
    "gradient": "Improving the model",
    "means": "Where each label lies",
    "within": "What varies within a label",
    "residuals": "Improving where each label lies",
    "intercept": "Where to draw the line between labels",
    "temperature": "How sure the model may be",
    "evaluation": "Judging the finished model",
    "labels": "Telling labels",
    "report": "Reporting noisy curves",
    "evaluate": "Judging first models",
    "check": "Judging the finished model",
    "feedback": "Judging first models",
    "begin": "Beginning",
}


def phase_name(kind: str) -> str:
    """What a phase does, for people who have not read the design.

    Example:
        >>> phase_name("intercept"), phase_name("new_kind")
        ('Where to draw the line between labels', 'new kind')
    """
    return _PHASES.get(kind, kind.replace("_", " "))
