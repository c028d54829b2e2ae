"""What the papers' three shares have in common: weights from the vote so far, a box mechanism."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.ensemble import Ensemble
from dpfda.local.boosting.owner_rows import OwnerRows
from dpfda.local.boosting.requests.base import Request
from dpfda.local.boosting.weak_rules import StumpRule, WeakRule
from dpfda.mechanisms import Mechanism
from dpfda.noise import Source
from dpfda.protocol.fields import choice, number, part
from dpfda.protocol.query import Records
from dpfda.protocol.task import BOX_MECHANISMS


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteRequest(Request):
    """A request about a vote so far, which gives an owner's rows their weights.

    Attributes:
        ensemble: the vote.
        cap: weights are divided by this public number and cut at 1.
    """

    ensemble: Ensemble = part(lambda: Ensemble)
    cap: float = number(least=1e-12, most=1.0, default=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.ensemble.columns, self.ensemble.classes) != (self.dimension, self.n_classes):
            raise InvalidParameter("ensemble", "about these features and classes", "others")

    @classmethod
    def example_fields(cls, **fields: Any) -> dict[str, Any]:
        """Two features, two rows an owner, in the middle of a study; for checks and audits."""
        vote = Ensemble.empty([(-1.0, 1.0)] * 2, classes=2)
        vote = vote.joined(StumpRule(feature=0, threshold=0.1, below=0, above=1), alpha=0.7)
        common = {"epsilon": 1.0, "people": 1, "dimension": 2, "n_classes": 2, "n_rows": 2}
        return common | {"ensemble": vote, "cap": 0.9} | fields


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareRequest(VoteRequest):
    """Each owner sends one perturbed share, a vector in [-1, 1]^s (004, Algorithm 4).

    Attributes:
        mechanism_name: registered name of the mechanism of the box.
    """

    room: ClassVar[float] = 2.0
    """How many times the mean weight `cap` should be: the box is used, and little is cut off."""

    mechanism_name: str = choice(*BOX_MECHANISMS, default="piecewise")

    @abstractmethod
    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """The owners' unperturbed shares in [-1, 1]^s, shape (H, s).

        Args:
            inside: scaled rows (H, N, d).
            labels: label numbers (H, N).
            weights: weights in [0, 1], 0 where there is no row, shape (H, N).
        """

    @abstractmethod
    def base_learner(self, mean: FloatArray) -> WeakRule:
        """The weak rule behind the mean of all estimates."""

    @property
    def scores(self) -> int:
        """One for two classes, else one a class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @cached_property
    def mechanism(self) -> Mechanism:
        """The box mechanism on the whole share, with the whole budget."""
        return self._box(self.epsilon, self.sent)

    def _box(self, epsilon: float, dimension: int) -> Mechanism:
        return Mechanism.from_dict(
            {"name": self.mechanism_name, "epsilon": epsilon, "dimension": dimension}
        )

    def exact(self, records: Records, source: Source) -> FloatArray:
        """Weigh, and compute the share."""
        rows = OwnerRows(*records)
        inside, weights = self.weighted(rows)
        return np.clip(self.share(inside, rows.labels, weights), -1.0, 1.0)

    def weighted(self, rows: OwnerRows) -> tuple[FloatArray, FloatArray]:
        """Scaled rows, and weights for which shares stay in the box."""
        return self.ensemble.prepared(rows, cap=self.cap)

    def decode(self, sent: FloatArray) -> FloatArray:
        """Box mechanisms are unbiased as sent."""
        return sent

    @classmethod
    def examples(cls) -> list[Self]:
        """Each mechanism."""
        return [cls(**cls.example_fields(mechanism_name=name)) for name in BOX_MECHANISMS]
