"""002 Figure A2: noise on the coefficients of logistic regression, for D = 5 … 100."""

from __future__ import annotations

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions.p002_figure_a1 import levels

TITLE = "Standard deviation of the noise on Λ_j, logistic regression, N = 10 000 (002 Figure A2)"


def run(effort: Effort = FULL) -> Outcome:
    """Evaluate every formula; nothing is random."""
    return levels("logistic", first=1, factors=(0.5, 0.125))
