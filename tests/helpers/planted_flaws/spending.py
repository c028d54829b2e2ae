"""Flaws in what is charged: shares, ledgers, announcements, repeats.

Flaws that show at the ends of the range of floats and integers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda.central.channels import ChannelQuery
from dpfda.central.queries import BallMean, units
from dpfda.checks import conversations, magnitudes, queries
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Exchange, Holder
from dpfda.protocol.query import AdditiveQuery, Query
from planted_flaws.planting import ContractStep, on_queries, plant

_RECORDS = 250


def _held(check: Callable[..., None], *names: str) -> ContractStep:
    """A check of every course of some conversations."""
    return ContractStep(check, _courses, names)


def _courses(name: str) -> list[Any]:
    member: Any = Conversation.named(name)
    return [
        (conversation, _RECORDS)
        for delta in (0.0, 0.05)
        for conversation in member.examples(n=_RECORDS, epsilon=1.0, delta=delta)
    ]


def _doubled(owner: str) -> list[Any]:
    """A mechanism of central releases that spends pure ε, twice as much as it may."""

    def budget(_: Any, asked: Any, *costs: Any) -> Cost:
        return Cost(epsilon=2 * asked.epsilon)

    return [patch(f"dpfda.{owner}.budget", budget)]


_WHOLE = ("mean", "covariance", "function_on_scalar", "regression", "moments", "discriminant")
for _name in _WHOLE:
    plant(
        f"share_not_divided: {_name}",
        f"every look of {_name} spends the whole budget",
        lambda: [
            patch.object(Cost, "part", lambda cost, share: cost),
            patch.object(Cost, "rest", lambda cost, *parts: cost),
        ],
        _held(conversations.check_price, _name),
    )
for _name in ("mean", "covariance", "moments"):
    plant(
        f"search_for_nothing: {_name}",
        f"what a search for the range of {_name} cost is not taken off",
        lambda: [patch("dpfda.central.ball_search._left", lambda budget, search: budget)],
        _held(conversations.check_price, _name),
    )
for _name, _owner in (
    ("mean", "central.adaptive.Adaptive"),
    ("regression", "central.regression.two_stage.TwoStageMoments"),
):
    plant(
        f"pure_noise_doubled: {_name}",
        f"the noise chosen for a {_name} spends twice the ε that was announced",
        partial(_doubled, _owner),
        _held(conversations.check_price, _name),
    )
plant(
    "pure_noise_doubled: density",
    "the noise chosen for a density spends twice the ε that was announced",
    lambda: [
        patch(
            "dpfda.central.density.DensityRelease.better",
            lambda asked, *costs: Cost(epsilon=2 * asked.epsilon),
        )
    ],
    _held(conversations.check_price, "density"),
)
plant(
    "pure_noise_doubled: function_on_scalar",
    "the noise chosen for coefficient functions spends twice the ε that was announced",
    lambda: [
        patch(
            "dpfda.central.function_on_scalar.FunctionOnScalarRelease.whole",
            property(lambda asked: Cost(epsilon=2 * asked.epsilon)),
        )
    ],
    _held(conversations.check_price, "function_on_scalar"),
)
plant(
    "rest_not_reduced",
    "a label's share is not taken off the curve's: ε + ε/2 instead of ε",
    lambda: [patch.object(Cost, "rest", lambda cost, *parts: cost)],
    on_queries(queries.check_description, "vector"),
)
plant(
    "ledger_skipped",
    "a holder answers without spending from its ledger",
    lambda: [patch.object(Holder, "_pay", lambda holder, query: None)],
    _held(conversations.check_ledger, "mean"),
)
_pay = Holder._pay
plant(
    "spent_twice",
    "a holder pays for every look twice",
    lambda: [patch.object(Holder, "_pay", lambda it, query: (_pay(it, query), _pay(it, query)))],
    _held(conversations.check_ledger, "mean"),
)


def _draw_first(holder: Any, query: Query, *, number: int) -> Any:
    holder._agree(query)
    answer = holder._respond(query, number)
    holder._spend(query)
    holder.transcript.append(Exchange(query, answer))
    return answer


plant(
    "spent_after_the_draw",
    "a holder draws noise before it spends",
    lambda: [patch.object(Holder, "answer", _draw_first)],
    _held(conversations.check_order, "mean"),
)
plant(
    "announcement_ignored",
    "a holder answers more than the conversation announced",
    lambda: [patch("dpfda.protocol.holder.within", lambda price, most: True)],
    _held(conversations.check_greed, "mean"),
)
plant(
    "repeats_drawn_again",
    "a question that is asked again gets fresh noise",
    lambda: [patch.object(Holder, "_stored", lambda holder, query, number: None)],
    _held(conversations.check_repeats, "mean"),
)


def _any_size() -> list[Any]:
    """Noise of any size, also of none."""
    return [
        patch("dpfda.mechanisms.additive._in_range", lambda name, value: None),
        patch("dpfda.central.cell_queries._LEAST_WIDTH", 0.0),
    ]


def _plain_squares(features: Any, axes: Any, *, gaussian: bool = False) -> float:
    gaps = np.abs(features[:, None] - features[None]) / axes
    sizes = np.sqrt((gaps**2).sum(axis=2)) if gaussian else gaps.sum(axis=2)
    return float(sizes.max())


plant(
    "lattice_of_any_size",
    "features near the smallest float give a lattice on which noise has lost its digits",
    _any_size,
    on_queries(magnitudes.check_extremes, "nearest_mean"),
)
plant(
    "squares_underflow",
    "distances between features are squared without being scaled first",
    lambda: [*_any_size(), patch("dpfda.central.cell_queries.cell_sensitivity", _plain_squares)],
    on_queries(magnitudes.check_powers, "nearest_mean"),
)
plant(
    "units_too_fine",
    "records are summed in so small units that the sum of many wraps around",
    lambda: [patch("dpfda.central.queries.units", lambda n: 1 << 40)],
    on_queries(magnitudes.check_room, "ball_mean"),
)
plant(
    "records_count_more",
    "a record adds twice as much to a sum as is said",
    lambda: [patch.object(BallMean, "largest", property(lambda it: units(it.n) // 2))],
    on_queries(magnitudes.check_room, "ball_mean"),
)
plant(
    "any_number_of_records",
    "a holder does not compare how many records it has with how many were announced",
    lambda: [patch.object(AdditiveQuery, "count", lambda it, n, *, part=False: None)],
    on_queries(magnitudes.check_room, "ball_mean"),
)
plant(
    "number_not_announced",
    "a query does not announce the number of records that its noise depends on",
    lambda: [patch.object(AdditiveQuery, "announced", None)],
    on_queries(magnitudes.check_room, "ball_mean"),
)
plant(
    "number_of_a_channel_not_announced",
    "a query about a channel does not announce the number of records of its query",
    lambda: [patch.object(ChannelQuery, "announced", None)],
    on_queries(magnitudes.check_room, "channel"),
)
