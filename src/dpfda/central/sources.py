"""Which random bits an estimator draws: the operating system's, or a seed's."""

from __future__ import annotations

import numpy as np

from dpfda import _validate
from dpfda.noise import SecureSource, SimulationSource, Source


def source_for(random_state: int | None) -> Source:
    """None: exact noise for real data. An integer: a reproducible simulation, stamped as such."""
    if random_state is None:
        return SecureSource()
    if isinstance(random_state, np.random.SeedSequence):
        return SimulationSource(random_state)
    return SimulationSource(_validate.whole("random_state", random_state, least=0))
