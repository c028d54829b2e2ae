"""Pages elsewhere hear what people ask for, if the operator allows them, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda
from dpfda.collector.app import create_app
from dpfda.collector.middleware import Origins, checked_origin
from dpfda.collector.settings import Settings

HERE = "https://studies.example"
STUDY = f"/api/studies/{'0' * 16}"
OPEN = [
    *(("GET", ""), ("GET", "/task"), ("POST", "/enrol"), ("POST", "/reply")),
    ("GET", "/receipts/0-0-ab"),
]
CLOSED = [
    *(("DELETE", ""), ("POST", ""), ("POST", "/replies"), ("GET", "/model"), ("POST", "/task")),
    *(("POST", "/invitations"), ("GET", "/phases/0/replies"), ("GET", "/receipts/a/b")),
    *(("GET", "/../../health"), ("GET", "/enrol")),
]


async def inner(scope: Any, receive: Any, send: Any) -> None:
    """Whatever is asked for."""
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"inner"})


def asked(
    method: str, path: str, origin: str | None, about: str = "", allowed: Any = (HERE,)
) -> tuple[int, dict[str, str], bytes]:
    """Status, head and body of an answer."""
    heads = {"origin": origin, "access-control-request-method": about}
    given = [(name.encode(), value.encode()) for name, value in heads.items() if value]
    scope = {"type": "http", "method": method, "path": path, "headers": given}
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(Origins(inner, allowed)(scope, None, send))  # type: ignore[arg-type]
    head = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return said[0]["status"], head, said[1]["body"]


@pytest.mark.parametrize(("method", "path"), OPEN)
def test_what_people_ask_for_is_open(method: str, path: str) -> None:
    told = {"access-control-allow-origin": HERE, "vary": "origin"}
    status, head, body = asked("OPTIONS", STUDY + path, HERE, method)
    assert (status, body) == (204, b"")
    assert head == told | {
        "access-control-allow-methods": method,
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "600",
    }
    status, head, body = asked(method, STUDY + path, HERE)
    assert (status, body) == (200, b"inner")
    assert head == told | {"content-type": "text/plain"}


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_nothing_else_is(method: str, path: str) -> None:
    for one, about in ((method, ""), ("OPTIONS", method)):
        _, head, body = asked(one, STUDY + path, HERE, about)
        assert (head, body) == ({"content-type": "text/plain"}, b"inner")


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", f"{HERE}.evil.example"])
def test_other_pages_hear_nothing(origin: str | None) -> None:
    for one, about in (("GET", ""), ("OPTIONS", "GET")):
        _, head, body = asked(one, STUDY, origin, about)
        assert (head, body) == ({"content-type": "text/plain"}, b"inner")
    _, head, _ = asked("OPTIONS", STUDY, HERE)  # about nothing
    assert head == {"content-type": "text/plain"}


def test_the_origin_that_asked_is_answered() -> None:
    both = Origins(inner, iter((HERE, "https://b.example")))
    for origin in (HERE, "https://b.example", HERE):
        assert origin.encode() in both._allowed
        _, head, _ = asked("GET", STUDY, origin, allowed=(HERE, "https://b.example"))
        assert head["access-control-allow-origin"] == origin


def layers(application: Any) -> list[Any]:
    """An application and those that it wraps, from the outermost on."""
    inner = getattr(application, "application", None)
    return [application] if inner is None else [application, *layers(inner)]


def test_only_who_is_told_to_listens() -> None:
    plain = Settings(database="memory:", admin_key="k" * 22)
    told = Settings(database="memory:", admin_key="k" * 22, origins=(HERE,))
    assert not any(isinstance(layer, Origins) for layer in layers(create_app(plain)))
    assert any(isinstance(layer, Origins) for layer in layers(create_app(told)))


def test_what_is_not_a_request_passes() -> None:
    seen: list[str] = []

    async def life(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    scope = {"type": "lifespan"}
    asyncio.run(Origins(life, (HERE,))(scope, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


@pytest.mark.parametrize(
    "origin",
    [
        *("*", "null", "", "studies.example", "http://studies.example", "https://Studies.example"),
        *("https://studies.example/", "https://studies.example/a", "https://a@b.example"),
        *("https://b.example:port", "ftp://b.example", "https://b.example?x", "https://bü.example"),
        *("https://", "https://a b.example", "http://127.0.0.1.example"),
    ],
)
def test_what_is_no_origin(origin: str) -> None:
    said = CliRunner().invoke(dpfda, ["serve", "--port", "0", "--allow-origin", origin])
    assert said.exit_code == 2, said.output
    assert "--allow-origin must be such as https://studies.example" in said.output


def test_what_is_an_origin() -> None:
    for origin in (HERE, f"{HERE}:8443", "http://127.0.0.1:1", "http://localhost", "http://[::1]"):
        assert checked_origin(origin) == origin
