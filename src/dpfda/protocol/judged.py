"""What people's verdicts say about a finished model, beside guessing; in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfda.protocol.estimate import Estimate
from dpfda.protocol.plan import StudyPlan

_LEVEL = 0.95


def verdict(plan: StudyPlan, found: Mapping[str, Any], *, finished: bool) -> dict[str, Any]:
    """What the error estimate says beside guessing, in a sentence; and whether that is nothing.

    Returns:
        `told`: the sentence, `nothing`: whether the model is not known to be worth anything, and
        `rows`: the errors to be compared, each with its interval, if it has one.
    """
    error, guessing = found["error"], found["guessing"]
    if error is None:
        told = "People who judge the finished model have not answered yet."
        if finished:
            told = "Nobody judged the finished model: its error is not known."
        return {"told": told, "nothing": False, "rows": []}
    rows = [("this model", error["value"], error["low"], error["high"])]
    if plan.target_range is not None:
        told = "What the mean alone would leave is not known from these replies."
        return {"told": told, "nothing": False, "rows": rows}
    coin = 1 - 1 / plan.n_classes
    low = high = coin
    if guessing is not None and guessing["low"] is not None:
        low, high = max(guessing["low"], 0.0), min(guessing["high"], coin)
        rows.append(("always the most frequent label", guessing["value"], low, high))
    rows.append(("tossing a coin among the labels", coin, None, None))
    beside = "guessing"
    if low == high == coin and guessing is None:
        beside = "tossing a coin; how frequent labels are was not asked"
    if error["high"] is not None and error["high"] < low:
        return {"told": f"This model is better than {beside}.", "nothing": False, "rows": rows}
    told = f"As far as people judged it, this model is no better than {beside}."
    if error["low"] is not None and error["low"] > high:
        told = f"This model is worse than {beside}: do not use it."
    return {"told": told, "nothing": True, "rows": rows}


def as_found(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as `verdict` and pages read it: value, interval, and the people behind it."""
    if estimate is None:
        return None
    low, high = estimate.interval(_LEVEL)
    return {"value": estimate.value, "low": low, "high": high, "people": estimate.people}
