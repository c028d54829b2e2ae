"""The fuzz can fail: queries with the holes that were once found are caught by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from dpfda.checks.fuzz import check_fuzz
from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import AdditiveLaplace
from dpfda.noise import Source
from dpfda.protocol.fields import array, number
from dpfda.protocol.query import Answer, Query, Records
from dpfda.protocol.task import Task
from dpfda.protocol.tasks.vector import MomentTask


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    before = dict(Query._members)
    yield
    Query._members.clear()
    Query._members.update(before)


def test_a_query_that_raises_for_some_labels_is_caught() -> None:
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Projected(MomentTask, name="projected"):
        projection: float = number(default=1.0)

        def answer(self, records: Records, source: Source) -> Answer:
            _, y = self.fitting(records)
            if (self.projection * (y == 1)).max() > 1e90:  # overflows for one label
                raise InvalidParameter("projection", "smaller", self.projection)
            return super().answer(records, source)

    with pytest.raises(AssertionError, match=r"becomes \('InvalidParameter'"):
        check_fuzz(Projected.examples()[0])


def test_an_answer_of_another_shape_is_caught() -> None:
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Repeated(MomentTask, name="repeated"):
        positive: np.ndarray = array("whole", "people", "repeats")

        def fitting(self, records: Records) -> Records:
            z, y = super().fitting(records)
            return z, np.repeat(y[:, None], self.sizes["repeats"], axis=1)

        def answer(self, records: Records, source: Source) -> Answer:
            z, y = self.fitting(records)
            flat = np.where(y == self.positive, 1.0, -1.0).reshape(-1, 1) * z[:, :2]
            values = self.mechanism.randomize(flat, source, clip=True)
            return Answer(values=values.reshape(self.people, -1), n=self.people)

        @classmethod
        def examples(cls):
            return [cls(epsilon=1.0, people=1, dimension=2, positive=[[1]])]

    with pytest.raises(AssertionError, match="an answer of shape"):
        check_fuzz(Repeated.examples()[0])


AXES = (1.0, 1.0)


def test_an_accepted_number_that_raises_the_sensitivity_is_caught() -> None:
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Stretched(Task, name="stretched"):
        factor: float = number(least=0, default=1.0)

        mechanism = property(lambda self: AdditiveLaplace(epsilon=1.0, sensitivity=2.0, axes=AXES))
        width = property(lambda self: 2)
        columns = property(lambda self: 1)

        def exact(self, records: Records, source: Source) -> np.ndarray:
            features, labels = records
            cell = (features[:, 0] > 0)[:, None] == np.arange(2)
            return self.factor * np.where(labels == 1, 1.0, -1.0)[:, None] * cell

        def allows(self, reply: np.ndarray) -> np.ndarray:
            return np.ones(len(reply), dtype=bool)

        @classmethod
        def examples(cls):
            return [cls(epsilon=1.0, people=1)]

    with pytest.raises(AssertionError, match="apart"):
        check_fuzz(Stretched.examples()[0])


def test_what_cannot_be_priced_is_refused_on_arrival() -> None:
    good = MomentTask.examples()[0].to_dict()
    for spoiled in ({"epsilon": 10**400}, {"dimension": 1 << 40}, {"positive": [[1] * 2000]}):
        with pytest.raises(InvalidParameter):
            Query.from_dict(good | spoiled)
    with pytest.raises(InvalidParameter, match="dimension must be given"):
        Query.from_dict({key: good[key] for key in good if key != "dimension"})
