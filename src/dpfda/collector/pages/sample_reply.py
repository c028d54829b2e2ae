"""What one person really sends: a made-up one answers the first task of a plan.

Privacy:
    Nobody's data are touched: curve, label and randomness are made up here, and public.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from dpfda.collector.pages import charts
from dpfda.local.recipe import in_words
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.person import Person
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.wire import ReplyMessage

_POINTS = 61
_NOTHING = "0" * 32  # where a device's own random digits are
_YES = {-1.0: "no", 1.0: "yes"}


def sample_reply(plan: StudyPlan, value_range: tuple[float, float]) -> dict[str, Any]:
    """A made-up curve, what its owner is asked, and the reply in words and bytes.

    Examples:
        >>> from dpfda import plan_study
        >>> plan = plan_study(2000, 1.0, value_range=(0, 10), classes=("no", "yes"))
        >>> sample_reply(plan, (0, 10))["sent"]
        'no, no'
    """
    start, end = plan.encoder.basis.domain_range
    low, high = value_range
    points = np.linspace(start, end, _POINTS)
    part = (points - start) / (end - start)
    curve = (low + high) / 2 + (high - low) * (0.3 * np.sin(5 * part) - 0.15 * part)
    own = plan.classes[-1] if plan.target_range is None else sum(plan.target_range) / 2
    person = Person(
        plan,
        curve=curve,
        grid_points=points,
        label=own,
        ledger=Ledger(plan.epsilon),
        accepts=plan.guarantee.assumptions,
        source=SimulationSource(0),
    )
    values = person.answer(Server(plan).issue(1)).values[0].tolist()
    body = msgspec.json.encode(ReplyMessage(plan.hash, 0, 0, values, _NOTHING))
    answers = [_YES.get(value, f"{value:g}") for value in values]
    return {
        "chart": charts.curve("a made-up curve", points.tolist(), curve.tolist()),
        "own": str(own),
        "asked": in_words(plan)[0][0]["asked"],
        "answers": len(answers),
        "sent": ", ".join(answers),
        "points": _POINTS,
        "body": body.decode(),
        "bytes": len(body),
    }
