"""What the benchmark of devices answers is what a collector would take."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from dpfda.noise import SimulationSource
from dpfda.protocol.task import check_reply
from dpfda.protocol.wire import ReplyMessage, TaskMessage
from dpfda_bench import device


@pytest.mark.parametrize(("name", "phases"), [("moments", 1), ("vectors", 24)])
def test_a_reply_of_every_phase_is_what_its_task_allows(
    name: str, phases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_COLUMNS", 3)
    plan = replace(next(p for p in device.plans() if p.design["name"] == name), n_people=1500)
    asked = list(device.messages(plan))
    assert len(asked) == phases
    assert {msgspec.json.decode(body, type=TaskMessage).phase for body in asked} == set(
        range(phases)
    )
    row = {"curve": np.linspace(-3, 3, 3), "label": 1}
    for body in asked:
        sent = device.reply(plan, body, row, SimulationSource(0))
        reply = msgspec.json.decode(sent, type=ReplyMessage)
        task = plan.read_task(msgspec.json.decode(body, type=TaskMessage).task)
        assert check_reply(task, [reply.values]).shape == (1, task.width)
    given = json.dumps({"plan": plan.to_dict(), "messages": [asked[0].decode()]})
    ((taken, size),) = device._on_a_device(given)
    assert 0 < taken < 1000
    assert 90 < size < 2000
