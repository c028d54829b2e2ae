"""A ledger in one append-only text file: a chain of records, for several processes.

The first record holds the limit; each further record holds one entry. Each line is ``{"checksum":
..., "record": {...}}``. A checksum covers its record and the checksum before it, so a changed,
missing or reordered record is detected. The mark beside the ledger states the number of records, so
missing last records are detected too. Checksums are not signatures: they do not detect that
somebody rewrote both files on purpose.

After a crash the last line may be incomplete. A record is acknowledged only after it, and its line
end, reached the disk, so a last line that the mark does not count was never acknowledged. If only
its line end is missing, it is counted, which is safe; otherwise it is removed before the next line
is written. Any other invalid line means that the file is damaged, and the ledger then refuses every
release.

The mark of ``budget`` is ``budget.mark``: the number of records and the last checksum, twice (the
last two states, written in turn, so that a crash while writing leaves one of them intact). The
order is: record durable → mark durable → acknowledged. After a crash a ledger therefore holds as
many records as its mark says, or one more. Any other number means that one of the two files was cut
or replaced. Replacing both by older copies cannot be detected. Processes lock the mark.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpfda.errors import DpfdaError, InvalidParameter, LedgerDamaged
from dpfda.privacy.durable import locked, sync_directory
from dpfda.privacy.filter import Filter, chosen
from dpfda.privacy.ledger import BaseLedger, Entry

_SLOT = 64  # bytes


class Mark:
    """The open, locked mark of a ledger.

    Attributes:
        count: records that were acknowledged.
        checksum: of the last of them.
        torn: whether a process died while it wrote a later state.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        os.lseek(descriptor, 0, os.SEEK_SET)
        content = os.read(descriptor, 2 * _SLOT + 1)
        slots = [content[:_SLOT], content[_SLOT:]]
        states = [state for slot in slots if (state := _parsed_mark(slot)) is not None]
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
        """Acknowledge `count` records; the mark is durable when this returns."""
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
    """Open and lock the mark of a ledger, which excludes all other processes."""
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
                if create and not os.fstat(descriptor).st_size:  # no ledger was created
                    with suppress(OSError):
                        path.unlink()
                raise
    finally:
        os.close(descriptor)


def _slot(count: int, checksum: str) -> bytes:
    text = f"{count:015} {checksum}"
    check = hashlib.blake2b(text.encode(), digest_size=7).hexdigest()
    return f"{text} {check}\n".encode()


def _parsed_mark(slot: bytes) -> tuple[int, str] | None:
    try:
        count, checksum, _ = slot.decode("ascii").split()
        state = int(count), checksum
    except ValueError:
        return None
    return state if slot == _slot(*state) else None


_FORMAT = "dpfda-ledger-3"
_START = b'{"checksum":"'  # of every line


class FileLedger(BaseLedger):
    """A ledger in a text file that people can read.

    Each operation opens the file, locks it, and reads what others appended. No descriptor outlives
    an operation, so forks, threads and restarts are safe. The file ``PATH.mark`` lies beside the
    ledger; move or copy both together. Removing both creates a new budget, which the ledger cannot
    detect. A ledger with a second name (a hard link) is refused.

    Args:
        path: the file of the ledger; created if it does not exist.
        limit_epsilon: total ε that may be spent. Optional for an existing ledger, whose stored
            limit applies; a different one is refused.
        limit_delta: likewise for δ; 0 for a new ledger.

    Examples:
        >>> import tempfile
        >>> from dpfda.privacy.events import PureEvent
        >>> directory = tempfile.TemporaryDirectory()
        >>> path = f"{directory.name}/budget.jsonl"
        >>> _ = FileLedger(path, limit_epsilon=1.0).spend(PureEvent(epsilon=0.3), label="mean")
        >>> FileLedger(path).remaining
        Budget(epsilon=0.7, delta=0.0)
        >>> directory.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limit_epsilon: float | None = None,
        limit_delta: float | None = None,
    ) -> None:
        self.path = Path(
            path
        ).resolve()  # one ledger, one mark, one lock, also through symbolic links
        if limit_epsilon is None and not self.path.exists():
            raise InvalidParameter("limit_epsilon", "given for a new ledger", limit_epsilon)
        asked = None
        if limit_epsilon is not None:
            asked = chosen(limit_epsilon, 0 if limit_delta is None else limit_delta)
        self._process, self._lock = os.getpid(), threading.Lock()
        self._forget()
        with self._locked(create=True):
            if not self._checksums:
                if asked is None:
                    raise InvalidParameter("limit_epsilon", "given for a new ledger", limit_epsilon)
                self._append_record(_header(asked))
                self.rule = asked
        for name, value, kept in (
            ("limit_epsilon", limit_epsilon, self.limit.epsilon),
            ("limit_delta", limit_delta, self.limit.delta),
        ):
            if value is not None and value != kept:
                raise InvalidParameter(name, f"{kept!r}, as stored in the ledger", value)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process reads the same file, within the same outer ledger."""
        return _reopened, (self.path.absolute(), self.outer)

    def _forget(self) -> None:
        super()._forget()
        self._checksums: list[str] = []  # of all records read so far
        self._offset = 0  # bytes read so far

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        # in a forked process, the lock may be held by a thread that no longer exists
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.Lock()
            self._forget()
        with self._lock:
            try:
                with self._locked():
                    yield
            except DpfdaError:
                raise  # a refusal: the state in memory stays valid
            except BaseException:
                self._forget()  # the state is unclear: read everything again next time
                raise

    @contextmanager
    def _locked(self, *, create: bool = False) -> Iterator[None]:
        """Exclude other processes, read new records, and acknowledge those added inside."""
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        with locked_mark(self.path, create=create) as mark:
            # Without `create`, a missing ledger is an error, not a new budget.
            self._file = os.open(self.path, flags | (os.O_CREAT if create else 0), 0o600)
            try:
                if (names := os.fstat(self._file).st_nlink) > 1:
                    # A second name would have a mark, hence a lock, of its own.
                    raise LedgerDamaged(
                        f"{self.path} has {names} names (hard links): remove all but one"
                    )
                known = len(self._checksums)
                for record, checksum in self._records():
                    self._take(record, checksum)
                if len(self._checksums) > max(known, 1) and not self._fits():
                    raise LedgerDamaged(
                        f"{self.path} has a record that is not a ledger's: it is over the limit"
                    )
                # records of a process that died before it acknowledged them
                self._acknowledge(mark)
                yield
            finally:
                os.close(self._file)
            self._acknowledge(mark)

    def _acknowledge(self, mark: Mark) -> None:
        known = self._checksums
        mark.check(len(known), known[mark.count - 1] if 0 < mark.count <= len(known) else None)
        if known:
            mark.move(len(known), known[-1])

    def _records(self) -> Iterator[tuple[Any, str]]:
        """The records, with checksums, that were not read yet."""
        if os.fstat(self._file).st_size < self._offset:
            raise LedgerDamaged(f"{self.path} is shorter than it was")
        with open(self._file, "rb", closefd=False) as stream:
            stream.seek(self._offset)
            *lines, rest = stream.read().split(b"\n")
        for line in lines:
            if (parsed := _parsed(line)) is None:
                raise LedgerDamaged(f"{self.path} has a line that is not a ledger's")
            yield parsed
            self._offset += len(line) + 1
        if not _START.startswith(rest[: len(_START)]):
            raise LedgerDamaged(f"{self.path} ends in something that is not a ledger's")
        if (parsed := _parsed(rest)) is not None:
            yield parsed
            os.write(self._file, b"\n")
            os.fsync(self._file)
            self._offset += len(rest) + 1

    def _take(self, record: Mapping[str, Any], checksum: str) -> None:
        """Note one stored record."""
        if checksum != self._chained(record):
            raise LedgerDamaged(f"{self.path} has a record that does not match its checksum")
        try:
            if self._checksums:
                entry = Entry.from_dict(record)
                if entry.sequence != len(self._checksums):
                    raise InvalidParameter("sequence", str(len(self._checksums)), entry.sequence)
                self._note(entry)
            else:
                self.rule = _rule(record)
        except DpfdaError as error:
            raise LedgerDamaged(f"{self.path} has a record that is not a ledger's") from error
        self._checksums.append(checksum)

    def _append(self, entry: Entry) -> None:
        self._append_record(entry.to_dict())

    def _append_record(self, record: dict[str, Any]) -> None:
        checksum = self._chained(record)
        line = _canonical({"checksum": checksum, "record": record}).encode() + b"\n"
        # removes an incomplete line that was never acknowledged
        os.ftruncate(self._file, self._offset)
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            os.ftruncate(self._file, self._offset)  # disk full: leave no incomplete line
            raise
        os.fsync(self._file)
        if not self._offset:
            sync_directory(self.path.parent)
        self._offset += len(line)
        self._checksums.append(checksum)

    def _chained(self, record: object) -> str:
        text = (self._checksums[-1] if self._checksums else "") + _canonical(record)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _reopened(path: Path, outer: BaseLedger | None) -> FileLedger:
    ledger = FileLedger(path)
    ledger.outer = outer
    return ledger


def _canonical(data: object) -> str:
    """The canonical form of a record."""
    # Numbers may be numpy scalars; `item` converts them to Python numbers.
    return json.dumps(data, sort_keys=True, separators=(",", ":"), default=lambda x: x.item())


def _parsed(line: bytes) -> tuple[Any, str] | None:
    try:
        data = json.loads(line)
        return data["record"], data["checksum"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _header(rule: Filter) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "limit_epsilon": rule.limit.epsilon,
        "limit_delta": rule.limit.delta,
    }


def _rule(record: object) -> Filter:
    if not isinstance(record, Mapping) or record.get("format") != _FORMAT:
        raise InvalidParameter("format", _FORMAT, None)
    return chosen(record.get("limit_epsilon"), record.get("limit_delta"))
