"""Public objects with declared fields: checked when they are made, plain values in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dpfda._registry import Registered
from dpfda.protocol.fields import check_fields


@dataclass(frozen=True, kw_only=True, eq=False)
class Declared(Registered):
    """Base of queries, and of what they are made of: whoever sent one, its numbers are bounded."""

    sizes: ClassVar[Mapping[str, int]]
    """Lengths of its arrays, by name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", dict(check_fields(self)))  # a dict can be pickled
