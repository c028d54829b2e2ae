"""The administrator's key: who has it may do everything, and nobody may try many."""

from __future__ import annotations

from dpfda.collector.limits import RateLimit, origin
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import Settings

WRONG_KEYS = 10  # from one address, at once
_PAUSE = 10.0  # seconds for each after that


class Keyhole:
    """Compares keys; an address that tried too many wrong ones is not compared for a while.

    Example:
        >>> keyhole = Keyhole(Settings(database="memory:", admin_key="0123456789abcdef"))
        >>> keyhole.fits("0123456789abcdef", "192.0.2.1"), keyhole.fits("guess", "192.0.2.1")
        (True, False)
    """

    def __init__(self, settings: Settings, limit: RateLimit | None = None) -> None:
        self._settings = settings
        self._wrong = limit or RateLimit(rate=1 / _PAUSE, burst=WRONG_KEYS)

    def fits(self, key: str, host: str) -> bool:
        """Whether this is the key; refuses to say so where too many were wrong."""
        place = origin(host)
        if not self._wrong.would_allow(place):
            told = "too many wrong keys from this address; wait a while"
            raise Refused(429, "too_fast", told, retry_after=int(_PAUSE))
        if self._settings.is_admin(key):
            return True
        self._wrong.allows(place)
        return False
