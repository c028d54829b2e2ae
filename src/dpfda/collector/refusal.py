"""What the collector answers to a request that it does not grant."""

from __future__ import annotations

from typing import Any

from dpfda.errors import DpfdaError


class Refused(DpfdaError):
    """A refusal with its HTTP status. The message never repeats what was sent."""

    def __init__(self, status: int, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details

    def to_dict(self) -> dict[str, Any]:
        """The one shape of every error."""
        return error_body(self.code, str(self), **self.details)


def error_body(code: str, message: str, **details: Any) -> dict[str, Any]:
    """The JSON of an error."""
    return {"error": {"code": code, "message": message, **details}}


def bad_plan(reason: object) -> Refused:
    """400; what is wrong with a plan names field, rule and value, which are public."""
    return Refused(400, "bad_plan", " ".join(str(reason).split())[:500])


def no_study() -> Refused:
    """404."""
    return Refused(404, "unknown_study", "there is no such study here")


def no_token() -> Refused:
    """401."""
    return Refused(401, "unknown_token", "this needs the token of somebody who is enrolled")
