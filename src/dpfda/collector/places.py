"""How much of an open study one address may hold: a share of its tickets, at any moment."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection

from dpfda.collector.limits import origin

_KEPT = 1 << 17
_SHARE = 5  # of a phase, for one address


class Places:
    """People of one address who have a token of an open study and have not answered.

    A place is taken with a token and kept as long as that token can hold a ticket: a token may be
    shown at the end of its time, and its ticket lasts that long again. A place whose time were the
    ticket's alone would be free while the ticket is held.

    Which token came from where is known to this process alone, and is forgotten with the place.

    Args:
        most: people of one address; 0 for any number.
        processes: how many share the work: each has a part of the places, and one at least.
        clock: seconds.

    Examples:
        >>> places = Places(most=20, clock=lambda: 0.0)
        >>> tokens = [b"a", b"b", b"c"]
        >>> [places.take("study", "192.0.2.1", one, people=10, seconds=60) for one in tokens]
        [True, True, False]
    """

    def __init__(
        self, *, most: int, processes: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._processes = processes
        self._clock = clock
        self._taken: OrderedDict[tuple[str, str], dict[bytes, float]] = OrderedDict()

    def take(self, study: str, host: str, token: bytes, *, people: int, seconds: float) -> bool:
        """Let somebody in, if there is a place.

        Args:
            study: the study.
            host: where they come from.
            token: the hash of the token that they get.
            people: tickets of the study's smallest phase.
            seconds: how long a token can keep tickets from others (`Lapse.longest`).
        """
        if not self._most:
            return True
        here, now = (study, origin(host)), self._clock()
        taken = {one: end for one, end in self._taken.pop(here, {}).items() if now <= end}
        granted = len(taken) < max(1, min(self._most, people // _SHARE) // self._processes)
        if granted:
            taken[token] = now + seconds
        self._taken[here] = taken
        if len(self._taken) > _KEPT:
            self._taken.popitem(last=False)  # the longest silent one
        return granted

    def held(self, study: str, host: str) -> list[bytes]:
        """Tokens that have places."""
        return list(self._taken.get((study, origin(host)), ()))

    def leave(self, study: str, host: str, tokens: Collection[bytes]) -> None:
        """These tokens hold no ticket any more, and never will."""
        taken = self._taken.get((study, origin(host)), {})
        for one in tokens:
            taken.pop(one, None)
