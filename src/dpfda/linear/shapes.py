"""What a column of a table may look like on its public range, called [0, 1] here.

Each shape says with which probability a person exceeds t:

* hill: logistic around m with scale s, F((m - t)/s);
* slope: some people lie exactly at an end, the others as far from it as an exponential law of scale
  θ puts them (counts, amounts of money, grey values); at either end;
* ends: everybody at one end or the other (yes/no columns).

A hill around the end would take most people's 0 for all there is to see, and the column for narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dpfda._validate import FloatArray

_POWERS = 2.0 ** (-np.arange(2, 23) / 2)
THRESHOLDS: FloatArray = np.unique(
    np.round(np.concatenate([_POWERS, 1 - _POWERS, np.linspace(0.01, 0.99, 99)]), 6)
)
"""Where people may be asked whether they lie above: dense near the ends, as skewed columns are."""

_LOCATIONS: FloatArray = np.r_[0.0, THRESHOLDS, 1.0]
_SCALES: FloatArray = np.asarray(0.5 ** np.arange(2.0, 12.0))  # widest first
_SHARES: FloatArray = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
_TAILS: FloatArray = np.asarray(0.5 ** np.arange(0.0, 11.0))
_STEPS = np.array([-1.1, 0.0, 1.1])  # questions about a hill, in units of s around m
_FRACTIONS = np.array([0.02, 0.5, 1.5])  # and about a slope, in units of θ from its end
_TO_DEVIATION = 1.8  # a logistic law of scale s has standard deviation 1.81 s
_FROM_ABSOLUTE = 1.25  # a normal law's standard deviation over its mean absolute deviation
_FAR = 2.0**-5  # who states a range so much wider than θ has seen amounts of any size:
_PRESENCE = 0.125  # whether somebody has any counts for more then than how much


@dataclass(frozen=True)
class Shapes:
    """All shapes: one entry a shape, the first of them hills.

    Attributes:
        mean: of a column.
        width: like a standard deviation of it.
        above: probability of exceeding each threshold, shape (shapes, T).
        asked: three thresholds that tell most about it, shape (shapes, 3).
        hills: locations by scales.
    """

    mean: FloatArray
    width: FloatArray
    above: FloatArray
    asked: FloatArray
    hills: tuple[int, int]


@cache
def shapes() -> Shapes:
    """The public list."""
    m, s = np.repeat(_LOCATIONS, len(_SCALES)), np.tile(_SCALES, len(_LOCATIONS))
    hill = 1 / (1 + np.exp(-np.clip((m[:, None] - THRESHOLDS) / s[:, None], -40, 40)))
    share, tail = np.repeat(_SHARES, len(_TAILS)), np.tile(_TAILS, len(_SHARES))
    low = share[:, None] * np.exp(-THRESHOLDS / tail[:, None])
    high = 1 - share[:, None] * np.exp(-(1 - THRESHOLDS) / tail[:, None])
    amount = share * tail * -np.expm1(-1 / tail)  # the mean distance from the end
    # Mean absolute deviation: twice the mean excess over the mean, ∫ P(x > t) from it to the end.
    absolute = 2 * share * tail * (np.exp(-amount / tail) - np.exp(-1 / tail))
    slope = _FROM_ABSOLUTE * absolute * np.where(tail <= _FAR, _PRESENCE, 1.0)
    near = tail[:, None] * _FRACTIONS
    ends = np.broadcast_to(_SHARES[:, None], (len(_SHARES), len(THRESHOLDS)))
    between = np.broadcast_to([0.25, 0.5, 0.75], (len(_SHARES), 3))
    return Shapes(
        mean=np.concatenate([m, amount, 1 - amount, _SHARES]),
        width=np.concatenate([_TO_DEVIATION * s, slope, slope, np.sqrt(_SHARES * (1 - _SHARES))]),
        above=np.concatenate([hill, low, high, ends]),
        asked=np.concatenate([m[:, None] + s[:, None] * _STEPS, near, 1 - near, between]),
        hills=(len(_LOCATIONS), len(_SCALES)),
    )


_FREE_CURVES = 0.02  # of curves, how likely hills are that lie elsewhere: few answers cannot tell
_KINDS = {"anywhere": 0.45, "central": 0.25, "slopes": 0.15, "ends": 0.15}


@cache
def public_prior(
    *,
    curves: bool = False,
    center_known: bool = False,
    free_share: float | None = None,
    loose: bool = False,
) -> FloatArray:
    """What is expected of a column before anybody is asked, one number a shape.

    Columns of a table: hills anywhere on the range or near one of its ends, rather wide than
    narrow; hills in the middle and as wide as their range, as careful people state ranges; slopes;
    ends. Coefficients of curves are nearly always hills in the middle, a sixth of their range wide;
    `free_share` says of them how likely hills elsewhere are. Where ranges are `loose`, no hill is
    likelier for lying in the middle.
    """
    between = np.gradient(_LOCATIONS)
    anywhere = 0.5 * between / between.sum() + 0.5 / len(_LOCATIONS)
    free = np.outer(anywhere, 0.75 ** np.arange(len(_SCALES)))
    middle = np.exp(-0.5 * ((_LOCATIONS - 0.5) / 0.12) ** 2)
    widths = np.zeros(len(_SCALES))
    kinds = dict(_KINDS)
    if curves:
        middle = middle * between
        widths[:5] = (0.1, 0.3, 0.35, 0.2, 0.05)
        free_hills = _FREE_CURVES if free_share is None else free_share
        kinds = {"anywhere": free_hills, "central": 1 - free_hills, "slopes": 0.0, "ends": 0.0}
    else:
        widths[:2] = 0.5
    if loose:
        kinds = {**kinds, "anywhere": kinds["anywhere"] + kinds["central"], "central": 0.0}
    hills = kinds["anywhere"] * free / free.sum() + kinds["central"] * np.outer(
        middle / middle.sum(), widths
    )
    if center_known:
        hills[np.abs(_LOCATIONS - 0.5) > 1e-9] = 0.0
        hills += 1e-12
        kinds["slopes"] = kinds["ends"] = 0.0
    slopes = 2 * len(_SHARES) * len(_TAILS)
    # Where nearly everybody lies at one end, a slope is as likely, and to take it for wide worse.
    mixed = (_SHARES * (1 - _SHARES)) ** 2
    prior = np.concatenate(
        [
            hills.ravel(),
            np.full(slopes, kinds["slopes"] / slopes),
            kinds["ends"] * mixed / mixed.sum(),
        ]
    )
    return np.asarray(prior / prior.sum())
