"""The hybrid mechanism: a mixture by a public coin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.mechanisms.piecewise import DuchiScalar, Hybrid
from dpfda.noise import SimulationSource


# Up to 7 the window of the piecewise part is off by 3e-5 at most (see test_piecewise.py).
@given(epsilon=st.floats(0.05, 7), x=st.floats(-1, 1))
def test_variance_is_that_of_the_mixture(epsilon: float, x: float) -> None:
    root, e = math.exp(epsilon / 2), math.exp(epsilon)
    piecewise = x * x / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    two_point = ((e + 1) / (e - 1)) ** 2 - x * x
    share = 1 - 1 / root if epsilon > 0.61 else 0.0
    expected = share * piecewise + (1 - share) * two_point
    stated = float(Hybrid(epsilon=epsilon).variance([[x]])[0, 0])
    assert stated == pytest.approx(expected, rel=1e-4)


def test_below_the_switch_every_report_is_one_of_two() -> None:
    reports = Hybrid(epsilon=0.6).randomize(np.zeros((500, 1)), SimulationSource(0))
    assert np.unique(np.abs(reports)).tolist() == [DuchiScalar(0.6).bound]


def test_above_the_switch_the_share_is_right() -> None:
    draws = 100_000
    reports = Hybrid(epsilon=2.0).randomize(np.zeros((draws, 1)), SimulationSource(0))
    two_point = (np.abs(reports) == DuchiScalar(2.0).bound).mean()
    share = math.exp(-1.0)
    # Five standard deviations of a frequency, fixed seed.
    assert abs(two_point - share) < 5 * math.sqrt(share * (1 - share) / draws)
