"""Manage the studies of a collector over HTTP, and replay a study that was exported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from dpfda.client.http import Answer, Connection, persistently
from dpfda.client.remote import NotGranted
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy.durable import keep
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import Reply

_EXPORT = 1 << 30  # bytes of one phase's replies
_ID_DIGITS = 16


class Administrator:
    """An organizer of a collector: the administrator, an owner of studies, or a viewer.

    Args:
        url: where the collector is.
        key: secret key of the organizer; the collector decides what it permits.
        certificates: file of certificates to trust instead of the system's.
        insecure: allow ``http://`` to other machines, which sends the key unencrypted.
    """

    def __init__(
        self, url: str, key: str, *, certificates: str | None = None, insecure: bool = False
    ) -> None:
        if not re.fullmatch("[!-~]+", key):
            raise InvalidParameter("key", "one word of visible characters", "something else")
        self.url = url
        self._headers = {"Authorization": f"Bearer {key}"}
        self._connection = Connection(
            url, timeout=60.0, certificates=certificates, insecure=insecure, most=_EXPORT
        )

    def studies(self) -> Iterator[dict[str, Any]]:
        """Every study, newest first."""
        after = ""
        while True:
            page = self._document("GET", f"/api/studies?most=200{after}")
            entries, following = page.get("studies"), page.get("next")
            if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
                raise _not_understood()
            yield from entries
            if not isinstance(following, str) or not entries:
                return
            after = f"&after={quote(following, safe='')}"

    def study(self, study: str) -> dict[str, Any]:
        """One study, by its id or plan hash: the plan, the phase and the number of replies."""
        return self._document("GET", _path(study))

    def verdict(self, study: str) -> dict[str, Any]:
        """The evaluation of the model: ``kind`` for programs, ``sentences`` for people."""
        found = self._document("GET", f"{_path(study)}/verdict")
        sentences = found.get("sentences")
        if not isinstance(sentences, list) or not all(isinstance(one, str) for one in sentences):
            raise _not_understood()
        return found

    def create(self, plan: dict[str, Any], **settings: object) -> dict[str, Any]:
        """Create a study from a plan; the answer may contain warnings about its settings."""
        return self._document("POST", "/api/studies", {"plan": plan, "settings": settings})

    def invite(self, study: str, people: int) -> list[str]:
        """Create invitations: tokens, each for one person and one reply."""
        found = self._document("POST", f"{_path(study)}/tokens", {"count": people}).get("tokens")
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise _not_understood()
        return found

    def close(self, study: str) -> dict[str, Any]:
        """End the current phase with the replies that have arrived."""
        phase = self.study(study).get("phase")
        if not isinstance(phase, int):
            raise _not_understood()
        return self._document("POST", f"{_path(study)}/phases/{phase}/close")

    def purge(self, study: str) -> bool:
        """Delete the replies of finished phases; True if the deletion is complete."""
        return self._document("DELETE", f"{_path(study)}/replies").get("done") is True

    def delete(self, study: str) -> bool:
        """Delete a study with all its data; True if the deletion is complete."""
        return self._document("DELETE", _path(study)).get("done") is True

    def give(self, study: str, owner: str) -> None:
        """Transfer a study to another owner, or to ``administrator``."""
        self._document("POST", f"{_path(study)}/owner", {"name": owner})

    def organizers(self) -> list[dict[str, Any]]:
        """The organizers besides the administrator: name, role, and since when."""
        return self._entries("/api/organizers")

    def add_organizer(self, name: str, role: str) -> str:
        """Add an organizer with the role ``owner`` or ``viewer``; return the new key."""
        return self._key("/api/organizers", {"name": name, "role": role})

    def rotate_key(self, name: str) -> str:
        """Replace the key of an organizer; the old key stops working at once."""
        return self._key(f"/api/organizers/{quote(name, safe='')}/key")

    def remove_organizer(self, name: str) -> None:
        """Remove an organizer, whose key stops working at once."""
        self._granted("DELETE", f"/api/organizers/{quote(name, safe='')}")

    def activity(self, most: int = 50) -> list[dict[str, Any]]:
        """The log of organizers' actions, newest first."""
        return self._entries(f"/api/activity?most={most}")

    def _key(self, path: str, sent: object = None) -> str:
        found = self._document("POST", path, sent).get("key")
        if not isinstance(found, str):
            raise _not_understood()
        return found

    def _entries(self, path: str) -> list[dict[str, Any]]:
        found = self._granted("GET", path).json()
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise _not_understood()
        return found

    def confirm_clock(self) -> float:
        """Confirm the collector's system clock; return by how many seconds it had jumped."""
        found = self._document("POST", "/api/clock").get("jump_seconds")
        if not isinstance(found, (int, float)):
            raise _not_understood()
        return float(found)

    def export(self, study: str, folder: Path) -> list[Path]:
        """Write plan, state, models, the latest model and replies into a new folder."""
        described = self._granted("GET", _path(study))
        models = self._granted("GET", f"{_path(study)}/models")
        history, now = models.json(), _dictionary(described)
        try:
            phases = {int(entry["phase"]) for entry in history if entry["phase"] >= 0}
            phases |= set() if now["status"] == "finished" else {int(now["phase"])}
            latest = json.dumps(history[-1]["model"], indent=2).encode()
        except (IndexError, KeyError, TypeError, ValueError):
            raise _not_understood() from None
        contents = {
            "study.json": described.body,
            "models.json": models.body,
            "model.json": latest,
        }
        for number in sorted(phases):
            replies = self._granted("GET", f"{_path(study)}/phases/{number}/replies")
            contents[f"replies-{number}.ndjson"] = replies.body
        folder.mkdir(mode=0o700, parents=True)
        for name, content in contents.items():
            keep(folder / name, content)
        return [folder / name for name in contents]

    def hang_up(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _document(self, method: str, path: str, sent: object = None) -> dict[str, Any]:
        return _dictionary(self._granted(method, path, sent))

    def _granted(self, method: str, path: str, sent: object = None) -> Answer:
        body = None if sent is None else json.dumps(sent).encode()

        def request() -> Answer:
            return self._connection.ask(method, path, body=body, headers=self._headers)

        # Only GET is repeated: a repeated change could fail because the first attempt succeeded.
        answer = persistently(request, once=method != "GET")
        if answer.status not in (200, 201, 202, 204):
            raise NotGranted(answer.status, answer.reason)
        return answer


def _path(study: str) -> str:
    if not re.fullmatch("[0-9a-f]{1,64}", study):
        raise InvalidParameter("study", "the id or the hash of a study, hexadecimal", study)
    return f"/api/studies/{study[:_ID_DIGITS]}"


def _dictionary(answer: Answer) -> dict[str, Any]:
    found = answer.json()
    if not isinstance(found, dict):
        raise _not_understood()
    return found


def _not_understood() -> ProtocolError:
    return ProtocolError("the collector's answer cannot be understood")


def replayed(plan: StudyPlan, folder: Path) -> Server:
    """The final server of an exported study, computed from its plan and replies.

    Args:
        plan: whose study it must be.
        folder: with ``study.json`` and the replies of each phase.
    """
    try:
        study = msgspec.json.decode((folder / "study.json").read_bytes())
        finished = (study["hash"], study["status"]) == (plan.hash, "finished")
    except (OSError, msgspec.MsgspecError, UnicodeError, KeyError, TypeError):
        raise ProtocolError(f"{folder.name} holds no exported study") from None
    if not finished:
        raise ProtocolError(f"{folder.name} is of another study, or not finished")
    server = Server(plan)
    while not server.finished:
        _absorb(server, folder)
    return server


def _absorb(server: Server, folder: Path) -> None:
    """Replay one phase; tickets without a reply are missing."""
    phase, people = server.phase, server.wanted
    rows = np.zeros((people, server.issue(people).width))
    missing = np.ones(people, dtype=bool)
    path = folder / f"replies-{phase}.ndjson"
    if not path.exists():  # an unfinished export: its files are written one by one
        raise ProtocolError(f"{folder.name} holds no {path.name}")
    for line in path.read_bytes().splitlines():
        try:
            reply = msgspec.json.decode(line, type=Reply)
        except (msgspec.MsgspecError, UnicodeError):
            raise ProtocolError(f"{path.name} holds a line that is not a reply") from None
        known = reply.plan == server.plan.hash and reply.phase == phase
        if not (known and 0 <= reply.ticket < people and missing[reply.ticket]):
            raise ProtocolError(f"{path.name} holds replies to another study, or two to one ticket")
        if len(reply.values) != rows.shape[1]:
            raise ProtocolError(f"{path.name} holds a reply whose length does not fit the task")
        rows[reply.ticket], missing[reply.ticket] = reply.values, False
    if missing.all():
        raise ProtocolError(f"{path.name} holds no replies: the collector may have deleted them")
    server.receive(rows, start=0, missing=missing)
    if server.phase == phase:
        server.close_phase()
