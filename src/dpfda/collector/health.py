"""For whoever looks after a collector: is it well, and numbers for Prometheus."""

from __future__ import annotations

import time

import msgspec
from litestar import MediaType, get
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


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``ok``; or ``stuck`` if some studies cannot go on: the others can, so this is no failure."""

    status: str
    studies_stuck: int = 0
    stuck: list[Stuck] = []


@get("/health", media_type=MediaType.JSON)
async def health(collector: NamedDependency[Collector]) -> Health:
    """Whether the storage answers, and which studies are stuck since when."""
    await collector.totals()
    known = collector.stuck.listed()
    return Health(
        status="stuck" if known else "ok",
        studies_stuck=len(collector.stuck),
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


@get("/metrics", media_type="text/plain; version=0.0.4")
async def show_metrics(
    collector: NamedDependency[Collector], metrics: NamedDependency[Metrics]
) -> str:
    """Numbers for Prometheus: requests and commits are of this process, since it started."""
    totals = await collector.totals()
    gauges: dict[str, float] = {
        "studies": totals.studies,
        "studies_finished": totals.finished,
        "studies_stuck": len(collector.stuck),
        "people_enrolled": totals.enrolled,
        "reply_commits": collector.replies.groups,
        "replies_committed": collector.replies.items,
    }
    now = time.time()
    for one in collector.stuck.listed():
        gauges[f'study_stuck_seconds{{study="{one.study}"}}'] = round(now - one.since, 3)
    return metrics.text(gauges)
