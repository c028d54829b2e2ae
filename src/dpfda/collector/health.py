"""Health checks of a collector, and metrics for Prometheus."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from litestar import HttpMethod, MediaType, Request, Response, get, route
from litestar.di import NamedDependency

from dpfda.collector.api import Service, require_key
from dpfda.collector.metrics import Metrics
from dpfda.collector.service import Collector
from dpfda.collector.watcher import AtWork

_READS = [HttpMethod.GET, HttpMethod.HEAD]
LONG = 60.0  # seconds of one conclusion
LONGEST_WAIT = 3.0  # seconds that a write may wait; a group commit takes milliseconds
WAITING = "the oldest write has waited"


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """A study that cannot continue; the log has the error under the same id."""

    study: str
    phase: int
    since: str
    attempts: int
    error: str


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A study whose phase takes long to conclude; the phases of other studies wait for it."""

    study: str
    phase: int
    since: str


class Alive(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str = "ok"


class Failing(msgspec.Struct, frozen=True):
    """Nothing can be stored; `reason` states why."""

    reason: str
    status: str = "failing"


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state: ``ok``, ``stuck``, ``slow`` or ``clock``.

    ``stuck``: some studies cannot continue; others can, so this is not a failure. ``slow``: the
    conclusion of one phase has taken more than a minute. ``clock``: the system clock has jumped by
    more than a minute; deadlines do not follow it until an operator confirms it (``dpfda studies
    confirm-clock``).
    """

    status: str
    clock_jump_seconds: int = 0
    slow: Slow | None = None
    studies_stuck: int = 0
    stuck: list[Stuck] = []


@route("/health", http_method=_READS, media_type=MediaType.JSON)
async def health(request: Request[Any, Any, Any], collector: Service) -> Response[Health | Failing]:
    """Whether replies can be stored (503 if not), and how many studies are stuck.

    With the key also which studies are stuck or slow, and since when.
    """
    trouble = await trouble_of(collector)
    if trouble:
        return Response(Failing(trouble), status_code=503, headers={"Retry-After": "1"})
    known, jump = collector.watcher.stuck.listed(), round(collector.clock.jump())
    slow = _slow(collector.watcher.at_work)
    named = request.headers.get("authorization") is not None
    if named:
        await require_key(request, None)
    found = Health(
        status="clock" if jump else "stuck" if known else "slow" if slow else "ok",
        clock_jump_seconds=jump,
        slow=slow if named else None,
        studies_stuck=len(collector.watcher.stuck),
        stuck=[
            Stuck(
                study=one.study,
                phase=one.phase,
                since=_written(one.since),
                attempts=one.attempts,
                error=one.error,
            )
            for one in known
            if named
        ],
    )
    return Response(found)


async def trouble_of(collector: Collector) -> str:
    """Why replies cannot be stored now; empty if they can.

    A probe writes to a separate table, so it does not detect every lock. Other locks are detected
    by the waiting time of the oldest write.
    """
    waited = collector.pending.oldest()
    if waited > LONGEST_WAIT:
        return f"{WAITING} {waited:.0f} s"
    return await collector.pulse.trouble()


def _slow(at_work: AtWork | None) -> Slow | None:
    if at_work is None or time.monotonic() - at_work.since <= LONG:
        return None
    study, phase, since = at_work
    return Slow(study=study, phase=phase, since=_written(since))


def _written(moment: float) -> str:
    """A time of the monotonic clock in ISO format."""
    passed = time.monotonic() - moment
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - passed))


@get("/metrics", media_type=MediaType.TEXT, include_in_schema=False)
async def show_metrics(
    request: Request[Any, Any, Any], collector: Service, metrics: NamedDependency[Metrics]
) -> Response[bytes]:
    """Numbers for Prometheus, of all worker processes together."""
    works = not await trouble_of(collector)
    collector.measure()
    totals = await collector.totals() if works else None  # otherwise the storage does not answer
    text, kind = metrics.text(request.headers.get("accept", ""), works=works, totals=totals)
    return Response(text, media_type=kind)


@route("/live", http_method=_READS, media_type=MediaType.JSON, include_in_schema=False)
async def live() -> Alive:
    """Whether the process answers; if not, restart it."""
    return Alive()


@route("/ready", http_method=_READS, media_type=MediaType.JSON, include_in_schema=False)
async def ready(collector: Service) -> Response[Alive | Failing]:
    """Whether this process can serve requests; 503 while nothing can be stored."""
    trouble = await trouble_of(collector)
    if trouble:
        return Response(Failing(trouble), status_code=503, headers={"Retry-After": "1"})
    return Response(Alive())
