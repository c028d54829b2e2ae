"""The time that deadlines and tickets go by, which does not follow a jump of the system's clock.

Deadlines are stored as seconds since 1970, because they outlive a process. A system clock that
jumps by a day would close phases for good. So time goes on by the monotonic clock from the moment a
process began. Small corrections of the system clock are followed. A difference of more than a
minute is a jump: it is reported, and followed only after an operator has confirmed that the system
clock is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LARGEST_STEP = 60.0  # seconds; time servers correct a running machine by much less


class Clock:
    """Seconds since 1970, without jumps.

    Args:
        wall: the system's clock.
        steady: a clock that never jumps.

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
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._ahead = wall() - steady()
        self._jumped_to: float | None = None  # what the system's clock showed at first
        self._known: float | None = None  # the last confirmation before that

    def now(self) -> float:
        """The time to go by."""
        return self._steady() + self._ahead

    def jump(self) -> float:
        """Seconds by which the system's clock is ahead since it jumped; 0 if it did not."""
        return 0.0 if self._jumped_to is None else self._wall() - self.now()

    @property
    def has_jumped(self) -> bool:
        """Whether an operator must say which time is right."""
        return self._jumped_to is not None

    def is_off(self) -> bool:
        """Whether the system's clock shows another time."""
        return abs(self._wall() - self.now()) >= LARGEST_STEP

    def begin_after(self, last: float | None, *, confirmed: float | None = None) -> None:
        """Do not begin before the last stored time: a clock that is behind it has jumped."""
        if last is not None and self._wall() < last - LARGEST_STEP:
            self._ahead = last - self._steady()
            self._jumped_to, self._known = self._wall(), confirmed

    def look(self, *, confirmed: float | None) -> None:
        """Compare with the system's clock.

        Args:
            confirmed: what the system's clock showed when an operator last said that it is right.
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
