"""The codebook of a study's downloads: a table of files, fields and meanings."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from dpfda.collector.pages.templating import feature_name, phase_name
from dpfda.collector.settings import StudySettings
from dpfda.protocol.plan import StudyPlan

_PLAN = {
    "epsilon": "the privacy loss parameter ε that each participant spends, once",
    "n_people": "number of participants that the study asks for",
    "encoder": "how a curve or a row becomes features: basis or columns, and public ranges",
    "classes": "the labels; label number 0 is the first one",
    "target_range": "range of the number that is predicted instead of a label; null for labels",
    "design": "which questions are asked, in which phases, and its settings",
    "protects": "what ε protects: both, features or labels",
    "unit": "whose data one reply covers",
    "seed": "seed of the study's public randomness",
    "title": "title that participants see",
    "information": "what participants read before they consent",
}
_MODEL = {
    "format": "version of the document format",
    "kind": "kind of model",
    "guarantee": "privacy guarantee of the model, with its assumptions",
    "verdict": "whether the model is better than guessing, in words",
    "classes": "the labels; with one score, a score of 0 or above means the second label",
    "target_range": "range of the predicted number",
    "encoder": "how a curve or a row becomes features, as in the plan",
    "intercept": "intercept of each score",
    "coefficients": "coefficient of each standardized feature, for each score",
    "centers": "center that is subtracted from each feature, for each score",
    "scales": "scale by which the difference is divided, for each score",
    "clipped": "whether standardized features are cut to [-1, 1]",
    "variances": "squared standard errors of intercept and coefficients",
    "damping": "factor by which scores are multiplied before they become probabilities",
    "folds": "centers; the distance of a feature from its center is a further feature",
}
_SUMS = {
    "plan": "hash of the plan",
    "phases": "one entry for each phase that ended; the first one is before anybody answered",
    "phases.phase": "number of the phase; -1 before the first one",
    "phases.kind": "what the phase asks",
    "phases.people": "number of replies in it",
    "phases.found": "results at its end: estimates with standard errors, slope, verdict",
    "state": "sums over the replies of each phase, from which the model follows",
}


def codebook(
    plan: StudyPlan, how: StudySettings, model: Mapping[str, Any], found: Mapping[str, Any]
) -> str:
    """A CSV file with one row for each field and each feature.

    Args:
        plan: plan of the study.
        how: settings of the study, with units.
        model: document of the newest model.
        found: the newest summary.
    """
    made = io.StringIO()
    rows = csv.writer(made, lineterminator="\r\n")
    rows.writerow(["file", "field", "meaning"])
    rows.writerows(_rows(plan, how, model, found))
    return made.getvalue()


def _rows(
    plan: StudyPlan, how: StudySettings, model: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    for name in plan.to_dict():
        yield "plan", name, _PLAN.get(name, "")
    for name in model:
        yield "model", name, _MODEL.get(name, "see the class of this kind of model")
    for name, meaning in _SUMS.items():
        yield "sums", name, meaning
    for kind in dict.fromkeys(phase["kind"] for phase in found["phases"] if phase["people"]):
        yield "sums", f"phases.kind = {kind}", phase_name(kind)
    for number, label in enumerate(plan.classes):
        yield "all", f"label {number}", str(label)
    if plan.encoder.basis.functional:
        start, end = plan.encoder.basis.domain_range
        yield "all", "t", f"from {start:g} to {end:g} {how.domain_unit}".strip()
        yield "all", "x(t)", f"the curve {f'in {how.value_unit}' if how.value_unit else ''}".strip()
    if plan.target_range is not None:
        low, high = plan.target_range
        yield "all", "target", f"from {low:g} to {high:g} {how.target_unit}".strip()
    rescale = plan.encoder.to_dict()["rescale"]
    for place in range(plan.encoder.n_features):
        scaled = ""
        if rescale["name"] == "clip":
            center, scale = (_entry(rescale, name, place) for name in ("center", "scale"))
            scaled = f"; feature 0 is {center:g}, and ±1 is {scale:g} from it"
        yield "model", f"feature {place}", feature_name(plan.encoder, place) + scaled


def _entry(rescale: Mapping[str, Any], name: str, place: int) -> float:
    """A parameter of the rescaler for one feature; it may be common to all features."""
    given = rescale.get(name, {"center": 0.0, "scale": 1.0}[name])
    return float(given if isinstance(given, (int, float)) else given[place])
