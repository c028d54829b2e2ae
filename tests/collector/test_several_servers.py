"""Collectors that learn from each other, and a stream that goes on by itself."""

from __future__ import annotations

import asyncio
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked_collector import QuickCollector

from dpfda.client.crowd import RemoteCrowd
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan

ENCODER = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)


@pytest.fixture(scope="module")
def collectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[CollectorProcess]]:
    folder = tmp_path_factory.mktemp("servers")
    with (
        QuickCollector(f"sqlite:///{folder / 'a.db'}") as first,
        QuickCollector(f"sqlite:///{folder / 'b.db'}") as second,
    ):
        yield [first, second]


def plan_of(people: int, *, seed: int = 0, **design: Any) -> StudyPlan:
    return StudyPlan(
        epsilon=6.0,
        n_people=people,
        encoder=ENCODER,
        classes=("no", "yes"),
        design=design,
        seed=seed,
    )


def everybody(
    collector: CollectorProcess, plan: StudyPlan, *, sign: float = 1.0, seed: int = 0
) -> CurveModel:
    """People whose first coordinate decides the label take part until the study is over."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (plan.n_people, 2))
    labels = (sign * features[:, 0] + 0.1 * rng.normal(size=plan.n_people) > 0).astype(np.int64)
    source = SimulationSource(seed)
    asyncio.run(
        RemoteCrowd(
            collector.url,
            plan,
            features,
            labels,
            tokens=collector.invite(plan.hash, plan.n_people),
            source=source,
        ).take_part()
    )
    collector.wait_until(plan.hash[:16])
    return CurveModel.from_dict(collector.request("GET", f"/api/studies/{plan.hash[:16]}/model"))


def accuracy(model: CurveModel, *, sign: float = 1.0) -> float:
    features = np.random.default_rng(99).uniform(-1, 1, (500, 2))
    return float(np.mean(model.decide(features) == (sign * features[:, 0] > 0)))


MRMA = {"name": "mrma", "n_classifiers": 6, "member_size": 20}


def test_a_peers_model_is_pulled_and_judged(collectors: list[CollectorProcess]) -> None:
    """The second server's people are the other way round: the pulled model is reversed there."""
    first, second = collectors
    plan = plan_of(240, **MRMA)
    first.create(plan)
    assert accuracy(everybody(first, plan)) > 0.8
    status = second.request(
        "POST",
        "/api/exchanges",
        {
            "peers": [{"url": first.url, "study": plan.hash[:16], "key": first.admin_key}],
            "epsilon": 6.0,
            "n_people": 60,
            "evaluation_share": 0.3,
        },
    )
    exchange = StudyPlan.from_dict(status["plan"])
    assert exchange.hash == status["hash"]
    model = everybody(second, exchange, sign=-1.0, seed=1)
    assert accuracy(model, sign=-1.0) > 0.8
    summary = second.request("GET", f"/api/studies/{status['id']}/models")[-1]["summary"]
    assert [member["reversed"] for member in summary["members"]] == [True]
    assert summary["error"]["people"] == 18


def test_peers_that_do_not_answer(collectors: list[CollectorProcess]) -> None:
    first, second = collectors
    for url, study in [
        ("http://127.0.0.1:9", "abc"),
        (first.url, "abc"),
        (first.url + "/nothing", "abc"),
    ]:
        body = {"peers": [{"url": url, "study": study}], "epsilon": 1.0, "n_people": 5}
        with pytest.raises(urllib.error.HTTPError) as refusal:
            second.request("POST", "/api/exchanges", body)
        assert refusal.value.code == 424
        refusal.value.close()


def test_a_stream_goes_on_by_itself(collectors: list[CollectorProcess]) -> None:
    collector = collectors[0]
    plan = plan_of(
        120, seed=7, name="mrma_stream", n_classifiers=4, new_classifiers=2, member_size=10
    )
    collector.create(plan, online=True)
    everybody(collector, plan, seed=3)
    for _ in range(100):
        status = collector.request("GET", f"/api/studies/{plan.hash[:16]}")
        if status["successor"]:
            break
    following = collector.request("GET", f"/api/studies/{status['successor']}")
    following_plan = StudyPlan.from_dict(following["plan"])
    assert following_plan.design["round"] == 1
    assert following["status"] == "open"
    assert accuracy(everybody(collector, following_plan, seed=4)) > 0.7


def test_several_studies_at_once(collectors: list[CollectorProcess], tmp_path: Path) -> None:
    collector = collectors[1]
    plans = [plan_of(40, seed=10, name="moments"), plan_of(90, seed=11, **MRMA)]
    for plan in plans:
        collector.create(plan)

    async def both() -> None:
        crowds = []
        for plan in plans:
            features = np.zeros((plan.n_people, 2))
            labels = np.zeros(plan.n_people, dtype=np.int64)
            crowds.append(
                RemoteCrowd(
                    collector.url,
                    plan,
                    features,
                    labels,
                    tokens=collector.invite(plan.hash, plan.n_people),
                    source=SimulationSource(0),
                )
            )
        await asyncio.gather(*(crowd.take_part(connections=4) for crowd in crowds))

    asyncio.run(both())
    for plan in plans:
        assert collector.wait_until(plan.hash[:16])["status"] == "finished"
