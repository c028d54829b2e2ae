"""Tight composition through privacy-loss distributions, by dp-accounting (extra ``accounting``).

Each release becomes the distribution of its privacy loss under *replace one*, rounded
pessimistically to a grid; distributions are convolved and read off at δ. The library's own
REPLACE_SPECIAL relation is not used: it prices the replacement of a person by nobody, which for
randomized response is cheaper than the replacement by another person, and so understates a
local report (tests/privacy/test_accountant.py shows by how much).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpfda.errors import MissingExtra, UnknownEvent
from dpfda.privacy.calibration import LATTICE_RESERVE
from dpfda.privacy.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.price import Accountant, Price, parts

_SMALLEST_DELTA = 1e-10  # below, errors of the Fourier transform would no longer be negligible
_TRANSFORM_ERROR = 1e-12  # absolute, in δ, for all convolutions together
_LARGEST_EPSILON = 100.0  # beyond, probabilities underflow and the sum is as good
_GRID_POINTS = (100_000, 1_000_000)  # usual, and most for very many releases

_LATTICE_LAPLACE = 2.0**-21
"""Extra ε of one *discrete* Laplace release on a lattice of t ≥ 2^20 steps to a scale. Against
rounded continuous noise its mass at 0 is larger by a factor e^{1/4t}, elsewhere smaller by one of
1 + 1/8t²; rounding is post-processing, so ε grows by at most 1/4t + 1/8t² < 2^-21."""


@dataclass(frozen=True)
class LossDistributionAccountant(Accountant, name="loss_distribution"):
    """Composition by convolving privacy-loss distributions; the tightest method here.

    Example:
        >>> from dpfda.privacy.price import compose
        >>> price = compose([PureEvent(epsilon=0.1)] * 100)
        >>> round(LossDistributionAccountant().epsilon(price, delta=1e-5), 2)
        4.31
    """

    def epsilon(self, price: Price, *, delta: float) -> float:
        """ε read off the convolved distribution; infinite for δ below 1e-10 or a release ε > 100.

        Raises:
            MissingExtra: dp-accounting is not installed.
        """
        releases = {event: times for event, times in price.counts.items() if not _free(event)}
        if not releases:
            return 0.0
        slack = _LATTICE_LAPLACE * sum(
            times for event, times in releases.items() if isinstance(event, LaplaceEvent)
        )
        slack += LATTICE_RESERVE if price.precision else 0.0
        if delta < _SMALLEST_DELTA or _largest_epsilon(releases) > _LARGEST_EPSILON:
            return math.inf
        usable = delta * math.exp(-slack) * (1 - 1e-9) - _TRANSFORM_ERROR
        return float(_convolved(price, releases).get_epsilon_for_delta(usable)) + slack


def _free(event: Event) -> bool:
    return isinstance(event, PureEvent) and event.epsilon == 0


def _largest_epsilon(releases: dict[Event, int]) -> float:
    """ε of the dearest release; of a Gaussian one, the mean of its privacy loss."""
    return max(float(epsilon + precision / 2) for epsilon, _, precision in map(parts, releases))


def _convolved(price: Price, releases: dict[Event, int]) -> Any:
    """The loss distribution of everything; equal releases are convolved at once."""
    library = _library()
    interval = _interval(price, releases)
    whole = library.identity(value_discretization_interval=interval)
    if price.precision:  # one Gaussian, exactly, instead of many rounded ones
        whole = whole.compose(
            library.from_gaussian_mechanism(
                price.multiplier, value_discretization_interval=interval
            )
        )
    for event, times in releases.items():
        if not isinstance(event, GaussianEvent):
            whole = whole.compose(_single(event, interval, library).self_compose(times))
    return whole


def _single(event: Event, interval: float, library: Any) -> Any:
    match event:
        case LaplaceEvent(ratio=ratio):
            return library.from_laplace_mechanism(1 / ratio, value_discretization_interval=interval)
        case RandomizedResponseEvent(epsilon=epsilon, categories=categories):
            # Their parameter: the probability of an answer drawn blindly from all categories.
            blind = categories / (math.expm1(epsilon) + categories)
            return library.from_randomized_response(
                blind, categories, value_discretization_interval=interval
            )
        case PureEvent(epsilon=epsilon):
            delta = 0.0
        case ApproximateEvent(epsilon=epsilon, delta=delta):
            pass
        case _:
            raise UnknownEvent(f"no loss distribution is known for {type(event).__name__}")
    # Every (ε, δ)-DP release is post-processing of this one (Kairouz, Oh & Viswanath 2015).
    parameters = library.common.DifferentialPrivacyParameters(epsilon, delta)
    return library.from_privacy_parameters(parameters, value_discretization_interval=interval)


def _interval(price: Price, releases: dict[Event, int]) -> float:
    """Grid width: rounding all losses up costs under a thousandth of Σε, within a bounded grid."""
    times = sum(releases.values())
    span = float(price.epsilon) + 20 * math.sqrt(price.precision) + float(price.precision)
    usual, most = _GRID_POINTS
    return max(min(1e-4, 1e-3 * span / times), span / min(max(usual, 1000 * times), most))


def _library() -> Any:
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError:
        raise MissingExtra("dp-accounting", "accounting") from None
    return privacy_loss_distribution
