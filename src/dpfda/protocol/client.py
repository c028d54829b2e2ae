"""A person's side of a study: the only place where curves and budgets meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import ProtocolError
from dpfda.noise import SecureSource, Source
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task


class Client:
    """One person, who answers one task of a study, once.

    Args:
        plan: the plan the person agreed to.
        ledger: the person's budget; the study's ε is spent from it before the reply exists.
        rng: where randomness comes from; the operating system by default.

    Example:
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.protocol.tasks.moment import MomentTask
        >>> plan = StudyPlan(epsilon=1.0, n_people=1, encoder=CurveEncoder(n_basis=4),
        ...                  classes=("no", "yes"), design={"name": "moments"})
        >>> client = Client(plan, Ledger(limit_epsilon=1.0))
        >>> task = MomentTask(epsilon=1.0, people=1, dimension=4, positive=[1])
        >>> client.reply(task, curve=[0.1, 0.4, 0.2], label="yes").shape
        (1, 4)
    """

    def __init__(self, plan: StudyPlan, ledger: Ledger, *, rng: Source | None = None) -> None:
        self.plan = plan
        self.ledger = ledger
        self._rng = rng if rng is not None else SecureSource()

    def reply(self, task: Task, *, curve: Any, label: Any, grid_points: Any = None) -> FloatArray:
        """Encode, spend, randomize: the reply to send, shape (1, width).

        A second task of the same study is refused by the ledger, whatever budget is left.
        """
        if task.people != 1:
            raise ProtocolError("a client answers for one person")
        check_task(self.plan, task)
        features, labels = encode_people(
            self.plan, one_curve(curve), [label], grid_points=grid_points
        )
        self.ledger.spend(
            PureEvent(epsilon=task.epsilon), label=f"study {self.plan.hash}", key=self.plan.hash
        )
        return task.answer(features, labels, self._rng)


def check_task(plan: StudyPlan, task: Task) -> None:
    """Refuse a task that costs more than the plan says, or protects less."""
    if task.epsilon > plan.epsilon:
        raise ProtocolError(f"the task costs ε = {task.epsilon:g}, the plan says {plan.epsilon:g}")
    if getattr(task, "protects", plan.protects) != plan.protects:
        raise ProtocolError("the task protects something else than the plan says")


def encode_people(
    plan: StudyPlan, curves: Any, labels: Any, *, grid_points: Any = None
) -> tuple[FloatArray, IntArray]:
    """Encoded curves and label numbers, as tasks take them.

    What cannot be encoded becomes 0 and an unknown label becomes number 0: refusing to report would
    itself reveal something.
    """
    features = plan.encoder.encode(curves, grid_points, strict=False)
    known = _one_dimensional(labels)[:, None] == np.asarray(plan.classes)[None, :]
    return features, np.asarray(known.argmax(axis=1), dtype=np.int64)


def one_curve(curve: Any) -> Any:
    """A single curve as a batch of one: values, or a pair (t, x); what is neither has no values."""
    if isinstance(curve, tuple) and len(curve) == 2 and np.ndim(curve[0]) == 1:
        return [curve]
    try:
        values = np.asarray(curve, dtype=np.float64)
    except (TypeError, ValueError):
        return curve if hasattr(curve, "grid_points") else np.full((1, 1), np.nan)
    return values[None, :] if values.ndim == 1 else curve


def _one_dimensional(labels: Any) -> Any:
    """Labels as a vector, whatever things they are."""
    try:
        values = np.asarray(labels)
    except ValueError:  # things of different lengths
        values = np.empty(0)
    if values.ndim == 1 and len(values) == len(labels):
        return values
    things = np.empty(len(labels), dtype=object)
    for place, thing in enumerate(labels):  # assigning the list would unpack sequences
        things[place] = thing
    return things
