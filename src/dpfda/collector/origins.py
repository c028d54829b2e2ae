"""Pages of other hosts that may talk to this collector in a person's browser.

A browser asks before a page of one host talks to another one, and refuses without an answer. So it
stays, unless the operator names an origin: somebody may then serve the page on which people take
part from a host that they trust more than the collector. Only what people ask for is opened; the
organizer's interface and the dashboard are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from typing import Any

from dpfda.client.http import is_loopback
from dpfda.collector.observed import Receive, Scope, Send
from dpfda.errors import InvalidParameter

_ORIGIN = re.compile(r"(https?)://([a-z0-9][a-z0-9.-]*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?")
_STUDY = r"/api/studies/[0-9a-f]{1,64}"
_ROUTES = {
    b"GET": re.compile(rf"{_STUDY}(?:/task|/receipts/[^/]+)?"),
    b"POST": re.compile(rf"{_STUDY}/(?:enrol|reply)"),
}
_ALLOWED = [
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


def checked_origin(origin: str, *, name: str = "--allow-origin") -> str:
    """An origin as browsers write it.

    Examples:
        >>> checked_origin("https://studies.example")
        'https://studies.example'
    """
    found = _ORIGIN.fullmatch(origin)
    if found is None or not (found[1] == "https" or is_loopback(found[2].strip("[]"))):
        rule = "such as https://studies.example: encrypted, no path, in lower case"
        raise InvalidParameter(name, rule, origin)
    return origin


class Origins:
    """An application that pages of these origins may use, as far as people take part.

    Args:
        application: serves every request.
        allowed: origins, as `checked_origin` has them.
    """

    def __init__(self, application: Any, allowed: Iterable[str]) -> None:
        self.application = application
        self._allowed = frozenset(origin.encode() for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        heads = dict(scope["headers"]) if scope["type"] == "http" else {}
        origin = heads.get(b"origin")
        asks = scope.get("method") == "OPTIONS"
        method = heads.get(b"access-control-request-method") if asks else _method(scope)
        route = _ROUTES.get(method or b"")
        if origin not in self._allowed or route is None or not route.fullmatch(scope["path"]):
            await self.application(scope, receive, send)
            return
        told = [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        if asks:
            scope["path_template"] = "/api/studies/{study}"
            headers = [*told, (b"access-control-allow-methods", method), *_ALLOWED]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return

        async def telling(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *told]
            await send(message)

        await self.application(scope, receive, telling)


def _method(scope: Scope) -> bytes:
    return str(scope.get("method", "")).encode()
