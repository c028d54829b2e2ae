"""The findings of a study so far, as plain values for the dashboard and for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from dpfda._validate import FloatArray
from dpfda.collector.storage.base import ModelRecord, StudyRecord
from dpfda.errors import InvalidParameter
from dpfda.protocol.findings import as_found, beside_guessing, found_of
from dpfda.protocol.model import RuleModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server

_POINTS = 61
_LEVEL = 0.95
_NOTHING = 1e-9  # relative size of a variance that counts as 0


def summarize(server: Server) -> dict[str, Any]:
    """Phases, members, slope function, error estimate and notes, as far as the design has them."""
    found, known = server.findings, _learnt(server)
    return {
        "phases": [{"kind": phase.kind, "people": phase.people} for phase in found.phases],
        "model": known,
        "members": found.members(_LEVEL),
        "learnt": found.learnt,
        "folded": found.folded,
        "estimates": [
            {"score": score, "feature": feature, **(as_found(estimate) or {})}
            for score, row in enumerate(found.features)
            for feature, estimate in enumerate(row)
        ]
        if known
        else [],
        "slope": _slopes(server) if known else [],
        **found_of(found, finished=server.finished),
        "drifted": found.drifted,
        "notes": list(found.notes),
    }


def standing(record: StudyRecord, answered: int, history: Sequence[ModelRecord]) -> dict[str, Any]:
    """The current result of `beside_guessing`, with the numbers of replies and people.

    Args:
        record: the study.
        answered: number of replies in its current phase.
        history: records of its models.
    """
    plan = StudyPlan.from_dict(msgspec.json.decode(record.plan))
    found = msgspec.json.decode(history[-1].summary)
    finished = record.status == "finished"
    people = (0 if finished else answered) + sum(entry.people for entry in history)
    wanted = sum(phase["people"] for phase in found["phases"])
    said = beside_guessing(plan, found, replies=None if finished else (people, wanted))
    return said | {"people": people, "wanted": wanted}


def _learnt(server: Server) -> bool:
    """Whether there is a model, which exists after the first conclusion."""
    if isinstance(server.model, RuleModel):
        return server.phase > 0 and bool(np.any(server.model.coefficients))
    return server.phase > 0


def _slopes(server: Server) -> list[dict[str, Any]]:
    """β(t) of each score and channel with standard errors, if features are those of curves."""
    encoder, model = server.plan.encoder, server.model
    if not encoder.basis.functional or not isinstance(model, RuleModel):
        return []
    points = np.linspace(*encoder.basis.domain_range, _POINTS)
    try:
        slopes = model.slope(points)
        # The slope function of each feature alone, shape (d, T) or (d, C, T).
        each = encoder.slope(np.eye(encoder.n_features), points)
    except InvalidParameter:  # this rescaler has no slope function
        return []
    covariances = server.findings.covariances
    found = []
    for score, slope in enumerate(slopes):
        rows = slope[None] if slope.ndim == 1 else slope
        errors = np.full(rows.shape, np.nan)
        if len(covariances) and _all_estimated(model, covariances[score]):
            errors = _errors(model, score, covariances[score], each).reshape(rows.shape)
        for channel, (beta, error) in enumerate(zip(rows, errors, strict=True)):
            told = error.tolist() if np.all(np.isfinite(error)) else None
            line = {"t": points.tolist(), "beta": beta.tolist(), "error": told}
            found.append({"score": score, "channel": channel, **line})
    return found


def _all_estimated(model: RuleModel, covariance: FloatArray) -> bool:
    """Whether there is an estimate of every feature in the slope function.

    A feature that was not selected has variance 0 here, although its coefficient is unknown. A band
    from the other features would be too narrow. The same holds for a direction of several features.
    """
    own = len(model.folds) or model.coefficients.shape[1]
    if own < model.encoder.n_features:
        return False
    variances = np.linalg.eigvalsh(covariance[:own, :own])
    return bool(variances[0] > _NOTHING * variances[-1])


def _errors(model: RuleModel, score: int, covariance: FloatArray, each: FloatArray) -> FloatArray:
    """Standard errors of β(t), from those of the coefficients of curve features."""
    own = len(model.folds) or model.coefficients.shape[1]
    scales = model.scales[score, :own]
    spread = covariance[:own, :own] / np.outer(scales, scales)
    square = np.einsum("d...,de,e...->...", each[:own], spread, each[:own])
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def link(record: StudyRecord, here: str, token: str = "", *, elsewhere: str | None = None) -> str:
    """The link for participants, to this or another host; browsers do not send the part after #."""
    invited = f"invitation={token}" if token else ""
    if elsewhere is not None:
        return f"{elsewhere}/take-part/#study={record.hash}" + (f"&{invited}" if invited else "")
    return f"{here}/take-part/{record.hash}" + (f"#{invited}" if invited else "")
