"""Test vectors of the wire format: what every client must compute, accept and refuse.

They are files, for clients in other languages. docs/reference/wire-format.md describes each, and
``tools/wire_vectors.py`` writes them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.noise.source import Sampler, Words

FOLDER = Path(__file__).resolve().parents[2] / "clients" / "vectors"


def vectors(name: str) -> Any:
    """The vectors of one file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


class Replay:
    """A source of given words, in hexadecimal digits; asked for more, it fails."""

    sampler: Sampler = "simulation"

    def __init__(self, words: Iterable[str]) -> None:
        self.left = [int(word, 16) for word in words]

    def words(self, count: int) -> Words:
        """The next words."""
        if count > len(self.left):
            raise IndexError("a vector holds fewer words than were drawn")
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def bits(value: float) -> str:
    """A double as 16 hexadecimal digits."""
    return struct.pack(">d", value).hex()


def from_bits(digits: str) -> float:
    """The double behind 16 hexadecimal digits."""
    found: float = struct.unpack(">d", bytes.fromhex(digits))[0]
    return found
