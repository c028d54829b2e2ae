"""A person's device against a collector that answers from a script: every refusal, every wait."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda.client import RemoteClient, remote
from dpfda.client.http import Answer
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import TaskMessage

CURVE = np.array([0.2, -0.4])


class Script:
    """A connection that gives one prepared answer after the other, the last one for ever."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def ask(self, method: str, path: str, **_: Any) -> Answer:
        self.asked.append(path.rpartition("/")[2])
        assert len(self.asked) < 50, "asked for ever"
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Answer(status, msgspec.json.encode(body))

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Device(RemoteClient):
    """Speaks to the script."""

    script: Script
    slept: list[float]

    def _connect(self, url: str, insecure: bool) -> Any:
        return self.script


@pytest.fixture
def plan(make_plan: Any) -> StudyPlan:
    return make_plan(10, epsilon=1.0)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    made = Device(tmp_path / "home", limit_epsilon=3.0, patience=60.0)
    made.slept = []
    made._sleep = made.slept.append
    return made


def join(device: Device, plan: StudyPlan) -> str:
    device.script = Script((200, {"plan": plan.to_dict()}), (201, {"token": "t" * 43}))
    device.join("http://127.0.0.1", plan.hash, most_epsilon=1.0)
    return plan.hash


def task(plan: StudyPlan, study: str) -> TaskMessage:
    return TaskMessage(study, 0, 0, Server(plan).issue(1).to_dict())


def test_what_was_not_joined_or_prepared_is_not_sent(device: Device, plan: StudyPlan) -> None:
    with pytest.raises(ProtocolError, match="this device has not joined the study"):
        device.send(plan.hash)
    join(device, plan)
    device.script = Script((200, {"receipt": "r"}))
    with pytest.raises(ProtocolError, match="nothing was prepared for this study"):
        device.send(plan.hash)
    assert device.script.asked == []


@pytest.mark.parametrize("wrong", ["a" * 63, "a" * 65, "g" * 64, "A" * 64, "", "../" * 21 + "a"])
def test_a_study_is_named_by_its_64_digits(wrong: str, device: Device) -> None:
    for use in (device.send, lambda name: device.fetch_plan("http://127.0.0.1", name)):
        with pytest.raises(InvalidParameter, match="64 digits"):
            use(wrong)


def test_a_device_waits_half_a_second_until_it_is_wanted(device: Device, plan: StudyPlan) -> None:
    study = join(device, plan)
    device.script = Script((202, {}), (202, {}), (200, task(plan, study)))
    device.prepare(study, curve=CURVE, label="yes")
    assert device.slept == [0.5, 0.5]
    assert device.script.asked == ["task"] * 3


def test_a_device_that_is_not_wanted_gives_up_and_spends_nothing(
    device: Device, plan: StudyPlan
) -> None:
    study = join(device, plan)
    device.script, device._patience = Script((202, {})), -1.0
    with pytest.raises(ProtocolError, match="the study has no free place now"):
        device.prepare(study, curve=CURVE, label="yes")
    assert device.ledger.spent.epsilon == 0


def test_unless_told_otherwise_it_waits_a_minute(
    tmp_path: Path, plan: StudyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: list[float] = []  # each look takes five seconds
    slow = SimpleNamespace(monotonic=lambda: 5.0 * len(clock), sleep=None)
    monkeypatch.setattr(remote, "time", slow)
    device = Device(tmp_path / "home", limit_epsilon=3.0)
    device._sleep = clock.append
    study = join(device, plan)
    device.script = Script((202, {}))
    with pytest.raises(ProtocolError, match="the study has no free place now"):
        device.prepare(study, curve=CURVE, label="yes")
    assert len(clock) == 60 // 5 + 1


def test_a_task_of_another_study_is_refused_and_costs_nothing(
    device: Device, plan: StudyPlan
) -> None:
    study = join(device, plan)
    device.script = Script((200, task(plan, "0" * 64)))
    with pytest.raises(ProtocolError, match="the task belongs to another study"):
        device.prepare(study, curve=CURVE, label="yes")
    assert device.ledger.spent.epsilon == 0


@pytest.mark.parametrize("token", [None, 5, ["t"], {}])
def test_a_token_is_a_word(token: Any, device: Device, plan: StudyPlan) -> None:
    for answer in ({"token": token}, {}, [token]):
        device.script = Script((200, {"plan": plan.to_dict()}), (201, answer))
        with pytest.raises(ProtocolError, match="the collector's answer holds no token"):
            device.join("http://127.0.0.1", plan.hash, most_epsilon=1.0)
    assert device.studies() == []
