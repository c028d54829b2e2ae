"""Metrics for Prometheus, equal for a scrape of any worker process.

Workers write their metrics to files in one directory, which `serve` creates and names in the
environment before a worker imports this module. A scrape adds them up: counters and histograms of
all workers since the start, gauges of those that are alive.

Requests are counted by route and status. Labels never contain a study, a token or an address.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from dpfda._version import __version__
from dpfda.collector.storage.base import Totals

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
    30.0,
)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATM = Path("/proc/self/statm")
_LIVE = re.compile(r"gauge_live\w+_(\d+)\.db")

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The counters of one process.

    Examples:
        >>> metrics = Metrics()
        >>> metrics.note("/health", 200, 0.002)
        >>> text, _ = metrics.text("", works=True, totals=None)
        >>> b'dpfda_request_seconds_count{route="/health",status="200"} 1.0' in text
        True
    """

    def __init__(self) -> None:
        self._directory = os.environ.get(DIRECTORY)
        self._registry = CollectorRegistry()
        told: dict[str, Any] = {"registry": self._registry}
        self._requests = Histogram(
            "dpfda_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ("route", "status"),
            buckets=_SECONDS,
            **told,
        )
        self._commits = Histogram(
            "dpfda_commit_seconds",
            "Seconds of a group commit in the database; its count is the number of commits.",
            ("kind",),
            buckets=_SECONDS,
            **told,
        )
        self._committed = Counter(
            "dpfda_committed_total",
            "Enrolments, tickets and replies in commits.",
            ("kind",),
            **told,
        )
        self._dropped = Counter(
            "dpfda_refused_busy_total", "Requests refused because their address sent too much.",
            **told,
        )  # fmt: skip
        self._gauges = {
            name: Gauge(f"dpfda_{name}", words, multiprocess_mode=mode, **told)  # type: ignore[arg-type]
            for name, words, mode in (
                ("writes_waiting", "Requests that wait for their commit.", "livesum"),
                ("oldest_write_seconds", "How long the oldest of them has waited.", "livemax"),
                ("concluding_seconds", "How long a phase has been concluded; 0: none.", "livemax"),
                ("studies_stuck", "Studies whose phase cannot be concluded.", "livemax"),
                ("longest_stuck_seconds", "How long the first of them has been stuck.", "livemax"),
                ("clock_jump_seconds", "Unconfirmed jump of the system clock.", "livemostrecent"),
                ("memory_bytes", "Resident memory of the processes that serve.", "livesum"),
            )
        }
        self._by_route: dict[tuple[str, int], Any] = {}

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        one = self._by_route.get((route, status))
        if one is None:
            one = self._by_route[route, status] = self._requests.labels(route, str(status))
        one.observe(seconds)

    def refused_busy(self) -> None:
        """Count a request of an address that sent too much."""
        self._dropped.inc()

    def committed(self, kind: str, items: int, seconds: float) -> None:
        """Count a group commit."""
        self._commits.labels(kind).observe(seconds)
        self._committed.labels(kind).inc(items)

    def set(self, **gauges: float) -> None:
        """Set the gauges to their current values."""
        for name, value in gauges.items():
            self._gauges[name].set(value)
        with suppress(OSError):
            pages = int(_STATM.read_text(encoding="ascii").split()[1])
            self._gauges["memory_bytes"].set(pages * _PAGE)

    def text(self, accept: str, *, works: bool, totals: Totals | None) -> tuple[bytes, str]:
        """The document for Prometheus and its type.

        Args:
            accept: formats that the scraper understands.
            works: whether the storage works.
            totals: totals of the storage; None if it does not work.
        """
        registry = self._registry
        if self._directory:
            _forget_the_dead(self._directory)
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, self._directory)  # type: ignore[no-untyped-call]
        encode, kind = choose_encoder(accept)
        present = CollectorRegistry()
        present.register(_Present(works, totals))
        # Two registries, because totals of the storage are the same for all processes.
        ends = b"# EOF\n"
        head, tail = encode(registry), encode(present)
        return head.removesuffix(ends) + tail, kind


class _Present:
    """Metrics that are read at each scrape."""

    def __init__(self, works: bool, totals: Totals | None) -> None:
        self._works, self._totals = works, totals

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one family per metric."""
        built = GaugeMetricFamily(
            "dpfda_build_info", "Versions that serve.", labels=("version", "python")
        )
        built.add_metric((__version__, platform.python_version()), 1)
        yield built
        yield GaugeMetricFamily(
            "dpfda_storage_up", "Whether replies can be stored.", value=self._works
        )
        if self._totals is None:
            return
        for name, words, value in (
            ("studies", "Studies that are not deleted.", self._totals.studies),
            ("studies_finished", "Those of them that are finished.", self._totals.finished),
            ("people_enrolled", "Invitations and enrolments in them.", self._totals.enrolled),
        ):
            yield GaugeMetricFamily(f"dpfda_{name}", words, value=value)


def _forget_the_dead(directory: str) -> None:
    """Remove the gauges of processes that have ended."""
    for file in Path(directory).glob("gauge_live*.db"):
        found = _LIVE.fullmatch(file.name)
        if found is not None and not Path(f"/proc/{found[1]}").exists():
            file.unlink(missing_ok=True)
