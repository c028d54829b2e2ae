"""Check a person's own data before they answer, and preview the reply.

The preview is shown only to this person. It compares the reply with the data that it hides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat, TypedDict

import msgspec
import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder, RowEncoder
from dpfda.curves.observations import Curves, GridPoints, read_channels, read_curves, read_vectors
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.protocol.person import equal, one_by_one, one_curve
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import ReplyMessage

_ANYWHERE = (-1e300, 1e300)
_ROUNDING = 1 + 1e-9  # tolerance of least squares: a curve along the bound lies inside


class OwnData(TypedDict):
    """The data from which a person answers."""

    curve: Curves
    label: object
    grid_points: GridPoints


def look_over(
    plan: StudyPlan, *, curve: object, label: object, grid_points: GridPoints = None
) -> list[str]:
    """List what a plan omits or changes in the data; refuse data without any value.

    A `Person` answers with any data, because a missing answer would itself reveal something. But a
    person who chose a wrong file would spend ε in vain. This check warns them before any query. A
    number outside the study's range is not refused, because the organizer chose the range. It is
    moved to the nearest bound, as by a `Person`.

    Raises:
        InvalidData: the study does not have this label, the target is not a number, or no point of
            the curve is usable. A person who has joined and does not answer is visible to the
            collector as silent.
    """
    if isinstance(plan.encoder, RowEncoder):
        return []  # the rows of an owner, which may have any values
    notes = _label(plan, label)
    batch = one_curve(curve, channels=plan.encoder.channels)
    if plan.encoder.table is not None:
        return notes + _cells(plan.encoder, batch)
    if plan.encoder.basis.functional:
        description = _points(plan.encoder, batch, grid_points)
    else:
        description = _numbers(plan.encoder, batch)
    return notes + description + _far_away(plan.encoder, batch, grid_points)


def _label(plan: StudyPlan, label: object) -> list[str]:
    if plan.target_range is None:
        if not equal(one_by_one([label]), one_by_one(plan.classes)).any():
            raise InvalidData("label", f"one of {', '.join(map(str, plan.classes))}")
        return []
    low, high = plan.target_range
    try:
        number = float(label) if isinstance(label, (str, SupportsFloat)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise InvalidData("label", f"a number from {low:g} to {high:g}")
    inside = low <= number <= high
    return [] if inside else [f"the number lies outside {low:g}…{high:g}: the nearer end counts"]


def _points(encoder: CurveEncoder, batch: object, grid_points: GridPoints) -> list[str]:
    said = []
    channels = read_channels(batch, grid_points, count=encoder.channels, strict=False)
    for part, one in zip(encoder.basis.parts, channels, strict=True):
        low, high = part.domain_range
        # Read twice: all points, and those inside the domain of the study.
        _, anywhere = read_curves(*one, domain_range=_ANYWHERE, strict=False)
        _, inside = read_curves(*one, domain_range=(low, high), strict=False)
        total, valued, seen = (
            anywhere.size,
            *(int((~np.isnan(x)).sum()) for x in (anywhere, inside)),
        )
        if seen < max(1, min(2, total)):
            rule = f"observed at two points or more between {low:g} and {high:g}"
            raise InvalidData("curve", rule, f"{seen} of {total} points there")
        if total > valued:
            said.append(f"{total - valued} of {total} points have no value and are left out")
        if valued > seen:
            lost = valued - seen
            said.append(f"{lost} of {total} points lie outside {low:g}…{high:g} and are left out")
    return said


def _numbers(encoder: CurveEncoder, batch: object) -> list[str]:
    size, found = encoder.n_features, np.asarray(batch).shape
    if found != (1, size):
        raise InvalidData("curve", f"{size} numbers, as the study asks for", f"shape {found[1:]}")
    unknown = int(np.isnan(read_vectors(batch, n_basis=size, strict=False)).sum())
    if unknown == size:
        raise InvalidData("curve", "at least one finite number (NaN marks a missing value)")
    return [f"{unknown} of {size} numbers are unknown"] if unknown else []


def _cells(encoder: CurveEncoder, batch: object) -> list[str]:
    assert encoder.table is not None
    encoder.table.check(batch)
    try:
        encoder.table.read(batch)
    except InvalidData as error:
        return [f"{error}: it counts as unknown"]
    return []


def _far_away(encoder: CurveEncoder, batch: object, grid_points: GridPoints) -> list[str]:
    """Note features outside the bounds of `clip`; other rescalers have no bounds."""
    scales = encoder.rescaler.scales(encoder.n_features)
    if encoder.rescaler.name != "clip" or scales is None:
        return []
    z = encoder.coefficients(batch, grid_points, strict=False)[0]
    far = abs(z - encoder.rescaler.centers(encoder.n_features)) > scales * _ROUNDING
    what = "features of the curve" if encoder.basis.functional else "numbers"
    text = (
        f"{far.sum()} of {len(far)} {what} lie outside the study's range and count as its nearest "
        "bound"
    )
    return [text] if far.any() else []


_POINTS = 41


@dataclass(frozen=True, repr=False)
class Preview:
    """A reply before it is sent. It holds private data: show it only to the person; never store it.

    Attributes:
        kind: name of the task.
        body: the exact bytes of the reply.
        points: the points at which curves are drawn; empty for plain vectors.
        original: the person's curve after encoding, or an owner's rows. None if the reply was drawn
            before, because its data are not stored.
        perturbed: the curve of the reply, if the reply is a noisy curve; otherwise None.
        hides: one sentence on what a reader of the reply can conclude.
    """

    kind: str
    body: bytes
    points: FloatArray
    original: FloatArray | None
    perturbed: FloatArray | None
    hides: str


def describe(
    plan: StudyPlan,
    task: Mapping[str, Any],
    body: bytes,
    *,
    curve: object,
    grid_points: GridPoints = None,
) -> Preview:
    """The preview of a stored reply; `curve` is None if the reply may belong to other data."""
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


def _own(plan: StudyPlan, curve: object, grid_points: GridPoints, points: FloatArray) -> FloatArray:
    batch = one_curve(curve, channels=plan.encoder.channels)
    features = plan.encoder.encode(batch, grid_points, strict=False)
    if isinstance(plan.encoder, RowEncoder):  # all rows of an owner
        return features
    return _drawn(plan, features[0], points)


def _drawn(plan: StudyPlan, z_star: FloatArray, points: FloatArray) -> FloatArray:
    """A vector as a curve; values outside the range of `decode` are clipped."""
    inside = np.clip(z_star, -1 + 1e-9, 1 - 1e-9)[None, :]
    try:
        coefficients = plan.encoder.decode(inside)
    except InvalidParameter:  # this encoder does not preserve sizes: show the shape only
        coefficients = inside
    return np.asarray(plan.encoder.evaluate(coefficients, points if len(points) else None)[0])
