"""002 Figure A2: noise on the coefficients of logistic regression, for D = 5 … 100."""

from __future__ import annotations

from dpfda.study.outcome import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.reproductions import p002_figure_a1 as figure_a1

TITLE = "Standard deviation of the noise on Λ_j, logistic regression, N = 10 000 (002 Figure A2)"
NEEDS = ()
SECONDS = 1
GUARANTEES = figure_a1.GUARANTEES
verdict = figure_a1.verdict


def run(effort: Effort = FULL) -> Outcome:
    """Evaluate every formula; nothing is random."""
    return figure_a1.levels("logistic", first=1, factors=(0.5, 0.125))
