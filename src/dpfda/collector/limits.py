"""Rate limits for tokens, addresses and keys.

* `RateLimit` is a token bucket per key, which refills with time.
* `Places` limits how many people of one address, and of its network, take part in an open study at
  once, per hour and in total.
* `AdminAuth` limits attempts with wrong keys.
"""

from __future__ import annotations

import asyncio
import ipaddress
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence

from dpfda.collector.organizers import FIRST, Account, account_of
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import FEW, Settings
from dpfda.collector.storage.base import Organizer

Sleep = Callable[[float], Awaitable[object]]
_KEPT = 1 << 17
_NETWORK = 64  # bits of an IPv6 address that identify a household; devices choose the other bits


class RateLimit:
    """At most `burst` requests at once, and `rate` a second after that, for each key.

    Examples:
        >>> clock = iter([0.0, 0.0, 0.0, 1.0])
        >>> limit = RateLimit(rate=1.0, burst=2, clock=lambda: next(clock))
        >>> [limit.allows("somebody") for _ in range(4)]
        [True, True, False, True]
    """

    def __init__(
        self, *, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def allows(self, key: Hashable) -> bool:
        """Take one request from the key's bucket, if it holds one."""
        left, now = self._filled(key)
        granted = left >= 1
        self._store(key, left - 1 if granted else left, now)
        return granted

    def _store(self, key: Hashable, left: float, now: float) -> None:
        self._left[key] = (left, now)
        self._left.move_to_end(key)
        if len(self._left) > _KEPT:
            # the least recently used one, whose bucket is full by now
            self._left.popitem(last=False)

    def would_allow(self, key: Hashable, *, least: float = 1.0) -> bool:
        """Whether the key's bucket holds at least this amount; nothing is taken."""
        return self._filled(key)[0] >= least

    def charge(self, key: Hashable, amount: float) -> None:
        """Take an amount that was already used, even if the bucket holds less."""
        left, now = self._filled(key)
        self._store(key, left - amount, now)

    def _filled(self, key: Hashable) -> tuple[float, float]:
        now = self._clock()
        left, since = self._left.get(key, (float(self._burst), now))
        return min(float(self._burst), left + (now - since) * self._rate), now


def origin(host: str) -> str:
    """The origin of a request for rate limits: an IPv4 address, or an IPv6 network.

    Examples:
        >>> origin("192.0.2.7"), origin("::ffff:192.0.2.7"), origin("2001:db8::1:2:3:4")
        ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]  # the name that a proxy gives to a client without address
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK), strict=False))


def network(host: str) -> str:
    """The network around an address, of which one party can easily own all addresses.

    Examples:
        >>> network("192.0.2.7"), network("2001:db8::1:2:3:4")
        ('192.0.2.0/24', '2001:db8::/48')
    """
    here = origin(host)
    try:
        address = ipaddress.ip_network(here)
    except ValueError:
        return here
    return str(address.supernet(new_prefix=_AROUND[address.version]))


_AROUND = {4: 24, 6: 48}  # bits of the network around an address
WIDER = 2
"""Factor between the limit of one address and the limit of its network."""
_HOUR = 3600.0
_SHARE = 5  # at most one fifth of a phase may be taken by one address at the same time


class _Network:
    """The people from one network in one study."""

    def __init__(self) -> None:
        self.taken: dict[bytes, tuple[float, str]] = {}  # end of the place, and its address
        # per address: those with a place and those who have answered
        self.people: Counter[str] = Counter()

    def has_room(self, address: str, now: float, *, at_once: int, limit: int) -> bool:
        """Whether another person from this address may take part."""
        self.leave([token for token, (end, _) in self.taken.items() if now > end], counted=False)
        here = sum(one == address for _, one in self.taken.values())
        return (
            here < at_once
            and len(self.taken) < WIDER * at_once
            and self.people[address] < limit
            and self.people.total() < WIDER * limit
        )

    def leave(self, tokens: Collection[bytes], *, counted: bool) -> None:
        """Free the places of these tokens; they count as participants if `counted`."""
        for token in tokens:
            if token in self.taken:
                _, address = self.taken.pop(token)
                self.people[address] -= 0 if counted else 1


class Places:
    """Limits the people of one address in an open study: at once, per hour and in total.

    Each new token takes a place, for as long as the token can hold a ticket. A token may be used
    for the first time at the end of its lifetime, and its ticket then lasts for another lifetime,
    so a place lasts for both. A person who has answered leaves the place and counts towards the
    total. The network of an address has limits, too: `WIDER` times those of one address.

    Only this process knows the address of a token, and forgets it with the place. The number of
    people per address is forgotten when the process ends.

    People are counted when they get a token, not when they reply. So a person who has computed a
    reply, and spent ε, is never refused because of others at the same address.

    Args:
        most: limit on people of one address without a reply; 0 switches all limits off.
        processes: number of processes; each has an equal share of the places, at least one.
        clock: returns seconds.

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
        self._known: OrderedDict[tuple[str, str], _Network] = OrderedDict()
        self._paces: dict[int, tuple[RateLimit, RateLimit]] = {}

    def take(
        self,
        study: str,
        host: str,
        token: bytes,
        *,
        people: int,
        seconds: float,
        limit: int = sys.maxsize,
        hourly: int = 0,
    ) -> bool:
        """Take a place for a new token, if there is one.

        Args:
            study: the study.
            host: the address of the person.
            token: the hash of the new token.
            people: number of tickets in the study's smallest phase.
            seconds: how long a token can hold tickets (`Lapse.longest`).
            limit: largest number of people of one address in the whole study.
            hourly: largest number of people of one address per hour, after the first `FEW`; 0 for
                any number.
        """
        if not self._most:
            return True
        now, address, here = self._clock(), origin(host), (study, network(host))
        known = self._known.setdefault(here, _Network())
        self._known.move_to_end(here)
        granted = known.has_room(
            address,
            now,
            at_once=max(1, min(self._most, people // _SHARE) // self._processes),
            limit=max(1, limit // self._processes),
        ) and self._keeps_pace((study, address), here, hourly)
        if granted:
            known.taken[token] = now + seconds, address
            known.people[address] += 1
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)  # the least recently used one
        return granted

    def _keeps_pace(self, address: Hashable, around: Hashable, hourly: int) -> bool:
        """Whether an address and its network are within their hourly limits."""
        if not hourly:
            return True
        if hourly not in self._paces:
            rate, burst = hourly / _HOUR / self._processes, max(1, FEW // self._processes)
            one, wide = (
                RateLimit(rate=times * rate, burst=times * burst, clock=self._clock)
                for times in (1, WIDER)
            )
            self._paces[hourly] = one, wide
        one, wide = self._paces[hourly]
        return one.would_allow(address) and wide.allows(around) and one.allows(address)

    def held(self, study: str, host: str) -> list[bytes]:
        """The tokens with places in the network of an address."""
        known = self._known.get((study, network(host)))
        return [] if known is None else list(known.taken)

    def leave(
        self, study: str, host: str, tokens: Collection[bytes], *, counted: bool = True
    ) -> None:
        """Free the places of these tokens.

        Args:
            study: the study.
            host: an address in their network.
            tokens: hashes of the tokens.
            counted: whether these people count as participants.
        """
        known = self._known.get((study, network(host)))
        if known is not None:
            known.leave(tokens, counted=counted)


WRONG_KEYS = 10  # from one address, before slowing down
WRONG_A_SECOND = 20.0  # after that
_PAUSE = 1.0  # seconds before the answer that a key was not compared


class AdminAuth:
    """Compares keys, with a limit on wrong keys per second from one address.

    Without a limit, keys could be guessed. With a lockout after wrong keys, anybody at the
    organizer's address could lock out the organizer. So wrong keys are slowed down, and nobody is
    excluded for longer than a pause:

    * Only wrong keys count. The right key may be used at any rate.
    * Each address has a separate count. There is no common count, which others could use up.
    * If the count is used up, a key is not compared, and the refusal is sent after a pause. So an
      attacker with `n` connections from the organizer's address can send about `n` keys per second,
      of which 10 to 20 are compared. The organizer, who tries at the same rate, is admitted after
      at most `n` / 10 seconds on average.
    * 20 keys per second are 2^30 in a year, far too few to find a random key of 128 bits, which is
      the shortest one allowed. The keys that the collector generates have 256 bits.

    Args:
        settings: contain the administrator's key.
        limit: rate limit of wrong keys.
        sleep: waits for some seconds.
        organizers: reads the other organizers at each call, so that a replaced key is refused at
            once.

    Examples:
        >>> admin = AdminAuth(Settings(database="memory:", admin_key="0123456789abcdef012345"))
        >>> asyncio.run(admin.account("0123456789abcdef012345", "192.0.2.1")).name
        'administrator'
        >>> asyncio.run(admin.account("guess", "192.0.2.1")) is None
        True
    """

    def __init__(
        self,
        settings: Settings,
        limit: RateLimit | None = None,
        sleep: Sleep = asyncio.sleep,
        *,
        organizers: Callable[[], Awaitable[Sequence[Organizer]]] | None = None,
    ) -> None:
        self._organizers = organizers
        self._settings = settings
        self._wrong = limit or RateLimit(rate=WRONG_A_SECOND, burst=WRONG_KEYS)
        self._sleep = sleep

    async def account(self, key: str, host: str) -> Account | None:
        """The organizer with this key; raises an error after too many wrong keys."""
        place = origin(host)
        if not self._wrong.would_allow(place):
            await self._sleep(_PAUSE)
            told = "too many wrong keys come from this address; try again"
            raise Refused(429, "too_fast", told, retry_after=1)
        # first, so that it works while the storage does not answer
        if self._settings.is_admin(key):
            return FIRST
        found = None
        if self._organizers is not None:
            found = account_of(key, await self._organizers())
        if found is None:
            # charged after the comparison, so that simultaneous guesses count as well
            self._wrong.charge(place, 1.0)
        return found
