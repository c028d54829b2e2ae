"""The administrator's key: who has it may do everything, and nobody may try many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dpfda.collector.limits import RateLimit, origin
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import Settings

WRONG_KEYS = 10  # from one address, at once
WRONG_A_SECOND = 20.0  # after that
_PAUSE = 1.0  # seconds until somebody is told that nothing was compared


class Keyhole:
    """Compares keys; of an address only so many wrong ones a second.

    To compare whatever comes is to let everybody guess, and to compare nothing for a while after
    wrong keys is to let whoever shares the organizer's address lock them out. So wrong keys are
    slowed down, and nobody is shut out for longer than a pause:

    * Only wrong keys count. Who has the right one may use it as often as they like.
    * Each address has its own count, and there is none of all addresses together, which others
      could use up.
    * Where the count is used up, a key is not compared, and its sender is told so only after a
      pause. So somebody who holds `n` connections from the organizer's address sends about `n` keys
      a second, of which 10 to 20 are compared: the organizer, who tries as often, is let in after
      `n` / 10 seconds on average at the latest, and soon where `n` is small.
    * 20 a second are 2^30 in a year, which finds no key of 128 bits: that is what the shortest key
      allowed holds, if it is drawn by lot, and what the collector makes up is twice as long.

    Args:
        settings: whose key it is.
        limit: of wrong keys.
        sleep: how to let time pass.

    Examples:
        >>> keyhole = Keyhole(Settings(database="memory:", admin_key="0123456789abcdef012345"))
        >>> asyncio.run(keyhole.fits("0123456789abcdef012345", "192.0.2.1"))
        True
        >>> asyncio.run(keyhole.fits("guess", "192.0.2.1"))
        False
    """

    def __init__(
        self,
        settings: Settings,
        limit: RateLimit | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._wrong = limit or RateLimit(rate=WRONG_A_SECOND, burst=WRONG_KEYS)
        self._sleep = sleep

    async def fits(self, key: str, host: str) -> bool:
        """Whether this is the key; refuses to say so where too many were wrong just now."""
        place = origin(host)
        if not self._wrong.would_allow(place):
            await self._sleep(_PAUSE)
            told = "too many wrong keys come from this address; try again"
            raise Refused(429, "too_fast", told, retry_after=1)
        if self._settings.is_admin(key):
            return True
        self._wrong.allows(place)
        return False
