"""For whoever looks after a collector: is it well, and numbers for Prometheus."""

from __future__ import annotations

import time

import msgspec
from litestar import MediaType, Response, get
from litestar.di import NamedDependency

from dpfda.collector.metrics import Metrics
from dpfda.collector.service import Collector
from dpfda.collector.watcher import AtWork

LONG = 60.0  # seconds of one conclusion
LONGEST_WAIT = 3.0  # seconds that a write may wait; a group commit takes milliseconds
WAITING = "the oldest write has waited"


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """A study that cannot go on; what it failed with is in the log beside the same id."""

    study: str
    phase: int
    since: str
    attempts: int
    error: str


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A study whose phase has been concluded for long; the phases of others wait for it."""

    study: str
    phase: int
    since: str


class Failing(msgspec.Struct, frozen=True):
    """Nothing can be stored; why."""

    reason: str
    status: str = "failing"


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``ok``; or ``stuck`` if some studies cannot go on: the others can, so this is no failure.

    ``slow`` if conclusions have been drawn from one phase for more than a minute; ``clock`` if the
    system's clock has jumped by more than a minute: deadlines do not follow it until an operator
    confirms that it is right (``dpfda studies confirm-clock``).
    """

    status: str
    clock_jump_seconds: int = 0
    slow: Slow | None = None
    studies_stuck: int = 0
    stuck: list[Stuck] = []


@get("/health", media_type=MediaType.JSON)
async def health(collector: NamedDependency[Collector]) -> Response[Health | Failing]:
    """Whether replies can be stored (503 if not), and which studies are stuck since when."""
    trouble = await trouble_of(collector)
    if trouble:
        return Response(Failing(trouble), status_code=503, headers={"Retry-After": "1"})
    known, jump = collector.watcher.stuck.listed(), round(collector.clock.jump())
    slow = _slow(collector.watcher.at_work)
    found = Health(
        status="clock" if jump else "stuck" if known else "slow" if slow else "ok",
        clock_jump_seconds=jump,
        slow=slow,
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
        ],
    )
    return Response(found)


async def trouble_of(collector: Collector) -> str:
    """Why replies cannot be stored now; empty if they can.

    A probe writes to a table of its own, so it does not meet every lock. How long the oldest write
    has waited shows the others.
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
    """A time of the monotonic clock as people write it."""
    passed = time.monotonic() - moment
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - passed))


@get("/metrics", media_type="text/plain; version=0.0.4")
async def show_metrics(
    collector: NamedDependency[Collector], metrics: NamedDependency[Metrics]
) -> str:
    """Numbers for Prometheus: requests and commits are of this process, since it started."""
    works, at_work = not await trouble_of(collector), collector.watcher.at_work
    gauges: dict[str, float] = {
        "storage_up": works,
        "studies_stuck": len(collector.watcher.stuck),
        "concluding_seconds": 0.0
        if at_work is None
        else round(time.monotonic() - at_work.since, 3),
        "clock_jump_seconds": round(collector.clock.jump(), 3),
        "writes_waiting": collector.pending.depth,
        "oldest_write_seconds": round(collector.pending.oldest(), 3),
        "reply_commits": collector.replies.groups,
        "replies_committed": collector.replies.items,
    }
    if works:  # or else nobody answers
        totals = await collector.totals()
        gauges |= {"studies": totals.studies, "studies_finished": totals.finished}
        gauges |= {"people_enrolled": totals.enrolled}
    now = time.monotonic()
    for one in collector.watcher.stuck.listed():
        gauges[f'study_stuck_seconds{{study="{one.study}"}}'] = round(now - one.since, 3)
    return metrics.text(gauges)
