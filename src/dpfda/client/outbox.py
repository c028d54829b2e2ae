"""The state of a study on a person's device: the token, and the exact bytes of the reply."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from dpfda.errors import LedgerDamaged
from dpfda.privacy.durable import keep, locked


class PendingReply(msgspec.Struct, frozen=True, kw_only=True):
    """One study on this device.

    Attributes:
        url: the collector.
        plan: the plan that was agreed to.
        token: this person's, secret.
        accepts: assumptions that the person agreed to.
        insecure: the person agreed to send without encryption.
        invited: the token is an invitation, which may be used on another device, too.
        task: what was asked, once it was asked.
        body: the reply's exact bytes, once they exist. They are never drawn again.
        secret: withdraws the reply; it stays here until then.
        tried: the bytes may have left this device.
        receipt: what the collector answered.
        withdrawn: the collector has removed the reply, or never gets it.
    """

    url: str
    plan: dict[str, Any]
    token: str
    accepts: tuple[str, ...] = ()
    insecure: bool = False
    invited: bool = False
    task: dict[str, Any] | None = None
    body: str | None = None
    secret: str | None = None
    tried: bool = False
    receipt: str | None = None
    withdrawn: bool = False


class Outbox:
    """Letters by plan hash, one file each, readable by their owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def find(self, plan_hash: str) -> PendingReply | None:
        """The letter of a study, if this device takes part in it."""
        try:
            content = self._path(plan_hash).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(content, type=PendingReply)
        except msgspec.DecodeError:
            raise LedgerDamaged("the stored reply of this study is damaged") from None

    @contextmanager
    def alone(self, plan_hash: str) -> Iterator[None]:
        """No other thread or process of this device works on the study meanwhile."""
        path = self._path(plan_hash).with_suffix(".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with locked(descriptor):
                yield
        finally:
            os.close(descriptor)

    def hashes(self) -> list[str]:
        """The studies that this device takes part in."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def keep(self, plan_hash: str, letter: PendingReply) -> None:
        """Store a letter for good: complete or not at all, also if the power fails."""
        keep(self._path(plan_hash), msgspec.json.encode(letter))

    def _path(self, plan_hash: str) -> Path:
        assert plan_hash.isalnum()
        return self._folder / f"{plan_hash}.json"
