"""A system clock that jumps closes no phase and holds no ticket until it is confirmed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from forked_collector import QuickCollector
from hypothesis import given
from hypothesis import strategies as st
from one_process import answer, with_collector
from stored_studies import every_storage

from dpfda.collector.clock import LARGEST_STEP, Clock
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage.base import ClockMark, Storage

DAY = 86400.0


class Hands:
    """Two clocks that a test moves."""

    def __init__(self, *, wall: float = 1e9, steady: float = 50.0, boot: str = "first") -> None:
        self.wall, self.steady = wall, steady
        self.clock = Clock(wall=lambda: self.wall, steady=lambda: self.steady, boot=boot)

    def pass_by(self, seconds: float, *, jump: float = 0.0) -> None:
        self.wall += seconds + jump
        self.steady += seconds


@given(
    st.lists(
        st.tuples(st.floats(0, 1000), st.floats(-2 * DAY, 2 * DAY), st.booleans()), max_size=30
    )
)
def test_time_passes_as_fast_as_time(steps: list[tuple[float, float, bool]]) -> None:
    """Whatever the system's clock does, without a confirmation no look moves time by a minute."""
    hands = Hands()
    for seconds, jump, looks in steps:
        before = hands.clock.now()
        hands.pass_by(seconds, jump=jump)
        if looks:
            hands.clock.look(confirmed=None)
        moved = hands.clock.now() - before
        assert abs(moved - seconds) < LARGEST_STEP + 1e-6
        if looks:
            assert hands.clock.has_jumped == (abs(hands.wall - hands.clock.now()) >= LARGEST_STEP)


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_jump_is_followed_when_it_is_confirmed(jump: float) -> None:
    hands = Hands()
    stale = hands.wall - 5 * DAY
    hands.pass_by(10, jump=jump)
    hands.clock.look(confirmed=stale)
    assert hands.clock.jump() == pytest.approx(jump)
    assert hands.clock.now() == pytest.approx(1e9 + 10)
    hands.pass_by(10)
    hands.clock.look(confirmed=stale)
    assert hands.clock.has_jumped, "that was confirmed before it jumped"
    hands.clock.look(confirmed=hands.wall)
    assert not hands.clock.has_jumped
    assert hands.clock.now() == hands.wall


def test_a_clock_that_is_corrected_needs_no_confirmation() -> None:
    hands = Hands()
    hands.pass_by(1, jump=DAY)
    hands.clock.look(confirmed=None)
    hands.pass_by(1, jump=-DAY)
    hands.clock.look(confirmed=None)
    assert not hands.clock.has_jumped
    assert hands.clock.now() == hands.wall


def test_small_corrections_are_followed() -> None:
    hands = Hands()
    for _ in range(100):
        hands.pass_by(1, jump=30.0)
        hands.clock.look(confirmed=None)
        assert hands.clock.now() == hands.wall


class TestRestarts:
    """What one process has stored, and the next one makes of it."""

    @staticmethod
    def mark(**known: float) -> ClockMark:
        return ClockMark(**{"boot": "elsewhere", "at": 1e9} | known)  # type: ignore[arg-type]

    def test_nothing_begins_before_what_is_stored(self) -> None:
        hands = Hands()
        hands.clock.begin_after([self.mark(at=hands.wall + 10)])
        assert not hands.clock.has_jumped
        hands.clock.begin_after([self.mark(at=hands.wall + DAY)])
        assert hands.clock.has_jumped
        assert hands.clock.now() == hands.wall + DAY
        hands.clock.look(confirmed=hands.wall)
        assert hands.clock.now() == hands.wall

    @pytest.mark.parametrize("jump", [DAY, -DAY])
    def test_a_jump_while_nothing_ran(self, jump: float) -> None:
        """The machine was not restarted: it counts the seconds."""
        before = Hands()
        mark = before.clock.mark()
        before.pass_by(1000, jump=jump)
        after = Hands(wall=before.wall, steady=before.steady)
        after.clock.begin_after([mark, self.mark(at=before.wall - 9)])
        assert after.clock.now() == pytest.approx(1e9 + 1000)
        assert after.clock.jump() == pytest.approx(jump)
        after.clock.look(confirmed=None)
        assert after.clock.has_jumped
        after.clock.look(confirmed=after.wall)
        assert after.clock.now() == after.wall

    def test_a_long_stop_is_no_jump(self) -> None:
        before = Hands()
        mark = before.clock.mark()
        before.pass_by(30 * DAY, jump=-LARGEST_STEP + 1)
        after = Hands(wall=before.wall, steady=before.steady)
        after.clock.begin_after([mark])
        assert not after.clock.has_jumped
        assert after.clock.now() == after.wall

    def test_a_machine_that_was_restarted(self) -> None:
        """Nobody counted the seconds: what is later than the last time is taken for right."""
        mark = Hands().clock.mark()
        after = Hands(wall=1e9 + DAY, steady=3.0, boot="second")
        after.clock.begin_after([mark])
        assert not after.clock.has_jumped

    @pytest.mark.parametrize("jump", [DAY, -DAY])
    def test_a_jump_that_nobody_confirmed_before_a_restart(self, jump: float) -> None:
        before = Hands()
        before.pass_by(10, jump=jump)
        before.clock.look(confirmed=None)
        mark = before.clock.mark()
        assert mark.jump == pytest.approx(jump)
        for boot, steady in (("first", before.steady), ("second", 3.0)):
            after = Hands(wall=before.wall + 5, steady=steady, boot=boot)
            after.clock.begin_after([mark], confirmed=before.wall - 5 * DAY)
            assert after.clock.has_jumped
            assert after.clock.now() == pytest.approx(1e9 + 10)

    def test_a_jump_that_was_confirmed_before_a_restart(self) -> None:
        before = Hands()
        before.pass_by(10, jump=DAY)
        before.clock.look(confirmed=None)
        after = Hands(wall=before.wall + 60, steady=3.0, boot="second")
        after.clock.begin_after([before.clock.mark()], confirmed=before.wall + 30)
        assert not after.clock.has_jumped


@every_storage
def test_times_are_stored(storage: Storage, database: str) -> None:
    assert storage.clock() == ([], None)
    marks = [ClockMark(boot="a", at=5.0), ClockMark(boot="b", at=6.0, elapsed=1.0, jump=-9.0)]
    for mark in (ClockMark(boot="b", at=4.0, jump=1.0), *marks):
        storage.probe(mark)
    storage.confirm_clock(now=7.0)
    storage.confirm_clock(now=8.0)
    found, confirmed = storage.clock()
    assert confirmed == 8.0
    if not database.startswith("memory"):
        assert sorted(found, key=lambda one: one.boot) == marks


def test_deadlines_and_tickets_do_not_jump(make_plan: Any) -> None:
    async def course(collector: Any, storage: Any) -> None:
        hands = Hands()
        collector.clock = hands.clock
        made = await collector.create(
            make_plan(10).to_dict(), StudySettings(open=True, deadline=3600.0, lapse=60.0)
        )
        await answer(collector, made.id)
        hands.pass_by(1, jump=DAY)
        assert await collector._due() == [], "the deadline is an hour away"
        await collector.enrol(made.id)
        assert set(storage.until.values()) == {hands.clock.now() + 60.0}
        await collector.confirm_clock()
        (due,) = await collector._due()
        assert due.id == made.id

    with_collector(course)


def _with_an_offset() -> None:
    """The system's clock is what a file beside the database says."""
    real = time.time
    file = Path(os.environ["DPFDA_DATABASE"].removeprefix("sqlite:///")).with_name("offset")

    def told() -> float:
        return real() + (float(file.read_text() or 0) if file.exists() else 0.0)

    time.time = told
    (Clock.__init__.__kwdefaults__ or {})["wall"] = told


class Jumping(QuickCollector):
    prepare = _with_an_offset


@pytest.mark.timed
def test_health_tells_and_an_operator_confirms(tmp_path: Path, make_plan: Any) -> None:
    database = f"sqlite:///{tmp_path / 'x.db'}"
    with Jumping(database) as collector:
        study = collector.create(make_plan(10), deadline=3600)["id"]
        (token, other) = collector.invite(study, 2)
        collector.read("GET", f"/api/studies/{study}/task", token=token)
        (tmp_path / "offset").write_text(str(DAY))
        deadline = time.monotonic() + 10
        while (told := collector.request("GET", "/health"))["status"] != "clock":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert abs(told["clock_jump_seconds"] - DAY) < 5
        time.sleep(1.5)  # the watcher looks
        assert collector.request("GET", f"/api/studies/{study}")["status"] == "open"
        collector.read("GET", f"/api/studies/{study}/task", token=other)
        assert collector.request("POST", "/api/clock")["jump_seconds"] > DAY - 5
        assert collector.wait_until(study)["status"] == "finished", "its deadline is over now"
        assert collector.request("GET", "/health")["status"] == "ok"
    (tmp_path / "offset").write_text("0")
    with Jumping(database) as collector:  # behind what is stored
        assert collector.request("GET", "/health")["status"] == "clock"


def test_a_restart_does_not_close_a_phase(tmp_path: Path, make_plan: Any) -> None:
    """Whether the jump comes before the process ends, or while none runs."""
    database = f"sqlite:///{tmp_path / 'x.db'}"
    with Jumping(database) as collector:
        study = collector.create(make_plan(10), deadline=3600)["id"]
        (token,) = collector.invite(study, 1)
        collector.read("GET", f"/api/studies/{study}/task", token=token)
        collector.request("GET", "/health")
    for days in (1, 2):
        (tmp_path / "offset").write_text(str(days * DAY))
        with Jumping(database) as collector:
            told = collector.request("GET", "/health")
            assert told["status"] == "clock"
            assert abs(told["clock_jump_seconds"] - days * DAY) < 5
            collector.kill()
        with Jumping(database) as collector:
            assert collector.request("GET", "/health")["status"] == "clock", "after a kill, too"
            time.sleep(1.5)  # the watcher looks
            assert collector.request("GET", f"/api/studies/{study}")["status"] == "open"
    with Jumping(database) as collector:
        assert collector.request("POST", "/api/clock")["jump_seconds"] > 2 * DAY - 5
        assert collector.wait_until(study)["status"] == "finished"
