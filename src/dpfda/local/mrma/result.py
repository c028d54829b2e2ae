"""What an MRMA study found, ready for a table or a plot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.local.mrma.averaging import weights
from dpfda.local.mrma.members import Candidates, Judgement
from dpfda.protocol.comparison import HELD_OUT, in_words, majority_error
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
        errors: method and error on held-out people, filled by `evaluate`.
        held_out: how many people that were.
        notes: what a reader must know.
    """

    candidates: Candidates
    judgement: Judgement
    error_estimate: Estimate | None = None
    errors: dict[str, float] = field(default_factory=dict)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.judgement.weight.survived:
            self.notes.append(
                "no member passed the cutoff: the classifier is the single strongest one"
            )

    def evaluate(self, model: CurveModel, features: FloatArray, numbers: Any) -> None:
        """Errors on held-out people (encoded curves and label numbers), of MRMA and its parts.

        Of several classes, whose members tell halves apart, MRMA alone.
        """
        parts = self._parts(features, numbers) if len(model.classes) == 2 else {}
        errors = parts | {"MRMA": float(np.mean(model.decide(features) != np.asarray(numbers)))}
        guessing = majority_error(numbers)
        self.errors, self.held_out = errors | {"majority class": guessing}, len(features)
        self.notes.append(in_words(errors["MRMA"], guessing, len(features)))

    def _parts(self, features: FloatArray, numbers: Any) -> dict[str, float]:
        truth = (np.asarray(numbers) == 1)[:, None]
        scores = features @ self.candidates.coefficients.T + self.candidates.intercept
        weight = weights(self.judgement.accuracy.value, cutoff=self.judgement.cutoff).value
        intercept, slope = self.candidates.averaged(weight)
        decided = {
            "Weak": scores >= 0,
            "MR only": scores * self.judgement.direction >= 0,
            "MA only": (features @ slope + intercept >= 0)[:, None],
        }
        return {name: float(np.mean(guess != truth)) for name, guess in decided.items()}

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a method: error and its interval, from held-out people or from private verdicts.

        The interval of a method is that of one proportion (Wilson); for Weak and MR only, which
        are means over members, it is wider than needed.
        """
        rows = [
            {"method": name, "error": error, "low": low, "high": high}
            | {"people": self.held_out, "source": HELD_OUT}
            for name, error in self.errors.items()
            for low, high in [wilson(error, self.held_out, level)]
        ]
        if self.error_estimate is not None:
            error, low, high = self.error_estimate.shown(level, share=True)
            rows.append(
                {"method": "MRMA", "error": error, "low": low, "high": high}
                | {"people": self.error_estimate.people, "source": "private verdicts"}
            )
        return rows

    def members(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row a member: accuracy as made, with its interval, reversal and weight."""
        return self.judgement.table(level)
