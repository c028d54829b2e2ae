"""Sessions of the dashboard, and the parsing of its forms.

A session is a signed cookie; each form contains a secret token of its session. A session ends after
some hours, when the organizer's key is replaced, or when the organizer signs out. Ended sessions
are stored until they would have expired.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from email.message import Message
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from litestar import Request, Response
from litestar.datastructures import Cookie, State
from litestar.di import NamedDependency
from multipart import PushMultipartParser

from dpfda.collector.organizers import FIRST, Account
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import Settings
from dpfda.curves.files import Handed

_COOKIE = "dpfda_session"
_SECONDS = 8 * 3600


class NotSignedIn(Refused):
    """The visitor is not signed in; the browser is redirected to the sign-in form."""

    def __init__(self) -> None:
        super().__init__(401, "not_signed_in", "sign in first")


def new_session(settings: Settings, now: float, account: Account = FIRST) -> Cookie:
    """The cookie of a session of limited duration; `now` is the time of `Collector.clock`."""
    content = f"{int(now) + _SECONDS}.{secrets.token_urlsafe(16)}.{account.name}"
    return _cookie(settings, f"{content}.{_signature(settings, content, account)}", _SECONDS)


def _signature(settings: Settings, content: str, account: Account) -> str:
    """A signature that depends on the content and on the organizer's current key."""
    return _sign(settings, "session", f"{content}.{account.key.hex()}")


def no_session(settings: Settings) -> Cookie:
    """The cookie after signing out."""
    return _cookie(settings, "", 0)


class Visitor(NamedTuple):
    """The signed-in visitor of a page: id and end of the session, token of its forms, organizer."""

    session: bytes
    until: float
    csrf: str
    account: Account = FIRST


def claimed_name(request: Request[Any, Any, Any]) -> str:
    """The organizer's name in the cookie, not verified yet; `require_session` verifies it."""
    return str(request.cookies.get(_COOKIE, "")).rpartition(".")[0].rpartition(".")[2]


def require_session(
    request: Request[Any, Any, Any], settings: Settings, now: float, account: Account = FIRST
) -> Visitor:
    """The verified session of a request, or an error. Sign-outs are not checked here.

    Args:
        request: contains the cookie.
        settings: contain the secret that signs sessions.
        now: in seconds.
        account: of `claimed_name`.
    """
    cookie = request.cookies.get(_COOKIE, "")
    content, _, signature = cookie.rpartition(".")
    expires, _, rest = content.partition(".")
    expected = _signature(settings, content, account)
    if rest.rpartition(".")[2] != account.name:
        raise NotSignedIn
    good = hmac.compare_digest(signature.encode(), expected.encode())
    if not good or not expires.isdigit() or int(expires) < now:
        raise NotSignedIn
    name = hashlib.sha256(content.encode()).digest()
    return Visitor(name, float(expires), csrf_token(settings, cookie), account)


def csrf_token(settings: Settings, cookie: str) -> str:
    """The secret token of the forms of one session, unknown to other sites."""
    return _sign(settings, "csrf", cookie)


def check_form(expected: str, form: dict[str, str], request: Request[Any, Any, Any]) -> None:
    """Refuse a form that was not created here for this session."""
    elsewhere = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if elsewhere or not hmac.compare_digest(form.get("csrf", "").encode(), expected.encode()):
        raise Refused(403, "foreign_form", "this form is not from this session")


def _sign(settings: Settings, purpose: str, content: str) -> str:
    return hmac.new(settings.secret(purpose), content.encode(), hashlib.sha256).hexdigest()


def _cookie(settings: Settings, value: str, seconds: int) -> Cookie:
    return Cookie(
        _COOKIE,
        value=value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=settings.secure_cookies,
    )


_FIELDS = 80
_LONGEST_FILE_NAME = 100  # characters of a file's name


def posted(body: bytes, kind: str) -> tuple[dict[str, str], Handed | None]:
    r"""Parse the fields and the file of a form, in memory.

    Examples:
        >>> body = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
        >>> posted(body, "multipart/form-data; boundary=x")
        ({'a': '1'}, None)
        >>> posted(b"a=1&b=2", "application/x-www-form-urlencoded")
        ({'a': '1', 'b': '2'}, None)
    """
    header = Message()
    header["Content-Type"] = kind
    fields: dict[str, str] = {}
    file: Handed | None = None
    try:
        if header.get_content_type() != "multipart/form-data":
            return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_FIELDS)), None
        for name, filename, content in _segments(body, str(header.get_boundary() or "")):
            if filename is None:
                fields[name] = content.decode("utf-8", "replace")
            elif filename and file is None:  # an empty name means that no file was chosen
                file = Handed(
                    filename.replace("\\", "/").rpartition("/")[2][-_LONGEST_FILE_NAME:], content
                )
    except (ValueError, LookupError):
        raise Refused(400, "malformed", "the form cannot be read") from None
    return fields, file


def _segments(body: bytes, boundary: str) -> list[tuple[str, str | None, bytes]]:
    found: list[tuple[str, str | None, bytes]] = []
    with PushMultipartParser(boundary, max_segment_count=_FIELDS, strict=True) as parser:
        head, parts = None, [b""]
        for event in parser.parse(body):
            if isinstance(event, (bytes, bytearray)):
                parts.append(bytes(event))
            elif event is not None:
                head, parts = event, [b""]
            elif head is not None:
                found.append((head.name, head.filename, b"".join(parts)))
    return found


Asked = Request[Any, Any, State]
Page = Response[Any]
Visiting = NamedDependency[Visitor]
SMALL = 16 * 1024
"""Largest size in bytes of other forms."""
LARGE = 8 * SMALL
"""Largest size in bytes of the form for a study, which contains paragraphs."""


def go(address: str) -> Page:
    """Redirect the browser."""
    return Response("", status_code=303, headers={"Location": address})


async def form_in(request: Asked) -> dict[str, str]:
    """The fields of a form."""
    return posted(await request.body(), request.headers.get("content-type", ""))[0]


async def own_form(request: Asked, csrf: str) -> dict[str, str]:
    """The fields of a form of this session; forms of other sites are refused."""
    form = await form_in(request)
    check_form(csrf, form, request)
    return form
