"""The watcher by itself: it looks when it is called, ends when told, and leaves failures alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from stored_studies import record

from dpfda.collector import watcher
from dpfda.collector.watcher import Watcher


class Studies:
    """Those that are due, those that cannot be concluded, and what was tried."""

    def __init__(self, *names: str, failing: tuple[str, ...] = ()) -> None:
        self.names, self.failing = list(names), failing
        self.looks, self.tried = 0, []

    async def due(self) -> list[Any]:
        self.looks += 1
        await asyncio.sleep(0)
        return [record(name) for name in self.names]

    async def conclude(self, study: Any) -> None:
        self.tried.append(study.id)
        if study.id in self.failing:
            raise TypeError


def test_it_looks_once_when_it_is_called_and_ends_when_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "_TICK", 1000.0)

    async def course() -> None:
        studies = Studies()
        watching = Watcher(studies.due, studies.conclude)
        watching.start()
        for expected in (1, 2, 3):
            for _ in range(50):
                await asyncio.sleep(0)
            assert studies.looks == expected
            watching.call()
        async with asyncio.timeout(10):
            await watching.stop()  # although it was called just before
        for _ in range(50):
            await asyncio.sleep(0)
        assert studies.looks == 3

    asyncio.run(course())


def test_what_fails_waits_while_others_go_on_and_is_forgotten_when_it_is_gone() -> None:
    async def course() -> None:
        studies = Studies("bad", "good", failing=("bad",))
        watching = Watcher(studies.due, studies.conclude)
        await watching.look()
        (known,) = watching.stuck.listed()
        assert (known.study, known.attempts, known.error) == ("bad", 1, "TypeError")
        assert known.again - known.since < 30, "it failed at once: it does not wait for long"
        await watching.look()
        assert studies.tried == ["bad", "good", "good"]
        studies.names = ["good"]  # another process has repaired it
        await watching.look()
        assert len(watching.stuck) == 0
        studies.names, studies.failing = ["bad"], ()
        await watching.look()
        assert studies.tried == ["bad", "good", "good", "good", "bad"]
        assert watching.at_work is None
        studies.failing = ("bad",)
        await watching.look()
        assert len(watching.stuck) == 1
        studies.failing = ()
        watching.stuck.hurry("bad")
        await watching.look()
        assert len(watching.stuck) == 0, "it went on"

    asyncio.run(course())
