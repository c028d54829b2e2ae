"""What a table or figure comes to beside the paper's: one word, and one sentence why."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Verdict(NamedTuple):
    """How far a paper's numbers or sentences come out.

    Attributes:
        word: ``not comparable`` where nothing is printed, or the data are not the paper's.
        why: a sentence with the numbers behind the word.

    Examples:
        >>> agrees_if(0.4 < 1, "Printed errors come out within 0.4 points.").word
        'agrees'
    """

    word: Literal["agrees", "differs", "not comparable"]
    why: str


def agrees_if(holds: bool, why: str) -> Verdict:
    """A verdict by numbers; `why` must be true either way."""
    return Verdict("agrees" if holds else "differs", why)


def not_comparable(why: str) -> Verdict:
    """Nothing printed to compare with, or other data than the paper's."""
    return Verdict("not comparable", why)
