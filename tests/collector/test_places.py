"""However somebody times what they ask for, one address holds its share of a study and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from one_process import Recording, with_collector

from dpfda.collector import service
from dpfda.collector.limits import WIDER, Places
from dpfda.collector.refusal import Refused
from dpfda.collector.service import Collector
from dpfda.collector.settings import FEW, StudySettings
from dpfda.collector.storage.base import Unavailable
from dpfda.protocol.wire import token_hash

PEOPLE, SECONDS, SHARE = 40, 100.0, 8
THIEF = "192.0.2.1"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The collector's time, for places and for tickets."""
    return Clock()


class Study:
    """An open study, and those who ask for its tickets."""

    def __init__(self, collector: Collector, name: str, clock: Clock) -> None:
        self.collector, self.name, self.clock = collector, name, clock
        self.held: dict[bytes, float] = {}  # until others may have the ticket

    async def enrol(self, host: str = THIEF) -> bytes | None:
        try:
            return token_hash(await self.collector.enrol(self.name, host))
        except Refused as refused:
            if (refused.status, refused.code) != (429, "too_many_here"):
                raise
            return None

    async def ask(self, token: bytes) -> bool:
        try:
            await self.collector.task(self.name, token)
        except Refused:
            return False
        self.held.setdefault(token, self.clock.now + SECONDS * 1.25)
        return True

    def kept_from_others(self) -> int:
        return sum(self.clock.now <= end for end in self.held.values())


def with_study(
    make_plan: Any, clock: Clock, course: Callable[[Study], Awaitable[None]], people: int = PEOPLE
) -> None:
    async def run(collector: Collector, _: Recording) -> None:
        collector.clock = service.Clock(wall=clock, steady=clock)
        settings = StudySettings(open=True, lapse=SECONDS)
        record = await collector.create(make_plan(people).to_dict(), settings)
        await course(Study(collector, record.id, clock))

    with_collector(run, places=Places(most=20, clock=clock))


@pytest.mark.parametrize("wait", [0.0, 50.0, 90.0, 100.0])
def test_no_timing_gives_one_address_more_than_its_share(
    make_plan: Any, clock: Clock, wait: float
) -> None:
    """With tokens shown at the end of their time it held 65 of 100: a place was free before."""

    async def course(study: Study) -> None:
        waiting: list[tuple[float, bytes]] = []
        most = 0
        for turn in range(60):
            clock.now = 10.0 * turn
            while token := await study.enrol():
                waiting.append((clock.now + wait, token))
            for when, token in waiting:
                if clock.now >= when:
                    await study.ask(token)
            waiting = [one for one in waiting if clock.now < one[0]]
            most = max(most, study.kept_from_others())
        assert most == SHARE
        crowd = [await study.enrol(f"198.51.{n}.100") for n in range(PEOPLE)]
        served = [await study.ask(token) for token in crowd if token]
        assert sum(served) >= PEOPLE - SHARE, "the others' tickets, lapsed ones too"

    with_study(make_plan, clock, course)


def test_a_hundred_people_as_it_was_done(make_plan: Any, clock: Clock) -> None:
    """Twenty at once, one whenever a place is free, all of them shown at the last moment."""

    async def course(study: Study) -> None:
        tokens: list[bytes] = []
        for now in (0.0, *(99.9 + 5 * turn for turn in range(26))):
            clock.now = now
            while token := await study.enrol():
                tokens.append(token)
            if now:
                for token in tokens:
                    await study.ask(token)
        assert clock.now == 224.9
        assert study.kept_from_others() == len(tokens) == 20
        clock.now = 226.0
        assert await study.enrol(), "and after its time a place is free"

    with_study(make_plan, clock, course, people=100)


def test_many_at_once_get_no_more(make_plan: Any, clock: Clock) -> None:
    """None of them is stored when the next one asks."""

    async def course(study: Study) -> None:
        found = await asyncio.gather(*(study.enrol() for _ in range(50)))
        assert sum(one is not None for one in found) == SHARE

    with_study(make_plan, clock, course)


def test_who_is_not_stored_has_no_place(make_plan: Any, clock: Clock) -> None:
    async def course(study: Study) -> None:
        add = study.collector.enrolments.add

        async def fail(_: Any) -> Any:
            raise Unavailable("the disk is full")

        study.collector.enrolments.add = fail  # type: ignore[method-assign]
        for _ in range(SHARE + 1):
            with pytest.raises(Unavailable):
                await study.enrol()
        study.collector.enrolments.add = add  # type: ignore[method-assign]
        found = [await study.enrol() for _ in range(SHARE + 1)]
        assert [one is not None for one in found] == [True] * SHARE + [False]

    with_study(make_plan, clock, course)


class TestPlaces:
    @pytest.fixture
    def names(self) -> Iterator[bytes]:
        return (b"%d" % n for n in range(10**6))

    def test_an_address_has_so_many(self, names: Iterator[bytes]) -> None:
        now = [0.0]
        places = Places(most=3, clock=lambda: now[0])

        def take(study: str, host: str) -> bool:
            return places.take(study, host, next(names), people=100, seconds=60.0)

        here = "192.0.2.1"
        assert [take("a", here) for _ in range(4)] == [True] * 3 + [False]
        assert take("a", "192.0.2.2")
        assert take("b", here), "each study has its own"
        assert [take("a", f"2001:db8::{n}") for n in range(4)] == [True] * 3 + [False]
        assert places.held("a", here) == [b"0", b"1", b"2", b"4"], "with its neighbors"
        places.leave("a", here, [b"1", b"6", b"unknown"])
        places.leave("a", "198.51.100.99", [b"0"])
        assert places.held("a", here) == [b"0", b"2", b"4"]
        assert places.held("a", "2001:db8::7") == [b"6", b"7", b"8"], "its own"
        now[0] = 30.0
        assert [take("a", here) for _ in range(2)] == [True, False]
        now[0] = 60.0
        assert not take("a", here), "until its time is over"
        now[0] = 60.1
        assert [take("a", here) for _ in range(3)] == [True, True, False]

    @pytest.mark.parametrize(
        ("most", "people", "processes", "places"),
        [(20, 1000, 1, 20), (20, 99, 1, 19), (20, 4, 1, 1), (20, 1000, 4, 5), (20, 9, 4, 1)],
    )
    def test_a_fifth_of_a_phase(
        self, most: int, people: int, processes: int, places: int, names: Iterator[bytes]
    ) -> None:
        limit = Places(most=most, processes=processes, clock=lambda: 0.0)
        taken = [limit.take("a", "h", next(names), people=people, seconds=9.0) for _ in range(30)]
        assert taken == [True] * places + [False] * (30 - places)

    @pytest.mark.parametrize(
        ("addresses", "expected"),
        [
            ([f"192.0.2.{n}" for n in range(200)], 12),
            ([f"192.0.{n}.1" for n in range(9)], 9 * 6),
            ([f"2001:db8:0:{n:x}::1" for n in range(200)], 12),
            ([f"2001:db8:{n:x}::1" for n in range(9)], 9 * 6),
        ],
        ids=["a /24", "nine networks", "a /48", "nine sites"],
    )
    def test_a_network_is_little_more_than_an_address(
        self, addresses: list[str], expected: int, names: Iterator[bytes]
    ) -> None:
        """Also of those who answer at once, and for ever."""
        now = [0.0]
        places = Places(most=20, clock=lambda: now[0])
        came = 0
        for _ in range(10):
            for host in addresses:
                token = next(names)
                how = {"people": 100, "seconds": 60.0, "limit": 6}
                if places.take("a", host, token, **how):  # type: ignore[arg-type]
                    places.leave("a", host, [token])
                    came += 1
            now[0] += 1000.0
        assert came == expected

    def test_who_does_not_answer_makes_room(self, names: Iterator[bytes]) -> None:
        now = [0.0]
        places = Places(most=20, clock=lambda: now[0])

        def take() -> bool:
            return places.take("a", "h", next(names), people=100, seconds=60.0, limit=3)

        assert [take() for _ in range(4)] == [True, True, True, False]
        places.leave("a", "h", [b"0"])
        places.leave("a", "h", [b"1"], counted=False)
        assert [take() for _ in range(2)] == [True, False]
        now[0] = 100.0
        assert [take() for _ in range(3)] == [True, True, False], "one has answered"

    def test_zero_is_any_number(self, names: Iterator[bytes]) -> None:
        places = Places(most=0)
        assert all(places.take("a", "h", next(names), people=1, seconds=9.0) for _ in range(99))
        assert places.held("a", "h") == []

    def test_the_longest_silent_are_forgotten(
        self, names: Iterator[bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dpfda.collector.limits._KEPT", 2)
        places = Places(most=1, clock=lambda: 0.0)
        for host in "abac":
            places.take("s", f"host {host}", next(names), people=9, seconds=9.0)
        assert [len(places.held("s", f"host {host}")) for host in "abc"] == [1, 0, 1]


class TestPace:
    """One address was 300 of 300 people in 5.4 seconds: each answered, and made room."""

    def join(self, places: Places, host: str, number: int, hourly: int = 60) -> bool:
        token = f"{host}/{number}".encode()
        joined = places.take("s", host, token, people=10**6, seconds=60, hourly=hourly)
        places.leave("s", host, [token])
        return joined

    def test_of_an_address(self, clock: Clock) -> None:
        places = Places(most=20, clock=clock)
        assert sum(self.join(places, THIEF, number) for number in range(300)) == FEW
        clock.now = 3600.0
        assert sum(self.join(places, THIEF, number) for number in range(300, 600)) == FEW
        for minute in range(1, 61):  # in turn they are let in, as many as in an hour
            clock.now = 3600.0 + 60 * minute
            assert self.join(places, THIEF, 600 + minute)

    def test_of_the_network_around_it(self, clock: Clock) -> None:
        places = Places(most=20, clock=clock)
        hosts = [f"192.0.2.{number}" for number in range(200)]
        assert sum(self.join(places, host, 0) for host in hosts) == WIDER * FEW
        assert self.join(places, "198.51.100.1", 0)
        clock.now = 60.0
        assert sum(self.join(places, host, 1) for host in hosts) == WIDER

    def test_of_several_processes(self, clock: Clock) -> None:
        both = [Places(most=20, processes=2, clock=clock) for _ in range(2)]
        assert sum(self.join(one, THIEF, number) for one in both for number in range(90)) == FEW
        clock.now = 120.0
        assert sum(self.join(one, THIEF, 90 + n) for one in both for n in range(90)) == 2

    def test_a_lecture_hall_has_none(self, clock: Clock) -> None:
        places = Places(most=20, clock=clock)
        assert all(self.join(places, THIEF, number, hourly=0) for number in range(300))

    def test_the_setting_of_a_study(self, make_plan: Any, clock: Clock) -> None:
        """Whoever has answered makes room at once, and is counted all the same."""

        async def joined(collector: Collector, hourly: int) -> int:
            settings = StudySettings(open=True, address_share=1.0, address_hourly=hourly)
            plan = make_plan(300, seed=hourly).to_dict()
            record = await collector.create(plan, settings)
            study = Study(collector, record.id, clock)
            found = 0
            for _ in range(50):
                if token := await study.enrol():
                    collector._places.leave(record.id, THIEF, [token])
                    found += 1
            return found

        async def run(collector: Collector, _: Recording) -> None:
            assert await joined(collector, 5) == FEW
            assert await joined(collector, 0) == 50

        with_collector(run, places=Places(most=20, clock=clock))

    def test_it_is_stated(self) -> None:
        assert "at most 60 an hour" in StudySettings(open=True).warnings(300)[0]
        assert "hour" not in StudySettings(open=True, address_hourly=0).warnings(300)[0]
