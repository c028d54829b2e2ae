"""What would be sent, beside what it hides: for the person's eyes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves import RowEncoder
from dpfda.errors import InvalidParameter
from dpfda.protocol.person import one_curve
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage

_POINTS = 41


@dataclass(frozen=True, repr=False)
class Preview:
    """A reply before it is sent. It holds private data: show it to the person, do not store it.

    Attributes:
        kind: what was asked.
        body: the exact bytes.
        points: where curves are drawn; empty for plain vectors.
        original: the person's curve as the encoder sees it; an owner's rows. None where the reply
            was drawn before: what it was drawn from is not kept.
        perturbed: the curve that the reply shows, if the reply is a noisy curve; else None.
        hides: one sentence on what a reader of the reply can conclude.
    """

    kind: str
    body: bytes
    points: FloatArray
    original: FloatArray | None
    perturbed: FloatArray | None
    hides: str


def describe(
    plan: StudyPlan, task: Mapping[str, Any], body: bytes, *, curve: Any, grid_points: Any = None
) -> Preview:
    """The preview of a stored reply; `curve` is None where it was not drawn from this one."""
    kind = str(task.get("name", ""))
    values = np.array(msgspec.json.decode(body, type=ReplyMessage).values)
    functional = plan.encoder.basis.functional
    points = np.linspace(*plan.encoder.basis.domain_range, _POINTS) if functional else np.empty(0)
    shown = values[: plan.encoder.n_features]
    noisy = kind in ("vector", "moment") and len(shown) == plan.encoder.n_features
    return Preview(
        kind=kind,
        body=body,
        points=points,
        original=None if curve is None else _own(plan, curve, grid_points, points),
        perturbed=_drawn(plan, shown, points) if noisy else None,
        hides=(
            f"Whatever your data are, this reply is at most e^ε = {np.exp(plan.epsilon):.3g} "
            "times as likely as for anybody else's."
        ),
    )


def _own(plan: StudyPlan, curve: Any, grid_points: Any, points: FloatArray) -> FloatArray:
    batch = one_curve(curve, channels=plan.encoder.channels)
    features = plan.encoder.encode(batch, grid_points, strict=False)
    if isinstance(plan.encoder, RowEncoder):  # an owner's, as many as there are
        return features
    return _drawn(plan, features[0], points)


def _drawn(plan: StudyPlan, z_star: FloatArray, points: FloatArray) -> FloatArray:
    """A vector as a curve; noise may lie outside of what `decode` understands, so it is clipped."""
    inside = np.clip(z_star, -1 + 1e-9, 1 - 1e-9)[None, :]
    try:
        coefficients = plan.encoder.decode(inside)
    except InvalidParameter:  # this encoder forgets sizes: its shape is all there is to show
        coefficients = inside
    return np.asarray(plan.encoder.evaluate(coefficients, points if len(points) else None)[0])
