"""Organizers: their names, keys and rights.

The administrator is the first organizer. Their key is the one that ``dpfda serve`` generates or is
given. It is not stored in the database and permits everything. The administrator adds others:

* An owner creates studies, invites people to them, and ends, changes and deletes them. An owner can
  only read the studies of others.
* A viewer reads every study and its exports, and changes nothing.

A key has 256 random bits, is shown once, and is stored only as its SHA-256 hash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Literal, NamedTuple

from dpfda.collector.refusal import Refused
from dpfda.collector.storage.base import ADMINISTRATOR, Organizer

NAME = r"^[a-z][a-z0-9-]{0,31}$"
"""Names are part of cookies and of commands."""


class Account(NamedTuple):
    """An organizer whose key was verified.

    Attributes:
        name: name of the organizer.
        role: ``administrator``, ``owner`` or ``viewer``.
        key: SHA-256 of the key; empty for the administrator, whose key is not stored. Signatures of
            sessions depend on it, so they end when the key is replaced.

    Examples:
        >>> anna, ben = Account("anna", "owner"), Account("ben", "viewer")
        >>> [one.may_change("anna") for one in (anna, ben, FIRST)]
        [True, False, True]
        >>> [one.may_change("carla") for one in (anna, ben, FIRST)]
        [False, False, True]
    """

    name: str
    role: Literal["administrator", "owner", "viewer"]
    key: bytes = b""

    @property
    def may_create(self) -> bool:
        """Whether they may create studies."""
        return self.role in ("administrator", "owner")

    def may_change(self, owner: str) -> bool:
        """Whether they may change a study of this owner."""
        return self.role == "administrator" or (self.role == "owner" and self.name == owner)

    def require_creator(self) -> None:
        """Raise an error for a viewer."""
        if not self.may_create:
            told = f"{self.name} is a viewer here: a viewer reads studies and creates none"
            raise Refused(403, "viewer", told)

    def require_owner(self, owner: str) -> None:
        """Raise an error unless this is the owner of the study or the administrator."""
        if self.may_change(owner):
            return
        shown = named(owner)
        others = "" if owner == ADMINISTRATOR else " and the administrator"
        rest = f"only {shown}{others} can change it, and {self.name} can read it"
        told = f"this study belongs to {shown}: {rest}"
        raise Refused(403, "not_owner", told)

    def require_administrator(self) -> None:
        """Raise an error unless this is the administrator."""
        if self.role != "administrator":
            told = f"only the administrator can do this, and {self.name} is not the administrator"
            raise Refused(403, "not_administrator", told)


FIRST = Account(ADMINISTRATOR, "administrator")
"""The account of the key of ``dpfda serve``."""


def named(owner: str) -> str:
    """How messages name an organizer.

    Examples:
        >>> named("anna"), named("administrator")
        ('anna', 'the administrator')
    """
    return "the administrator" if owner == ADMINISTRATOR else owner


def new_key() -> str:
    """A new random key."""
    return secrets.token_urlsafe(32)


def key_hash(key: str) -> bytes:
    """The hash of a key, which is stored instead of it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def account_of(key: str, organizers: Iterable[Organizer]) -> Account | None:
    """The organizer with this key; the key is compared with all of them, in constant time.

    Examples:
        >>> key = new_key()
        >>> since = {"created": 0.0, "rotated": 0.0}
        >>> anna = Organizer(name="anna", role="viewer", key=key_hash(key), **since)
        >>> account_of(key, [anna]).name, account_of(key[1:], [anna])
        ('anna', None)
    """
    sent = key_hash(key)
    found = [one for one in organizers if hmac.compare_digest(one.key, sent)]
    return next(filter(None, map(_account, found)), None)


def account_named(name: str, organizers: Iterable[Organizer]) -> Account | None:
    """The organizer of this name, unless they were removed."""
    found = (one for one in organizers if one.name == name)
    return next(filter(None, map(_account, found)), None)


def _account(organizer: Organizer) -> Account | None:
    if organizer.role == "removed":
        return None
    return Account(organizer.name, organizer.role, organizer.key)


def check_name(name: str) -> None:
    """Refuse an invalid name, and the name of the administrator."""
    if not re.fullmatch(NAME, name) or name == ADMINISTRATOR:
        told = "a name has 1 to 32 small letters, digits and hyphens, begins with a letter, and is "
        raise Refused(422, "bad_name", told + f"not “{ADMINISTRATOR}”")
