"""What a site answered, where each answer is noisy by itself: kept, to be sent again as it was."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dpfda.errors import LedgerDamaged, ProtocolError
from dpfda.privacy import durable


class Begun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that a site began to answer.

    Attributes:
        question: its digest.
        stop: everybody numbered below was asked, or never will be.
        people: a digest of who they are, where their order says whose turn it is.
    """

    question: str
    stop: int = 0
    people: str = ""


class KeptAnswers:
    """Questions by number, in a folder of the site's own: begun first, then answered, once each.

    What was begun and has no answer was interrupted; it is never answered, because what was drawn
    for it, if anything, is lost. Restoring an old copy of the folder voids the promise.

    Args:
        folder: made if need be, readable by its owner only.
        study: public words that name the study; another one's folder is refused.

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
        """Every question that was begun."""
        try:
            return {
                int(path.stem): msgspec.json.decode(path.read_bytes(), type=Begun)
                for path in self._folder.glob("*.begun")
            }
        except (msgspec.MsgspecError, ValueError):
            raise LedgerDamaged("the account in this folder is damaged") from None

    @property
    def words(self) -> list[str]:
        """How far each came."""
        known = self.begun
        never = "missed, or stopped while it was answered: never answered"
        return [
            "answered" if self.answered(number) else never
            for number in range(max(known, default=-1) + 1)
        ]

    def begin(self, number: int, begun: Begun) -> None:
        """Before anything is drawn."""
        if not durable.claim(self._path(number, "begun"), msgspec.json.encode(begun)):
            raise ProtocolError(f"question {number} was begun already")

    def keep(self, number: int, answer: bytes) -> None:
        """Before anything leaves."""
        if not durable.claim(self._path(number, "answer"), answer):
            raise ProtocolError(f"question {number} has an answer already")

    def again(self, number: int, question: str) -> bytes | None:
        """The answer that was given; None where the question is new."""
        known = self.begun.get(number)
        if known is None:
            return None
        if known.question != question:
            raise ProtocolError(f"question {number} was another one")
        if not self.answered(number):
            raise ProtocolError(
                f"this site stopped while it answered question {number}, and never answers it"
            )
        return self._path(number, "answer").read_bytes()

    def answered(self, number: int) -> bool:
        """Whether there is an answer."""
        return self._path(number, "answer").exists()

    def _path(self, number: int, step: str) -> Path:
        return self._folder / f"{number:04d}.{step}"
