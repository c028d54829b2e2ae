"""Rate limits for tokens and addresses, by token buckets that refill with time.

How much of an open study one address, and the network around it, may hold at once, in an hour and
altogether.

The keys of organizers: nobody may try many.
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
            self._left.popitem(last=False)  # the longest silent one, whose bucket is full by now

    def would_allow(self, key: Hashable, *, least: float = 1.0) -> bool:
        """Whether the key's bucket holds so much; nothing is taken."""
        return self._filled(key)[0] >= least

    def charge(self, key: Hashable, amount: float) -> None:
        """Take what was used already, even if the bucket does not hold it."""
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
        return host[:64]  # what a proxy calls a client that has no address
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK), strict=False))


def network(host: str) -> str:
    """The network around an address: what one party can easily have all of.

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
"""So many times the people of one address may come from the network around it."""
_HOUR = 3600.0
_SHARE = 5  # of a phase, for one address at the same time


class _Network:
    """Whoever came to one study from one network."""

    def __init__(self) -> None:
        self.taken: dict[bytes, tuple[float, str]] = {}  # end of a place, and whose address it is
        self.people: Counter[str] = Counter()  # of each address: those, and who has answered

    def has_room(self, address: str, now: float, *, at_once: int, limit: int) -> bool:
        """Whether somebody else may come from an address of this network."""
        self.leave([token for token, (end, _) in self.taken.items() if now > end], counted=False)
        here = sum(one == address for _, one in self.taken.values())
        return (
            here < at_once
            and len(self.taken) < WIDER * at_once
            and self.people[address] < limit
            and self.people.total() < WIDER * limit
        )

    def leave(self, tokens: Collection[bytes], *, counted: bool) -> None:
        """These have answered, or did not and never will (not `counted`)."""
        for token in tokens:
            if token in self.taken:
                _, address = self.taken.pop(token)
                self.people[address] -= 0 if counted else 1


class Places:
    """How many people of one address may take part in an open study: at once, an hour, altogether.

    A place is taken with a token and kept as long as that token can hold a ticket: a token may be
    shown at the end of its time, and its ticket lasts that long again. A place whose time were the
    ticket's alone would be free while the ticket is held. Whoever has answered leaves the place and
    counts towards the limit of all people. The network around an address has places, too, so that
    whoever has many addresses of it gets only `WIDER` times those of one.

    Which token came from where is known to this process alone, and is forgotten with the place; how
    many came from an address is forgotten with the process.

    A reply needs a token, so people are counted when they get theirs: somebody who has computed a
    reply, and spent privacy, is never refused because others at their address were faster.

    Args:
        most: people of one address without a reply; 0 for any number, also altogether.
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
        """Let somebody in, if there is a place.

        Args:
            study: the study.
            host: where they come from.
            token: the hash of the token that they get.
            people: tickets of the study's smallest phase.
            seconds: how long a token can keep tickets from others (`Lapse.longest`).
            limit: people of one address in the whole study.
            hourly: people of one address in an hour, after the first `FEW`; 0 for any number.
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
            self._known.popitem(last=False)  # the longest silent one
        return granted

    def _keeps_pace(self, address: Hashable, around: Hashable, hourly: int) -> bool:
        """Whether neither an address nor the network around it brings people too fast."""
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
        """Tokens that have places in the network around an address."""
        known = self._known.get((study, network(host)))
        return [] if known is None else list(known.taken)

    def leave(
        self, study: str, host: str, tokens: Collection[bytes], *, counted: bool = True
    ) -> None:
        """Remove the tickets of these tokens for good.

        Args:
            study: the study.
            host: an address of the network that they came from.
            tokens: theirs.
            counted: whether they took part.
        """
        known = self._known.get((study, network(host)))
        if known is not None:
            known.leave(tokens, counted=counted)


WRONG_KEYS = 10  # from one address, at once
WRONG_A_SECOND = 20.0  # after that
_PAUSE = 1.0  # seconds until somebody is told that nothing was compared


class AdminAuth:
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
        settings: hold the administrator's key.
        limit: of wrong keys.
        sleep: how to let time pass.
        organizers: reads the others, each time anew: a key that was replaced is wrong at once.

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
        """Whose key this is; refuses to say so where too many were wrong just now."""
        place = origin(host)
        if not self._wrong.would_allow(place):
            await self._sleep(_PAUSE)
            told = "too many wrong keys come from this address; try again"
            raise Refused(429, "too_fast", told, retry_after=1)
        if self._settings.is_admin(key):  # also while the storage does not answer
            return FIRST
        found = None
        if self._organizers is not None:
            found = account_of(key, await self._organizers())
        if found is None:
            self._wrong.charge(place, 1.0)  # also for guesses that were sent together
        return found
