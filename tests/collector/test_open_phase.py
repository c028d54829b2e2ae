"""A phase as a process knows it: its tasks, and which replies are possible."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from one_process import read_task, reply_to
from stored_studies import study_of

from dpfda.collector import phases
from dpfda.collector.conclude import begin
from dpfda.collector.phases import OpenPhase, opened
from dpfda.collector.refusal import Refused
from dpfda.protocol.server import Server


class TestOpenPhase:
    @pytest.fixture
    def phase(self, make_plan: Any) -> OpenPhase:
        found = begin(make_plan(5).to_dict())
        assert not isinstance(found, str)
        return OpenPhase(study_of(*found))

    def test_tasks_are_made_in_blocks_and_kept_a_while(
        self, phase: OpenPhase, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(phases, "_KEPT", 2)
        monkeypatch.setattr(phase, "_size", 2)
        first = read_task(phase.message(0))
        assert (first.ticket, first.phase, first.task["people"]) == (0, 0, 1)
        block = phase._blocks[0]
        assert read_task(phase.message(1)).ticket == 1
        assert phase._blocks[0] is block
        assert read_task(phase.message(4)).ticket == 4  # the last block is not full
        assert list(phase._blocks) == [0, 2]
        phase.message(2)
        assert list(phase._blocks) == [2, 1]
        assert read_task(phase.message(0)) == first

    def test_every_ticket_has_its_own_task(self, make_plan: Any) -> None:
        plan = make_plan(200, name="answers")
        found = begin(plan.to_dict())
        assert not isinstance(found, str)
        phase = OpenPhase(study_of(*found))
        run = Server.resume(plan, msgspec.json.decode(found[1].following["state"])).run
        for ticket in range(phase.record.quota):
            asked = read_task(phase.message(ticket)).task
            assert asked == run.tasks(ticket, 1).to_dict()

    def test_a_study_of_another_version_goes_on_nowhere_else(
        self, make_plan: Any, monkeypatch: Any
    ) -> None:
        """Who asks for a task is told why; a finished study is asked nothing, and can be read."""
        found = begin(make_plan(5).to_dict())
        assert not isinstance(found, str)
        record = study_of(*found)
        monkeypatch.setattr("dpfda.protocol.server.__version__", "99.0")
        with pytest.raises(
            Refused, match=r"cannot continue the study: .* began with dpfda .* is 99\.0"
        ):
            opened(record)
        finished = msgspec.structs.replace(record, quota=0, kind="finished", status="finished")
        assert opened(finished).judge([]) == []

    def test_long_tasks_are_made_one_by_one(self, phase: OpenPhase, monkeypatch: Any) -> None:
        assert phase._size == 64
        length = len(msgspec.json.encode(phase._first.to_dict()))
        for most, size in ((3 * length, 3), (length - 1, 1)):
            monkeypatch.setattr(phases, "_BYTES", most)
            assert OpenPhase(phase.record)._size == size

    def test_only_possible_replies_are_taken(self, phase: OpenPhase) -> None:
        sent, _ = reply_to(read_task(phase.message(4)))
        wrong = [
            msgspec.structs.replace(sent, **other)
            for other in ({"ticket": 5}, {"values": [1.0]}, {"values": [1.0, float("inf")]})
        ]
        assert phase.judge([sent]) == [None]
        assert phase.judge([]) == []
        verdicts = phase.judge([wrong[0], sent, wrong[1], wrong[2], sent])
        assert [verdict and verdict.status for verdict in verdicts] == [422, None, 422, 422, None]

    def test_replies_of_other_phases_are_left_to_the_storage(self, phase: OpenPhase) -> None:
        """Nobody can say what an earlier phase asked; who is late is told so, or gets a receipt."""
        sent, _ = reply_to(read_task(phase.message(0)))
        odd = msgspec.structs.replace(sent, values=[1.0], ticket=99)
        earlier = msgspec.structs.replace(phase.record, phase=1)
        for record in (earlier, msgspec.structs.replace(phase.record, status="closing")):
            phase.record = record
            assert phase.judge([odd]) == [None]
        for other in ({"phase": 2}, {"phase": -1}, {"ticket": -1}, {"plan": "0"}):
            (verdict,) = phase.judge([msgspec.structs.replace(odd, **other)])
            assert verdict is not None
            assert verdict.status == 409
