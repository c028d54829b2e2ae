"""Which sites mask together: all of them, or each with sites of its own random choice.

With few sites everybody shares masks with everybody. With many sites this would cost each of them
messages and keys in proportion to their number, so each site draws `degree` others at random (Bell,
Bonawitz, Gascón, Lepoint & Raykova 2020). It masks with those that it drew and those that drew it,
and only those that it drew hold shares of its secrets.

Here is how many a site must draw. Let S sites have c colluders, and let the coordinator announce
that k others are silent, as it likes. Two events break the sum; both are over the sites' own draws:

    a secret opens    an honest site drew so many colluders that they alone recover its secrets
    a group opens     too few honest sites drew almost only each other and colluders, so that their
                      own sum can be opened

Their probabilities are hypergeometric tails and union bounds over groups, which are computed as
such; together they stay below `FAILURE`.
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
"""The probability, once a study, that the draws of sites do not protect: part of δ."""
COLLUDING, SILENT = 1 / 10, 1 / 20
"""Sites draw as if at least these fractions of them colluded and fell silent."""
NOISE = 1 / 100
"""Noise of at most this fraction of honest sites may be cut off, and is added by the others."""
_STUCK = 2.0**-10  # probability that sites which fall silent leave a secret with too few shares
CHOICE_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Neighbors:
    """How many others each site draws, and what follows.

    Attributes:
        degree: how many others a site draws; S - 1: all of them.
        threshold: how many shares recover a site's secret; it holds one itself.
        cut_off: how many honest sites' noise a hostile coordinator may keep out of a sum.
        failure: probability that the draws do not protect; 0 where everybody draws all others.
    """

    degree: int
    threshold: int
    cut_off: int = 0
    failure: float = 0.0


@lru_cache(maxsize=1 << 10)
def neighbors(sites: int, colluders: int, dropouts: int) -> Neighbors:
    """The smallest number of neighbors that protects; all others, where it is above half of them.

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
    # Half of all pairs drawn are three quarters of them linked: too little is saved above that.
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
    """How many of the marked sites any site draws, but for a small chance over all sites."""
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
    survivors, who are at least S - c - k - w, and drew at least `threshold` - 1 within T and the
    colluders, who sent the shares that opened its self mask. Draws of different sites are
    independent. T falls short of the noise if w < S - c - k - `cut_off`.
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
    """log of a binomial coefficient; of 0 where there is no such choice."""
    n, k = np.asarray(n), np.asarray(k)
    possible = (k >= 0) & (k <= n)
    top, low = np.where(possible, n, 0), np.where(possible, k, 0)
    logs = gammaln(top + 1) - gammaln(low + 1) - gammaln(top - low + 1)
    return np.where(possible, logs, -np.inf)


def drawn(place: int, *, sites: int, degree: int, seed: bytes) -> tuple[int, ...]:
    """The sites that site number `place` draws with its seed: public once the seed is.

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
