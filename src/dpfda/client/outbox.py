"""The stored state of a study on a person's device, with the token and the bytes of the reply."""

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
        insecure: whether the person agreed to send without encryption.
        invited: whether the token is an invitation, which can also be used on another device.
        task: the task; None until it was received.
        body: the exact bytes of the reply; None until it was drawn. It is drawn only once.
        secret: authorizes the withdrawal of the reply; only this device knows it until then.
        tried: whether the bytes may have left this device.
        receipt: the receipt from the collector.
        withdrawn: whether the reply was removed at the collector, or will never be sent.
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
    """Stores one pending reply per plan hash, in files that only their owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def find(self, plan_hash: str) -> PendingReply | None:
        """The pending reply of a study, if this device takes part in it."""
        try:
            content = self._path(plan_hash).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(content, type=PendingReply)
        except msgspec.DecodeError:
            raise LedgerDamaged("the stored reply of this study is damaged") from None

    @contextmanager
    def exclusive(self, plan_hash: str) -> Iterator[None]:
        """Lock a study for this thread; other threads and processes of this device wait."""
        path = self._path(plan_hash).with_suffix(".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with locked(descriptor):
                yield
        finally:
            os.close(descriptor)

    def hashes(self) -> list[str]:
        """The plan hashes of the studies that this device takes part in."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def keep(self, plan_hash: str, pending: PendingReply) -> None:
        """Store a pending reply durably and atomically, even if the power fails."""
        keep(self._path(plan_hash), msgspec.json.encode(pending))

    def _path(self, plan_hash: str) -> Path:
        assert plan_hash.isalnum()
        return self._folder / f"{plan_hash}.json"
