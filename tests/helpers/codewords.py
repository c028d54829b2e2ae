"""Public codebooks, written down once more in plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

CODEBOOKS = 1 << 48
WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(z: int) -> int:
    """SplitMix64's output function, as published."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def by_hand(book: int, word: int, dimension: int) -> list[float]:
    """A row of a normal matrix."""
    pairs = (dimension + 1) // 2
    start = mixed((book * GOLDEN + 1) & WORD)
    cosines, sines = [], []
    for step in range(1, pairs + 1):
        bits = mixed(((word * pairs + step) * GOLDEN + start) & WORD)
        low, high = bits & 0xFFFFFFFF, bits >> 32
        radius = math.sqrt(-2 * math.log((low + 0.5) / 2**32))
        cosines.append(radius * math.cos(2 * math.pi * high / 2**32))
        sines.append(radius * math.sin(2 * math.pi * high / 2**32))
    return [*cosines, *sines][:dimension]


def matrices(size: int, dimension: int) -> int:
    """How many there are: as many as shifts do not make up for, and as 2^23 numbers hold."""
    wanted = min(max(64, 2**22 // dimension**3), max(1, 2**23 // (size // 2 * (dimension + 2))))
    return int(2 ** math.floor(math.log2(wanted)))


def signs(book: int, dimension: int) -> list[int]:
    """Of the columns of a codebook."""
    step = 0xA24BAED4963EE407
    start = mixed(book ^ step)
    words = [mixed((start + (k + 1) * step) & WORD) for k in range((dimension + 63) // 64)]
    return [1 - 2 * (words[j // 64] >> j % 64 & 1) for j in range(dimension)]


def on_sphere(book: int, size: int, dimension: int) -> Any:
    """All codewords of a codebook: half of them, then their opposites."""
    count = matrices(size, dimension)
    number, shift = book % count, book // count % dimension
    rows = np.array([by_hand(number, word, dimension) for word in range(size // 2)])
    whole = np.rint(4096 * rows)
    moved = whole[:, [(j + shift) % dimension for j in range(dimension)]] * signs(book, dimension)
    halves = moved * (math.sqrt(dimension) / np.linalg.norm(moved, axis=1, keepdims=True))
    return np.concatenate([halves, -halves])
