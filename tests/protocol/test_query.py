"""What all queries share: columns that were made usable."""

import numpy as np
import pytest

from dpfda.protocol.query import finite


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_number_survives_whose_square_overflows(dtype):
    column = np.array([0.5, np.nan, np.inf, -np.inf, np.finfo(dtype).max], dtype=dtype)
    cleaned = finite(column)
    assert np.isfinite(cleaned**2).all()
    assert list(cleaned[:2]) == [0.5, 0.0]
    assert cleaned[2] > 1e30 > -1e30 > cleaned[3]


def test_usable_numbers_are_left_alone():
    for column in (np.array([[1.0, -1e90]]), np.zeros((0, 3)), np.array([1, 2])):
        assert finite(column) is column
