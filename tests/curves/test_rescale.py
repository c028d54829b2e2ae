"""Rescalers stay in the box, and undo what can be undone."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpfda.curves import ClipRescaler, MaxAbsRescaler, Rescaler, TanhRescaler
from dpfda.errors import InvalidParameter

EXTREME = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.floats(width=64)
)


@given(z=EXTREME)
@settings(deadline=None, max_examples=30)
def test_the_result_is_in_the_box_whatever_comes_in(rescaler, z):
    z_star = rescaler.rescale(z)
    assert z_star.shape == z.shape
    assert np.all(np.abs(z_star) <= 1.0)  # false for NaN
    assert np.all(z_star[np.isnan(z)] == 0.0)


def test_a_broken_rescaler_cannot_leave_the_box():
    class Broken(Rescaler):
        def _squash(self, z):
            return np.where(z > 0, 7.0, np.nan)

    assert Broken().rescale([[1.0, -1.0]]).tolist() == [[1.0, 0.0]]


def test_min_max_leaves_the_box_where_max_abs_does_not():
    """C1: the formula of the first paper is unbounded, so its sensitivity is not 2."""
    z = np.array([[-3.0, 1.0, 2.0]])
    smallest, largest = np.abs(z).min(), np.abs(z).max()
    min_max = (z - smallest) / (largest - smallest)
    assert min_max.min() == pytest.approx(-(largest + smallest) / (largest - smallest))
    assert min_max.min() == -2.0
    assert np.abs(MaxAbsRescaler().rescale(z)).max() == 1.0


def test_survives_json(rescaler):
    assert Rescaler.from_dict(json.loads(json.dumps(rescaler.to_dict()))) == rescaler


def test_the_formulas():
    z = np.array([[0.5, -4.0]])
    np.testing.assert_allclose(TanhRescaler(scale=2.0).rescale(z), np.tanh(z / 2))
    np.testing.assert_allclose(
        ClipRescaler(scale=(1.0, 3.0), center=(0.25, 0.0)).rescale(z), [[0.25, -1.0]]
    )
    np.testing.assert_allclose(MaxAbsRescaler().rescale(z), [[0.125, -1.0]])
    assert MaxAbsRescaler().rescale(np.zeros((1, 3))).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("kind", [TanhRescaler, ClipRescaler])
def test_restore_undoes_rescale_inside_the_range(kind, rng):
    rescaler = kind(scale=(2.0, 5.0), center=(1.0, -7.0))
    z = rescaler.centers(2) + rng.uniform(-1, 1, (20, 2)) * rescaler.scales(2)
    np.testing.assert_allclose(rescaler.restore(rescaler.rescale(z)), z, rtol=1e-12)


@pytest.mark.parametrize("kind", [TanhRescaler, ClipRescaler])
def test_noisy_values_are_restored_finite(kind):
    assert np.all(np.isfinite(kind().restore([[-9.0, 1.0, 40.0]])))


def test_scales_exist_where_c2_needs_them():
    assert TanhRescaler(scale=3).scales(2).tolist() == [3.0, 3.0]
    assert ClipRescaler(scale=(1, 2)).scales(2).tolist() == [1.0, 2.0]
    assert MaxAbsRescaler().scales(2) is None
    with pytest.raises(InvalidParameter, match="an invertible rescaler, got 'max_abs'"):
        MaxAbsRescaler().restore([[0.5]])


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, "1", (1.0, 0.0), None])
def test_scales_are_positive_and_finite(scale):
    with pytest.raises(InvalidParameter, match="scale must be a finite number above 0"):
        TanhRescaler(scale=scale)


def test_a_list_of_scales_has_one_for_each_coefficient():
    with pytest.raises(InvalidParameter, match="one number or 3 numbers"):
        ClipRescaler(scale=(1.0, 2.0)).rescale([[1.0, 2.0, 3.0]])
