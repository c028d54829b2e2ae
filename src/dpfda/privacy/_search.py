"""Where a monotone condition starts to hold."""

from __future__ import annotations

from collections.abc import Callable


def bisect(holds: Callable[[float], bool], *, good: float, bad: float) -> float:
    """The point nearest to `bad` at which `holds` was seen to be true, to 13 digits.

    What is returned was tested, so a calibration never stands on an extrapolated root.

    Example:
        >>> round(bisect(lambda x: x * x >= 2, good=2.0, bad=0.0), 6)
        1.414214
    """
    while abs(bad - good) > 1e-13 * abs(good):
        middle = (good + bad) / 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good
