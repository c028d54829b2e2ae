"""The OpenAPI document: the framework's description of the handlers, and the message schemas."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import msgspec
from litestar import Litestar
from litestar.openapi.spec import Reference, SecurityScheme

from dpfda.collector.middleware import Application, Receive, Scope, Send
from dpfda.protocol.schema import wire_schema

WORDS = """A collector asks people questions that their own devices answer with randomized values.

Anybody may read plans, and results of studies that are open to anybody; results of other studies
are for their participants and for organizers. A person needs a token, for one task and one reply.
An organizer needs a key: a viewer's reads, an owner's also creates studies and changes their own,
and the administrator's is good for everything. Tasks, replies and plans have schemas here; how a
plan is hashed and a reply drawn is written down in the documentation of the wire format."""

SECURITY: dict[str, SecurityScheme | Reference] = {
    "token": SecurityScheme(
        type="http", scheme="bearer", description="a person's token, from `enrol` or an invitation"
    ),
    "key": SecurityScheme(
        type="http", scheme="bearer", description="the key of an organizer of this collector"
    ),
}
TOKEN: list[dict[str, list[str]]] = [{"token": []}]
KEY: list[dict[str, list[str]]] = [{"key": []}]

_PLACE = "#/components/schemas/"
_SAID = {
    ("StudyStatus", "plan"): "StudyPlan",
    ("TaskMessage", "task"): "Task",
    ("ModelEntry", "model"): "Model",
}
"""Schemas of fields that the framework knows only as plain values."""


PATH = "/openapi/openapi.json"
_ERROR = {
    "type": "object",
    "required": ["error"],
    "description": "Why a request was refused; `code` is for programs, `message` for people.",
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "retry_after": {"type": "integer", "description": "seconds"},
            },
        }
    },
}
_MEANING = {
    202: "There is no free task now: ask again.",
    400: "Malformed, or not what this interface takes.",
    401: "The token or the key is missing or wrong.",
    403: "Not this person's study or ticket, not this organizer's, or only for invited people.",
    404: "There is nothing of that name.",
    409: "Not in this state: answered, existing, or another phase.",
    410: "Too late.",
    413: "Too large.",
    422: "Not possible with these values.",
    424: "Another collector did not do its part.",
    429: "Too often, or too many from one address.",
    500: "Something went wrong in the collector.",
    503: "Nothing can be stored now, or this study cannot go on.",
}
_STUDY = "/api/studies/{study}"
_RESULTS = (401, 404, 409)
_REFUSALS: dict[tuple[str, str], tuple[int, ...]] = {
    ("get", "/api/studies"): (401,),
    ("post", "/api/studies"): (401, 403, 409, 413, 422),
    ("post", "/api/exchanges"): (401, 403, 404, 409, 413, 422, 424),
    ("get", _STUDY): (404, 409),
    ("delete", _STUDY): (401, 403, 404),
    ("post", _STUDY + "/tokens"): (401, 403, 404, 410, 413),
    ("post", _STUDY + "/owner"): (401, 403, 404, 413, 422),
    ("post", _STUDY + "/enrol"): (403, 404, 410, 413),
    ("get", _STUDY + "/task"): (202, 401, 403, 404, 409, 410),
    ("post", _STUDY + "/reply"): (401, 403, 404, 409, 410, 413, 422),
    ("post", _STUDY + "/withdraw"): (401, 403, 404, 409, 410, 413),
    ("post", _STUDY + "/replies"): (401, 404, 413),
    ("delete", _STUDY + "/replies"): (401, 403, 404),
    ("post", _STUDY + "/phases/{phase}/close"): (401, 403, 404, 409),
    ("get", _STUDY + "/phases/{phase}/replies"): (401, 404),
    ("get", _STUDY + "/receipts/{receipt}"): (404,),
    ("get", _STUDY + "/model"): _RESULTS,
    ("get", _STUDY + "/models"): _RESULTS,
    ("get", _STUDY + "/verdict"): _RESULTS,
    ("post", "/api/clock"): (401, 403),
    ("get", "/api/organizers"): (401,),
    ("post", "/api/organizers"): (401, 403, 409, 413, 422),
    ("delete", "/api/organizers/{name}"): (401, 403, 404),
    ("post", "/api/organizers/{name}/key"): (401, 403, 404, 409),
    ("get", "/api/activity"): (401,),
    ("get", "/health"): (401,),
    ("head", "/health"): (401,),
}
"""Statuses of refusals; in addition, every request may be answered with 400, 429, 500 or 503."""


def describe(found: dict[str, Any]) -> bytes:
    """The document as JSON, with the schemas of plans, tasks, replies, receipts and models.

    Args:
        found: the framework's description of the handlers.
    """
    parts = found["components"]
    schemas = parts["schemas"] | _wire() | {"Error": _ERROR}
    for (name, field), kind in _SAID.items():
        fields = schemas[name]["properties"] | {field: {"$ref": _PLACE + kind}}
        schemas[name] = schemas[name] | {"properties": fields}
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            for status in sorted({*_REFUSALS[method, path], 400, 429, 500, 503}):
                schema = {"$ref": _PLACE + "Error"}
                if path == "/health" and status == 503:
                    schema = {"$ref": _PLACE + "Failing"}
                content = {} if method == "head" else {"application/json": {"schema": schema}}
                answers[str(status)] = {"description": _MEANING[status], "content": content}
            if method == "delete" and "200" in answers:  # the deletion continues in the background
                answers["202"] = answers["200"]
    return msgspec.json.encode(found | {"components": parts | {"schemas": schemas}})


class Document:
    """Serves the OpenAPI document, which is created once and kept in memory.

    Args:
        application: serves every other request.
        framework: describes the handlers.
    """

    def __init__(self, application: Application, framework: Litestar) -> None:
        self.application = application
        self._framework = framework
        self._body: bytes | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "GET":
            await self.application(scope, receive, send)
            return
        scope["path_template"] = PATH
        async with self._making:
            if self._body is None:
                self._body = await asyncio.to_thread(self._make)
        headers = [
            (b"content-type", b"application/vnd.oai.openapi+json"),
            (b"content-length", b"%d" % len(self._body)),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})

    def _make(self) -> bytes:
        return describe(self._framework.openapi_schema.to_schema())


@cache
def _wire() -> dict[str, Any]:
    found: dict[str, Any] = wire_schema(at=_PLACE)["$defs"]
    return found
