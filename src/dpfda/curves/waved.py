"""The encoder of curves of which nothing is known but their public range."""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import Any

from dpfda import _validate
from dpfda.curves.encoder import CurveEncoder


def smooth_curves(value_range: Any, domain_range: Any, *, features: int) -> CurveEncoder:
    """Cosine coefficients, scaled by the range of x(t); for each of several channels.

    Args:
        value_range: public (low, high) of x(t), or one pair a channel.
        domain_range: public (start, end) of t.
        features: how many coefficients.

    Examples:
        >>> smooth_curves((40, 200), (0, 24), features=8).n_features
        8
    """
    if len(value_range) and all(isinstance(one, Sized) for one in value_range):
        each = [smooth_curves(one, domain_range, features=features) for one in value_range]
        return each[0] if len(each) == 1 else CurveEncoder.side_by_side(each)
    low, high = _validate.interval("value_range", value_range)
    start, end = _validate.interval("domain_range", domain_range)
    # |x(t)| ≤ R bounds every coefficient on an orthonormal basis by R √(end - start).
    stretch = math.sqrt(end - start)
    return CurveEncoder(
        "cosine",
        n_basis=features,
        domain_range=(start, end),
        rescale="clip",
        center=[(low + high) / 2 * stretch] + [0.0] * (features - 1),
        scale=(high - low) / 2 * stretch,
    )
