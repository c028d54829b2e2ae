"""Declared fields: what each may be, to the last number, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpfda.errors import InvalidParameter
from dpfda.protocol import fields
from dpfda.protocol.fields import (
    LARGEST,
    array,
    check_fields,
    choice,
    flag,
    number,
    part,
    parts,
    vector,
    whole,
)


def made(declared: Any, given: Any) -> Any:
    """What a field that is declared like this keeps of what it is given."""

    @dataclass(frozen=True, kw_only=True)
    class Question:
        field: Any = declared

    question = Question(field=given)
    check_fields(question)
    return question.field


class Piece:
    """A public object with fields of its own."""

    @classmethod
    def from_dict(cls, data: Any) -> Any:
        return ("read", data)


PIECE = Piece()
HUGE = np.nextafter(LARGEST, np.inf)


@pytest.mark.parametrize(
    ("declare", "right", "wrong"),
    [
        (number, [0, -LARGEST, LARGEST], [HUGE, -HUGE, np.nan, None, True, "1"]),
        (lambda: number(least=2, most=3), [2, 3], [1.999, 3.001]),
        (lambda: number(above=0, most=1), [1e-9, 1], [0, -1, 1.001]),
        (lambda: number(above=0, optional=True), [None, 1], [0]),
        (whole, [1, 1 << 31], [0, (1 << 31) + 1, 1.0, True, None]),
        (lambda: whole(least=0, most=4, optional=True), [None, 0, 4], [-1, 5]),
        (flag, [True, np.False_], [0, 1, None, "true"]),
        (lambda: choice("a", "b"), ["a", "b"], ["c", "", None]),
        (choice, ["x", "y" * 200, " z"], ["", "  ", "y" * 201, 3, None, ["x"]]),
        (lambda: part(lambda: Piece), [PIECE], [3, None, [PIECE]]),
        (
            lambda: parts(lambda: Piece),
            [(), (PIECE, PIECE), (PIECE,) * 4096],
            [(PIECE,) * 4097, {PIECE}, PIECE, [3], None],
        ),
    ],
    ids=[
        "number", "range", "above", "maybe a number", "whole", "maybe a whole", "flag", "choice",
        "word", "part", "parts",
    ],
)  # fmt: skip
def test_what_a_field_may_be(declare: Any, right: list[Any], wrong: list[Any]) -> None:
    for given in right:
        kept = made(declare(), given)
        assert kept == given
        assert type(kept) is not np.bool_
    for given in wrong:
        with pytest.raises(InvalidParameter, match="field must be"):
            made(declare(), given)


def test_parts_are_read_from_mappings() -> None:
    assert made(part(lambda: Piece), {"a": 1}) == ("read", {"a": 1})
    assert made(parts(lambda: Piece), [{"a": 1}, PIECE]) == (("read", {"a": 1}), PIECE)


@pytest.mark.parametrize(
    ("declare", "right", "wrong"),
    [
        (
            lambda: array("real", 2),
            [[0, -LARGEST], [LARGEST, 0.5]],
            [[0, -HUGE], [HUGE, 0], [np.nan, 0], [0], [0, 0, 0], [[0, 0]], 0, "ab", [True, False]],
        ),
        (
            lambda: array("whole", 2),
            [[0, -(2**62)], [2**62, 1]],
            [[0, -(2**62) - 2**10], [2**62 + 2**10, 0], [0.5, 1], [1.0, 1.0], [2**64 - 1, 0]],
        ),
        (lambda: array("whole", 2, least=-1, most=3), [[-1, 3]], [[-2, 0], [0, 4]]),
        (lambda: array("real", 2, least=-1, most=3), [[-1, 3]], [[-1.001, 0], [0, 3.001]]),
        (lambda: array("whole", "k"), [[], [1, 2, 3]], [[0.5], [[]], None]),
        (lambda: array("real", "k", 2), [np.zeros((0, 2)), [[1, 2]]], [[[1, 2, 3]], [1, 2]]),
        (vector, [[-LARGEST, LARGEST], []], [[HUGE], [-HUGE], [[1.0]], [[1], [1, 2]]]),
        (lambda: vector("k", least=0, most=1), [[0, 1]], [[-0.001], [1.001]]),
    ],
    ids=[
        "real",
        "whole",
        "wholes in a range",
        "reals in a range",
        "any",
        "rows",
        "v",
        "v in [0,1]",
    ],
)
def test_what_an_array_may_be(declare: Any, right: list[Any], wrong: list[Any]) -> None:
    for given in right:
        kept = made(declare(), given)
        np.testing.assert_array_equal(kept, given)
        assert kept.dtype == (np.int64 if declare().metadata["dpfda"].kind == "whole" else float)
        assert not kept.flags.writeable
    for given in wrong:
        with pytest.raises(InvalidParameter, match=r"field must be .* numbers from .* of shape"):
            made(declare(), given)


def test_arrays_have_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MOST_NUMBERS", 4)
    assert made(array("real", "k"), np.zeros(4)).size == 4
    with pytest.raises(InvalidParameter, match="got 'shape"):
        made(array("real", "k"), np.zeros(5))


def lengths() -> Any:
    @dataclass(frozen=True, kw_only=True)
    class Cuts:
        thresholds: Any = array("real", "people", "k")
        weights: Any = array("real", "k")
        people: int = whole(default=2)

    return Cuts


def test_lengths_with_one_name_are_equal() -> None:
    """Whatever the order of the fields: arrays are read after the numbers that bound them."""
    right = lengths()(thresholds=np.zeros((2, 3)), weights=np.zeros(3))
    assert check_fields(right) == {"people": 2, "k": 3}
    for wrong, words in (
        ({"people": 3}, r"thresholds must be .* of shape \(3, k\), got 'shape \(2, 3\)'"),
        ({"weights": np.zeros(2)}, r"weights must be .* of shape \(3\), got 'shape \(2,\)'"),
        ({"thresholds": [[1.0], [1.0, 2.0]]}, r"shape \(2, k\), got 'rows of different lengths'"),
    ):
        given = {"thresholds": np.zeros((2, 3)), "weights": np.zeros(3)} | wrong
        with pytest.raises(InvalidParameter, match=words):
            check_fields(lengths()(**given))
    with pytest.raises(TypeError, match="thresholds"):
        lengths()(weights=np.zeros(3))
    with pytest.raises(InvalidParameter, match=r"of length 2 \(k\), got 'length 3'"):
        made(array("real", "k", "k"), np.zeros((2, 3)))


def test_a_field_that_declares_nothing_is_a_mistake_of_the_class() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Careless:
        people: int = whole(default=1)
        anything: Any = None

    with pytest.raises(TypeError, match="anything does not say what it may be"):
        check_fields(Careless())
