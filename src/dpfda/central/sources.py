"""Which random bits an estimator draws: the operating system's, or a seed's."""

from __future__ import annotations

from dpfda.noise import SecureSource, SimulationSource, Source


def source_for(random_state: int | None) -> Source:
    """None: exact noise for real data. An integer: a reproducible simulation, stamped as such."""
    return SecureSource() if random_state is None else SimulationSource(random_state)
