"""How often somebody may try: buckets that fill again with time, for tokens and for addresses."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

_KEPT = 1 << 17
_NETWORK = 64  # bits of an IPv6 address that name a household; the rest its devices choose


class RateLimit:
    """At most `burst` requests at once, and `rate` a second after that, for each key.

    Examples:
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
        left, now = self._filled(key)
        granted = left >= 1
        self._left[key] = (left - 1 if granted else left, now)
        self._left.move_to_end(key)
        if len(self._left) > _KEPT:
            self._left.popitem(last=False)  # the longest silent one, whose bucket is full by now
        return granted

    def would_allow(self, key: Hashable) -> bool:
        """Whether the key's bucket holds a request; nothing is taken."""
        return self._filled(key)[0] >= 1

    def _filled(self, key: Hashable) -> tuple[float, float]:
        now = self._clock()
        left, since = self._left.get(key, (float(self._burst), now))
        return min(float(self._burst), left + (now - since) * self._rate), now


def origin(host: str) -> str:
    """Where a request comes from, as limits see it: an IPv4 address, or an IPv6 network.

    Examples:
        >>> origin("192.0.2.7"), origin("::ffff:192.0.2.7"), origin("2001:db8::1:2:3:4")
        ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]  # what a proxy calls a client that has no address
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK), strict=False))
