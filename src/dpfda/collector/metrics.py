"""Numbers for Prometheus, and log lines for people: neither ever holds a token or a reply."""

from __future__ import annotations

import json
import logging
import sys
import time
from bisect import bisect_left
from collections import Counter

from dpfda.errors import DpfdaError

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Requests by route and status, and how long they took.

    Examples:
        >>> metrics = Metrics()
        >>> metrics.note("/health", 200, 0.002)
        >>> 'dpfda_requests_total{route="/health",status="200"} 1' in metrics.text({})
        True
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[route, status] += 1
        self._buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds += seconds

    def text(self, gauges: dict[str, float]) -> str:
        """Prometheus' text format; a gauge's name may come with labels."""
        lines = ["# TYPE dpfda_requests_total counter"]
        lines += [
            f'dpfda_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._requests.items())
        ]
        lines.append("# TYPE dpfda_request_seconds histogram")
        total = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self._buckets, strict=True):
            total += count
            lines.append(f'dpfda_request_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"dpfda_request_seconds_sum {self._seconds}"]
        lines += [f"dpfda_request_seconds_count {total}"]
        said = ""
        for name, value in sorted(gauges.items()):
            kind = name.partition("{")[0]
            lines += [f"# TYPE dpfda_{kind} gauge"] * (kind != said)
            lines += [f"dpfda_{name} {value:g}"]
            said = kind
        return "\n".join(lines) + "\n"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, event and named fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; of an exception only type and place, as its message may quote what was sent."""
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            entry |= failure(record.exc_info[1])
        return json.dumps(entry)


def failure(error: BaseException) -> dict[str, str]:
    """What a log may say of an exception: its kind and its place."""
    if isinstance(error, WorkFailed):
        return {"error": error.error, "where": error.where}
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return {"error": type(error).__name__, "where": where}


class WorkFailed(DpfdaError):
    """A computation in another process failed; of its exception only this came back.

    Attributes:
        error: the exception's kind.
        where: its place.
    """

    def __init__(self, error: str, where: str) -> None:
        super().__init__("a computation failed")
        self.error = error
        self.where = where


def log_to_stderr() -> None:
    """Send the collector's log, as JSON lines, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("dpfda.collector", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    logging.getLogger("dpfda.collector").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
