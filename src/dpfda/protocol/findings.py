"""The findings of a study, in one form for all designs, for tables, plots and pages.

`beside_guessing` adds the verdict and the errors for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dpfda._validate import FloatArray
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.plan import Design, StudyPlan
from dpfda.protocol.verdict import beside_liars, judged, judged_number, tells_nothing, unfinished
from dpfda.report import Verdict

ERROR = "error, estimated by people"
"""Name of the error among all estimates."""


@dataclass(frozen=True)
class Step:
    """A past, present or expected phase in the list of phases.

    Attributes:
        kind: the kind of question in this phase.
        people: the number of participants.
    """

    kind: str
    people: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Estimates from replies alone; quantities that a design does not estimate are empty.

    Attributes:
        classes: the labels; empty if a number is predicted.
        phases: the past and expected phases; filled in by a server.
        learnt: one word for the quantity that was estimated for each feature.
        title: the same quantity as a question.
        features: these estimates, one row per score.
        centers: the center of each feature.
        intercepts: one intercept per score.
        error: error of the finished model, from people who answered only the evaluation: the share
            of wrong labels, or the root mean squared error of a predicted number.
        drifted: whether older replies were discarded because newer ones contradict them.
        following: the design of a study that continues this one.
        notes: sentences that a reader must know.
        folded: number of features that are followed by distances from their centers, if any.
        guessing: error of always predicting the most frequent label or, for a number, its mean;
            None if the replies do not determine it.
        covariances: covariance matrices of the model's coefficients, one per score; empty if they
            are not known.
        evidence: posterior probability that any feature is associated with the label, at even prior
            odds; None if the replies do not determine it.
        better: probability that the model is better than guessing, if any feature is associated.
        constant: whether the model gives everybody the same label.
        liars: the smallest share of participants who could have produced this result by coordinated
            false replies if no feature were associated with the label; None if not known.
    """

    classes: tuple[Any, ...]
    phases: Sequence[Step] = ()
    learnt: str = ""
    title: str = ""
    features: Sequence[Sequence[Estimate]] = ()
    centers: Sequence[Estimate] = ()
    intercepts: Sequence[Estimate] = ()
    error: Estimate | None = None
    drifted: bool = False
    following: Design | None = None
    notes: Sequence[str] = ()
    folded: int = 0
    guessing: Estimate | None = None
    covariances: Sequence[FloatArray] = ()
    evidence: float | None = None
    better: float = 1.0
    constant: bool = False
    liars: float | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the replies show that the model is better than guessing, or than the mean."""
        if not self.classes:
            found = judged_number(
                self.evidence, better=self.better, error=self.error, guessing=self.guessing
            )
            return found if self.liars is None else beside_liars(found, self.liars)
        found = judged(
            self.evidence,
            n_classes=len(self.classes),
            better=self.better,
            constant=self.constant,
            error=self.error,
            guessing=self.guessing,
        )
        return found if self.liars is None else beside_liars(found, self.liars)

    @property
    def said(self) -> list[str]:
        """The notes, and the sentences of the verdict unless it is a signal."""
        return list(self.verdict.added_to(self.notes))

    def called(self, place: int) -> str:
        """The name of the feature at this place.

        Examples:
            >>> found = Findings(classes=("no", "yes"), phases=(), folded=2)
            >>> [found.called(place) for place in range(4)]
            ['1', '2', 'distance 1', 'distance 2']
        """
        if not self.folded or place < self.folded:
            return str(place + 1)
        return f"distance {place - self.folded + 1}"

    def estimates(self) -> dict[str, Estimate]:
        """All estimates, by name."""
        named = {f"center {self.called(j)}": estimate for j, estimate in enumerate(self.centers)}
        for score, row in enumerate(self.features):
            learnt, against = self.learnt, self._against(score)
            named |= {f"{learnt} {self.called(j)}{against}": e for j, e in enumerate(row)}
        for score, estimate in enumerate(self.intercepts):
            named[f"intercept{self._against(score)}"] = estimate
        if self.error is not None:
            named[ERROR] = self.error
        return named

    def members(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per evaluated member classifier: accuracy, interval, weight."""
        return []

    def _against(self, score: int) -> str:
        return "" if len(self.classes) <= 2 else f", class {self.classes[score]}"


def found_of(found: Findings, *, finished: bool = True) -> dict[str, Any]:
    """Errors and verdict of a study as plain values, which `beside_guessing` reads.

    Proportions are cut at 0 and 1. An error is omitted if the evaluation answers say almost nothing
    about it. `evaluated` is the number of these answers.

    Args:
        found: the findings of the study.
        finished: whether the study has ended; there is no verdict before.
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
    """The sentences of the verdict, if there are any, and the errors for comparison.

    Args:
        plan: the study.
        found: the result of `found_of`.
        replies: for an unfinished study, the numbers of received and of wanted replies.

    Returns:
        `kind` and `sentences` of the verdict; `told`, the sentences as one text; `nothing`, whether
        the model is not known to be useful; and `rows`, the errors for comparison with their
        intervals, if known.
    """
    verdict = msgspec.convert(found["verdict"], Verdict)
    if replies is not None:
        verdict = unfinished(*replies)
    error, guessing, sentences = found["error"], found["guessing"], list(verdict.sentences)
    rows: list[tuple[str, float, float | None, float | None]] = []
    if error is not None:
        rows.append(("this model", error["value"], error["low"], error["high"]))
    elif replies is None and found["evaluated"] is None:
        sentences.append("Nobody was asked about the finished model: its error is not known.")
    classes, coin = plan.target_range is None, 1 - 1 / max(plan.n_classes, 1)
    if error is not None and guessing is not None and guessing["low"] is not None:
        name = "always the most frequent label" if classes else "the mean alone"
        numbers = [guessing[end] for end in ("value", "low", "high")]
        rows.append((name, *(min(one, coin) if classes else max(one, 0.0) for one in numbers)))
    if error is not None and classes:
        rows.append(("tossing a coin among the labels", coin, None, None))
    shown = {"kind": verdict.kind, "sentences": sentences, "told": " ".join(sentences)}
    return shown | {"nothing": verdict.doubted, "rows": rows}


def as_found(estimate: Estimate | None, *, share: bool = False) -> dict[str, Any] | None:
    """An estimate as plain values for pages: value, interval, number of people.

    Args:
        estimate: the estimate.
        share: whether it is a proportion, which is cut at 0 and 1.
    """
    if estimate is None:
        return None
    value, low, high = estimate.shown(share=share)
    known = math.isfinite(estimate.standard_error)
    ends = {"low": low if known else None, "high": high if known else None}
    error = estimate.standard_error if known else None
    return {"value": value, **ends, "standard_error": error, "people": estimate.people}
