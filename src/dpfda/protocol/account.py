"""The record of a site's stages, which must survive the end of its process.

Each stage goes three steps, never back:

    begin    the question is fixed and paid for; before any noise is drawn
    fix      the noisy vector exists; the same one is masked in every attempt
    open     this site helped to open the sum; the vector is gone, and it never helps again

A site that stopped between the first two has spent and sent nothing: it never answers that stage.

Each attempt at a stage is begun once, also by a site that started again: it signs one set of keys
and one set of survivors for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from dpfda._validate import IntArray
from dpfda.errors import LedgerDamaged, ProtocolError
from dpfda.privacy import durable
from dpfda.privacy.events import Event


@dataclass(frozen=True, eq=False)
class Stage:
    """One question to a site: its digest, its price, and how far the site got."""

    question: str
    event: Event | None = None
    noisy: IntArray | None = None
    opened: bool = False

    def __repr__(self) -> str:
        return f"Stage(question={self.question!r}, opened={self.opened})"


class Account:
    """Stages by number, in memory: for sites of one process that end with it.

    Examples:
        >>> account = Account()
        >>> account.begin(0, "digest")
        >>> account.fix(0, np.array([5]))
        >>> account.open(0)
        >>> account.stages[0]
        Stage(question='digest', opened=True)
    """

    def __init__(self) -> None:
        self.stages: dict[int, Stage] = {}
        self._attempts: dict[int, int] = {}

    def begin(self, number: int, question: str, event: Event | None = None) -> None:
        """Record the question and its payment."""
        if number in self.stages or not self._begin(number, question, event):
            raise ProtocolError(f"stage {number} was begun already")
        self.stages[number] = Stage(question, event)

    def fix(self, number: int, noisy: IntArray) -> None:
        """Keep the vector with its noise, before anybody sees anything of it."""
        stage = self.stages.get(number)
        if stage is None or stage.noisy is not None or stage.opened:
            raise ProtocolError(f"stage {number} is not begun, or its vector is fixed already")
        self._fix(number, noisy)
        self.stages[number] = replace(stage, noisy=noisy)

    def attempt(self, number: int, attempt: int) -> None:
        """Begin an attempt at a stage: a later one than any before."""
        if attempt <= self._attempts.get(number, 0) or not self._attempt(number, attempt):
            raise ProtocolError("this attempt was used already; keys are fresh for every round")
        self._attempts[number] = attempt

    def open(self, number: int) -> None:
        """Forget the vector, just before this site helps to open the sum."""
        if self.stages[number].opened or not self._open(number):
            raise ProtocolError(
                f"stage {number} was opened already: a second sum would reveal more than was paid "
                "for"
            )
        self.stages[number] = replace(self.stages[number], noisy=None, opened=True)

    def _begin(self, number: int, question: str, event: Event | None) -> bool:
        return True

    def _fix(self, number: int, noisy: IntArray) -> None:
        pass

    def _attempt(self, number: int, attempt: int) -> bool:
        return True

    def _open(self, number: int) -> bool:
        return True


class StoredAccount(Account):
    """Stages in a folder of the site's own; every step is on the disk before it takes effect.

    Several processes may share the folder: each step of a stage succeeds in one of them. Restoring
    an old copy of the folder voids the promise, as it does for a ledger.

    Args:
        folder: made if need be, readable by its owner only.
        study: public words that name the study; another one's folder is refused.
    """

    def __init__(self, folder: str | Path, *, study: str) -> None:
        super().__init__()
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = self._folder / "study"
        if not durable.claim(name, study.encode()) and name.read_bytes() != study.encode():
            raise ProtocolError("the account in this folder belongs to another study")
        for path in sorted(self._folder.glob("*.begun")):
            self.stages[int(path.stem)] = self._read(int(path.stem))
        for path in self._folder.glob("*.attempt-*"):
            number, attempt = int(path.stem), int(path.suffix.partition("-")[2])
            self._attempts[number] = max(attempt, self._attempts.get(number, 0))
        if sorted(self.stages) != list(range(len(self.stages))):
            raise LedgerDamaged("the account in this folder has lost a stage")

    def _begin(self, number: int, question: str, event: Event | None) -> bool:
        record = {"question": question, "event": None if event is None else event.to_dict()}
        return durable.claim(self._path(number, "begun"), msgspec.json.encode(record))

    def _fix(self, number: int, noisy: IntArray) -> None:
        durable.keep(self._path(number, "vector"), noisy.astype("<i8").tobytes())

    def _attempt(self, number: int, attempt: int) -> bool:
        return durable.claim(self._path(number, f"attempt-{attempt}"), b"")

    def _open(self, number: int) -> bool:
        first = durable.claim(self._path(number, "opened"), b"")
        durable.forget(self._path(number, "vector"))
        return first

    def _read(self, number: int) -> Stage:
        try:
            record = msgspec.json.decode(self._path(number, "begun").read_bytes())
            question, event = record["question"], record["event"]
            price = None if event is None else Event.from_dict(event)
        except (msgspec.DecodeError, KeyError, TypeError):
            raise LedgerDamaged("the account in this folder is damaged") from None
        vector, opened = self._path(number, "vector"), self._path(number, "opened").exists()
        if opened or not vector.exists():
            durable.forget(vector)  # where the process died between the two
            return Stage(question, price, opened=opened)
        return Stage(question, price, np.frombuffer(vector.read_bytes(), dtype="<i8"))

    def _path(self, number: int, step: str) -> Path:
        return self._folder / f"{number:04d}.{step}"
