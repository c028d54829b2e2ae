"""Why a database does not do what it should, in words that an operator can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from dpfda.collector.storage.base import Unavailable

LITTLE = 1 << 20  # bytes; a disk with less than this is as good as full
FULL, LOCKED = "the disk is full", "another process has locked the database"
_REASONS = {
    "SQLITE_FULL": FULL,
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_READONLY": "the database cannot be written to",
    "SQLITE_CANTOPEN": "the database cannot be opened",
    "SQLITE_IOERR": "the disk cannot be read or written",
    "53100": FULL,
    "55P03": LOCKED,
    "57014": LOCKED,
    "25006": "the database cannot be written to",
}
"""By the name of SQLite's error, or the state that PostgreSQL gives."""


def reason(error: DBAPIError) -> str:
    """In words; never the error's own, which may quote values."""
    cause = error.orig
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    for known, words in _REASONS.items():
        if code.startswith(known):  # SQLite tells kinds apart: SQLITE_IOERR_WRITE
            return words
    return "the database does not answer"


@contextmanager
def told() -> Iterator[None]:
    """Whatever is wrong with the database inside is `Unavailable`."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise Unavailable(reason(error)) from error
    except NoConnection as error:
        raise Unavailable("every connection to the database is in use") from error
