"""The record of a site's stages, which must survive the end of its process.

Each stage passes three steps in this order:

    begin    the question is fixed and paid for, before any noise is drawn
    fix      the noisy vector is stored; every attempt masks this same vector
    open     the site helps to open the sum; the vector is deleted, and the site never helps again

A site that stopped between `begin` and `fix` has paid but sent nothing. It never answers that
stage.

A site begins each attempt at a stage only once, even if it was restarted in between. It therefore
signs one set of keys and one set of survivors for each attempt.
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
    """One question to a site: its digest, its price, and the steps that the site has completed."""

    question: str
    event: Event | None = None
    noisy: IntArray | None = None
    opened: bool = False

    def __repr__(self) -> str:
        return f"Stage(question={self.question!r}, opened={self.opened})"


class Account:
    """Stages by number, in memory, for sites that exist only as long as one process.

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
        """Store the noisy vector, before anything computed from it leaves the site."""
        stage = self.stages.get(number)
        if stage is None or stage.noisy is not None or stage.opened:
            raise ProtocolError(f"stage {number} is not begun, or its vector is fixed already")
        self._fix(number, noisy)
        self.stages[number] = replace(stage, noisy=noisy)

    def attempt(self, number: int, attempt: int) -> None:
        """Begin an attempt at a stage; its number must exceed those of all earlier attempts."""
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
    """Stages in a private folder of the site; every step is on the disk before it takes effect.

    Several processes may share the folder. Each step of a stage then succeeds in only one of them.
    Restoring an old copy of the folder voids the guarantee, as it does for a ledger.

    Args:
        folder: the folder, created if it is missing; only its owner can read it.
        study: public name of the study; the folder of another study is refused.
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
            durable.forget(vector)  # the process may have died before this deletion
            return Stage(question, price, opened=opened)
        return Stage(question, price, np.frombuffer(vector.read_bytes(), dtype="<i8"))

    def _path(self, number: int, step: str) -> Path:
        return self._folder / f"{number:04d}.{step}"
