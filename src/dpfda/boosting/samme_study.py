"""The paper's study: weak rules from perturbed shares, combined by SAMME (004, Algorithm 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.boosting.design import MOST_ROUNDS, BoostingDesign, BoostingProgress
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.requests.base import Request
from dpfda.boosting.requests.share import ShareRequest
from dpfda.boosting.weak_rules import WeakRule
from dpfda.errors import InvalidParameter
from dpfda.protocol.design import Terms
from dpfda.protocol.fields import array, choice, number, whole
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import BOX_MECHANISMS

_JUDGED_ROOM = 3.0
"""Judges cut weights above this many times their mean: a weighted error hardly notices."""
_UP_TO_ONE = range(0, 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class SammeDesign(BoostingDesign, name="samme"):
    """Boosts weak rules; a rule no better than chance is dropped and other owners are asked.

    The weight of a rule comes from the data user's labeled rows, or from `judges` further owners.

    Attributes:
        rule: what rules are made of: ``sample``, ``statistic`` or ``classifier``.
        mechanism: registered name of the mechanism of what owners send.
        feature_ranges: public (low, high) of each feature, shape (d, 2).
        owners_per_round: H.
        judges: owners who judge each rule; 0 where labeled rows do.
        retries: how many times a round may be repeated with fresh owners.
        thresholds: on the scaled features, shape (d, T), for ``statistic``.
        coefficient_bound: public box of local coefficients, for ``classifier``.

    Examples:
        >>> half = {"owners_per_round": 9, "judges": 9}
        >>> SammeDesign(rule="classifier", feature_ranges=[[0, 1]], **half).columns
        1
    """

    rule: str = choice("sample", "statistic", "classifier")
    mechanism: str = choice(*BOX_MECHANISMS, default="piecewise")
    feature_ranges: FloatArray = array("real", "columns", 2)
    owners_per_round: int = whole()
    judges: int = whole(least=0, default=0)
    retries: int = whole(least=0, most=1 << 10, default=3)
    thresholds: FloatArray = array("real", "columns", "cuts", least=-2, most=2, default=())
    coefficient_bound: float = number(least=1e-6, most=1e6, default=1.0)

    def __post_init__(self) -> None:
        if not len(self.thresholds):
            object.__setattr__(self, "thresholds", np.zeros((self.columns, 1)))
        super().__post_init__()
        if self.n_rounds * (self.retries + 1) > MOST_ROUNDS:
            rule = f"so few that there are at most {MOST_ROUNDS} rounds with all retries"
            raise InvalidParameter("retries", rule, self.retries)
        if not self.judges and not len(self.labels):
            raise InvalidParameter("judges", "above 0 without labeled rows", self.judges)

    @property
    def columns(self) -> int:
        """d."""
        return len(self.feature_ranges)

    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Shares, and verdicts where owners judge."""
        own: dict[str, Any] = {
            "sample": {"protects": plan.protects},
            "statistic": {"cuts": self.thresholds.shape[1]},
            "classifier": {"bound": self.coefficient_bound},
        }[self.rule]
        terms = self.terms(plan, cap=_UP_TO_ONE)
        asks = {self.rule: {**terms, "mechanism_name": self.mechanism, **own}}
        return asks | ({"feedback": terms} if self.judges else {})


class SammeProgress(BoostingProgress, name="samme"):
    """A vote so far, and perhaps a candidate that waits for its judges."""

    def __init__(self, design: SammeDesign, plan: StudyPlan) -> None:
        self.design = design
        self._candidate: WeakRule | None = None
        self._attempt, self._round, self._mean_weight = 0, 1, 1.0
        super().__init__(plan, _phases(design, plan.n_people))
        self._vote, self._cap = Ensemble.empty(design.feature_ranges, classes=plan.n_classes), 1.0

    def tasks(self, start: int, people: int) -> Request:
        """Everybody in a phase is asked the same: for a share, or about the candidate."""
        if self.kind == "feedback":
            cap = min(1.0, _JUDGED_ROOM * self._mean_weight)
            free: dict[str, Any] = {"cap": cap, "rule": self._candidate}
        else:
            free = {"cap": self._cap}
            if self.kind == "statistic":
                free["thresholds"] = self.design.thresholds
        asked = self._ask(self.kind, people, ensemble=self._vote, **free)
        assert isinstance(asked, Request)
        return asked

    @property
    def boosted(self) -> Ensemble:
        """The vote so far."""
        return self._vote

    def _learn(self) -> None:
        """Build a rule from shares, judge it, keep it if it beats chance."""
        request = self.tasks(0, 1)
        replies = self._collected(request.width)
        if isinstance(request, ShareRequest):
            mean = np.zeros(request.decode(np.zeros((1, request.sent))).shape[1])
            if len(replies):
                # Reports with a smaller ε are noisier; ε² is what a report is worth at small ε.
                weights = request.spent(replies) ** 2
                mean = (weights / weights.sum()) @ request.estimates(replies)
            self._candidate = request.base_learner(mean)
            if not self.design.judges:
                self._settle(*self._validated(self._candidate), len(replies))
            return
        verdict = _judged(request.estimates(replies)) if len(replies) else (1.0, 0.01)
        self._settle(*verdict, len(replies) + self.design.owners_per_round)

    def _validated(self, rule: WeakRule) -> tuple[float, float]:
        """The weighted error on the data user's rows (w^u is updated like the others, C17).

        Returns:
            The error, and how sure it is.
        """
        rows, labels = self._vote.scaled(self.design.labeled), self.design.labels
        weights = self._vote.weights(rows, labels)
        wrong = rule.decide(rows) != labels
        return float(weights @ wrong / weights.sum()), 1 / (2 * len(labels))

    def _settle(self, error: float, margin: float, owners: int) -> None:
        rule, classes = self._candidate, self._vote.classes
        assert rule is not None
        error = min(max(error, margin), 1 - margin)
        alpha = math.log((1 - error) / error) + math.log(classes - 1)
        kept = alpha > 0
        self.history.append(
            {
                "round": self._round,
                "attempt": self._attempt + 1,
                "owners": owners,
                "error": error,
                "alpha": alpha,
                "kept": kept,
            }
        )
        self._candidate = None
        if kept:
            # The weighted error tells what happens to the mean weight: no data are needed for it.
            self._mean_weight *= error + (1 - error) * math.exp(-alpha)
            room = ShareRequest.named(self.design.rule).room
            self._vote = self._vote.joined(rule, alpha=alpha)
            self._cap = max(min(1.0, room * self._mean_weight), 1e-12)
        if kept or self._attempt >= self.design.retries:
            self._round, self._attempt = self._round + 1, 0
        else:
            self._attempt += 1
        if self._round > self.design.n_rounds:
            del self.phases[self.phase + 1 :]

    def state(self) -> dict[str, Any]:
        """The vote, the candidate, and where the rounds are."""
        return super().state() | {
            "phases": len(self.phases),
            "vote": self._vote.to_dict(),
            "cap": self._cap,
            "candidate": None if self._candidate is None else self._candidate.to_dict(),
            "round": [self._round, self._attempt, self._mean_weight],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        super().restore(state)
        del self.phases[state["phases"] :]
        self._vote, self._cap = Ensemble.from_dict(state["vote"]), state["cap"]
        waiting = state["candidate"]
        self._candidate = None if waiting is None else WeakRule.from_dict(waiting)
        self._round, self._attempt, self._mean_weight = state["round"]


def _phases(design: SammeDesign, owners: int) -> list[Step]:
    """As many attempts as there may be, and as there are owners for."""
    attempt = [Step(design.rule, design.owners_per_round)]
    if design.judges:
        attempt.append(Step("feedback", design.judges))
    phases = []
    for phase in chain.from_iterable(repeat(attempt, design.n_rounds * (design.retries + 1))):
        if phase.people > owners:
            break
        owners -= phase.people
        phases.append(phase)
    return phases


def _judged(indicators: FloatArray) -> tuple[float, float]:
    """The weighted error from unbiased indicators (wrong, right, not counted), and its margin."""
    wrong, right, _ = indicators.mean(axis=0)
    spread = math.sqrt(float(indicators[:, :2].var(axis=0).sum()) / len(indicators))
    counted = max(wrong + right, spread, 1e-9)
    # An error estimated with this much noise is not to be told from 0 by more than its spread.
    margin = min(max(spread / counted / 2, 1 / (2 * len(indicators))), 0.49)
    return float(wrong / counted), float(margin)
