"""However rows are split, every estimator that works from sums gives the same bits."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from summed_cases import CASES, PRICE, N, cases

import dpfda
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.queries import BallMean
from dpfda.central.regression.alternatives import GradientQuery
from dpfda.central.regression.problem import Bounds, Problem
from dpfda.central.regression.two_stage_queries import NewtonQuery
from dpfda.curves import CurveEncoder
from dpfda.curves.matrices import row_product
from dpfda.privacy.cost import Cost
from dpfda.protocol.query import AdditiveQuery, Query
from dpfda.sites.rehearsal import rehearse

FEW = 300  # of the rows of every case
CUTS = st.lists(st.integers(1, FEW - 1), max_size=9, unique=True).map(sorted)
ORDERS = st.sampled_from(("C", "F"))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fitted(case: Any, **more: Any) -> tuple[Any, Any, Any]:
    """The model, and what it is fitted to."""
    name, parameters, X, y, _, _ = case
    model = getattr(dpfda, name)(**PRICE | parameters | more, random_state=3)
    return model, X[:FEW], None if y is None else y[:FEW]


@cases
@settings(max_examples=4, deadline=None, derandomize=True)
@given(cuts=CUTS, order=ORDERS)
def test_chunks_are_the_same_as_one_table(case: Any, cuts: list[int], order: Any) -> None:
    model, X, y = fitted(case)
    points, left = case[4:]
    whole = getattr(model.fit(X, y, grid_points=points), left)
    parts = [np.asarray(part, order=order) for part in np.split(X, cuts)]
    ys = [None] * len(parts) if y is None else np.split(y, cuts)

    def one_pass() -> Any:
        return zip(parts, ys, strict=True)

    again, _, _ = fitted(case)
    again.fit_stream(one_pass, grid_points=points)
    assert np.array_equal(getattr(again, left), whole)
    assert again.guarantee_ == model.guarantee_


@pytest.mark.parametrize("mechanism", ["adassp", "gaussian_fm", "noisy_gradient"])
def test_single_rows_are_the_same_as_one_table(mechanism: str) -> None:
    model, X, y = fitted(CASES["linear"], mechanism=mechanism)
    whole = model.fit(X[:60], y[:60]).coef_
    model.fit_stream(lambda: ((X[k : k + 1], y[k : k + 1]) for k in range(60)))
    assert np.array_equal(model.coef_, whole)


@pytest.mark.parametrize("mechanism", ["allocation", "bernstein", "frl", "iclp_ar", "iclp_qr"])
def test_other_means(mechanism: str) -> None:
    model, X, _ = fitted(CASES["mean"], mechanism=mechanism, delta=0.0)
    whole = model.fit(X).mean_
    assert np.array_equal(model.fit_stream(lambda: np.array_split(X, 7)).mean_, whole)


ADDITIVE = [name for name, one in Query.members().items() if issubclass(one, AdditiveQuery)]


@pytest.mark.parametrize("name", ADDITIVE)
def test_sums_of_rows_in_any_order_and_place(name: str) -> None:
    generator = np.random.default_rng(0)
    for look in Query.named(name).examples():
        shapes = [(300, width) if width else 300 for width in look.columns]
        records = look.fitting(tuple(generator.normal(size=shape) for shape in shapes))
        whole = look.sums(records)  # type: ignore[attr-defined]
        dealt = np.array_split(generator.permutation(300), 41)
        parts = [tuple(np.asfortranarray(column[part]) for column in records) for part in dealt]
        assert np.array_equal(sum(look.sums(part) for part in parts), whole)  # type: ignore[attr-defined]


WIDE = Bounds(center=np.full(40, 0.01), radius=3.0)
STEEP = np.random.default_rng(1).normal(size=40)
BALL: Any = {"cost": Cost(epsilon=1.0, delta=1e-5), "n": 20_000, "center": np.full(40, 0.1),
             "axes": np.arange(1, 41) ** -0.5, "radius": 2.0}  # fmt: skip


@pytest.mark.parametrize(
    "look",
    [
        BallMean(**BALL),
        JointMoments(**BALL, groups=1, second=5, separate=False, emphasis="means"),
        NewtonQuery(cost=BALL["cost"], bounds=WIDE, theta=STEEP, offset=0.1),
        GradientQuery(cost=BALL["cost"], theta=STEEP, problem=Problem(
            link="logistic", bounds=WIDE, fit_intercept=False)),
    ],
    ids=lambda look: look.name,
)  # fmt: skip
def test_wide_rows_are_rounded_the_same_in_any_place(look: Any) -> None:
    """Enough numbers that an addition in another order would show."""
    generator = np.random.default_rng(0)
    shapes = [(20_000, width) if width else 20_000 for width in look.columns]
    records = look.fitting(tuple(generator.normal(size=shape) for shape in shapes))
    whole = look.sums(records)
    assert np.array_equal(look.sums(tuple(map(np.asfortranarray, records))), whole)
    cuts = np.sort(generator.choice(20_000, 700, replace=False))
    parts = zip(*(np.split(column, cuts) for column in records), strict=True)
    assert np.array_equal(sum(look.sums(part) for part in parts), whole)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**20), st.integers(0, 300))
def test_a_row_is_multiplied_by_itself(wide: int, tall: int, seed: int, power: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = 10.0 ** generator.integers(-power, power + 1, (33, 1))
    rows = sizes * generator.normal(size=(33, wide))
    matrix = generator.normal(size=(wide, tall))
    whole = row_product(rows, matrix)
    assert all(np.array_equal(row_product(rows[k : k + 3], matrix), whole[k : k + 3])
               for k in range(31))  # fmt: skip
    scale = np.abs(rows) @ np.abs(matrix)
    assert np.all(np.abs(whole - rows @ matrix) <= 1e-12 * scale)


@pytest.mark.parametrize("wide", [2, 3, 64, 65, 1024])
def test_products_are_exact_before_they_are_rounded_once(wide: int) -> None:
    """Long positive rows, whose sums need every bit that there is room for."""
    generator = np.random.default_rng(wide)
    rows, matrix = 1 - generator.random((400, wide)) / 4, 1 - generator.random((wide, 3)) / 4
    whole = row_product(rows, matrix)
    assert np.array_equal(np.vstack([row_product(row[None], matrix) for row in rows]), whole)
    shuffled = generator.permutation(wide)
    assert np.array_equal(row_product(rows[:, shuffled], matrix[shuffled]), whole)
    ones = row_product(rows[:2], np.ones((wide, 1)))[:, 0]
    for found, row in zip(ones.tolist(), rows.tolist(), strict=False):
        assert abs(Fraction(found) - sum(map(Fraction, row))) < 1e-12 * wide


def test_a_curve_that_overflows_leaves_the_others_as_they_are() -> None:
    encoder = CurveEncoder("bspline", n_basis=5, rescale="clip", scale=2.0)
    curves = np.random.default_rng(0).normal(size=(20, 30))
    spoiled = curves.copy()
    spoiled[3] = 1.7e308
    assert np.array_equal(np.delete(encoder.encode(spoiled), 3, 0),
                          np.delete(encoder.encode(curves), 3, 0))  # fmt: skip


@pytest.mark.parametrize("name", ["mean", "moments", "linear", "logistic"])
def test_sites_answer_by_their_sums_and_seeds_alone(name: str) -> None:
    """Within a site no split changes a bit; between sites rows move an answer by lattice steps.

    Each of S sites rounds its own sums to the lattice of the noise, 2^24 steps a deviation.
    """
    case = CASES[name]
    X, y, points = case[2], case[3], case[4]

    def first(*parts: np.ndarray) -> Any:
        tables = {f"{k}": (X[part], None if y is None else y[part]) for k, part in enumerate(parts)}
        model = getattr(dpfda, case[0])(**PRICE | case[1], random_state=3)
        _, consortium = rehearse(model, tables, grid_points=points, colluders=0)
        return consortium.transcript[0]

    rows = np.arange(N)
    one = first(*np.split(rows, [700, 1900]))
    mixed = first(*(np.random.default_rng(k).permutation(part)
                    for k, part in enumerate(np.split(rows, [700, 1900]))))  # fmt: skip
    assert np.array_equal(mixed.answer.values, one.answer.values)  # the same people at each site
    moved = first(*np.split(rows, [1000, 2000]))
    step = one.query.mechanism.lattice_step
    steps = np.abs(moved.answer.values - one.answer.values) / step
    assert steps.max() <= 3.001
    assert 3 * step.max() < 1e-6 * one.answer.sigma * 1.01
