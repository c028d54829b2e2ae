"""Two collector processes on one PostgreSQL database are one collector."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from dpfda.client.crowd import RemoteCrowd
from dpfda.collector.collector_process import CollectorProcess
from dpfda.noise import SimulationSource


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_two_workers_run_one_study(database: str, make_plan: Any) -> None:
    plan = make_plan(120, name="mrma", n_classifiers=4, member_size=10)
    with CollectorProcess(database, options=["--workers", "2"]) as collector:
        collector.create(plan)
        features = np.random.default_rng(0).uniform(-1, 1, (120, 2))
        labels = (features[:, 0] > 0).astype(np.int64)
        crowd = RemoteCrowd(
            collector.url,
            plan,
            features,
            labels,
            tokens=collector.invite(plan.hash, plan.n_people),
            source=SimulationSource(0),
        )
        asyncio.run(crowd.take_part(connections=12))
        assert collector.wait_until(plan.hash[:16])["status"] == "finished"
        history = collector.request("GET", f"/api/studies/{plan.hash[:16]}/models")
    assert [(entry["phase"], entry["people"]) for entry in history] == [(-1, 0), (0, 20), (1, 100)]


def test_two_workers_on_sqlite_are_refused(tmp_path: Any) -> None:
    from click.testing import CliRunner

    from dpfda.cli._group import dpfda

    done = CliRunner().invoke(dpfda, ["serve", "--workers", "2"])
    assert done.exit_code == 2
    assert "--workers must be 1 unless the database is PostgreSQL" in done.stderr
