"""The application: service, interface and pages put together."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
from litestar import Litestar, MediaType, Request, Response
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components
from litestar.template import TemplateConfig

from dpfda._version import __version__
from dpfda.collector import api
from dpfda.collector.health import health, live, ready, show_metrics
from dpfda.collector.limits import AdminAuth, Places, RateLimit
from dpfda.collector.log import log_to_stderr
from dpfda.collector.metrics import Metrics
from dpfda.collector.middleware import (
    Application,
    LargeBodies,
    Observed,
    Origins,
    ProcessorTime,
    Separated,
)
from dpfda.collector.openapi import SECURITY, WORDS, Document
from dpfda.collector.pages import routes
from dpfda.collector.pages.session import NotSignedIn
from dpfda.collector.pages.templating import ENGINE, page, text
from dpfda.collector.people import People
from dpfda.collector.refusal import Refused, error_body
from dpfda.collector.service import Collector
from dpfda.collector.settings import Settings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Unavailable
from dpfda.collector.tracing import tracing
from dpfda.errors import DpfdaError

ENVIRONMENT = "DPFDA_COLLECTOR"
_YOUNG = 20_000  # new objects between two runs of the garbage collector
log = logging.getLogger("dpfda.collector")


def create_app(settings: Settings) -> Observed:
    """A collector, ready for an ASGI server."""
    metrics = Metrics()
    limit = RateLimit(rate=settings.rate, burst=settings.burst)

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        collector = Collector(
            open_storage(settings.database),
            group=settings.group,
            places=Places(most=settings.enrolments, processes=settings.processes),
            metrics=metrics,
            purge_after=settings.purge_after,
        )
        keyhole = AdminAuth(settings, organizers=collector.organizers)
        people.collector = collector
        app.state.update(collector=collector, keyhole=keyhole, settings=settings)
        tracing.start()
        await collector.start()
        yield
        await collector.stop()
        tracing.stop()

    async def collector_of(state: State) -> Collector:
        found: Collector = state.collector
        return found

    application = Litestar(
        [api.router("/api"), *routes.HANDLERS, health, live, ready, show_metrics],
        lifespan=[lifespan],
        dependencies={
            "collector": Provide(collector_of),
            # Not "settings", because the framework would confuse it with a field of a request body.
            "configuration": Provide(lambda: settings, sync_to_thread=False),
            "visitor": Provide(routes.signed_in),
            "metrics": Provide(lambda: metrics, sync_to_thread=False),
        },
        exception_handlers={**_HANDLERS, Refused: _refused_somewhere},
        template_config=TemplateConfig(instance=ENGINE),
        openapi_config=OpenAPIConfig(
            title="dpfda collector",
            version=__version__,
            path="/openapi",
            description=WORDS,
            components=Components(security_schemes=SECURITY),
            use_handler_docstrings=True,
            render_plugins=[JsonRenderPlugin()],
        ),
        debug=False,
        logging_config=None,
    )
    document = Document(cast("Application", application), application)
    people = People(document, limit, _HANDLERS)
    served: Application = people
    if settings.origins:
        served = Origins(served, settings.origins)
    if settings.admin_port is not None:
        served = Separated(served, settings.admin_port)
    bounded = ProcessorTime(LargeBodies(served), refused=metrics.refused_busy)
    return Observed(bounded, metrics, secure=settings.secure_cookies)


def from_environment() -> Observed:
    """Create the application from settings in the environment, which other users cannot read."""
    log_to_stderr()
    application = create_app(msgspec.json.decode(os.environ[ENVIRONMENT], type=Settings))
    # Requests create many small objects and hardly any cycles. With the default thresholds, garbage
    # collection over all imported modules took most of the time of a reply.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
    return application


def _sign_in(_: Request[Any, Any, Any], __: NotSignedIn) -> Response[str]:
    return Response("", status_code=303, headers={"Location": "/login"})


def _refused(_: Request[Any, Any, Any], error: Refused) -> Response[dict[str, Any]]:
    pause = error.details.get("retry_after")
    headers = {} if pause is None else {"Retry-After": str(pause)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(error.to_dict(), status_code=error.status, headers=headers)


def _refused_somewhere(request: Request[Any, Any, Any], error: Refused) -> Response[Any]:
    """The refusal as a page for browsers, which accept HTML; otherwise as JSON."""
    told = _refused(request, error)
    asked = str(request.headers.get("accept", ""))
    if "text/html" not in asked or request.url.path.startswith("/api"):
        return told
    return Response(
        text(page("refused", told=str(error), visitor=None)),
        media_type=MediaType.HTML,
        status_code=told.status_code,
        headers=told.headers,
    )


def _http_error(_: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    # Litestar's messages quote the request, so only the status is used.
    status = error.status_code
    code = {400: "malformed", 404: "not_found", 405: "method", 413: "too_large"}.get(status, "http")
    return Response(
        error_body(code, f"HTTP {status}: the request is not one this interface knows"),
        status_code=status,
        headers=error.headers or {},
    )


def _unavailable(_: Request[Any, Any, Any], error: Unavailable) -> Response[dict[str, Any]]:
    log.error("storage unavailable", extra={"fields": {"reason": str(error)}})
    return Response(
        error_body("storage", f"nothing can be stored now: {error}"),
        status_code=503,
        headers={"Retry-After": "5"},
    )


def _package_error(_: Request[Any, Any, Any], error: DpfdaError) -> Response[dict[str, Any]]:
    return Response(error_body("bad_request", " ".join(str(error).split())[:500]), status_code=422)


def _unexpected(_: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    if isinstance(error, RecursionError):  # JSON that is nested thousands deep
        return Response(error_body("malformed", "the body is nested too deep"), status_code=400)
    if isinstance(error, UnicodeDecodeError):  # JSON with bytes that are not UTF-8
        return Response(error_body("malformed", "the body is not UTF-8"), status_code=400)
    log.error("unexpected", exc_info=(type(error), error, error.__traceback__))
    return Response(error_body("internal", "something went wrong here"), status_code=500)


_HANDLERS: dict[int | type[Exception], Any] = {
    NotSignedIn: _sign_in,
    Refused: _refused,
    HTTPException: _http_error,
    Unavailable: _unavailable,
    DpfdaError: _package_error,
    Exception: _unexpected,
}
