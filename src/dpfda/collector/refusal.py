"""Refusals: the answers to requests that the collector does not grant."""

from __future__ import annotations

from typing import Any, cast

from litestar.types import Scope

from dpfda.collector.storage.base import Issued, Removed, Stored
from dpfda.errors import DpfdaError

KNOWN = "dpfda_known"


def note_known(scope: Scope) -> None:
    """Mark a request that has a valid key, session or participant's token."""
    cast("dict[str, object]", scope)[KNOWN] = True


class Refused(DpfdaError):
    """A refusal with its HTTP status. The message never repeats what was sent."""

    def __init__(self, status: int, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details

    def to_dict(self) -> dict[str, Any]:
        """The common JSON form of all errors."""
        return error_body(self.code, str(self), **self.details)


def error_body(code: str, message: str, **details: object) -> dict[str, Any]:
    """The JSON of an error."""
    return {"error": {"code": code, "message": message, **details}}


def bad_plan(reason: object) -> Refused:
    """400 for an invalid plan; the message may name values, because plans are public."""
    return Refused(400, "bad_plan", " ".join(str(reason).split())[:500])


def no_study() -> Refused:
    """404 for an unknown study."""
    return Refused(404, "unknown_study", "there is no such study here")


def begun() -> Refused:
    """409 for a change of a study that has begun."""
    told = "somebody has joined this study, so it cannot be changed: duplicate it instead"
    return Refused(409, "begun", told)


def no_organizer() -> Refused:
    """404 for an unknown organizer."""
    return Refused(404, "unknown_organizer", "there is no organizer of this name here")


def no_token() -> Refused:
    """401 for a missing or unknown token."""
    return Refused(401, "unknown_token", "this needs the token of a participant")


def no_place() -> Refused:
    """429 for an address or network with too many people."""
    told = (
        "too many people from this address, or from its network, take part at once, in this hour "
        "or in total: try again in some minutes, or ask the organizer for an invitation"
    )
    return Refused(429, "too_many_here", told, retry_after=60)


def no_ticket(reason: Issued) -> Refused:
    """The refusal of a task."""
    if reason == "unknown":
        return no_token()
    if reason == "foreign":
        return Refused(403, "wrong_study", "this token belongs to another study")
    if reason == "answered":
        told = "this invitation was used already: a reply to its task is stored, and none is added"
        return Refused(409, "answered", told)
    if reason == "late":
        return Refused(410, "late", "the phase of this person's task is over")
    if reason == "lapsed":
        told = "this token has expired, because no reply was sent in time: join again"
        return Refused(410, "lapsed", told)
    if reason == "finished":
        return Refused(410, "finished", "the study is finished")
    return Refused(202, "wait", "there is no free task now; ask again", retry_after=1)


def not_stored(outcome: Stored | Exception) -> Exception:
    """The refusal of a reply."""
    if isinstance(outcome, Exception):
        return outcome
    if outcome == "unknown":
        return no_token()
    if outcome == "foreign":
        return Refused(403, "wrong_ticket", "this ticket belongs to another token")
    if outcome == "different":
        return Refused(409, "answered", "this ticket was answered before, with other bytes")
    if outcome == "withdrawn":
        return Refused(410, "withdrawn", "this reply was withdrawn, and does not count")
    if outcome == "late":
        return Refused(410, "late", "the phase of this reply is over")
    if outcome == "lapsed":
        told = "no reply came in time, and the task was given to another person"
        return Refused(410, "lapsed", told)
    return Refused(422, "bad_reply", "the reply could not be stored")


def not_removed(outcome: Removed) -> Exception:
    """The refusal of a withdrawal."""
    if outcome == "late":
        told = "the phase of this reply is over, and its result is public"
        return Refused(410, "late", told)
    if outcome == "different":
        return Refused(409, "not_stored", "there is another reply to this ticket")
    return not_stored(outcome)
