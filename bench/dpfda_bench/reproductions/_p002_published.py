"""What the as-published Gaussian functional mechanism really costs (C7). Accounting only.

002 releases Λ0, Λ1 and Λ2 each with the whole (ε, δ), with sensitivities 1, 4, 1 (linear) or 0, 1,
⅛ (logistic) over N, and with τ = Δ √(2 ln(1.25/δ))/ε. The three releases together are one Gaussian
release; its μ is the largest distance, in units of τ, that one row can cause.
"""

from __future__ import annotations

import math

import numpy as np

from dpfda import _validate
from dpfda.central.regression.problem import Link
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu


def published_mu(claimed: float, *, delta: float, link: Link) -> float:
    """μ of the three releases together, at the worst pair of rows.

    Linear, y = 1 and y' = 0 on perpendicular rows: 1 from Λ0, (2/4)² from Λ1, 2 from Λ2.
    Logistic, y = 1 and y' = 0 at angle cosine t: (2 + 2t)/4 + 2(1 - t²), the largest at t = ⅛.

    Examples:
        >>> round(published_mu(1.0, delta=1e-5, link="linear"), 3)
        0.372
    """
    _validate.positive("claimed", claimed)
    scale = math.sqrt(2 * math.log(1.25 / _validate.fraction("delta", delta)))
    squared = 1 + 0.25 + 2 if link == "linear" else (2 + 0.25) / 4 + 2 * (1 - 1 / 64)
    return claimed / scale * math.sqrt(squared)


def published_epsilon(claimed: float, *, delta: float, link: Link) -> float:
    """The true ε, at the same δ, of Gaussian FM as published for a claimed ε.

    Examples:
        >>> round(published_epsilon(0.5, delta=1e-5, link="linear"), 2)
        0.67
    """
    return gaussian_epsilon(
        delta=delta, multiplier=1 / published_mu(claimed, delta=delta, link=link)
    )


def published_cape_epsilon(
    claimed: float, *, delta: float, sites: int, link: Link | None = None
) -> float:
    """The true ε of the correlated-noise capeFM of 002 against its coordinator alone (C8).

    The coordinator sees every message: for one site's change v, vᵀΣ⁻¹v = 2S/((S+1)τ²) |v|² instead
    of the 1/τ² of a single release.

    Args:
        claimed: ε as claimed.
        delta: δ.
        sites: S.
        link: None: the sum of the sites is one Gaussian release, exactly calibrated. A link: it is
            Gaussian FM as published, which costs more by itself (C7).

    Examples:
        >>> round(published_cape_epsilon(0.5, delta=1e-5, sites=10), 2)
        0.69
    """
    _validate.whole("sites", sites, least=2)
    if link is None:
        mu = gaussian_mu(epsilon=claimed, delta=delta)
    else:
        mu = published_mu(claimed, delta=delta, link=link)
    return gaussian_epsilon(delta=delta, multiplier=1 / (mu * math.sqrt(2 * sites / (sites + 1))))


def published_sensitivity(method: str, link: Link, dimension: int) -> tuple[float, ...]:
    """Table A1 of 002 times N: one number for each order j of the coefficients.

    Examples:
        >>> published_sensitivity("gaussian_fm", "linear", 5)
        (1.0, 4.0, 1.0)
    """
    orders = 3 if link == "linear" else 2
    size = float(dimension)
    if method == "gaussian_fm":
        return (1.0, 4.0, 1.0) if link == "linear" else (1.0, 0.125)
    if method == "fm":
        value = 2 * (1 + size) ** 2 if link == "linear" else size**2 / 4 + 3 * size
    elif method == "relaxed_fm":
        square = 4 * (1 + 4 * size + size**2) if link == "linear" else size**2 / 16 + size
        value = float(np.sqrt(square))
    else:
        _validate.one_of("method", method, ("fm", "relaxed_fm", "gaussian_fm"))
        raise AssertionError
    return (value,) * orders
