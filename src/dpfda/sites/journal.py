"""A site's own record, in words, of what it was asked and what left: written before it leaves."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from dpfda.errors import printable

_LONGEST = 1 << 20  # characters of a line


class Journal:
    """Lines of a text file that is only ever appended to; each is on the disk before the next step.

    It holds nothing private: questions are public, and of what leaves it holds a hash.

    Examples:
        >>> from tempfile import mkdtemp
        >>> journal = Journal(Path(mkdtemp()) / "journal.txt")
        >>> journal.write("asked", "question 0")
        >>> journal.lines[0].endswith("asked     question 0")
        True
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, what: str, text: str) -> None:
        """One line, whatever somebody else wrote into the text; of a very long one its hash too."""
        if len(text) > _LONGEST:
            digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
            text = f"{text[:_LONGEST]}… SHA-256 of {len(text)} letters: {digest}"
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        line = f"{when}  {what:<8}  {printable(text, most=len(text))}\n".encode()
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while line:  # a full disk takes a part, and refuses the rest
                line = line[os.write(file, line) :]
            os.fsync(file)
        finally:
            os.close(file)

    @property
    def lines(self) -> list[str]:
        """Everything so far."""
        if not self.path.exists():
            return []
        return self.path.read_text(encoding="utf-8").splitlines()
