"""Public random numbers that anybody can compute again.

A counter-based generator assigns questions to people. Ticket i of phase p always gets the same
numbers, for any batching of people. A study can therefore stop after any person and continue later,
and a reviewer can check that nobody chose the questions by hand.
"""

from __future__ import annotations

import hashlib

import numpy as np

from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.errors import InvalidParameter

_WORDS_A_STEP = 4  # Philox gives four words for each value of its counter


def public_uniforms(*, seed: int, phase: int, start: int, people: int, width: int) -> FloatArray:
    """Uniform numbers on [0, 1), shape (people, width), for tickets start, start + 1, ...

    Examples:
        >>> whole = public_uniforms(seed=1, phase=0, start=0, people=10, width=3)
        >>> part = public_uniforms(seed=1, phase=0, start=4, people=2, width=3)
        >>> bool((whole[4:6] == part).all())
        True
    """
    steps = -(-width // _WORDS_A_STEP)
    generator = np.random.Philox(key=np.array([seed, phase], dtype=np.uint64))
    generator.advance(start * steps)
    words = generator.random_raw(people * steps * _WORDS_A_STEP)
    uniforms = (words >> np.uint64(11)) * 2.0**-53
    return np.asarray(uniforms.reshape(people, steps * _WORDS_A_STEP)[:, :width])


def public_subsets(uniforms: FloatArray, *, choose: int, weights: FloatArray) -> IntArray:
    """A random subset of `choose` positions for each row, with inclusion increasing in the weights.

    Each position has an exponential waiting time with its weight as rate; the shortest are chosen
    (Efraimidis & Spirakis 2006).
    """
    clocks = -np.log1p(-uniforms) / weights
    return np.argsort(clocks, axis=1)[:, :choose]


def one_row_each(groups: ArrayLike, *, seed: int, rows: int) -> IntArray:
    """One row for each person, chosen by public randomness.

    The choice depends only on the person's name, so the rows of one person never affect those of
    another person.
    """
    owners = np.asarray(groups)
    if owners.shape != (rows,):
        raise InvalidParameter("groups", f"one entry for each of {rows} rows", owners.shape)
    names, whose, counts = np.unique(owners, return_inverse=True, return_counts=True)
    words = [hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest() for name in names]
    place = (np.frombuffer(b"".join(words), dtype="<u8") % counts.astype(np.uint64)).astype(int)
    return np.sort(np.argsort(whose, kind="stable")[np.cumsum(counts) - counts + place])
