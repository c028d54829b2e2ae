"""The paper's study: weak rules from perturbed shares, combined by SAMME (004, Algorithm 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.design import MOST_ROUNDS, BoostingDesign, known
from dpfda.local.boosting.ensemble import Ensemble, WeakRule
from dpfda.local.boosting.requests.rules import FeedbackRequest
from dpfda.local.boosting.requests.shares import ShareRequest
from dpfda.protocol.design import Terms
from dpfda.protocol.fields import array, choice, number, whole
from dpfda.protocol.findings import Step
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.study import Phase, Result, Study, Summary, study
from dpfda.protocol.task import Task, box_mechanisms

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
    mechanism: str = choice(box_mechanisms, default="piecewise")
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

    def shares(
        self, plan: StudyPlan, start: int, people: int, *, vote: Ensemble, cap: float
    ) -> ShareRequest:
        """What the owners of a round are asked for, everybody the same."""
        free = {"thresholds": self.thresholds} if self.rule == "statistic" else {}
        asked = plan.ask(self.rule, people, ensemble=vote, cap=cap, **free)
        assert isinstance(asked, ShareRequest)
        return asked


@study("samme")
def samme(design: SammeDesign, plan: StudyPlan) -> Study:
    """Shares make a weak rule, rows or judges its weight; a rule that beats chance joins the vote.

    A rule that does not is dropped, and the round is repeated with other owners while it may be.
    """
    vote = Ensemble.empty(design.feature_ranges, classes=plan.n_classes)
    cap = mean_weight = 1.0
    rounds, attempt = 0, 1
    history: list[dict[str, Any]] = []
    left = _steps(design, plan.n_people)

    def so_far() -> Result:
        return known(plan, vote, history)

    while left and rounds < design.n_rounds:
        step, left = left[0], left[1:]
        ask = partial(design.shares, plan, vote=vote, cap=cap)
        shares = yield _phase(step, ask, _mean_share, so_far, left)
        rule = ask(0, 1).base_learner(shares["mean"])
        if not design.judges:
            error, margin = _validated(design, vote, rule)
            owners = int(shares["owners"])
        elif left:
            step, left = left[0], left[1:]
            room = min(1.0, _JUDGED_ROOM * mean_weight)
            judge = partial(_about_rule, plan, ensemble=vote, rule=rule, cap=room)
            told = yield _phase(step, judge, _mean_verdict, so_far, left)
            error, margin = float(told["error"]), float(told["margin"])
            owners = int(told["owners"]) + design.owners_per_round
        else:  # too few owners are left to judge it
            break
        error = min(max(error, margin), 1 - margin)
        alpha = math.log((1 - error) / error) + math.log(vote.classes - 1)
        kept = alpha > 0
        history.append(
            {
                "round": rounds + 1,
                "attempt": attempt,
                "owners": owners,
                "error": error,
                "alpha": alpha,
                "kept": kept,
            }
        )
        if kept:
            # The weighted error tells what happens to the mean weight: no data are needed for it.
            mean_weight *= error + (1 - error) * math.exp(-alpha)
            vote = vote.joined(rule, alpha=alpha)
            room = ShareRequest.named(design.rule).room
            cap = max(min(1.0, room * mean_weight), 1e-12)
        if kept or attempt > design.retries:
            rounds, attempt = rounds + 1, 1
        else:
            attempt += 1
    return so_far()


def _steps(design: SammeDesign, owners: int) -> list[Step]:
    """As many attempts as there may be, and as there are owners for."""
    one = [Step(design.rule, design.owners_per_round)]
    if design.judges:
        one.append(Step("feedback", design.judges))
    steps = []
    for step in chain.from_iterable(repeat(one, design.n_rounds * (design.retries + 1))):
        if step.people > owners:
            break
        owners -= step.people
        steps.append(step)
    return steps


def _phase(
    step: Step,
    ask: Callable[[int, int], Task],
    count: Callable[[Any, FloatArray], Summary],
    so_far: Callable[[], Result],
    then: list[Step],
) -> Phase:
    return Phase(step.kind, step.people, ask, count, so_far, at_once=True, then=then)


def _about_rule(plan: StudyPlan, start: int, people: int, **free: Any) -> Task:
    """Is the candidate right on an owner's rows? Everybody is asked the same."""
    return plan.ask("feedback", people, **free)


def _mean_share(request: ShareRequest, replies: FloatArray) -> Summary:
    """The weighted mean of a round's shares."""
    mean = np.zeros(request.decode(np.zeros((1, request.sent))).shape[1])
    if len(replies):
        # Reports with a smaller ε are noisier; ε² is what a report is worth at small ε.
        weights = request.spent(replies) ** 2
        mean = (weights / weights.sum()) @ request.estimates(replies)
    return {"mean": mean, "owners": np.array(float(len(replies)))}


def _mean_verdict(request: FeedbackRequest, replies: FloatArray) -> Summary:
    """The weighted error of a rule, how sure it is, and how many owners say so."""
    error, margin = _judged(request.estimates(replies)) if len(replies) else (1.0, 0.01)
    owners = float(len(replies))
    return {"error": np.array(error), "margin": np.array(margin), "owners": np.array(owners)}


def _validated(design: SammeDesign, vote: Ensemble, rule: WeakRule) -> tuple[float, float]:
    """The weighted error on the data user's rows (w^u is updated like the others, C17).

    Returns:
        The error, and how sure it is.
    """
    rows, labels = vote.scaled(design.labeled), design.labels
    weights = vote.weights(rows, labels)
    wrong = rule.decide(rows) != labels
    return float(weights @ wrong / weights.sum()), 1 / (2 * len(labels))


def _judged(indicators: FloatArray) -> tuple[float, float]:
    """The weighted error from unbiased indicators (wrong, right, not counted), and its margin."""
    wrong, right, _ = indicators.mean(axis=0)
    spread = math.sqrt(float(indicators[:, :2].var(axis=0).sum()) / len(indicators))
    counted = max(wrong + right, spread, 1e-9)
    # An error estimated with this much noise is not to be told from 0 by more than its spread.
    margin = min(max(spread / counted / 2, 1 / (2 * len(indicators))), 0.49)
    return float(wrong / counted), float(margin)
