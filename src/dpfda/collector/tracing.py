"""Spans for OpenTelemetry: what takes long in a collector, and for which study.

Spans are created if the extra ``tracing`` is installed and `OTEL_EXPORTER_OTLP_ENDPOINT` is set.
Requests of participants have no spans: tickets are numbered in the order of requests, so their
times would disclose who holds which ticket.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Tracing:
    """Creates spans; does nothing if tracing is not configured.

    Examples:
        >>> with Tracing().span("conclude", study="a"):
        ...     pass
    """

    def __init__(self) -> None:
        self._tracer: Tracer | None = None

    def start(self) -> None:
        """Start sending spans in a separate thread, if the environment sets an endpoint."""
        if not os.environ.get(ENDPOINT):
            return
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        name = os.environ.get("OTEL_SERVICE_NAME", "dpfda")
        self._provider = TracerProvider(resource=Resource.create({"service.name": name}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("dpfda.collector")

    def stop(self) -> None:
        """Send the remaining spans."""
        if self._tracer is not None:
            self._provider.shutdown()

    @contextmanager
    def span(self, name: str, **attributes: str | int) -> Iterator[None]:
        """A span for the block; of an error only its type is recorded."""
        if self._tracer is None:
            yield
            return
        started = self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        )
        with started as span:
            try:
                yield
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                raise

    def request(self, method: str, route: str, status: int, began: int, study: str) -> None:
        """Record a finished request that began at this time, in nanoseconds since 1970."""
        if self._tracer is None:
            return
        attributes = {"http.request.method": method, "http.route": route, "study": study}
        attributes |= {"http.response.status_code": status}  # type: ignore[dict-item]
        span = self._tracer.start_span(f"{method} {route}", start_time=began, attributes=attributes)
        span.end()


tracing = Tracing()
"""The tracing of this process."""
