"""Numbers for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

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
