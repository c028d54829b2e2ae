"""What a study has found so far, as plain values for the dashboard and for reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda.errors import InvalidParameter
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.server import Server

_POINTS = 61
_LEVEL = 0.95


def summarize(server: Server) -> dict[str, Any]:
    """Phases, members, slope function, error estimate: whatever the design knows."""
    progress = server.progress
    return {
        "phases": [{"kind": phase.kind, "people": phase.people} for phase in progress.phases],
        "members": _members(progress),
        "estimates": _estimates(progress),
        "slope": _slope(server),
        "error": _estimate(getattr(progress, "error_estimate", None)),
        "drifted": bool(getattr(progress, "drifted", False)),
    }


def _members(progress: Any) -> list[dict[str, Any]]:
    """One row a member of an MRMA study."""
    judgement = getattr(progress, "judgement", None)
    if judgement is None:
        return []
    low, high = judgement.accuracy.interval(_LEVEL)
    columns = {
        "accuracy": judgement.accuracy.value,
        "low": low,
        "high": high,
        "people": judgement.accuracy.people,
        "reversed": judgement.reversed,
        "cutoff": judgement.cutoff,
        "weight": judgement.weight.value,
    }
    return [
        {name: np.asarray(column)[b].item() for name, column in columns.items()}
        for b in range(len(judgement.accuracy.value))
    ]


def _estimates(progress: Any) -> list[dict[str, Any]]:
    """What a question or moment study learnt about each feature."""
    rows = getattr(progress, "correlations", None) or getattr(progress, "moments", None) or []
    return [
        {"score": score, "feature": feature + 1, **(_estimate(estimate) or {})}
        for score, row in enumerate(rows)
        for feature, estimate in enumerate(row)
    ]


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    low, high = estimate.interval(_LEVEL)
    return {"value": estimate.value, "low": low, "high": high, "people": estimate.people}


def _slope(server: Server) -> list[dict[str, Any]]:
    """β(t) of each score, where the features are those of a curve."""
    encoder, model = server.plan.encoder, server.model
    if not encoder.basis.functional:
        return []
    points = np.linspace(*encoder.basis.domain_range, _POINTS)
    found = []
    for coefficients, scales in zip(model.coefficients, model.scales, strict=True):
        rule = np.zeros(encoder.n_features)
        rule[: len(coefficients)] = coefficients / scales
        try:
            values = encoder.slope(rule, points)
        except InvalidParameter:  # this rescaler has no slope function
            return []
        found.append({"t": points.tolist(), "beta": np.asarray(values).tolist()})
    return found
