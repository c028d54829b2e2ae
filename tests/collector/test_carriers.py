"""The same people in process, in chunks and over HTTP: the same bits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked_collector import QuickCollector

from dpfda.client.crowd import RemoteCrowd, Wire
from dpfda.collector.collector_process import CollectorProcess
from dpfda.noise import SimulationSource
from dpfda.protocol.person import Crowd
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server

PEOPLE = 60


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    database: Path = tmp_path_factory.mktemp("carriers") / "study.db"
    with QuickCollector(f"sqlite:///{database}", options=["--rate", "2"]) as process:
        yield process


def rows() -> tuple[Any, Any]:
    features = np.random.default_rng(0).uniform(-1, 1, (PEOPLE, 2))
    return features, (features[:, 0] > 0).astype(np.int64)


def told(plan: StudyPlan) -> tuple[list[Any], bytes]:
    """Everybody's replies, phase by phase, and the model: people come one after the other."""
    features, labels = rows()
    crowd = Crowd(
        plan, lambda start, stop: (features[start:stop], labels[start:stop]),
        source=SimulationSource(3),
    )  # fmt: skip
    server, phases = Server(plan), []
    while not server.finished:
        wanted = server.wanted
        phases.append([])
        for ticket in range(wanted):
            phases[-1].append(crowd.answer(server.issue(1)).values)
            server.receive(phases[-1][-1], start=ticket)
    return phases, server.model.to_json()


@pytest.mark.parametrize(
    "design",
    [
        {"name": "moments", "mechanism": "laplace"},
        {"name": "answers", "evaluation_share": 0.2},
        {"name": "mrma", "n_classifiers": 4, "member_size": 9, "evaluation_share": 0.2},
        {"name": "vectors", "evaluation_share": 0.2, "epsilon": 9.0},
    ],
    ids=lambda design: design["name"],
)
def test_the_carrier_changes_no_bit(
    collector: CollectorProcess, make_plan: Any, design: dict[str, Any]
) -> None:
    plan = make_plan(PEOPLE, **({"epsilon": 1.0, "seed": 5} | design))
    phases, expected = told(plan)
    chunked, rng = Server(plan), np.random.default_rng(1)
    for replies in phases:
        chunked.issue(len(replies))
        cuts = np.sort(rng.permutation(np.arange(1, len(replies)))[:5])
        starts = [0, *cuts.tolist()]
        parts = np.split(np.concatenate(replies), cuts)
        for number in rng.permutation(len(parts)):
            chunked.receive(parts[number], start=starts[number])
    assert chunked.finished
    assert chunked.model.to_json() == expected
    collector.create(plan)
    remote = RemoteCrowd(
        collector.url,
        plan,
        *rows(),
        tokens=collector.invite(plan.hash, plan.n_people),
        source=SimulationSource(3),
    )
    asyncio.run(remote.take_part(connections=1))
    collector.wait_until(plan.hash[:16])
    sent = collector.request("GET", f"/api/studies/{plan.hash[:16]}/model")
    assert sent == json.loads(expected)


def test_whoever_asked_too_often_waits(collector: CollectorProcess, make_plan: Any) -> None:
    """Where conclusions take long, people ask many times; then their replies came too fast."""
    plan = make_plan(1, epsilon=1.0, name="moments", mechanism="laplace")
    collector.create(plan)
    (token,) = collector.invite(plan.hash, 1)

    async def hurry() -> list[int]:
        wire = Wire(collector.url)
        path = f"/api/studies/{plan.hash[:16]}/task"
        statuses = [(await wire.ask("GET", path, token=token))[0] for _ in range(25)]
        wire.close()
        features, labels = rows()
        remote = RemoteCrowd(
            collector.url, plan, features[:1], labels[:1], tokens=[token],
            source=SimulationSource(3),
        )  # fmt: skip
        await remote.take_part(connections=1)
        return statuses

    assert asyncio.run(hurry())[-1] == 429
    collector.wait_until(plan.hash[:16])
