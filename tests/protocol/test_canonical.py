"""Canonical JSON: one text for one value, in the words of RFC 8785."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.protocol.plan import StudyPlan, canonical, number_text

# Appendix B of RFC 8785: bits of a number, and its text.
STANDARD = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), STANDARD.items())
def test_numbers_are_written_as_the_standard_says(bits: str, text: str) -> None:
    assert number_text(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back_as_the_same(value: float) -> None:
    assert float(number_text(value)) == value


def test_a_number_has_one_text_whatever_its_type() -> None:
    assert canonical([1, 1.0, 100, 1e2, -0.0]) == b"[1,1,100,100,0]"
    assert canonical([2**53 - 1, 1 - 2**53]) == b"[9007199254740991,-9007199254740991]"


@pytest.mark.parametrize("value", [2**53, -(2**53), float("nan"), float("inf")])
def test_numbers_that_readers_would_differ_on_are_refused(value: float) -> None:
    with pytest.raises(InvalidParameter, match="number"):
        canonical({"seed": value})


def test_names_and_text_are_those_of_the_standard() -> None:
    # Section 3.2.3: sorted by UTF-16 units, so that an emoji comes before a Hebrew ligature.
    names = ["€", "\r", "\ufb33", "1", "😀", "\x80", "ö"]
    assert list(json.loads(canonical(dict.fromkeys(names, 0)))) == [
        *("\r", "1", "\x80", "ö", "€", "😀", "\ufb33")
    ]
    assert canonical('€$\x0f\nA\'B"\\\\"/\x7f') == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f"'.encode()
    assert canonical({"b": [], "a": {}}) == b'{"a":{},"b":[]}'
    assert canonical([True, False, None]) == b"[true,false,null]"


def test_the_hash_of_a_plan_is_that_of_its_text() -> None:
    plan = StudyPlan(
        epsilon=0.5, n_people=100, encoder=CurveEncoder("cosine", n_basis=2, scale=2.0),
        classes=(0, 1.5), design={"name": "moments"}, title="Zürich",
    )  # fmt: skip
    text = (
        '{"classes":[0,1.5],"design":{"name":"moments"},"encoder":{"basis":{"domain_range":[0,1],'
        '"n_basis":2,"name":"cosine"},"rescale":{"center":0,"name":"tanh","scale":2}},'
        '"epsilon":0.5,"n_people":100,"protects":"both","seed":0,"target_range":null,'
        '"title":"Zürich","unit":"person"}'
    )
    assert canonical(plan.to_dict()).decode() == text
    assert plan.hash == hashlib.sha256(text.encode()).hexdigest()
