"""Settings of a collector (`Settings`) and of one study (`StudySettings`)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
from pathlib import Path
from typing import Annotated

import msgspec

from dpfda.errors import InvalidParameter

log = logging.getLogger("dpfda.collector")
_OTHERS = stat.S_IRWXO | stat.S_IWGRP
SHORTEST_KEY = 22  # characters: 128 random bits, as from `secrets.token_urlsafe(16)`

FEW = 20
"""So many people of one address may always join an open study, for example a family."""

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Unit = Annotated[str, msgspec.Meta(max_length=40)]


class StudySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one study that are not part of its public plan.

    Attributes:
        deadline: seconds from the first ticket of a phase after which it ends without the missing
            replies. None waits for all replies.
        open: whether anybody may take part. Otherwise only invited people may, with a token for one
            task and one reply.
        address_share: largest share of the people of an open study from one address; twice as many
            for its network (/24, or /48 for IPv6). Use 1 if all people share an address, as in a
            clinic. `FEW` people of an address are always admitted.
        address_hourly: largest number of people per hour from one address in an open study, after
            the first `FEW`; twice as many for its network. 0 for any number.
        lapse: seconds after which a task without a reply may be given to another person.
        online: whether to begin the next round of a stream when one is finished.
        median_group: use the median of means over groups of this many people instead of the mean of
            reports. Dishonest people in less than half of the groups then have little influence. 0
            uses the mean.
        domain_unit: unit of t, for display.
        target_unit: unit of the predicted number, for display.
        value_unit: unit of x(t), for display.
    """

    deadline: Positive | None = None
    open: bool = False
    address_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    address_hourly: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 60
    lapse: Positive = 3600.0
    online: bool = False
    median_group: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0
    domain_unit: Unit = ""
    target_unit: Unit = ""
    value_unit: Unit = ""

    def address_limit(self, people: int) -> int:
        """Largest number of people of one address in an open study of this size."""
        return max(FEW, int(self.address_share * people))

    def one_party(self, people: int) -> str:
        """A sentence on the largest share of an open study from one address or network.

        Examples:
            >>> StudySettings(open=True).one_party(1000)
            'One internet address can send 100 of the 1000 replies (10 %), its network 200 (20 %).'
        """
        limits = [min(people, wide * self.address_limit(people)) for wide in (1, 2)]
        (one, share), (all_of_it, larger) = ((each, f"{each / people:.0%}") for each in limits)
        share, larger = (text.replace("%", " %") for text in (share, larger))
        rest = f"its network {all_of_it} ({larger})"
        return f"One internet address can send {one} of the {people} replies ({share}), {rest}."

    def warnings(self, people: int) -> list[str]:
        """Warnings for the organizer of a study with this many people."""
        if not self.open:
            return []
        pace = (
            f" After {FEW} people, at most {self.address_hourly} an hour can join from one address."
        )
        pace = pace if self.address_hourly else ""
        found = [
            f"Anybody may take part. {self.one_party(people)}{pace} A party with many addresses "
            "can exceed this. Invite people if you expect dishonest answers."
        ]
        if self.deadline is None:
            found.append(
                "Anybody may take part and no deadline ends a phase, so people who take tasks and "
                "never answer delay the study. Give a deadline, or invite people."
            )
        return found


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a collector: its storage and its limits.

    Attributes:
        database: URL of the database.
        admin_key: the key that permits everything; never logged and never stored.
        admin_key_file: file with such keys, one per line, instead of `admin_key`; read again when
            it changes.
        purge_after: days after its end after which the replies of a study are purged; None for
            never.
        group: largest group commit; 1 commits every reply separately.
        rate: requests per second with one token, after a first `burst`.
        burst: see `rate`.
        enrolments: people of one address who may have a place in an open study without a reply; 0
            for any number.
        processes: number of worker processes.
        patience: seconds that a client may take to send a request.
        secure_cookies: whether cookies are sent over TLS only.
        proxies: addresses and networks of proxies that are trusted to state the client's address.
        origins: origins of participant pages on other hosts.
        public_url: address of this collector for participants, used in links; None for the address
            of the dashboard.
        page_url: host of a separate participant page, used in links; None for the collector's own
            page.
        admin_port: port of the separate listener for dashboard, metrics and requests that need a
            key; None if there is only one listener.
    """

    database: str
    admin_key: str
    admin_key_file: str | None = None
    purge_after: float | None = None
    group: int = 256
    rate: float = 5.0
    burst: int = 20
    enrolments: int = 20
    processes: int = 1
    patience: float = 10.0
    secure_cookies: bool = False
    proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    public_url: str | None = None
    page_url: str | None = None
    admin_port: int | None = None

    def __post_init__(self) -> None:
        if self.admin_key_file is None and len(self.admin_key) < SHORTEST_KEY:
            raise InvalidParameter("admin_key", f"{SHORTEST_KEY} characters at least", "fewer")

    def is_admin(self, key: str) -> bool:
        """Compare in constant time, for keys of any length."""
        sent = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        known = [hashlib.sha256(one.encode()).digest() for one in self._keys()]
        return sum(hmac.compare_digest(sent, one) for one in known) > 0

    def secret(self, purpose: str) -> bytes:
        """A key for one purpose, the same in every worker process until the keys change."""
        keys = "\n".join(self._keys())
        return hmac.digest(keys.encode(), purpose.encode(), hashlib.sha256)

    def _keys(self) -> tuple[str, ...]:
        if self.admin_key_file is None:
            return (self.admin_key,)
        file = Path(self.admin_key_file)
        before = _read.get(self.admin_key_file)
        try:
            found = file.stat()
            version = (found.st_mtime_ns, found.st_size, found.st_ino)
            if before is not None and before[0] == version:
                return before[1]
            keys = read_keys(file)
        except (OSError, InvalidParameter) as error:
            if before is None:
                raise
            fields = {"error": type(error).__name__}
            log.error("the file of keys cannot be read", extra={"fields": fields})
            return before[1]  # the old keys stay valid while the file is repaired
        _read[self.admin_key_file] = version, keys
        return keys


_read: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}
"""Keys by file, with the version of the file."""


def read_keys(file: Path) -> tuple[str, ...]:
    """Read the administrator's keys, one per line, from a file that other users cannot read."""
    name = "--admin-key-file"
    try:
        with file.open(encoding="utf-8") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            lines = stream.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise InvalidParameter(name, f"a file that can be read ({reason})", file.name) from None
    if mode & _OTHERS:
        rule = f"closed to other users (chmod 600 {file.name})"
        raise InvalidParameter(name, rule, f"{file.name} with mode {mode:o}")
    keys = tuple(filter(None, map(str.strip, lines)))
    if not keys or min(map(len, keys)) < SHORTEST_KEY:
        rule = f"a file with a key of {SHORTEST_KEY} characters at least in each line"
        raise InvalidParameter(name, rule, file.name)
    return keys
