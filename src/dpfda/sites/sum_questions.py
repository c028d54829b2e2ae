"""Which question a plan asks next: both sides work it out for themselves from public answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpfda.errors import ProtocolError
from dpfda.mechanisms.additive import Gaussian
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.query import Answer, DatasetQuery, Query
from dpfda.protocol.site import addable, opened
from dpfda.sites.messages import SiteAnswer
from dpfda.sites.plan import Plan

_ROUNDING = 1e-6
"""Two machines may round differently what they compute from the same answers."""


def length(query: Query) -> int:
    """How many numbers its answer has; sites answer nothing but Gaussian sums."""
    if not addable(query):
        raise ProtocolError(f"sites answer sums with Gaussian noise; {query.name} is none")
    assert isinstance(query.mechanism, Gaussian)
    return len(query.mechanism.axes)


def answer_of(plan: Plan, query: Query, told: SiteAnswer) -> Answer:
    """The answer that an opened sum is."""
    assert isinstance(query, DatasetQuery)
    survivors = tuple(dict.fromkeys(told.survivors))
    if survivors != told.survivors or len(survivors) < plan.terms.needed:
        raise ProtocolError(f"a sum has vectors of {plan.terms.needed} different sites at least")
    if len(told.total) != length(query):
        raise ProtocolError("a told sum has another length than its question asks for")
    return opened(
        query,
        np.array(told.total, dtype=np.int64),
        survivors=len(survivors),
        sharing=plan.terms.noisy_sites,
        n=sum(plan.card(name).rows for name in survivors),
    )


def next_question(
    plan: Plan, conversation: Conversation[Any], number: int, told: Sequence[SiteAnswer]
) -> Query | None:
    """What the plan's conversation asks as question `number`; None where it has ended."""
    if len(told) != number:
        raise ProtocolError(f"question {number} comes with the answers to those before it")
    questions = conversation.questions()
    query = next(questions)
    try:
        for one in told:
            query = questions.send(answer_of(plan, query, one))
    except StopIteration:
        return None
    return query


def same_question(expected: Query, asked: Query) -> bool:
    """Whether two queries are one, but for rounding; of its cost nothing is rounded.

    What is paid is what `asked` draws, whatever was expected.
    """
    own, other = expected.to_dict(), asked.to_dict()
    if type(expected) is not type(asked) or own.get("cost") != other.get("cost"):
        return False
    return _alike(own, other) and _alike(expected.event.to_dict(), asked.event.to_dict())


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(one) is type(other) and bool(one == other)
