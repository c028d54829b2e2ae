"""Public lattices."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise.discrete import LARGEST_STEPS, fine_step, whole_steps


@given(scale=st.floats(min_value=1e-9, max_value=1e9), bits=st.integers(0, 40))
def test_the_step_is_fine_enough_and_a_power_of_two(scale: float, bits: int) -> None:
    step = fine_step(scale, bits=bits)
    assert math.frexp(step)[0] == 0.5
    assert 2**bits <= scale / step < 2 ** (bits + 1)


@given(values=st.lists(st.floats(-1, 1), min_size=1), exponent=st.integers(-30, 0))
def test_rounding_moves_by_half_a_step_at_most(values: list[float], exponent: int) -> None:
    step, array = 2.0**exponent, np.array(values)
    assert np.all(np.abs(whole_steps(array, step) * step - array) <= step / 2)


@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_the_ends_of_the_box_are_lattice_points(end: float) -> None:
    step = fine_step(1e9, most=1.0)
    assert whole_steps(np.array([end]), step)[0] * step == end


@pytest.mark.parametrize("scale", [0.0, -0.5, math.nan, math.inf])
def test_other_scales_are_refused(scale: float) -> None:
    with pytest.raises(InvalidParameter, match="scale must be"):
        fine_step(scale)


@given(
    start=st.floats(-1e6, 1e6), gap=st.floats(0, 1), step=st.floats(min_value=1e-8, max_value=1e-2)
)
def test_neighbors_stay_neighbors(start: float, gap: float, step: float) -> None:
    """Rounding moves two values apart by less than 2 steps, however large they are (C20)."""
    one, other = np.array([start]), np.array([start + gap])
    apart = int(whole_steps(other, step)[0] - whole_steps(one, step)[0])
    exact = (Fraction(float(other[0])) - Fraction(start)) / Fraction(step)
    assert abs(apart - exact) < 2


@pytest.mark.parametrize("value", [1e300, -1e300, 2.0 * LARGEST_STEPS, -(2.0**63)])
def test_values_that_floats_cannot_place_are_refused(value: float) -> None:
    with pytest.raises(InvalidData, match="lattice steps") as caught:
        whole_steps(np.array([0.0, value]), 1.0)
    assert str(value) not in str(caught.value)


def test_values_that_floats_cannot_place_are_clipped_on_request() -> None:
    clipped = whole_steps(np.array([1e300, -1e300, 2.0]), 1e-9, clip=True)
    assert clipped.tolist() == [LARGEST_STEPS, -LARGEST_STEPS, 2_000_000_000]
