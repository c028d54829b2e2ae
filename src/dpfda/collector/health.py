"""For whoever looks after a collector: is it well, and numbers for Prometheus."""

from __future__ import annotations

import time

import msgspec
from litestar import MediaType, Response, get
from litestar.di import NamedDependency

from dpfda.collector.metrics import Metrics
from dpfda.collector.service import Collector


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """A study that cannot go on; what it failed with is in the log beside the same id."""

    study: str
    phase: int
    since: str
    attempts: int
    error: str


class Failing(msgspec.Struct, frozen=True):
    """Nothing can be stored; why."""

    reason: str
    status: str = "failing"


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``ok``; or ``stuck`` if some studies cannot go on: the others can, so this is no failure."""

    status: str
    studies_stuck: int = 0
    stuck: list[Stuck] = []


@get("/health", media_type=MediaType.JSON)
async def health(collector: NamedDependency[Collector]) -> Response[Health | Failing]:
    """Whether replies can be stored (503 if not), and which studies are stuck since when."""
    trouble = await collector.pulse.trouble()
    if trouble:
        return Response(Failing(trouble), status_code=503, headers={"Retry-After": "1"})
    known = collector.watcher.stuck.listed()
    found = Health(
        status="stuck" if known else "ok",
        studies_stuck=len(collector.watcher.stuck),
        stuck=[
            Stuck(
                study=one.study,
                phase=one.phase,
                since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.since)),
                attempts=one.attempts,
                error=one.error,
            )
            for one in known
        ],
    )
    return Response(found)


@get("/metrics", media_type="text/plain; version=0.0.4")
async def show_metrics(
    collector: NamedDependency[Collector], metrics: NamedDependency[Metrics]
) -> str:
    """Numbers for Prometheus: requests and commits are of this process, since it started."""
    works = not await collector.pulse.trouble()
    gauges: dict[str, float] = {
        "storage_up": works,
        "studies_stuck": len(collector.watcher.stuck),
        "reply_commits": collector.replies.groups,
        "replies_committed": collector.replies.items,
    }
    if works:  # or else nobody answers
        totals = await collector.totals()
        gauges |= {"studies": totals.studies, "studies_finished": totals.finished}
        gauges |= {"people_enrolled": totals.enrolled}
    now = time.time()
    for one in collector.watcher.stuck.listed():
        gauges[f'study_stuck_seconds{{study="{one.study}"}}'] = round(now - one.since, 3)
    return metrics.text(gauges)
