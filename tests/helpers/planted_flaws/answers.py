"""Flaws in what a query computes and sends: sensitivities, clipping, records of no numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda.central.moments.moment_query import Weights
from dpfda.checks import expect, queries
from dpfda.mechanisms import ellipsoid_laplace
from dpfda.privacy.events import PureEvent
from dpfda.protocol.query import Answer, Query
from planted_flaws.planting import on_queries, plant


def _halved(make: Any) -> Any:
    return lambda cost, *, sensitivity, axes: make(cost, sensitivity=sensitivity / 2, axes=axes)


def _noise_halved(module: str, kind: str) -> list[Any]:
    return [patch(f"dpfda.{module}.{kind}", _halved(getattr(ellipsoid_laplace, kind)))]


for _module, _kind, _names in (
    ("central.queries", "l2_noise", ("ball_mean", "ball_products")),
    ("central.function_on_scalar", "l2_noise", ("covariate_products", "cross_products")),
    ("central.queries", "l1_noise", ("cell_counts", "nearest_mean")),
    ("central.queries", "l2_noise", ("cell_counts", "nearest_mean")),
    ("central.queries", "l2_noise", ("radius_count",)),
    ("central.function_on_scalar", "l2_noise", ("pair_radius_count",)),
    ("central.moments.moment_query", "l2_noise", ("joint_moments", "sparse_moments")),
    ("central.sparse_queries", "l2_noise", ("sparse_mean", "sparse_times")),
    ("central.sparse_queries", "l2_noise", ("sparse_radius_count",)),
    ("central.queries", "l1_noise", ("shrunk_mean",)),
    ("central.queries", "l2_noise", ("shrunk_mean",)),
    ("central.queries", "l1_noise", ("box_mean",)),
    ("central.kernel_machine", "l2_noise", ("kernel_machine",)),
    ("central.regression.queries", "l1_noise", ("regression_location", "regression_moments")),
    ("central.regression.queries", "l2_noise", ("regression_location", "regression_moments")),
    ("central.regression.queries", "l2_noise", ("regression_weighted_moments",)),
    ("central.weighted_mean", "l2_noise", ("mean_weight",)),
    ("central.regression.queries", "l2_noise", ("regression_gradient",)),
    ("central.regression.queries", "l2_noise", ("regression_outside",)),
    ("central.regression.queries", "l1_noise", ("regression_outside",)),
    ("central.regression.queries", "l2_noise", ("regression_newton",)),
):
    plant(
        f"sensitivity_halved: {_names[0]}, {_kind[:2]}",
        f"the sensitivity of {', '.join(_names)} is halved",
        partial(_noise_halved, _module, _kind),
        on_queries(queries.check_sensitivity, *_names),
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

    def mechanism(it: Any) -> Any:
        honest = wide(it)
        return replace(honest, sensitivity=honest.sensitivity / math.sqrt(2))

    wide = look.__dict__["mechanism"].func
    return [patch.object(look, "mechanism", property(mechanism))]


for _title, _name in (("covariance", "ball_products"), ("covariates", "covariate_products")):
    plant(
        f"root_two_missing: {_title}",
        f"√2 is missing in how far apart two products are: {_title} (C23)",
        partial(_narrower, _name),
        on_queries(queries.check_sensitivity, _name),
    )
plant(
    "second_moments_for_nothing",
    "second moments of full weight are taken to ride on a mean for nothing: 2 instead of √4.5",
    lambda: _property("central.moments.moment_query.Weights", "width", lambda weights: 2.0),
    on_queries(queries.check_sensitivity, "joint_moments"),
)


def _unmixed_sizes() -> list[Any]:
    def size(weights: Any, groups: int) -> float:
        return honest(weights._replace(common=1.0), groups)

    honest = Weights.size
    return [patch("dpfda.central.moments.moment_query.Weights.size", size)]


plant(
    "another_group_for_nothing",
    "sizes weigh as much as means, and who changes the group is forgotten: 2 instead of √5",
    lambda: [patch("dpfda.central.moments.moment_query.Weights.size", lambda weights, groups: 1.0)],
    on_queries(queries.check_sensitivity, "joint_moments"),
)
plant(
    "mixed_groups_for_nothing",
    "that what sets groups apart weighs more is forgotten where somebody changes the group",
    _unmixed_sizes,
    on_queries(queries.check_sensitivity, "joint_moments"),
)
plant(
    "newton_root_4.25",
    "the sensitivity of a half-Newton step is √4.25 instead of √8",
    lambda: _property(
        "central.regression.two_stage_queries.NewtonQuery", "l2", lambda look: math.sqrt(4.25)
    ),
    on_queries(queries.check_sensitivity, "regression_newton"),
)
plant(
    "heavy_targets_for_nothing",
    "that targets may weigh more than rows is forgotten in the sensitivity of where both are",
    lambda: _property(
        "central.regression.two_stage_queries.LocationQuery", "l2", lambda look: math.sqrt(5.0)
    ),
    on_queries(queries.check_sensitivity, "regression_location"),
)
plant(
    "weights_without_a_bound",
    "weights above their public bound count as they are",
    lambda: [
        patch(
            "dpfda.central.regression.queries.row_factors",
            lambda weights, bound: np.sqrt(np.abs(weights) / bound),
        )
    ],
    on_queries(queries.check_sensitivity, "regression_weighted_moments"),
)
plant(
    "weights_below_zero",
    "weights below 0 count as they are",
    lambda: [patch("dpfda.central.weighted_mean.shares", lambda weights: np.minimum(weights, 1.0))],
    on_queries(queries.check_sensitivity, "mean_weight"),
)
for _module, _names in (
    ("central.queries", ("ball_mean",)),
    ("central.queries", ("joint_moments",)),
    ("central.queries", ("sparse_mean",)),
    ("central.linear", ("shrunk_mean",)),
    ("central.function_on_scalar", ("covariate_products", "cross_products")),
):
    plant(
        f"no_clipping: {_names[0]}",
        f"records of {', '.join(_names)} are not clipped to the public ball (C11)",
        partial(_unclipped, _module),
        on_queries(queries.check_sensitivity, *_names),
    )
plant(
    "bernstein_with_a_norm_bound",
    "the Bernstein mechanism takes a bound on the norm for one on every value (C23)",
    lambda: [
        patch(
            "dpfda.central.queries.l1_noise",
            lambda cost, *, sensitivity, axes: ellipsoid_laplace.l1_noise(
                cost, sensitivity=sensitivity / math.sqrt(len(axes)), axes=axes
            ),
        )
    ],
    on_queries(queries.check_sensitivity, "box_mean"),
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
    lambda: [patch("dpfda.central.cell_queries.cell_sensitivity", _printed_width)],
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
    ratio = queries.measured(query, ((x, y), (x, other))).ratio
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
    on_queries(queries.check_hostile_records, "ball_mean"),
)
plant(
    "price_of_another",
    "a query is charged half of what its mechanism costs",
    lambda: [patch.object(Query, "event", property(lambda query: PureEvent(epsilon=0.1)))],
    on_queries(queries.check_description, "ball_mean", "moment"),
)
for _task, _module in (("member", "protocol.tasks.questions"), ("rule", "local.mrma.rules")):
    plant(
        f"whole_price_for_every_verdict: {_task}",
        "each of several answers about classifiers has all of ε, not a part (000, after Theorem 2)",
        partial(
            lambda where: [patch(f"{where}.verdict_epsilon", lambda epsilon, number: epsilon)],
            f"dpfda.{_module}",
        ),
        on_queries(queries.check_description, _task),
    )
plant(
    "more_than_the_mechanism",
    "an answer is the exact one with a little of its noise",
    lambda: [patch("dpfda.protocol.query.randomized", _less)],
    on_queries(queries.check_answer, "ball_mean"),
)
