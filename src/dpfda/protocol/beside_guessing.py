"""What is said of a model beside guessing, as pages and reports show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfda.protocol.estimate import Estimate
from dpfda.protocol.plan import StudyPlan

_LEVEL = 0.95


def beside_guessing(plan: StudyPlan, found: Mapping[str, Any], *, finished: bool) -> dict[str, Any]:
    """The judge's sentence for people, or why there is none yet, and errors beside each other.

    Args:
        plan: the study.
        found: `error` and `guessing` as in `as_found`, `verdict` as fields of `Findings.verdict`.
        finished: whether nobody else will be asked.

    Returns:
        `told`: the sentence, `nothing`: whether the model is not known to be worth anything, and
        `rows`: the errors to be compared, each with its interval, if it has one.
    """
    error, guessing = found["error"], found["guessing"]
    told, nothing = found["verdict"]["told"], found["verdict"]["nothing"]
    if error is None:
        unknown = "People who judge the finished model have not answered yet."
        if finished:
            unknown = "Nobody judged the finished model: its error is not known."
        return {"told": f"{told} {unknown}".strip(), "nothing": nothing, "rows": []}
    rows = [("this model", error["value"], error["low"], error["high"])]
    if plan.target_range is not None:
        told = "What the mean alone would leave is not known from these replies."
        return {"told": told, "nothing": False, "rows": rows}
    coin = 1 - 1 / plan.n_classes
    if guessing is not None and guessing["low"] is not None:
        low, high = max(guessing["low"], 0.0), min(guessing["high"], coin)
        rows.append(("always the most frequent label", guessing["value"], low, high))
    rows.append(("tossing a coin among the labels", coin, None, None))
    return {"told": told, "nothing": nothing, "rows": rows}


def as_found(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as pages and `beside_guessing` read it: value, interval, people behind it."""
    if estimate is None:
        return None
    low, high = estimate.interval(_LEVEL)
    return {"value": estimate.value, "low": low, "high": high, "people": estimate.people}
