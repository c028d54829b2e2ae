"""Neighbors: the sites that share masks, which are all sites or randomly chosen ones.

If there are few sites, every pair shares a mask. If there are many, this would require messages and
keys in proportion to their number, so each site draws `degree` others at random (Bell, Bonawitz,
Gascón, Lepoint & Raykova 2020). It masks with the sites that it drew and the sites that drew it.
Only the sites that it drew hold shares of its secrets.

This module computes how many sites must be drawn. Let S sites have c colluders, and let the
coordinator announce that any k others are silent. Two events, with respect to the sites' draws,
break the sum:

    a secret opens    an honest site drew so many colluders that they can recover its secrets
    a group opens     a small group of honest sites drew almost only each other and colluders, so
                      that the sum over the group can be opened

Their probabilities are bounded by hypergeometric tails and union bounds over groups. Together they
are below `FAILURE`.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from dpfda._validate import FloatArray
from dpfda.protocol.secure_sum.crypto import expand

FAILURE = 2.0**-40
"""Probability, once per study, that the draws of sites do not protect; it is part of δ."""
COLLUDING, SILENT = 1 / 10, 1 / 20
"""Sites draw as if at least these fractions of them colluded and stopped replying."""
NOISE = 1 / 100
"""The largest fraction of honest sites that may be cut off; the others add their noise as well."""
_STUCK = 2.0**-10  # probability that too few shares of a secret remain after dropouts
CHOICE_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Neighbors:
    """The number of neighbors that each site draws, and its consequences.

    Attributes:
        degree: the number of other sites that a site draws; S - 1 means all.
        threshold: the number of shares that recover a site's secret; the site has one of them.
        cut_off: the number of honest sites whose noise a hostile coordinator can exclude.
        failure: probability that the draws do not protect; 0 if all sites draw all others.
    """

    degree: int
    threshold: int
    cut_off: int = 0
    failure: float = 0.0


@lru_cache(maxsize=1 << 10)
def neighbors(sites: int, colluders: int, dropouts: int) -> Neighbors:
    """The smallest sufficient number of neighbors, or all other sites if it is above half of them.

    Args:
        sites: S.
        colluders: c.
        dropouts: k.

    Examples:
        >>> neighbors(3, 0, 1)
        Neighbors(degree=2, threshold=2, cut_off=0, failure=0.0)
        >>> neighbors(1000, 1, 0).degree
        53
    """
    many = max(colluders, math.floor(COLLUDING * sites))
    away = max(dropouts, math.floor(SILENT * sites))
    most = math.floor(NOISE * (sites - colluders - dropouts))
    # If sites draw half of the others, three quarters of all pairs are linked, and little is saved.
    for degree in range(1, (sites - 1) // 2 + 1):
        bad = _most_in(sites, many, degree, chance=FAILURE / 2)
        threshold = (degree + 1 + bad) // 2 + 1
        gone = _most_in(sites, away, degree, chance=_STUCK)
        if threshold > degree - gone:
            continue
        for cut_off in range(most + 1):
            if sites <= colluders + 2 * (dropouts + cut_off):
                break
            chance = group_opens(
                sites, colluders, dropouts, degree=degree, threshold=threshold, cut_off=cut_off
            )
            if chance <= FAILURE / 2:
                return Neighbors(
                    degree=degree, threshold=threshold, cut_off=cut_off, failure=FAILURE
                )
    return Neighbors(degree=sites - 1, threshold=(sites + colluders) // 2 + 1)


def _most_in(sites: int, marked: int, degree: int, *, chance: float) -> int:
    """An upper bound of the marked sites that any site draws, except with a small probability."""
    count = np.arange(degree + 1.0)
    ways = _log_choose(marked, count) + _log_choose(sites - 1 - marked, degree - count)
    at_least = np.logaddexp.accumulate((ways - _log_choose(sites - 1, degree))[::-1])[::-1]
    return int(np.flatnonzero(sites * np.exp(at_least) > chance).max(initial=0))


def secret_opens(sites: int, colluders: int, *, degree: int, threshold: int) -> float:
    """Union bound: some site drew at least `threshold` of the colluders."""
    (tail,) = _log_tail(sites - 1, np.array([float(colluders)]), degree, threshold)
    return float(min(1.0, sites * np.exp(tail)))


def group_opens(
    sites: int, colluders: int, dropouts: int, *, degree: int, threshold: int, cut_off: int
) -> float:
    """Union bound: a group of honest sites, too small for the noise, can be opened by itself.

    A sum over a group T of w honest sites opens only if each of them drew none of the other honest
    survivors, of which there are at least S - c - k - w, and drew at least `threshold` - 1 sites
    within T and the colluders, which sent the shares that opened its self mask. Draws of different
    sites are independent. The noise of T is too small if w < S - c - k - `cut_off`.
    """
    honest = sites - colluders
    group = np.arange(1.0, honest - dropouts - cut_off)
    if not len(group):
        return 0.0
    left = honest - dropouts - group
    inside = group * _log_tail(sites - 1, colluders + group - 1, degree, threshold - 1)
    apart = _log_choose(honest - group, left) + group * (
        _log_choose(sites - 1 - left, degree) - _log_choose(sites - 1, degree)
    )
    logs = _log_choose(honest, group) + np.minimum(inside, apart)
    return float(min(1.0, np.exp(np.logaddexp.reduce(logs))))


def _log_tail(total: int, marked: FloatArray, drawn: int, least: int) -> FloatArray:
    """log P(at least `least` of `drawn` are among `marked` of `total`), for each `marked`."""
    count, marked = np.arange(float(max(least, 0)), drawn + 1), marked[:, None]
    if not len(count):
        return np.full(len(marked), -np.inf)
    ways = _log_choose(marked, count) + _log_choose(total - marked, drawn - count)
    found = np.logaddexp.reduce(ways, axis=1) - _log_choose(total, drawn)
    return np.asarray(np.minimum(0.0, found))


def _log_choose(n: FloatArray | float, k: FloatArray | float) -> FloatArray:
    """Logarithm of a binomial coefficient, which may be 0."""
    n, k = np.asarray(n), np.asarray(k)
    possible = (k >= 0) & (k <= n)
    top, low = np.where(possible, n, 0), np.where(possible, k, 0)
    logs = gammaln(top + 1) - gammaln(low + 1) - gammaln(top - low + 1)
    return np.where(possible, logs, -np.inf)


def drawn(place: int, *, sites: int, degree: int, seed: bytes) -> tuple[int, ...]:
    """The sites that site number `place` draws with its seed, which determines the draw.

    Examples:
        >>> drawn(1, sites=4, degree=3, seed=b"")
        (0, 2, 3)
    """
    others = [other for other in range(sites) if other != place]
    if degree == len(others):
        return tuple(others)
    words = expand(hashlib.sha256(b"dpfda neighbors" + seed).digest(), len(others))
    first = np.sort(np.argsort(words, kind="stable")[:degree])
    return tuple(others[one] for one in first)
