"""Who waits for a ticket: while somebody does, tickets whose time is over are not kept longer."""

from __future__ import annotations

from dpfda.collector.storage.base import Lapse


class Waiting:
    """When somebody was last sent away from each study for want of a ticket.

    Whoever asked again before others could have their ticket kept it for ever.

    Examples:
        >>> waiting = Waiting()
        >>> waiting.sent_away("study", now=5.0)
        >>> [waiting.is_somebody("study", now, Lapse(seconds=60.0)) for now in (65.0, 65.1)]
        [True, False]
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def sent_away(self, study: str, now: float) -> None:
        """Somebody came, and there was no ticket."""
        self._last[study] = now

    def is_somebody(self, study: str, now: float, lapse: Lapse) -> bool:
        """Whether somebody came no longer ago than a ticket lasts; who comes no more has left."""
        last = self._last.get(study)
        return last is not None and lapse.seconds is not None and now - last <= lapse.seconds
