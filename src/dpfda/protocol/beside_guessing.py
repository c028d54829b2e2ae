"""A study's verdict and its errors beside each other, as pages and reports show them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.verdict import tells_nothing, unfinished
from dpfda.report import Verdict


def found_of(found: Findings, *, finished: bool = True) -> dict[str, Any]:
    """Errors and verdict of a study as plain values, which `beside_guessing` reads.

    Shares are cut at 0 and 1; an error that evaluation answers leave open is left out, and
    `evaluated` says how many answers there were.

    Args:
        found: what it found.
        finished: whether nobody else will be asked; before that there is no verdict.
    """
    share, error = bool(found.classes), found.error
    if share and error is not None and tells_nothing(error, n_classes=len(found.classes)):
        error = None
    judged = found.verdict if finished else Verdict(kind="unclear")
    return {
        "error": as_found(error, share=share),
        "evaluated": None if found.error is None else found.error.people,
        "guessing": as_found(found.guessing, share=share),
        "verdict": msgspec.to_builtins(judged),
    }


def beside_guessing(
    plan: StudyPlan, found: Mapping[str, Any], *, replies: tuple[int, int] | None = None
) -> dict[str, Any]:
    """The judge's sentences, or that there are none yet, and errors beside each other.

    Args:
        plan: the study.
        found: as `found_of` says it.
        replies: of a study that is not finished, how many came, and how many are wanted.

    Returns:
        `kind` and `sentences`: the verdict, `told`: the sentences in one text, `nothing`: whether
        the model is not known to be worth anything, and `rows`: the errors to be compared, each
        with its interval, if it has one.
    """
    verdict = msgspec.convert(found["verdict"], Verdict)
    if replies is not None:
        verdict = unfinished(*replies)
    error, guessing, told = found["error"], found["guessing"], list(verdict.sentences)
    rows: list[tuple[str, float, float | None, float | None]] = []
    if error is not None:
        rows.append(("this model", error["value"], error["low"], error["high"]))
    elif replies is None and found["evaluated"] is None:
        told.append("Nobody was asked about the finished model: its error is not known.")
    classes, coin = plan.target_range is None, 1 - 1 / max(plan.n_classes, 1)
    if error is not None and guessing is not None and guessing["low"] is not None:
        name = "always the most frequent label" if classes else "the mean alone"
        numbers = [guessing[end] for end in ("value", "low", "high")]
        rows.append((name, *(min(one, coin) if classes else max(one, 0.0) for one in numbers)))
    if error is not None and classes:
        rows.append(("tossing a coin among the labels", coin, None, None))
    shown = {"kind": verdict.kind, "sentences": told, "told": " ".join(told)}
    return shown | {"nothing": verdict.doubted, "rows": rows}


def as_found(estimate: Estimate | None, *, share: bool = False) -> dict[str, Any] | None:
    """An estimate as pages read it: value, interval, people behind it.

    Args:
        estimate: the number.
        share: whether it is one of a whole, so that what noise leads beyond 0 and 1 is cut.
    """
    if estimate is None:
        return None
    value, low, high = estimate.shown(share=share)
    known = math.isfinite(estimate.standard_error)
    ends = {"low": low if known else None, "high": high if known else None}
    error = estimate.standard_error if known else None
    return {"value": value, **ends, "standard_error": error, "people": estimate.people}
