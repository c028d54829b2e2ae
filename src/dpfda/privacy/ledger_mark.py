"""How far a stored ledger has come, kept in a second file so that a cut ledger is noticed.

The mark of ``budget`` is ``budget.mark``: the number of records and the last checksum, twice (the
last two states, written in turn, so that a crash in mid-write leaves one of them whole). A spend is
acknowledged in this order: record durable → mark durable → acknowledged. So after a crash a ledger
holds as many records as its mark says, or one more; fewer, others or yet more mean that one of the
two files was cut, replaced or put back. Both put back together cannot be told from inside.

The mark is also what processes lock.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpfda.errors import LedgerDamaged
from dpfda.privacy._file_lock import locked, sync_directory

_SLOT = 64  # bytes


class Mark:
    """The open, locked mark of a ledger.

    Attributes:
        count: records that were acknowledged.
        checksum: of the last of them.
        torn: a later state was being written when a process died.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        os.lseek(descriptor, 0, os.SEEK_SET)
        content = os.read(descriptor, 2 * _SLOT + 1)
        slots = [content[:_SLOT], content[_SLOT:]]
        states = [state for slot in slots if (state := _parsed(slot)) is not None]
        self.torn = len(states) < sum(map(bool, slots))
        if self.torn and content[_SLOT:] and not states:
            raise LedgerDamaged(f"{path} does not match its checksum")
        self.count, self.checksum = max(states, default=(0, ""))

    def check(self, count: int, checksum: str | None) -> None:
        """Compare with a ledger of `count` records; `checksum` is that of record ``self.count``."""
        if count < self.count + self.torn or (self.count and checksum != self.checksum):
            raise LedgerDamaged(f"{self._path.stem} lost records that were acknowledged")
        if count > self.count + 1:
            what = "older than its ledger" if self.count else "missing or empty"
            raise LedgerDamaged(f"{self._path} is {what}")

    def move(self, count: int, checksum: str) -> None:
        """Acknowledge `count` records: durable when this returns."""
        if (count, checksum) == (self.count, self.checksum) and not self.torn:
            return
        os.lseek(self._descriptor, _SLOT * ((count + 1) % 2), os.SEEK_SET)
        os.write(self._descriptor, _slot(count, checksum))
        os.fsync(self._descriptor)
        if not self.count:
            sync_directory(self._path.parent)
        self.count, self.checksum, self.torn = count, checksum, False


@contextmanager
def locked_mark(ledger: Path, *, create: bool = False) -> Iterator[Mark]:
    """Open and lock the mark of a ledger, shutting out every other process."""
    path = ledger.with_name(ledger.name + ".mark")
    flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        if ledger.exists():
            raise LedgerDamaged(f"{path} is missing") from None
        raise
    try:
        with locked(descriptor):
            if not os.fstat(descriptor).st_nlink:
                raise LedgerDamaged(f"{path} was removed")
            try:
                yield Mark(path, descriptor)
            except BaseException:
                if create and not os.fstat(descriptor).st_size:  # no ledger came of it
                    with suppress(OSError):
                        path.unlink()
                raise
    finally:
        os.close(descriptor)


def _slot(count: int, checksum: str) -> bytes:
    text = f"{count:015} {checksum}"
    check = hashlib.blake2b(text.encode(), digest_size=7).hexdigest()
    return f"{text} {check}\n".encode()


def _parsed(slot: bytes) -> tuple[int, str] | None:
    try:
        count, checksum, _ = slot.decode("ascii").split()
        state = int(count), checksum
    except ValueError:
        return None
    return state if slot == _slot(*state) else None
