"""How often one token may ask: a bucket of requests that fills again with time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

_KEPT = 1 << 17


class RateLimit:
    """At most `burst` requests at once, and `rate` a second after that, for each key.

    Example:
        >>> clock = iter([0.0, 0.0, 0.0, 1.0])
        >>> limit = RateLimit(rate=1.0, burst=2, clock=lambda: next(clock))
        >>> [limit.allows("somebody") for _ in range(4)]
        [True, True, False, True]
    """

    def __init__(
        self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def allows(self, key: Hashable) -> bool:
        """Take one request from the key's bucket, if it holds one."""
        now = self._clock()
        left, since = self._left.pop(key, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._rate)
        granted = left >= 1
        self._left[key] = (left - 1 if granted else left, now)
        if len(self._left) > _KEPT:
            self._left.popitem(last=False)  # the longest silent one, whose bucket is full by now
        return granted
