"""The flaws that `dpfda audit --twins` plants in classes that ship. A new one is one call here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda.checks import audits, conversations, expect, mechanisms, neighbors, queries
from dpfda.checks.planted import plant
from dpfda.mechanisms import Mechanism, budgeted
from dpfda.moments.look import WEIGHTS
from dpfda.noise import SimulationSource, uniform
from dpfda.privacy.cost import Cost
from dpfda.privacy.events import PureEvent
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.holder import Exchange, Holder
from dpfda.protocol.query import Query

_RECORDS = 250


def _asked(check: Callable[[Any], None], *names: str) -> Callable[[], None]:
    """A check of every example of some queries."""

    def run() -> None:
        for name in names:
            for query in Query.named(name).examples():
                check(query)

    return run


def _held(check: Callable[..., None], *names: str) -> Callable[[], None]:
    """A check of every course of some conversations."""

    def run() -> None:
        for name in names:
            for delta in (0.0, 0.05):
                member: Any = Conversation.named(name)
                for conversation in member.examples(n=_RECORDS, epsilon=1.0, delta=delta):
                    check(conversation, _RECORDS)

    return run


def _attacked(*names: str) -> Callable[[], None]:
    """An audit of every example of some mechanisms."""

    def run() -> None:
        for name in names:
            for example in Mechanism.named(name).examples():
                result = audits.attacked(example, name, draws=100_000, source=SimulationSource(0))
                expect(result.passed, f"{name} fails its audit")

    return run


def _contract(*names: str) -> Callable[[], None]:
    def run() -> None:
        for name in names:
            for example in Mechanism.named(name).examples():
                mechanisms.check(example)

    return run


def _halved(make: Any) -> Any:
    return lambda cost, *, sensitivity, axes: make(cost, sensitivity=sensitivity / 2, axes=axes)


def _noise_halved(module: str, kind: str) -> list[Any]:
    return [patch(f"dpfda.{module}.{kind}", _halved(getattr(budgeted, kind)))]


for _module, _kind, _names in (
    ("central.looks", "l2_noise", ("ball_mean", "ball_products")),
    ("central.looks", "l2_noise", ("covariate_products", "cross_products")),
    ("central.looks", "l1_noise", ("cell_counts", "nearest_mean")),
    ("central.looks", "l2_noise", ("cell_counts", "nearest_mean")),
    ("central.looks", "l2_noise", ("radius_count",)),
    ("central.looks", "l2_noise", ("joint_moments",)),
    ("central.looks", "l1_noise", ("shrunk_mean",)),
    ("central.looks", "l2_noise", ("shrunk_mean",)),
    ("central.looks", "l1_noise", ("box_mean",)),
    ("central.looks", "l2_noise", ("kernel_machine",)),
    ("regression.look", "l1_noise", ("regression_location", "regression_absolute_moments")),
    ("regression.look", "l2_noise", ("regression_location", "regression_moments")),
    ("regression.look", "l2_noise", ("regression_gradient",)),
    ("regression.look", "l2_noise", ("regression_newton",)),
):
    plant(
        f"sensitivity_halved: {_names[0]}, {_kind[:2]}",
        f"the sensitivity of {', '.join(_names)} is halved",
        partial(_noise_halved, _module, _kind),
        _asked(queries.check_sensitivity, *_names),
    )


def _less(look: Any, exact: Any, n: int, source: Any) -> Any:
    values = look.mechanism.randomize(exact[None, :], source, clip=True)[0]
    return Answer(values=(values + exact) / 2, n=n, law=look.mechanism.law)


def _unclipped(module: str) -> list[Any]:
    return [patch(f"dpfda.{module}.clip_rows", lambda rows, *_, **__: rows)]


def _property(path: str, name: str, value: Callable[[Any], Any]) -> list[Any]:
    module, _, owner = path.rpartition(".")
    return [patch(f"dpfda.{module}.{owner}.{name}", property(value))]


def _narrower(name: str) -> list[Any]:
    look = Query.named(name)

    def body(it: Any) -> Any:
        honest = wide(it)
        return honest._replace(width=honest.width / math.sqrt(2))

    wide = look.__dict__["body"].fget
    return [patch.object(look, "body", property(body))]


for _title, _name in (("covariance", "ball_products"), ("covariates", "covariate_products")):
    plant(
        f"root_two_missing: {_title}",
        f"√2 is missing in how far apart two products are: {_title} (C23)",
        partial(_narrower, _name),
        _asked(queries.check_sensitivity, _name),
    )
plant(
    "second_moments_for_nothing",
    "second moments of full weight are taken to ride on a mean for nothing: 2 instead of √4.5",
    lambda: _property("moments.look.Weights", "width", lambda weights: 2.0),
    _asked(queries.check_sensitivity, "joint_moments"),
)


def _heavy_sizes() -> list[Any]:
    heavy = {"means": WEIGHTS["means"]._replace(size=1.0)}
    alike = _property("moments.look.Weights", "width", lambda it: 2.0 if it.size == 1 else 2.2)
    return [patch.dict(WEIGHTS, heavy), *alike]


plant(
    "another_group_for_nothing",
    "sizes weigh as much as means, and who changes the group is forgotten: 2 instead of √5",
    _heavy_sizes,
    _asked(queries.check_sensitivity, "joint_moments"),
)
plant(
    "newton_root_4.25",
    "the sensitivity of a half-Newton step is √4.25 instead of √8",
    lambda: _property("regression.newton_look.NewtonLook", "l2", lambda look: math.sqrt(4.25)),
    _asked(queries.check_sensitivity, "regression_newton"),
)
for _module, _names in (
    ("central.looks", ("ball_mean",)),
    ("central.looks", ("joint_moments",)),
    ("central.shrunk_mean", ("shrunk_mean",)),
    ("central.pair_looks", ("covariate_products", "cross_products")),
):
    plant(
        f"no_clipping: {_names[0]}",
        f"records of {', '.join(_names)} are not clipped to the public ball (C11)",
        partial(_unclipped, _module),
        _asked(queries.check_sensitivity, *_names),
    )
plant(
    "bernstein_with_a_norm_bound",
    "the Bernstein mechanism takes a bound on the norm for one on every value (C23)",
    lambda: [
        patch(
            "dpfda.central.looks.l1_noise",
            lambda cost, *, sensitivity, axes: budgeted.l1_noise(
                cost, sensitivity=sensitivity / math.sqrt(len(axes)), axes=axes
            ),
        )
    ],
    _asked(queries.check_sensitivity, "box_mean"),
)


def _small_kernels() -> None:
    look: Any = Query.named("nearest_mean")
    for query in look.examples():
        queries.check_sensitivity(replace(query, features=0.1 * query.features))


def _printed_width(features: Any, axes: Any, **_: Any) -> float:
    return 2 * float(((features / axes) ** 2).sum(axis=1).max())


plant(
    "kernel_density_as_printed",
    "kernels are taken to be 2M apart, not √(2M), which is less where M < ½ (C13)",
    lambda: [patch("dpfda.central.cell_looks.cell_sensitivity", _printed_width)],
    _small_kernels,
)


def _on_the_edge() -> None:
    """Support vectors at one place, and as many of either label that one more decides."""
    machine: Any = Query.named("kernel_machine")
    example = next(it for it in machine.examples() if it.loss == "smoothed_hinge")
    query = replace(example, psi=0.475 * example.space.kappa)
    best = int(np.diag(query.space.gram).argmax())
    x = np.full((query.n, 1), np.linspace(0, 1, query.along)[best])
    y = np.where(np.arange(query.n) < query.n // 4, -1.0, 1.0)
    other = np.where(np.arange(query.n) == query.n // 4, -1.0, y)
    ratio = neighbors.measured(query, ((x, y), (x, other))).ratio
    expect(ratio <= 1, f"neighbors are {ratio:.1f} sensitivities apart")


def _norm_not_squared() -> list[Any]:
    """ψ‖f‖ is ψ'‖f‖² with ψ' = ψ/(2‖f‖) at the minimizer: found in some steps."""
    machine: Any = Query.named("kernel_machine")
    squared = machine.statistic

    def statistic(look: Any, totals: Any) -> Any:
        psi, found = 1e-3, None
        for _ in range(80):
            found = squared(replace(look, psi=psi), totals)
            norm = float(np.linalg.norm(found / look.space.weights))
            psi = look.psi / (2 * max(norm, 1e-6))
        return found

    return [patch.object(machine, "statistic", statistic)]


plant(
    "norm_not_squared",
    "a kernel machine is penalized by ψ‖f‖ and noise is for ψ‖f‖²: no stability (C14)",
    _norm_not_squared,
    _on_the_edge,
)
plant(
    "records_not_cleaned",
    "NaN and infinities of records reach the sums",
    lambda: [patch("dpfda.protocol.query.finite", lambda column: column)],
    _asked(queries.check_hostile_records, "ball_mean"),
)
plant(
    "price_of_another",
    "a query is charged half of what its mechanism costs",
    lambda: [patch.object(Query, "event", property(lambda query: PureEvent(epsilon=0.1)))],
    _asked(queries.check_description, "ball_mean", "moment"),
)
plant(
    "more_than_the_mechanism",
    "an answer is the exact one with a little of its noise",
    lambda: [patch("dpfda.protocol.query.Look.randomize", _less)],
    _asked(queries.check_answer, "ball_mean"),
)


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
        lambda: [patch("dpfda.central.scouting._left", lambda budget, search: budget)],
        _held(conversations.check_price, _name),
    )
plant(
    "rest_not_reduced",
    "a label's share is not taken off the curve's: ε + ε/2 instead of ε (C22)",
    lambda: [patch.object(Cost, "rest", lambda cost, *parts: cost)],
    _asked(queries.check_description, "vector"),
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
    lambda: [patch.object(Holder, "_kept", lambda holder, query, number: None)],
    _held(conversations.check_repeats, "mean"),
)


def _too_sharp(module: str) -> list[Any]:
    """Likely reports weigh 1.2 e^ε."""

    def sharp(*args: Any, **sizes: Any) -> tuple[int, int]:
        high, low = uniform.weights(*args, **sizes)
        return int(1.2 * high), low

    return [patch(f"dpfda.mechanisms.{module}.weights", sharp)]


plant(
    "cap_index_too_sharp",
    "codewords in the cap weigh 1.2 e^ε",
    lambda: _too_sharp("codeword_report"),
    _attacked("cap_index"),
)
plant(
    "class_index_too_sharp",
    "codewords in the cap of the own bucket weigh 1.2 e^ε",
    lambda: _too_sharp("codeword_report"),
    _attacked("class_index"),
)


def _honest_bucket() -> list[Any]:
    """The draw of a codeword alone, in the bucket of the own class always."""
    kind: Any = Mechanism.named("class_index")
    honest = kind.randomize

    def randomize(it: Any, values: Any, source: Any, *, clip: bool = False) -> Any:
        reports = honest(it, values, source, clip=clip)
        own, _ = it._parted(values, clip=clip)
        buckets, _ = it._placed(own, reports[:, 0].astype(np.uint64))
        reports[:, 1] = buckets * it.codewords + reports[:, 1] % it.codewords
        return reports

    return [patch.object(kind, "randomize", randomize)]


def _shared_words() -> list[Any]:
    """The coins of every second person are those of the one before."""

    def twice(bound: int, size: int, source: Any) -> Any:
        return uniform.below(bound, size, source)[np.arange(size) // 2 * 2]

    return [patch("dpfda.mechanisms.codeword_report.below", twice)]


plant(
    "class_in_the_clear",
    "codewords are drawn with weights, but always from the bucket of the own class",
    _honest_bucket,
    _attacked("class_index"),
)
for _name in ("cap_index", "class_index"):
    plant(
        f"coins_shared_by_people: {_name}",
        "every second person uses the codebook and the coins of another",
        _shared_words,
        _contract(_name),
    )
plant(
    "question_response_too_sharp",
    "the true pattern weighs 1.2 times as much as it may",
    lambda: _too_sharp("question_response"),
    _attacked("question_response"),
)


def _drawn(name: str, change: Callable[[Any], Any]) -> list[Any]:
    """Integer noise of an additive mechanism, changed."""
    kind: Any = Mechanism.named(name)
    honest = kind._integers
    return [
        patch.object(kind, "_integers", lambda it, rows, source: change(honest(it, rows, source)))
    ]


for _name in ("additive_laplace", "ellipsoid_laplace", "gaussian"):
    plant(
        f"noise_too_small: {_name}",
        "noise is a tenth smaller than stated",
        partial(_drawn, _name, lambda noise: (noise * 0.9).astype(np.int64)),
        _attacked(_name),
    )
    plant(
        f"noise_shared_by_coordinates: {_name}",
        "two coordinates get the same noise",
        partial(_drawn, _name, lambda noise: np.repeat(noise[:, :1], noise.shape[1], axis=1)),
        _contract(_name),
    )
    plant(
        f"noise_shared_by_people: {_name}",
        "every second row gets its neighbor's noise",
        partial(_drawn, _name, lambda noise: noise[np.arange(len(noise)) // 2 * 2]),
        _contract(_name),
    )
plant(
    "coordinates_with_replacement",
    "a person's coordinates are drawn with replacement",
    lambda: [
        patch(
            "dpfda.mechanisms.sampled_coordinates.subsets",
            lambda count, *, choose, among, source: (
                uniform.below(among, count * choose, source).astype(np.int64).reshape(count, choose)
            ),
        )
    ],
    _contract("piecewise"),
)
_exponential: Any = Mechanism.named("exponential")
_rate = _exponential.__dict__["_rate"].func
plant(
    "exponential_at_epsilon",
    "scores are weighed with ε instead of ε/2",
    lambda: [patch.object(_exponential, "_rate", property(lambda it: 2 * _rate(it)))],
    _contract("exponential"),
)
