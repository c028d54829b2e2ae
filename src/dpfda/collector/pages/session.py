"""Who is signed in: a signed cookie, and a token in every form that only its page knows.

A session ends by itself after some hours, or for good when somebody signs out: those that were
ended are remembered in the storage until they would have ended anyway.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Any, NamedTuple

from litestar import Request
from litestar.datastructures import Cookie

from dpfda.collector.refusal import Refused
from dpfda.collector.settings import Settings

_NAME = "dpfda_session"
_SECONDS = 8 * 3600


class NotSignedIn(Refused):
    """The page needs the key; the browser is sent to the form that asks for it."""

    def __init__(self) -> None:
        super().__init__(401, "not_signed_in", "sign in first")


def new_session(settings: Settings) -> Cookie:
    """A session that ends by itself."""
    content = f"{int(time.time()) + _SECONDS}.{secrets.token_urlsafe(16)}"
    return _cookie(settings, f"{content}.{_sign(settings, 'session', content)}", _SECONDS)


def no_session(settings: Settings) -> Cookie:
    """What signing out leaves behind."""
    return _cookie(settings, "", 0)


class Session(NamedTuple):
    """Somebody who is signed in: the session's name, its end, the token for its forms."""

    name: bytes
    until: float
    csrf: str


def require_session(request: Request[Any, Any, Any], settings: Settings) -> Session:
    """The session of a request, or a refusal. Whether it was ended, the storage knows."""
    cookie = request.cookies.get(_NAME, "")
    content, _, signature = cookie.rpartition(".")
    expires = content.partition(".")[0]
    expected = _sign(settings, "session", content)
    good = hmac.compare_digest(signature.encode(), expected.encode())
    if not good or not expires.isdigit() or int(expires) < time.time():
        raise NotSignedIn
    name = hashlib.sha256(content.encode()).digest()
    return Session(name, float(expires), csrf_token(settings, cookie))


def csrf_token(settings: Settings, cookie: str) -> str:
    """Belongs to one session; another site cannot know it."""
    return _sign(settings, "csrf", cookie)


def check_form(expected: str, form: dict[str, str], request: Request[Any, Any, Any]) -> None:
    """Refuse a form that was not made here, for this session."""
    elsewhere = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if elsewhere or not hmac.compare_digest(form.get("csrf", "").encode(), expected.encode()):
        raise Refused(403, "foreign_form", "this form is not from this session")


def _sign(settings: Settings, purpose: str, content: str) -> str:
    return hmac.new(settings.secret(purpose), content.encode(), hashlib.sha256).hexdigest()


def _cookie(settings: Settings, value: str, seconds: int) -> Cookie:
    return Cookie(
        _NAME,
        value=value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=settings.secure_cookies,
    )
