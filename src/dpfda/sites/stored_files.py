"""Files of a site or a coordinator: locks, keys, the journal, and stored answers.

Two processes must not serve one plan from the same folder. Keys are created once and readable by
their owner only. The journal describes each query and each outgoing message, before it is sent. A
stored answer includes its noise, and is sent again unchanged if the question is repeated.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpfda.errors import LedgerDamaged, ProtocolError, printable
from dpfda.privacy import durable
from dpfda.protocol.secure_sum import Identity

if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return True
        return False

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, or refuse; the lock ends with its process.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "lock"
        >>> with alone(path, "the study"), alone(path, "the study"):
        ...     pass
        Traceback (most recent call last):
        dpfda.errors.ProtocolError: the study is in use by another process
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _taken(descriptor):
            raise ProtocolError(f"{what} is in use by another process")
        yield
    finally:
        os.close(descriptor)


def kept(path: Path, make: bytes) -> bytes:
    """The content of a file; if it is missing, `make` is written first."""
    durable.claim(path, make)
    return secret(path)


def secret(path: Path) -> bytes:
    """The content of a file that only its owner can read."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise ProtocolError(f"{path.name} may be read by others: chmod 600 {path.name}")
    return path.read_bytes()


def kept_identity(path: Path) -> Identity:
    """The long-term identity in a file; created if the file is missing.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "identity.key"
        >>> kept_identity(path).public == kept_identity(path).public
        True
    """
    raw = kept(path, Ed25519PrivateKey.generate().private_bytes_raw())
    try:
        return Identity(Ed25519PrivateKey.from_private_bytes(raw))
    except ValueError:
        raise ProtocolError(f"{path.name} is not an identity key") from None


_LONGEST = 1 << 20  # characters of a line
_MARK = 32  # hexadecimal digits in front of a line: 128 bits


class Journal:
    """An append-only text file; each line is on the disk before the next step of the protocol.

    It contains nothing private: queries are public, and outgoing messages are recorded by their
    hash. Each line begins with a mark, the hash of the previous mark and of the rest of the line.
    `check` therefore detects a line that was changed, removed or inserted. A mark is not a
    signature: if all later lines are rewritten too, only a comparison of `head` with a copy stored
    elsewhere detects it.

    Examples:
        >>> from tempfile import mkdtemp
        >>> journal = Journal(Path(mkdtemp()) / "journal.txt")
        >>> journal.write("asked", "question 0")
        >>> journal.lines[0].endswith("asked     question 0")
        True
        >>> journal.check() == [journal.head]
        True
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, what: str, text: str) -> None:
        """Write one line; a very long text is cut and its hash is added."""
        if len(text) > _LONGEST:
            digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
            text = f"{text[:_LONGEST]}… SHA-256 of {len(text)} letters: {digest}"
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        rest = f"{when}  {what:<8}  {printable(text, most=len(text))}".encode()
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            with durable.locked(file):  # one process per plan may write to the journal
                last = _last_line(file)
                torn = b"" if last.endswith(b"\n") or not last else b"\n"
                line = torn + _mark(last.rstrip(b"\n"), rest) + b"  " + rest + b"\n"
                while line:  # a full disk may accept only a part
                    line = line[os.write(file, line) :]
                os.fsync(file)
        finally:
            os.close(file)

    @property
    def lines(self) -> list[str]:
        """All lines so far, without their marks."""
        return [line[_MARK + 2 :].decode("utf-8", "replace") for line in self._written]

    @property
    def head(self) -> str:
        """The mark of the last line, which depends on all lines; empty if there is no line."""
        written = self._written
        return written[-1][:_MARK].decode("ascii", "replace") if written else ""

    def check(self) -> list[str]:
        """The marks of all lines; a line with a wrong mark is refused."""
        marks, last = [], b""
        for number, line in enumerate(self._written, start=1):
            mark, rest = line[:_MARK], line[_MARK + 2 :]
            if mark != _mark(last, rest):
                raise LedgerDamaged(
                    f"line {number} of {self.path.name} does not follow from the lines before it: "
                    "it was changed or cut short, or one before it was added or removed"
                )
            marks.append(mark.decode())
            last = line
        return marks

    @property
    def _written(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []


def _mark(last: bytes, rest: bytes) -> bytes:
    digest = hashlib.sha256(hashlib.sha256(last).digest() + rest)
    return digest.hexdigest()[:_MARK].encode()


def _last_line(file: int) -> bytes:
    """The last line of an open file, including a final newline if there is one."""
    size = os.lseek(file, 0, os.SEEK_END)
    step = 1 << 12
    while True:
        begin = max(0, size - step)
        os.lseek(file, begin, os.SEEK_SET)
        found = b""
        while len(found) < size - begin and (part := os.read(file, size - begin - len(found))):
            found += part
        cut = found.rfind(b"\n", 0, len(found) - 1) + 1
        if cut or not begin:
            return found[cut:]
        step *= 16


class Begun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that a site began to answer.

    Attributes:
        question: digest of the question.
        stop: everybody with a lower number was asked, or will never be asked.
        people: a digest of the people's names, if these determine their order.
    """

    question: str
    stop: int = 0
    people: str = ""


class KeptAnswers:
    """Questions by number, in a private folder of the site: each is begun once and answered once.

    A question that was begun but has no answer was interrupted. It is never answered, because noise
    that may have been drawn for it is lost. Restoring an old copy of the folder voids the
    guarantee.

    Args:
        folder: the folder, created if it is missing; only its owner can read it.
        study: public name of the study; the folder of another study is refused.

    Examples:
        >>> from tempfile import mkdtemp
        >>> kept = KeptAnswers(Path(mkdtemp()) / "a", study="s")
        >>> kept.begin(0, Begun("digest", 5))
        >>> kept.words
        ['missed, or stopped while it was answered: never answered']
        >>> kept.keep(0, b"noisy")
        >>> kept.again(0, "digest"), kept.words
        (b'noisy', ['answered'])
    """

    def __init__(self, folder: Path, *, study: str) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = folder / "study"
        if not durable.claim(name, study.encode()) and name.read_bytes() != study.encode():
            raise ProtocolError("the account in this folder belongs to another study")

    @property
    def begun(self) -> dict[int, Begun]:
        """All questions that were begun, by number."""
        try:
            return {
                int(path.stem): msgspec.json.decode(path.read_bytes(), type=Begun)
                for path in self._folder.glob("*.begun")
            }
        except (msgspec.MsgspecError, ValueError):
            raise LedgerDamaged("the account in this folder is damaged") from None

    @property
    def words(self) -> list[str]:
        """The progress of each query, in words."""
        known = self.begun
        never = "missed, or stopped while it was answered: never answered"
        return [
            "answered" if self.answered(number) else never
            for number in range(max(known, default=-1) + 1)
        ]

    def begin(self, number: int, begun: Begun) -> None:
        """Record the question, before any noise is drawn."""
        if not durable.claim(self._path(number, "begun"), msgspec.json.encode(begun)):
            raise ProtocolError(f"question {number} was begun already")

    def keep(self, number: int, answer: bytes) -> None:
        """Store the answer, before it is sent."""
        if not durable.claim(self._path(number, "answer"), answer):
            raise ProtocolError(f"question {number} has an answer already")

    def again(self, number: int, question: str) -> bytes | None:
        """The stored answer to a question; None if the question is new."""
        known = self.begun.get(number)
        if known is None:
            return None
        if known.question != question:
            raise ProtocolError(f"question {number} differs from the one that was answered")
        if not self.answered(number):
            raise ProtocolError(
                f"this site stopped while it answered question {number}, and does not answer it "
                "again"
            )
        return self._path(number, "answer").read_bytes()

    def answered(self, number: int) -> bool:
        """Whether the question has an answer."""
        return self._path(number, "answer").exists()

    def _path(self, number: int, step: str) -> Path:
        return self._folder / f"{number:04d}.{step}"
