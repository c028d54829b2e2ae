"""Immutable descriptions of releases, complete enough to price them.

An event states everything that the price depends on and nothing about the data. Ledgers store
events and add them up. They refuse events of an unknown kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpfda import _validate
from dpfda._registry import Registered
from dpfda.errors import InvalidParameter

_DEEPEST = 16  # nesting levels of composed events in received data
_MOST_TIMES = 2**53
_MOST_CATEGORIES = 2**62


class Event(Registered, family="event"):
    """Base of all privacy events; each describes one release."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; every field is checked, so untrusted data are safe."""
        layer: list[Any] = [data]
        for _ in range(_DEEPEST):
            layer = [part for item in layer for part in _nested(item)]
        if layer:
            raise InvalidParameter("events", f"nested at most {_DEEPEST} times", "more")
        return super().from_dict(data)


@dataclass(frozen=True, kw_only=True)
class PureEvent(Event, name="pure"):
    """Any ε-differentially private release.

    Examples:
        >>> PureEvent(epsilon=0.5)
        PureEvent(epsilon=0.5)
    """

    epsilon: float

    def __post_init__(self) -> None:
        _validate.non_negative("epsilon", self.epsilon)


@dataclass(frozen=True, kw_only=True)
class ApproximateEvent(Event, name="approximate"):
    """Any (ε, δ)-differentially private release about which nothing else is known.

    Examples:
        >>> ApproximateEvent(epsilon=1.0, delta=1e-6).delta
        1e-06
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _validate.non_negative("epsilon", self.epsilon)
        _validate.fraction("delta", self.delta)


@dataclass(frozen=True, kw_only=True)
class LaplaceEvent(Event, name="laplace"):
    """One number with Laplace noise.

    Attributes:
        ratio: sensitivity divided by the noise scale.

    Examples:
        >>> LaplaceEvent(ratio=1.0).ratio
        1.0
    """

    ratio: float

    def __post_init__(self) -> None:
        _validate.positive("ratio", self.ratio)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponseEvent(Event, name="randomized_response"):
    """K-ary randomized response.

    Attributes:
        epsilon: ε of the response.
        categories: K.

    Examples:
        >>> RandomizedResponseEvent(epsilon=1.0).categories
        2
    """

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        _validate.positive("epsilon", self.epsilon)
        _validate.whole("categories", self.categories, least=2, most=_MOST_CATEGORIES)


@dataclass(frozen=True, kw_only=True)
class GaussianEvent(Event, name="gaussian"):
    """A vector with Gaussian noise.

    Attributes:
        multiplier: σ divided by the ℓ2 sensitivity.

    Examples:
        >>> GaussianEvent(multiplier=2.0)
        GaussianEvent(multiplier=2.0)
    """

    multiplier: float

    def __post_init__(self) -> None:
        _validate.positive("multiplier", self.multiplier)


@dataclass(frozen=True, kw_only=True)
class ComposedEvent(Event, name="composed"):
    """Several releases about the same unit, possibly adaptive.

    Attributes:
        events: the releases.
        repeated: number of times that the whole sequence is released.

    Examples:
        >>> thrice = ComposedEvent(events=(PureEvent(epsilon=1.0),), repeated=3)
        >>> Event.from_dict(thrice.to_dict()) == thrice
        True
    """

    events: tuple[Event, ...]
    repeated: int = 1

    def __post_init__(self) -> None:
        _validate.whole("repeated", self.repeated, most=_MOST_TIMES)
        if not isinstance(self.events, (list, tuple)):
            raise InvalidParameter("events", "a sequence of events", self.events)
        object.__setattr__(self, "events", tuple(map(_as_event, self.events)))


def _nested(item: object) -> list[object]:
    """The nested events of a composed event, before they are validated."""
    inner = item.get("events") if isinstance(item, Mapping) else None
    return list(inner) if isinstance(inner, (list, tuple)) else []


def _as_event(value: object) -> Event:
    """An event, given as such or as the result of its `to_dict`."""
    if isinstance(value, Event):
        return value
    if isinstance(value, Mapping):
        return Event.from_dict(value)
    raise InvalidParameter("events", "a sequence of events", value)
