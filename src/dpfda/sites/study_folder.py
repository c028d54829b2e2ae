"""The folder of a coordinator: the plan, its key, and every answer, stored before it is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from dpfda.errors import InvalidParameter, LedgerDamaged, ProtocolError
from dpfda.privacy import durable
from dpfda.protocol.secure_sum import Identity
from dpfda.report.documents import Documented
from dpfda.sites.identity import Card
from dpfda.sites.plan import Plan
from dpfda.sites.stored_files import kept_identity

Answered = TypeVar("Answered", bound=msgspec.Struct)


class StudyFolder:
    """A folder of one study at its coordinator.

    Args:
        path: path of the folder, which is created if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def private(self) -> Path:
        """The subfolder of keys, readable by its owner only."""
        folder = self.path / "private"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    @property
    def identity(self) -> Identity:
        """The coordinator's long-term key, created once."""
        return kept_identity(self.private / "identity.key")

    @property
    def card_path(self) -> Path:
        """The file of the card, which sites pin."""
        return self.path / "card.json"

    @property
    def plan_path(self) -> Path:
        """The file of the plan, which sites sign."""
        return self.path / "plan.json"

    @property
    def result_path(self) -> Path:
        """The file of the published result."""
        return self.path / "result.json"

    def keep_results(self, documents: Mapping[str, Documented]) -> dict[str, Path]:
        """Publish one result, or one for each site."""
        if list(documents) == ["result"]:
            paths = {"result": self.result_path}
        else:
            folder = _made(self.path / "results")
            paths = {name: folder / f"{quote(name, safe='')}.json" for name in documents}
        for name, path in paths.items():
            documents[name].save(path)
        return paths

    @property
    def finished(self) -> bool:
        """Whether there are results."""
        return self.result_path.exists() or (self.path / "results").exists()

    @property
    def over_path(self) -> Path:
        """A file that exists once the sites were told that there is a result."""
        return self.path / "private" / "over"

    def begin(self, plan: Plan) -> None:
        """Store a new plan; a folder has only one, because the answers belong to it."""
        if not durable.claim(self.plan_path, plan.to_json()):
            rule = "a folder without a plan, because answers belong to one plan"
            raise InvalidParameter("FOLDER", rule, str(self.path))

    def plan(self) -> Plan:
        """The plan of this folder."""
        if not self.plan_path.exists():
            raise InvalidParameter(
                "FOLDER", "one that `dpfda consortium plan` made", str(self.path)
            )
        plan = Plan.load(self.plan_path)
        if plan.body.coordinator.public != self.identity.public:
            raise ProtocolError("the plan in this folder names another coordinator's key")
        return plan

    def answer(self, number: int, kind: type[Answered]) -> Answered | None:
        """The stored answer to a question; None if there is none."""
        path = self._answers / f"{number:04d}.json"
        if not path.exists():
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except msgspec.MsgspecError:
            raise LedgerDamaged(f"{path.name} is not an answer") from None

    def who(self, number: int) -> tuple[str, ...] | None:
        """The sites in the stored answer to a question; None if there is none."""
        answer = self.answer(number, _Answer)
        return None if answer is None else answer.survivors

    def keep(self, number: int, answer: msgspec.Struct) -> None:
        """Store an answer, which can never be replaced."""
        if not durable.claim(self._answers / f"{number:04d}.json", msgspec.json.encode(answer)):
            raise ProtocolError(f"question {number} has an answer already")

    def next_attempt(self, number: int) -> int:
        """An unused attempt number for this query, also after a crash."""
        attempt = 1
        while not durable.claim(self._answers / f"{number:04d}.{attempt}.attempt", b""):
            attempt += 1
        return attempt

    @property
    def attempts(self) -> list[int]:
        """Number of attempts for each query so far."""
        found: dict[int, int] = {}
        for path in self._answers.glob("*.attempt"):
            number = int(path.name.partition(".")[0])
            found[number] = found.get(number, 0) + 1
        return [found[number] for number in sorted(found)]

    def keep_agreement(self, name: str, signature: bytes) -> None:
        """Store a site's signature on the plan."""
        durable.keep(self._agreements / f"{name.encode().hex()}.signature", signature)

    @property
    def agreed(self) -> list[str]:
        """The sites that signed."""
        return sorted(bytes.fromhex(path.stem).decode() for path in self._agreements.glob("*"))

    @property
    def _answers(self) -> Path:
        return _made(self.path / "answers")

    @property
    def _agreements(self) -> Path:
        return _made(self.path / "agreements")


class _Answer(msgspec.Struct):
    """Common fields of stored answers."""

    survivors: tuple[str, ...]


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def read_card(path: Path) -> Card:
    """Read a card file."""
    try:
        card = msgspec.json.decode(path.read_bytes(), type=Card)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidParameter(os.fspath(path), "a card", str(error)) from None
    card.check()
    return card
