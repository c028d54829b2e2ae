"""Studies that cannot go on: since when, how often they were tried, and when they are again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

_FIRST_PAUSE = 1.0  # seconds; doubled with every failure
_LONGEST_PAUSE = 60.0  # what was repaired goes on within this time


class StuckStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study whose phase could not be concluded.

    Attributes:
        study: its id.
        phase: number of the phase.
        since: when it failed first, in seconds since 1970.
        attempts: how often it failed.
        error: kind of the last failure; never its message, which may quote a reply.
        again: when it is tried again.
    """

    study: str
    phase: int
    since: float
    attempts: int
    error: str
    again: float


class StuckStudies:
    """What this process knows of studies that fail: each is tried again, ever more rarely.

    Examples:
        >>> clock = iter([0.0, 0.5, 1.0])
        >>> stuck = StuckStudies(clock=lambda: next(clock))
        >>> stuck.failed("a", 0, "TypeError").again
        1.0
        >>> stuck.must_wait("a"), stuck.must_wait("a")
        (True, False)
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._known: dict[str, StuckStudy] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._known)

    def must_wait(self, study: str) -> bool:
        """Whether it failed so recently that it is left alone for now."""
        known = self._known.get(study)
        return known is not None and self._clock() < known.again

    def failed(self, study: str, phase: int, error: str, *, took: float = 0.0) -> StuckStudy:
        """Remember a failure; what took long waits at least as long, so that others go on."""
        now, before = self._clock(), self._known.get(study)
        attempts = 1 if before is None else before.attempts + 1
        # Whoever has failed a hundred times needs no power of two of that.
        pause = max(took, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(attempts - 1, 30)))
        self._known[study] = StuckStudy(
            study=study,
            phase=phase,
            since=now if before is None else before.since,
            attempts=attempts,
            error=error,
            again=now + pause,
        )
        return self._known[study]

    def freed(self, study: str) -> None:
        """It went on."""
        self._known.pop(study, None)

    def hurry(self, study: str) -> None:
        """Somebody has asked for it: try again at once."""
        known = self._known.get(study)
        if known is not None:
            self._known[study] = msgspec.structs.replace(known, again=known.since)

    def keep(self, present: Mapping[str, int]) -> None:
        """Forget studies that another process has advanced, finished or deleted.

        Args:
            present: the phase of every study that runs.
        """
        gone = [study for study, one in self._known.items() if present.get(study) != one.phase]
        for study in gone:
            self.freed(study)

    def listed(self, most: int = 100) -> list[StuckStudy]:
        """Those that are stuck for longest."""
        return sorted(self._known.values(), key=lambda one: one.since)[:most]
