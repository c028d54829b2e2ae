"""What happens between HTTP and the learning code: nothing that changes a result."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import pytest
from stored_studies import study_of

from dpfda.collector import conclude as conclusions
from dpfda.collector.conclude import Conclusion, Worker, begin, conclude, conclude_stored
from dpfda.collector.replies import GroupCommit
from dpfda.collector.storage.memory import MemoryStorage
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import Reply


def begun(plan: StudyPlan) -> Conclusion:
    found = begin(plan.to_dict())
    assert not isinstance(found, str)
    return found[1]


def bodies(plan: StudyPlan, phase: int, values: Any, numbers: Sequence[int]) -> Any:
    return [
        (n, msgspec.json.encode(Reply(plan.hash, phase, n, values[n].tolist()))) for n in numbers
    ]


@pytest.mark.parametrize(
    "design",
    [
        {"name": "moments"},
        {"name": "answers", "evaluation_share": 0.2},
        {"name": "mrma", "n_classifiers": 4, "member_size": 5, "evaluation_share": 0.2},
        {"name": "vectors", "evaluation_share": 0.2, "epsilon": 6.0},
    ],
    ids=lambda design: design["name"],
)
def test_the_carrier_changes_nothing(make_plan: Any, design: dict[str, Any]) -> None:
    """The same replies, through JSON and storage or handed over: the same model."""
    plan = make_plan(120, **design)
    text = msgspec.json.encode(plan.to_dict()).decode()
    direct, stored = Server(plan), begun(plan)
    source = SimulationSource(0)
    rng = np.random.default_rng(0)
    while not direct.finished:
        assert stored.following["phase"] == direct.phase
        task = direct.issue(direct.wanted)
        features = rng.uniform(-1, 1, (task.people, 2))
        reply = task.answer((features, (features[:, 0] > 0).astype(np.int64)), source).values
        if task.boxed and task.mechanism.name != "question_response" and task.width > 1:
            reply[:3, :-1] *= 1e4  # liars
        silent = rng.random(task.people) < 0.1
        numbers = np.flatnonzero(~silent).tolist()
        phase = direct.phase
        answers = bodies(plan, phase, reply, numbers)
        stored = conclude(text, stored.following["state"], answers)
        direct.receive(reply, start=0, missing=silent)
        if direct.phase == phase and not direct.finished:
            direct.close_phase()
        assert stored.people == len(numbers)
    assert stored.following["status"] == "finished"
    assert stored.document == direct.model.to_json()


def test_liars_and_the_median_of_means(make_plan: Any) -> None:
    plan = make_plan(900)
    text = msgspec.json.encode(plan.to_dict()).decode()
    start = begun(plan)
    task = Server(plan).issue(900)
    features = np.tile([0.5, 0.0], (900, 1))
    reply = task.answer((features, np.ones(900, dtype=np.int64)), SimulationSource(0)).values
    reply[:9] = [-1e6, 0.0]  # 1 %
    answers = bodies(plan, 0, reply, range(900))
    slopes = [
        msgspec.json.decode(conclude(text, start.following["state"], answers, group).document)[
            "coefficients"
        ][0][0]
        for group in (0, 5)
    ]
    assert slopes[1] > slopes[0], "the median is less impressed"
    assert slopes[1] > 0


def test_stored_replies_are_read_where_they_are(
    make_plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process opens the storage; the same replies teach the same."""
    plan = make_plan(900)
    found = begun(plan)
    record = study_of(plan, found)
    values = np.random.default_rng(0).laplace(scale=5.0, size=(900, 2))
    answers = bodies(plan, 0, values, range(3, 900))
    asked: list[Any] = []

    class Stored(MemoryStorage):
        def replies(self, study: str, phase: int) -> Any:
            asked.append((study, phase))
            return answers

    monkeypatch.setattr(conclusions, "_storage", lambda url: asked.append(url) or Stored())
    for group in (0, 5):
        there = conclude_stored("somewhere", record, group)
        assert there == conclude(record.plan, record.state, answers, group)
    assert asked == ["somewhere", ("a", 0)] * 2


def test_a_bad_plan_is_a_complaint() -> None:
    assert begin({}) == "epsilon must be given (StudyPlan needs it)"
    assert begin({"encoder": {"basis": {"n_basis": 10**12}}}) == (
        "encoder.basis.n_basis must be at most 1000, got 1000000000000"
    )


def test_groups_share_a_commit_and_a_bad_item_is_alone() -> None:
    groups: list[int] = []

    def write(items: Sequence[int]) -> list[int]:
        groups.append(len(items))
        if 13 in items:
            raise ValueError("13")
        return [10 * item for item in items]

    async def main() -> list[Any]:
        with ThreadPoolExecutor(1) as thread:
            commit = GroupCommit(write, thread, most=8)
            return await asyncio.gather(
                *(commit.add(item) for item in range(20)), return_exceptions=True
            )

    results = asyncio.run(main())
    assert [type(result) for result in results].count(ValueError) == 1
    assert [result for result in results if isinstance(result, int)] == [
        10 * item for item in range(20) if item != 13
    ]
    assert max(groups) == 8


def test_what_came_together_is_committed_together() -> None:
    groups: list[int] = []
    sizes: list[int] = []

    def write(items: Sequence[int]) -> list[int]:
        groups.append(len(items))
        if 13 in items:
            raise ValueError("13")
        return [10 * item for item in items]

    async def main() -> list[Any]:
        with ThreadPoolExecutor(1) as thread:
            commit = GroupCommit(write, thread, most=4, noted=lambda size, _: sizes.append(size))
            batches = [commit.add_all(range(first, first + 3)) for first in (0, 3, 6, 12)]
            found = await asyncio.gather(*batches)
            assert sizes == [6, 6]
        with pytest.raises(RuntimeError):  # nobody waits for a writer that is gone
            await commit.add(1)
        return found

    *good, mixed = asyncio.run(main())
    assert good == [[0, 10, 20], [30, 40, 50], [60, 70, 80]]
    assert [mixed[0], mixed[2]] == [120, 140]
    assert isinstance(mixed[1], ValueError)
    assert groups == [6, 6] + [1] * 6, "four were reached; then each of the bad one's group alone"


@pytest.mark.timed
def test_a_worker_that_dies_is_replaced() -> None:
    async def main() -> tuple[int, int]:
        worker = Worker()
        try:
            first = await worker.run(os.getpid)
            os.kill(first, signal.SIGKILL)
            await asyncio.sleep(0.2)
            return first, await worker.run(os.getpid)
        finally:
            worker.close()

    first, second = asyncio.run(main())
    assert first != second
