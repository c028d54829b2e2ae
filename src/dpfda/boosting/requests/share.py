"""What the papers' three shares have in common: weights from the vote so far, a box mechanism."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.model import BoostedModel
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.base import Request, owner_guarantee
from dpfda.boosting.rules import Rule
from dpfda.mechanisms import Mechanism
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee

Labels = Literal["private", "public"]
BOX_MECHANISMS = ("piecewise", "duchi", "laplace", "hybrid")


@dataclass(frozen=True, kw_only=True, eq=False)
class ShareRequest(Request):
    """Each owner sends one perturbed share, a vector in [-1, 1]^s (004, Algorithm 4).

    Attributes:
        ensemble: the vote so far; it gives the weights of an owner's rows.
        mechanism: registered name of the randomizer.
        cap: weights are divided by this public number and cut at 1, which keeps shares in the box.
        labels: ``public`` only where the owners agreed to it (C16).
    """

    room: ClassVar[float] = 2.0
    """How many times the mean weight `cap` should be: the box is used, and little is cut off."""

    ensemble: Ensemble
    mechanism: str = "piecewise"
    cap: float = 1.0
    labels: Labels = "private"

    def __post_init__(self) -> None:
        if isinstance(self.ensemble, Mapping):
            made = BoostedModel.from_dict(self.ensemble)
            object.__setattr__(self, "ensemble", made)
        _validate.one_of("mechanism", self.mechanism, BOX_MECHANISMS)
        _validate.one_of("labels", self.labels, ("private", "public"))
        _validate.positive("cap", self.cap)

    @property
    def classes(self) -> int:
        """K."""
        return self.ensemble.classes

    @property
    def columns(self) -> int:
        """d."""
        return len(self.ensemble.centre)

    @abstractmethod
    def share(self, inside: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
        """The owners' unperturbed shares in [-1, 1]^s, shape (H, s).

        Args:
            inside: scaled rows (H, N, d).
            labels: label numbers (H, N).
            weights: weights in [0, 1], 0 where there is no row, shape (H, N).
        """

    @abstractmethod
    def base_learner(self, mean: FloatArray) -> Rule:
        """The weak rule behind the mean of all decoded shares."""

    def answer(self, rows: OwnerRows, *, epsilon: float, rng: Source) -> FloatArray:
        """Weigh, compute the share, perturb it with the whole ε."""
        inside, weights = self.weighted(rows)
        shares = self.share(inside, rows.labels, weights)
        return self.randomizer(epsilon).randomize(shares, rng, clip=True)

    def weighted(self, rows: OwnerRows) -> tuple[FloatArray, FloatArray]:
        """Scaled rows, and weights for which shares stay in the box."""
        return self.ensemble.prepared(rows, cap=self.cap)

    def randomizer(self, epsilon: float) -> Mechanism:
        """The box mechanism on s numbers."""
        made: Mechanism = Mechanism.named(self.mechanism)(epsilon=epsilon, dimension=self.width)  # type: ignore[call-arg]
        return made

    def decode(self, replies: FloatArray, *, epsilon: float, sizes: IntArray) -> FloatArray:
        """Box mechanisms are unbiased as sent."""
        return self.check(replies)

    def guarantee(self, epsilon: float) -> Guarantee:
        """ε for everything the owner holds (C18)."""
        return owner_guarantee(epsilon)

    def with_ensemble(self, ensemble: Ensemble, *, cap: float) -> ShareRequest:
        """The same question after another base learner joined."""
        return replace(self, ensemble=ensemble, cap=cap)


def per_owner(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Sums over an owner's rows divided by their number."""
    return np.asarray(values / sizes[:, None])
