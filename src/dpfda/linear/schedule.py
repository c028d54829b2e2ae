"""Who is asked what, from public numbers alone: people, ε, columns and classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda.linear.reports import effective_people, entry_noise
from dpfda.protocol.findings import Step
from dpfda.protocol.temperature import BATCHES

ABOUT_LABELS = ("rate", "moment", "gradient", "means", "within", "residuals")
"""Kinds of phases that come after the features are known."""

_LOCATION, _LOCATION_FROM, _LOCATION_BATCHES = 0.15, 150.0, 8
_LOOSE = 0.25  # of people, where features may lie anywhere
_SPREAD, _SPREAD_FROM = 0.08, 10.0
CORRELATION_FROM = {2: 10.0, 3: 32.0}
"""Effective people who are asked for correlations, for each column: of two classes, of several."""
_CORRELATION = {2: 0.1, 3: 0.2}
_BY_ENTRY = 1.25  # the same of two classes, for each entry of the matrix
_RATE, _RATE_FROM = 0.1, 60.0
_PILOT, _ROUNDS, _ROUNDS_FROM = 0.4, 12, 15.0
_FEW, _PILOT_OF_FEW = 50.0, 0.7
"""With fewer effective people a column, rounds would follow their own noise: most people are in the
first look. Chosen on phishing at ε = 1 and mnist_7x7 at 0.5 of `dpfda bench local`."""
_WITHIN, _AGAIN, _AGAIN_FROM = 0.15, 0.35, 20.0
_WIDE_FROM = 2000.0


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The phases of a study, and what its size allows.

    Attributes:
        people: N without those who judge the result or say how sure it may be.
        epsilon: of each.
        columns: d.
        n_classes: K.
        judges: people who judge the finished classifier.
        tempered: people who say how sure it may be.
        share_known: nobody needs to be asked for the share of the second of two classes.
        ordered: the first columns matter most, as of smooth curves.
        loose: features may lie anywhere in their ranges.
        distances: how far people are from the middle of features counts too.
    """

    people: int
    epsilon: float
    columns: int
    n_classes: int
    judges: int = 0
    tempered: int = 0
    share_known: bool = False
    ordered: bool = False
    loose: bool = False
    distances: bool = False

    @property
    def effective(self) -> float:
        """N_eff: how many vector reports without noise those of everybody are worth."""
        return effective_people(self.people, self.epsilon)

    @property
    def clip(self) -> float:
        """How many standard deviations of a feature are looked at."""
        if not self.locates:
            return 1.0
        return 3.0 if self.effective >= _WIDE_FROM * self.columns else 2.0

    @property
    def locates(self) -> bool:
        """Whether location and scale are sought; if not, features are signs."""
        return self.loose or self.distances or self.effective >= _LOCATION_FROM

    def phases(self) -> list[Step]:
        """In order; sizes add up to everybody."""
        share = _LOCATION if self.effective >= _LOCATION_FROM and not self.loose else _LOOSE
        location = int(share * self.people) if self.locates else 0
        spread = int(_SPREAD * self.people) if self.effective * _SPREAD >= _SPREAD_FROM else 0
        correlation = self._correlating()
        rest = self.people - location - spread - correlation
        found = [
            *split("location", location, _LOCATION_BATCHES),
            Step("spread", spread),
            *split("correlation", correlation, self._looks(correlation)),
            *(self._two(rest) if self.n_classes == 2 else self._many(rest)),
            *split("temperature", self.tempered, BATCHES),
            Step("evaluation", self.judges),
        ]
        return [phase for phase in found if phase.people]

    def refines(self, directions: int) -> bool:
        """Whether there are enough people for the rounds after the first look at the labels."""
        if self.n_classes == 2:
            return self.effective >= _ROUNDS_FROM * (directions + 1)
        return 0.5 * self.effective >= _AGAIN_FROM * self.n_classes * directions

    def _correlating(self) -> int:
        if self.ordered and self.n_classes > 2:
            return 0  # no factor is behind all coefficients, and what varies in a class comes later
        share = _CORRELATION[min(self.n_classes, 3)]
        enough = self.effective * share >= self._correlations_from
        return int(share * self.people) if enough and self.columns > 1 else 0

    @property
    def _correlations_from(self) -> float:
        """How many effective people it takes to see some."""
        if self.n_classes > 2:
            return CORRELATION_FROM[3] * self.columns
        return max(CORRELATION_FROM[2] * self.columns, _BY_ENTRY * self.columns**2)

    def _looks(self, people: int) -> int:
        """A second look in whitened coordinates, if the first one shows enough."""
        if not people:
            return 0
        d = self.columns
        variance = d**2 * entry_noise(d * (d + 1) // 2, self.epsilon) / people
        return 2 if 2 * np.sqrt(variance) * np.sqrt(d) < 1 else 1

    def _two(self, rest: int) -> list[Step]:
        asked = self.effective >= _RATE_FROM and not self.share_known
        rate = int(_RATE * rest) if asked else 0
        left = rest - rate
        share = _PILOT_OF_FEW if self.effective < _FEW * (self.columns + 1) else _PILOT
        pilot = int(share * left) if self.refines(1) else left
        rounds = split("gradient", left - pilot, _ROUNDS)
        return [Step("rate", rate), Step("moment", pilot), *rounds]

    def _many(self, rest: int) -> list[Step]:
        again = self.refines(1)
        within, second = (int(_WITHIN * rest), int(_AGAIN * rest)) if again else (0, 0)
        return [
            Step("means", rest - within - second),
            *split("within", within, 2),
            Step("residuals", second),
        ]


def split(kind: str, people: int, parts: int) -> list[Step]:
    """Groups that differ by at most one."""
    return [Step(kind, people // parts + (i < people % parts)) for i in range(parts)]
