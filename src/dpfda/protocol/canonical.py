"""One text for one public value, the same in every language: what a plan's hash is made of.

The rules are those of RFC 8785 (JSON Canonicalization Scheme), so that any language has a library
for them and JavaScript needs none: no space, names in the order of their UTF-16 units, text in
UTF-8 with the fewest escapes, numbers as ECMAScript writes them. A number has one form whatever its
type: 1, 1.0 and 1e0 are ``1``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from dpfda.errors import InvalidParameter

MOST_WHOLE = 2**53 - 1
"""The largest integer that every reader of JSON holds exactly."""

_POINT_UNTIL = 21  # digits before the point, up to which no exponent is written
_POINT_FROM = -6  # zeros after it
_PARTS = re.compile(r"(\d+)(?:\.(\d+))?(?:e([+-]\d+))?")


def canonical(value: Any) -> bytes:
    """The canonical JSON of plain values.

    Examples:
        >>> canonical({"seed": 0, "epsilon": 1.0, "classes": ["no", 2.5, True, None]})
        b'{"classes":["no",2.5,true,null],"epsilon":1,"seed":0}'
    """
    return "".join(_pieces(value)).encode()


def _pieces(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        inner = [[_text(name), ":", *_pieces(value[name])] for name in names]
        return ["{", *_separated(inner), "}"]
    if isinstance(value, (list, tuple)):
        return ["[", *_separated([_pieces(entry) for entry in value]), "]"]
    if value is None or isinstance(value, bool):
        return [{None: "null", True: "true", False: "false"}[value]]
    return [_text(value) if isinstance(value, str) else number_text(value)]


def _separated(parts: list[list[str]]) -> list[str]:
    return [piece for k, part in enumerate(parts) for piece in ([","] if k else []) + part]


def _text(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def number_text(value: float) -> str:
    """A finite number as ECMAScript writes it: the fewest digits that are read back as the same.

    Up to 21 places before the point are written out, and up to 6 zeros after it; beyond, one digit
    stands before the point and an exponent follows.

    Examples:
        >>> [number_text(x) for x in (1.0, -0.0, 0.1, 1e20, 1e21, 1e-6, 1.5e-7)]
        ['1', '0', '0.1', '100000000000000000000', '1e+21', '0.000001', '1.5e-7']
    """
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        raise InvalidParameter("number", f"an integer up to {MOST_WHOLE} in size", value)
    if not math.isfinite(value):
        raise InvalidParameter("number", "finite", value)
    found = _PARTS.fullmatch(repr(abs(float(value))))
    assert found is not None
    whole, fraction, power = found[1], found[2] or "", int(found[3] or 0)
    digits = (whole + fraction).lstrip("0")
    # The number is 0.DIGITS times 10^place.
    place = len(whole) + power - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    return ("-" if value < 0 else "") + _laid_out(digits, place)


def _laid_out(digits: str, place: int) -> str:
    if len(digits) <= place <= _POINT_UNTIL:
        return digits.ljust(place, "0")
    if 0 < place <= _POINT_UNTIL:
        return f"{digits[:place]}.{digits[place:]}"
    if _POINT_FROM < place <= 0:
        return "0." + "0" * -place + digits
    more = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{more}e{place - 1:+d}"
