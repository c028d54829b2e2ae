"""The log of a collector: JSON lines in limited number, without data about participants.

Tickets are numbered in the order of requests, so a line with a time for each request of a
participant would disclose when each ticket was taken. Such requests are counted, not logged, unless
they fail in the collector. Lines never contain a token, a key, a reply or an address.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar

from dpfda.collector.limits import RateLimit
from dpfda.errors import DpfdaError

LINES = 20  # of one kind at once
LINES_A_SECOND = 0.1  # after that; ten kinds produce at most 26 MB per day

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that is being served; answers to failed requests contain it."""


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, event, request id if any, and named fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a line; of exceptions only type and place, as messages may quote requests."""
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if request := request_id.get():
            entry["request"] = request
        if dropped := getattr(record, "dropped", 0):
            entry["dropped_before"] = dropped
        if record.exc_info and record.exc_info[1] is not None:
            entry |= failure(record.exc_info[1])
        return json.dumps(entry)


class BoundedLines(logging.Filter):
    """Limits the number of lines of each kind; the next line states how many were dropped.

    Anybody can cause errors and warnings, by malformed requests or while the storage fails. Lines
    of level INFO come from administrators and from phases that end; they are never dropped.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._limit = RateLimit(rate=LINES_A_SECOND, burst=LINES, clock=clock)
        self._dropped: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        if record.levelno < logging.WARNING:
            return True
        kind = record.name, str(record.msg)[:100]
        if not self._limit.allows(kind):
            self._dropped[kind] += 1
            return False
        record.dropped = self._dropped.pop(kind, 0)
        return True


def failure(error: BaseException) -> dict[str, str]:
    """The loggable part of an exception: its type and its place."""
    if isinstance(error, WorkFailed):
        return {"error": error.error, "where": error.where}
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return {"error": type(error).__name__, "where": where}


class WorkFailed(DpfdaError):
    """A computation in another process failed; only type and place of its exception are known.

    Attributes:
        error: type of the exception.
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
    handler.addFilter(BoundedLines())
    for name in ("dpfda.collector", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    logging.getLogger("dpfda.collector").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
