"""The OpenAPI document: what the framework reads off the handlers, and what travels in them."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Reference, SecurityScheme

from dpfda.protocol.schema import wire_schema

WORDS = """A collector asks people questions that their own devices answer with randomized values.

Anybody may read plans and models. A person needs a token, for one task and one reply; whoever runs
the collector needs its key. Tasks, replies and plans have schemas here; how a plan is hashed and a
reply drawn is written down in the project's documentation of its wire format."""

SECURITY: dict[str, SecurityScheme | Reference] = {
    "token": SecurityScheme(
        type="http", scheme="bearer", description="a person's token, from `enrol` or an invitation"
    ),
    "key": SecurityScheme(
        type="http", scheme="bearer", description="the administrator's key of this collector"
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
"""Fields that hold plain values for the framework, and what they really are."""


class Described(JsonRenderPlugin):
    """The document as JSON, with the schemas of plans, tasks, replies, receipts and models."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document."""
        parts = openapi_schema["components"]
        schemas = parts["schemas"] | _wire()
        for (name, field), kind in _SAID.items():
            fields = schemas[name]["properties"] | {field: {"$ref": _PLACE + kind}}
            schemas[name] = schemas[name] | {"properties": fields}
        return msgspec.json.encode(openapi_schema | {"components": parts | {"schemas": schemas}})


@cache
def _wire() -> dict[str, Any]:
    found: dict[str, Any] = wire_schema(at=_PLACE)["$defs"]
    return found
