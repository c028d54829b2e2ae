"""What an MRMA study found, ready for a table or a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.mrma.averaging import weights
from dpfda.mrma.decision_rules import LinearRule, MembersRule, Rule
from dpfda.mrma.members import Candidates, Judgement
from dpfda.protocol.estimate import Estimate, wilson
from dpfda.protocol.model import CurveModel


@dataclass(eq=False)
class MRMAResult:
    """Members, what people said about them, and errors on held-out people.

    Attributes:
        candidates: the members and the sums of their verdicts.
        judgement: accuracies with standard errors, reversals, weights.
        error_estimate: error of the finished classifier as a fresh group of people reported it,
            privately; None where the study kept no such group. The members' r̃* is never it.
        rules: other methods on the same people, fitted in simulations only.
        errors: method and error on held-out people, filled by `evaluate`.
        held_out: how many people that were.
        notes: what a reader must know.
    """

    candidates: Candidates
    judgement: Judgement
    error_estimate: Estimate | None = None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.judgement.weight.survived:
            self.notes.append(
                "no member passed the cutoff: the classifier is the single strongest one"
            )

    def evaluate(self, model: CurveModel, features: FloatArray, numbers: Any) -> None:
        """Errors of every method on held-out people: encoded curves and label numbers."""
        labels = np.where(np.asarray(numbers) == 1, 1.0, -1.0)
        members = self.candidates.intercept[None], self.candidates.coefficients[None]
        same = np.ones((1, len(self.candidates)))
        own: dict[str, Rule] = {
            "Weak": MembersRule(*members, same),
            "MR only": MembersRule(*members, self.judgement.direction[None]),
            "MA only": self._only_averaged(),
        }
        batch = features[None], labels[None]
        errors = {name: float(rule.errors(*batch)[0]) for name, rule in own.items()}
        errors |= {name: float(rule.errors(*batch)[0]) for name, rule in self.rules.items()}
        errors["MRMA"] = float(np.mean(model.decide(features) != np.asarray(numbers)))
        errors.setdefault("majority class", float(min(np.mean(labels > 0), np.mean(labels < 0))))
        order = {name: place for place, name in enumerate(_ORDER)}
        self.errors = dict(sorted(errors.items(), key=lambda item: order[item[0]]))
        self.held_out = len(labels)

    def _only_averaged(self) -> Rule:
        weight = weights(self.judgement.accuracy.value, cutoff=self.judgement.cutoff).value
        intercept, slopes = self.candidates.averaged(weight)
        return LinearRule(np.asarray(intercept)[None], slopes[None])

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a method: error and its interval, from held-out people or from private verdicts.

        The interval of a method is that of one proportion (Wilson); for Weak and MR only, which
        are means over members, it is wider than needed.
        """
        rows = [
            {"method": name, "error": error, "low": low, "high": high}
            | {"people": self.held_out, "source": "held-out people"}
            for name, error in self.errors.items()
            for low, high in [wilson(error, self.held_out, level)]
        ]
        if self.error_estimate is not None:
            low, high = self.error_estimate.interval(level)
            rows.append(
                {"method": "MRMA", "error": self.error_estimate.value, "low": low, "high": high}
                | {"people": self.error_estimate.people, "source": "private verdicts"}
            )
        return rows

    def members(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a member: accuracy as made, with its interval, reversal and weight."""
        return self.judgement.table(level)


_ORDER = (
    "Weak", "MR only", "MA only", "Voting", "Averaging", "All data", "Histogram", "MRMA",
    "majority class", "non-private",
)  # fmt: skip
