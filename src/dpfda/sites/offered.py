"""The columns that a site offers, beside those that a plan asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EVERY_OTHER = "*"
"""Stands for the columns that have no range of their own."""


def differences(asked: Mapping[str, Any], offered: Mapping[str, Any]) -> str:
    """Why a plan's columns are not those that a site offers; nothing if they are.

    Examples:
        >>> differences({"age": [18, 99]}, {"age": [18, 99], "sex": ["f", "m"]})
        ''
        >>> differences({"hiv": [0, 1]}, {"age": [18, 99]})
        "it asks for the column 'hiv', which this site does not offer"
    """
    for name, known in asked.items():
        own = offered.get(name, offered.get(EVERY_OTHER))
        if own is None:
            return f"it asks for the column {name!r}, which this site does not offer"
        if list(known) != list(own):
            return (
                f"it takes {list(known)} for the public range of {name!r}, "
                f"and this site {list(own)}"
            )
    return ""
