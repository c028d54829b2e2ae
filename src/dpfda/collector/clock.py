"""The clock for deadlines and tickets, which does not follow jumps of the system clock.

Deadlines are stored as seconds since 1970, because they outlive a process. A jump of the system
clock by a day would irreversibly end phases. Therefore time is measured by a clock that counts the
seconds since the machine was started. Small corrections of the system clock are followed. A
difference of more than a minute is a jump. It is reported, and followed only after an operator has
confirmed that the system clock is right.

Each process stores the state of its clock (`ClockMark`). If the machine is not restarted, a later
process computes the correct time from this state and detects a jump that happened while no process
ran. After a restart of the machine this is impossible, but an earlier unconfirmed jump is still
reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dpfda.collector.storage.base import ClockMark

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

LARGEST_STEP = 60.0  # seconds; time servers correct a running machine by much less


def _boot() -> str:
    """The id of this start of the machine; empty if the system provides none."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""


def _elapsed() -> float:
    """Seconds since the machine was started, including those in sleep mode."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """Seconds since 1970, without jumps.

    Args:
        wall: the system's clock.
        steady: a clock that never jumps; it counts from the start of the machine.
        boot: the id of that start; empty if there is none.

    Examples:
        >>> wall, steady = [1000.0], [5.0]
        >>> clock = Clock(wall=lambda: wall[0], steady=lambda: steady[0])
        >>> wall[0], steady[0] = 1000.0 + 86400, 6.0
        >>> clock.look(confirmed=None)
        >>> clock.now(), clock.jump()
        (1001.0, 86399.0)
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _elapsed,
        boot: str | None = None,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._boot = _boot() if boot is None else boot
        self._ahead = wall() - steady()
        self._jumped_to: float | None = None  # the system clock right after its jump
        self._known: float | None = None  # the last confirmation before that

    def now(self) -> float:
        """The time for deadlines and tickets."""
        return self._steady() + self._ahead

    def jump(self) -> float:
        """Seconds by which the system's clock is ahead since it jumped; 0 if it did not."""
        return 0.0 if self._jumped_to is None else self._wall() - self.now()

    @property
    def has_jumped(self) -> bool:
        """Whether an operator must confirm the system clock."""
        return self._jumped_to is not None

    def is_off(self) -> bool:
        """Whether the system clock differs by more than `LARGEST_STEP`."""
        return abs(self._wall() - self.now()) >= LARGEST_STEP

    def wall(self) -> float:
        """The time of the system clock."""
        return self._wall()

    def mark(self) -> ClockMark:
        """The state of the clock, stored for the next process."""
        now = self.now()
        jump = self._wall() - now if self.is_off() else 0.0
        return ClockMark(boot=self._boot, at=now, elapsed=self._steady(), jump=jump)

    def begin_after(self, marks: Sequence[ClockMark], *, confirmed: float | None = None) -> None:
        """Continue the time of an earlier process, if the system clock has jumped since.

        On a machine that was not restarted, any difference of more than a minute is a jump. After a
        restart, a clock that is behind the last stored time has jumped, and so has a clock with an
        earlier unconfirmed jump.

        Args:
            marks: states that earlier processes stored, one per start of a machine.
            confirmed: the system time of the last confirmation by an operator.
        """
        if not marks:
            return
        wall, steady = self._wall(), self._steady()
        own = [mark for mark in marks if mark.boot and mark.boot == self._boot]
        if own:
            last = own[0].at + max(0.0, steady - own[0].elapsed)
            has_jumped = abs(wall - last) >= LARGEST_STEP
        else:
            newest = max(marks, key=lambda mark: mark.at)
            last = newest.at
            jumped_to = last + newest.jump
            unconfirmed = confirmed is None or confirmed < jumped_to - LARGEST_STEP
            has_jumped = wall < last - LARGEST_STEP or (newest.jump != 0.0 and unconfirmed)
        if has_jumped:
            self._ahead = last - steady
            self._jumped_to, self._known = wall, confirmed

    def look(self, *, confirmed: float | None) -> None:
        """Compare with the system clock, and follow it unless it has jumped.

        Args:
            confirmed: the system time of the last confirmation by an operator.
        """
        wall = self._wall()
        if not self.is_off():
            self._follow(wall)
        elif self._jumped_to is None:
            self._jumped_to, self._known = wall, confirmed
        elif (
            confirmed is not None
            and confirmed != self._known
            and self._jumped_to - LARGEST_STEP <= confirmed <= wall + LARGEST_STEP
        ):
            self._follow(wall)

    def _follow(self, wall: float) -> None:
        self._ahead = wall - self._steady()
        self._jumped_to = self._known = None
