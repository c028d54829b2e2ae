"""Who is asked what in a regression, from public numbers alone: people, ε and columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda.linear.schedule import CORRELATION_FROM, Schedule, split
from dpfda.protocol.findings import Step

_LOCATION, _LOCATION_BATCHES = (300.0, 0.06, 0.2), 6  # effective people, least and largest share
_LOOSE = (300.0, 0.06, 0.25)  # likewise, of columns that may lie anywhere
_CLIP = 3.0
_PATIENCE = (1.0, 1.2, 3000.0)  # least, most, effective people that 1 is for
_PILOT, _ROUNDS = (600.0, 0.15, 0.4), 6


@dataclass(frozen=True, kw_only=True)
class RegressionSchedule(Schedule):
    """The phases of a regression; `columns` are the target and d features."""

    n_classes: int = 2  # as many scores, and as much to learn about each
    share_known: bool = True

    @property
    def clip(self) -> float:
        """How many standard deviations of a column are looked at."""
        return _CLIP

    @property
    def patience(self) -> float:
        """How many standard deviations a residual may have before it is cut: skew moves a mean."""
        least, most, people = _PATIENCE
        return float(np.clip(np.sqrt(self.effective / people), least, most))

    @property
    def _correlations_from(self) -> float:
        return CORRELATION_FROM[2] * self.columns

    def phases(self) -> list[Step]:
        """In order; sizes add up to everybody."""
        location = int(self._share(*(_LOOSE if self.loose else _LOCATION)) * self.people)
        correlation = self._correlating()
        rest = self.people - location - correlation
        pilot = int(self._share(*_PILOT) * rest) if self.refines(1) else rest
        found = [
            *split("location", location, _LOCATION_BATCHES),
            *split("correlation", correlation, self._looks(correlation)),
            Step("moment", pilot),
            *split("gradient", rest - pilot, _ROUNDS),
            Step("evaluation", self.judges),
        ]
        return [phase for phase in found if phase.people]

    def _share(self, wanted: float, least: float, most: float) -> float:
        """Of people, such that so many effective ones are among them."""
        return min(max(wanted / self.effective, least), most)
