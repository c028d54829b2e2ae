"""What all queries share: columns that were made usable."""

import numpy as np
import pytest

from dpfda.central.channels import ChannelQuery
from dpfda.central.regression.problem import Bounds
from dpfda.central.regression.queries import MomentQuery
from dpfda.errors import ProtocolError
from dpfda.privacy.cost import Cost
from dpfda.protocol.query import Query, finite


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


def test_a_missing_number_changes_no_other_record():
    """In single precision ten of these targets are rounded to other steps of the grid."""
    bounds = Bounds(center=np.zeros(1), target_center=0.3, target_radius=0.7)
    query = MomentQuery(cost=Cost(epsilon=1.0, delta=1e-6), bounds=bounds)
    numbers = np.random.default_rng(0).uniform(-0.4, 1.0, 1000).astype(np.float32)
    numbers[0] = 0.0  # as a missing one counts
    gaps = numbers.copy()
    gaps[0] = np.nan
    rows = np.ones((1000, 1), dtype=np.float32)
    here, there = (query.sums(query.fitting((rows, y))).tolist() for y in (numbers, gaps))
    assert here == there


def test_queries_inside_each_other_are_refused_however_many_they_are():
    asked = ChannelQuery.examples()[0].query.to_dict()
    for _ in range(2000):
        asked = {"name": "channel", "query": asked, "channel": 0, "channels": 1}
    with pytest.raises(ProtocolError, match="the fields make no valid query"):
        Query.from_dict(asked)
