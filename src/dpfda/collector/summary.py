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
    """Phases, members, slope function, error estimate, notes: whatever the design knows."""
    found = server.findings
    return {
        "phases": [{"kind": phase.kind, "people": phase.people} for phase in found.phases],
        "members": found.members(_LEVEL),
        "estimates": [
            {"score": score, "feature": feature + 1, **(_estimate(estimate) or {})}
            for score, row in enumerate(found.features)
            for feature, estimate in enumerate(row)
        ],
        "slope": _slope(server),
        "error": _estimate(found.error),
        "drifted": found.drifted,
        "notes": list(found.notes),
    }


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
        for beta in np.atleast_2d(values).tolist():  # of several channels, one function each
            found.append({"t": points.tolist(), "beta": beta})
    return found
