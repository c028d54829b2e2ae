"""A conversation without a holder: what it asks when these are the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfda.mechanisms.additive import Additive
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Answer


def course(
    questions: Questions[Any], replies: Sequence[Any] = (), *, n: int = 100
) -> tuple[list[Any], Any]:
    """All that is asked when these are the replies (zeros after the last), and the result."""
    asked, given = [next(questions)], list(replies)
    while True:
        query = asked[-1]
        law = query.mechanism.law if isinstance(query.mechanism, Additive) else None
        reply = given.pop(0) if given else 0.0
        values = np.full(query.size if law else 1, reply, dtype=float)
        try:
            asked.append(questions.send(Answer(values=values, n=n, law=law)))
        except StopIteration as end:
            return asked, end.value
