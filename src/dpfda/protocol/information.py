"""The information that participants read before they consent: a part of the plan, so it is hashed.

Whoever changes a word of it gets another plan with another hash, which is another study.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfda.errors import InvalidParameter

NEEDED = ("version", "institution", "contact", "purpose")
"""What every information says."""

OPTIONAL = ("officer", "approval", "risks", "retention", "results")
"""What it says where there is such a thing: the data protection officer, the approval of an ethics
board, and the organizer's words on risks, on how long replies are stored, and on results."""

MOST_CHARACTERS = 2000


def check_information(given: Any) -> dict[str, str]:
    """The information with its entries in order, if it is complete and nothing else; {} for none.

    Raises:
        InvalidParameter: an entry is missing, unknown, or not one paragraph of printable text.

    Examples:
        >>> whole = {"version": "1", "institution": "A", "contact": "B", "purpose": "C"}
        >>> list(check_information({"officer": "D"} | whole))
        ['version', 'institution', 'contact', 'purpose', 'officer']
    """
    if not isinstance(given, Mapping):
        raise InvalidParameter("information", "named texts", type(given).__name__)
    for name in given:
        if name not in NEEDED + OPTIONAL:
            rule = f"one of {', '.join(NEEDED + OPTIONAL)}"
            raise InvalidParameter("information", rule, name)
    for name in NEEDED if given else ():
        if name not in given:
            others = [one for one in NEEDED if one != name]
            rule = f"given (with {', '.join(others[:-1])} and {others[-1]})"
            raise InvalidParameter(name, rule, None)
    for name, words in given.items():
        if not isinstance(words, str) or not words.isprintable():
            raise InvalidParameter(name, "one paragraph of printable text", words)
        if not 1 <= len(words) <= MOST_CHARACTERS:
            rule = f"1 to {MOST_CHARACTERS} characters"
            raise InvalidParameter(name, rule, f"{len(words)}")
    return {name: given[name] for name in NEEDED + OPTIONAL if name in given}
