"""The data user of the paper: weak rules from perturbed shares, combined by SAMME (004, Alg. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.requests import Request
from dpfda.boosting.requests.feedback import FeedbackRequest
from dpfda.boosting.requests.share import ShareRequest
from dpfda.boosting.roles import DataUser, Replies
from dpfda.boosting.rules import Rule

_JUDGED_ROOM = 3.0
"""Judges cut weights above this many times their mean: a weighted error hardly notices."""


@dataclass(frozen=True)
class Verdict:
    """The weighted error of a rule, and how sure that is."""

    error: float
    margin: float


class SammeUser(DataUser):
    """Boosts weak rules; a rule no better than chance is dropped and other owners are asked.

    Args:
        study: name of the study.
        request: what owners are asked in the first round.
        owners_per_round: H.
        rounds: how many rules to combine.
        retries: how many times a round may be repeated with fresh owners.
        validation: the data user's own labelled rows; not protected (α_m is published, C18).
        feedback_owners: without a validation set, how many further owners judge each rule.
    """

    def __init__(
        self,
        study: str,
        *,
        request: ShareRequest,
        owners_per_round: int,
        rounds: int = 10,
        retries: int = 3,
        validation: tuple[FloatArray, IntArray] | None = None,
        feedback_owners: int = 0,
    ) -> None:
        super().__init__(study)
        self._share = request
        self._owners = _validate.whole("owners_per_round", owners_per_round)
        self._rounds = _validate.whole("n_rounds", rounds)
        self._retries = _validate.whole("retries", retries, least=0)
        self._feedback = feedback_owners
        self._candidate: Rule | None = None
        self._attempt, self._round, self._mean_weight = 0, 1, 1.0
        self._validation = None
        if validation is not None:
            rows, labels = validation
            self._validation = (request.ensemble.scaled(rows), np.asarray(labels))
        else:
            _validate.whole("feedback_owners", feedback_owners)

    @property
    def wanted(self) -> int:
        """Owners for a share, or owners who judge the candidate."""
        if self._round > self._rounds:
            return 0
        return self._owners if self._candidate is None else self._feedback

    @property
    def request(self) -> Request:
        """A share, or feedback on the candidate."""
        if self._candidate is None:
            return self._share
        cap = min(1.0, _JUDGED_ROOM * self._mean_weight)
        return FeedbackRequest(ensemble=self._share.ensemble, rule=self._candidate, cap=cap)

    @property
    def model(self) -> Ensemble:
        """The vote so far."""
        return self._share.ensemble

    def absorb(self, replies: Replies) -> None:
        """Build a rule from shares, judge it, keep it if it beats chance."""
        decoded = replies.decoded(self.request)
        if self._candidate is None:
            # Reports with a smaller ε are noisier; ε² is what a report is worth at small ε.
            weights = replies.epsilons**2 / (replies.epsilons**2).sum()
            self._candidate = self._share.base_learner(weights @ decoded)
            if self._validation is not None:
                self._settle(self._validated(self._candidate), len(decoded))
            return
        self._settle(_judged(decoded), len(decoded) + self._owners)

    def _validated(self, rule: Rule) -> Verdict:
        """The weighted error on the data user's rows (w^u is updated like the others, C17)."""
        assert self._validation is not None
        rows, labels = self._validation
        weights = self.model.weights(rows, labels)
        wrong = rule.decide(rows) != labels
        return Verdict(float(weights @ wrong / weights.sum()), 1 / (2 * len(labels)))

    def _settle(self, verdict: Verdict, owners: int) -> None:
        rule, classes = self._candidate, self.model.classes
        assert rule is not None
        error = min(max(verdict.error, verdict.margin), 1 - verdict.margin)
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
            self._share = self._share.with_ensemble(
                self.model.joined(rule, alpha=alpha),
                cap=min(1.0, self._share.room * self._mean_weight),
            )
        if kept or self._attempt >= self._retries:
            self._round, self._attempt = self._round + 1, 0
        else:
            self._attempt += 1


def _judged(indicators: FloatArray) -> Verdict:
    """The weighted error from unbiased indicators (wrong, right, not counted)."""
    wrong, right, _ = indicators.mean(axis=0)
    spread = math.sqrt(float(indicators[:, :2].var(axis=0).sum()) / len(indicators))
    counted = max(wrong + right, spread, 1e-9)
    # An error estimated with this much noise is not to be told from 0 by more than its spread.
    margin = min(max(spread / counted / 2, 1 / (2 * len(indicators))), 0.49)
    return Verdict(float(wrong / counted), margin)
