"""Encoding: always in the box, the right numbers, and the way back."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.curves import (
    BSplineBasis,
    CosineBasis,
    CurveEncoder,
    CustomBasis,
    MaxAbsRescaler,
    TanhRescaler,
)
from dpfda.curves.basis import projector
from dpfda.errors import InvalidData, InvalidParameter, UnknownName

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
ANY = st.floats(width=64)
LARGEST = np.finfo(float).max
GRID = np.linspace(0, 1, 9)
EDGES = [0.0, -0.0, 5e-324, -5e-324, 1e-308, 1.0, -1.0, 1e308, -1e308, LARGEST, -LARGEST]


def test_encoding_is_in_the_box_at_the_edges_of_floating_point(basis, rescaler, rng):
    encoder = CurveEncoder(basis, rescale=rescaler)
    columns = 7 if basis.functional else basis.n_basis
    flat = np.repeat(np.array(EDGES)[:, None], columns, axis=1)
    mixed = rng.choice(EDGES, size=(300, columns))
    assert np.all(np.abs(encoder.encode(np.vstack([flat, mixed]))) <= 1.0)


@given(data=st.data())
@settings(deadline=None, max_examples=6)
def test_encoding_is_in_the_box_for_extreme_curves(basis, rescaler, data):
    """The sensitivity of every report rests on this."""
    encoder = CurveEncoder(basis, rescale=rescaler)
    columns = data.draw(st.integers(1, 9)) if basis.functional else basis.n_basis
    row = st.lists(FINITE, min_size=columns, max_size=columns)
    z_star = encoder.encode(data.draw(st.lists(row, min_size=1, max_size=4)))
    assert z_star.shape[1] == encoder.n_features
    assert np.all(np.abs(z_star) <= 1.0)  # false for NaN


@given(data=st.data())
@settings(deadline=None, max_examples=6)
def test_a_client_always_gets_a_vector_in_the_box(basis, rescaler, data):
    """NaN, infinities, wrong lengths: strict=False never refuses and never leaves the box."""
    encoder = CurveEncoder(basis, rescale=rescaler)
    rows = data.draw(st.lists(st.lists(ANY, max_size=6), min_size=1, max_size=4))
    z_star = encoder.encode([np.array(row) for row in rows], strict=False)
    assert z_star.shape == (len(rows), encoder.n_features)
    assert np.all(np.abs(z_star) <= 1.0)


@given(data=st.data())
@settings(deadline=None, max_examples=5)
def test_own_grids_are_in_the_box(functional_basis, rescaler, data):
    encoder = CurveEncoder(functional_basis, rescale=rescaler)
    sizes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    series = [
        tuple(data.draw(st.lists(ANY, min_size=n, max_size=n)) for _ in range(2)) for n in sizes
    ]
    z_star = encoder.encode(series, strict=False)
    assert z_star.shape == (len(sizes), encoder.n_features)
    assert np.all(np.abs(z_star) <= 1.0)


def test_coefficients_equal_numpys_least_squares(functional_basis, rng):
    low, high = functional_basis.domain_range
    t = np.sort(rng.uniform(low, high, 60))
    curves = rng.normal(size=(7, 60))
    expected = np.linalg.lstsq(functional_basis.evaluate(t), curves.T, rcond=None)[0].T
    z = CurveEncoder(functional_basis).coefficients(curves, t)
    np.testing.assert_allclose(z, expected, rtol=1e-9, atol=1e-11)


def test_coefficients_equal_scikit_fdas(rng):
    skfda = pytest.importorskip("skfda")
    t = np.linspace(0, 1, 80)
    curves = skfda.FDataGrid(rng.normal(size=(6, 80)), t)
    for ours, theirs in (
        (CurveEncoder(n_basis=6), skfda.representation.basis.BSplineBasis(n_basis=6)),
        (CurveEncoder("fourier", n_basis=5), skfda.representation.basis.FourierBasis(n_basis=5)),
    ):
        np.testing.assert_allclose(
            ours.coefficients(curves), curves.to_basis(theirs).coefficients, atol=1e-11
        )


def test_encode_is_rescaled_coefficients_and_one_row_does_not_touch_another(rng):
    encoder = CurveEncoder(n_basis=5, scale=0.7)
    curves = rng.normal(size=(9, 30))
    z_star = encoder.encode(curves)
    np.testing.assert_allclose(z_star, np.tanh(encoder.coefficients(curves) / 0.7))
    np.testing.assert_allclose(encoder.encode(curves[3:4]), z_star[3:4], rtol=1e-12)


def test_an_overflowing_curve_keeps_its_direction():
    encoder = CurveEncoder("cosine", n_basis=1, rescale="max_abs")
    curves = np.array([[1e308] * 50, [-1.7e308] * 50, [5e-324] * 50, [0.0] * 50])
    assert encoder.encode(curves)[:2].tolist() == [[1.0], [-1.0]]
    assert encoder.encode(curves)[3].tolist() == [0.0]


def test_overflow_changes_nothing_but_the_size(rng):
    """max_abs forgets sizes, so a curve and its largest multiple are encoded alike."""
    encoder = CurveEncoder(n_basis=8, rescale="max_abs")
    z = rng.uniform(-1, 1, (40, 8))
    curves = LARGEST * (z @ encoder.basis.evaluate(GRID).T)  # finite: B-splines add up to 1
    with np.errstate(over="ignore", invalid="ignore"):
        naive = curves @ projector(encoder.basis, GRID).T
    assert not np.isfinite(naive).all()  # a partial sum of the plain product overflows
    expected = z / np.abs(z).max(axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(curves), expected, atol=1e-10)


@pytest.mark.parametrize("rescale", ["tanh", "clip"])
def test_a_curve_in_the_span_comes_back(functional_basis, rescale, rng):
    encoder = CurveEncoder(functional_basis, rescale=rescale, scale=3.0, center=0.5)
    z = rng.uniform(-1, 1, (5, functional_basis.n_basis))
    t = np.linspace(*functional_basis.domain_range, 50)
    curves = z @ functional_basis.evaluate(t).T
    np.testing.assert_allclose(encoder.decode(encoder.encode(curves)), z, atol=1e-9)
    np.testing.assert_allclose(encoder.draw(encoder.encode(curves), t), curves, atol=1e-9)
    assert encoder.draw(encoder.encode(curves)).shape == (5, 101)


def test_vectors_come_back_too():
    encoder = CurveEncoder("identity", feature_ranges=[(0, 10), (-50, 50), (0, 1)])
    vectors = [[2.5, -25.0, 1.0], [10.0, 0.0, 0.25]]
    assert encoder.encode(vectors).tolist() == [[-0.5, -0.5, 1.0], [1.0, 0.0, -0.5]]
    np.testing.assert_allclose(encoder.draw(encoder.encode(vectors)), vectors)


def test_clip_slope_and_offset_reproduce_the_rule(functional_basis, rng):
    """C2: inside the range of clip, ∫ x β̂ + offset = b̂ᵀz*, and Σ b̂_k φ_k does not do that."""
    basis = functional_basis
    scale, center = rng.uniform(2, 4, basis.n_basis), rng.uniform(-0.5, 0.5, basis.n_basis)
    encoder = CurveEncoder(basis, rescale="clip", scale=scale.tolist(), center=center.tolist())
    z, b = rng.uniform(-1, 1, (6, basis.n_basis)), rng.normal(size=basis.n_basis)
    low, high = basis.domain_range
    cells = 20_000
    t = low + (np.arange(cells) + 0.5) * (high - low) / cells
    curves = z @ basis.evaluate(t).T
    integral = curves @ encoder.slope(b, t) * (high - low) / cells
    rule = encoder.encode(curves[:, ::100], t[::100]) @ b
    # Midpoint rule with 2e4 cells: below 1e-7 for smooth functions, 1e-3 at a step's edge.
    tolerance = 1e-3 if getattr(basis, "order", 4) == 1 else 1e-6
    np.testing.assert_allclose(integral + encoder.offset(b), rule, atol=tolerance)
    if not np.allclose(basis.gram(), np.eye(basis.n_basis)):
        naive = curves @ (basis.evaluate(t) @ b) * (high - low) / cells
        assert np.abs(naive + encoder.offset(b) - rule).max() > 0.01


def test_tanh_slope_is_the_first_order(rng):
    encoder = CurveEncoder(n_basis=5, scale=4.0)
    z, b = 1e-4 * rng.normal(size=(3, 5)), rng.normal(size=5)
    t = np.linspace(0, 1, 4001)
    integral = np.trapezoid(z @ encoder.basis.evaluate(t).T * encoder.slope(b, t), t, axis=1)
    # tanh(u) = u - u³/3 + ...: with |u| below 1e-4 the third order is below 1e-12.
    np.testing.assert_allclose(integral, encoder.rescaler.rescale(z) @ b, rtol=1e-4, atol=1e-9)


def test_slopes_come_in_batches():
    encoder = CurveEncoder("cosine", n_basis=3, rescale="clip", scale=2.0)
    batch = np.arange(12.0).reshape(2, 2, 3)
    slopes = encoder.slope(batch)
    assert slopes.shape == (2, 2, 101)
    np.testing.assert_allclose(slopes[1, 0], encoder.slope(batch[1, 0]))
    assert encoder.offset(batch).shape == (2, 2)


def test_vectors_have_weights_instead_of_a_slope():
    encoder = CurveEncoder("identity", feature_ranges=[(0, 4), (2, 4)])
    assert encoder.slope([1.0, 1.0]).tolist() == [0.5, 1.0]
    x = np.array([[3.0, 2.5]])
    expected = encoder.encode(x) @ [1.0, 1.0]
    np.testing.assert_allclose(x @ encoder.slope([1, 1]) + encoder.offset([1, 1]), expected)


def test_max_abs_has_no_slope_and_no_way_back():
    encoder = CurveEncoder(rescale="max_abs")
    for refused in (encoder.slope, encoder.offset, encoder.decode, encoder.draw):
        with pytest.raises(InvalidParameter, match=r"rescale must be .* got 'max_abs'"):
            refused(np.zeros(4))


def test_survives_json_and_hashes_alike(basis, rescaler):
    encoder = CurveEncoder(basis, rescale=rescaler)
    twin = CurveEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert twin == encoder
    assert hash(twin) == hash(encoder)


def test_is_frozen_and_shows_no_curve():
    encoder = CurveEncoder()
    encoder.encode([[1234.5, 1234.5]])
    with pytest.raises(AttributeError):
        encoder.basis = CosineBasis()
    assert "1234" not in repr(encoder)
    assert "1234" not in str(vars(encoder))


def test_names_and_objects_say_the_same():
    by_name = CurveEncoder("bspline", n_basis=6, order=3, domain_range=(0, 24), scale=2.0)
    by_hand = CurveEncoder(
        BSplineBasis(n_basis=6, order=3, domain_range=(0, 24)), rescale=TanhRescaler(scale=2.0)
    )
    assert by_name == by_hand
    assert CurveEncoder() == CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=1.0)
    assert CurveEncoder(feature_ranges=(-3, 1)).rescaler.to_dict() == {
        "name": "clip",
        "scale": 2.0,
        "center": -1.0,
    }
    table = CustomBasis(points=(0, 1), values=((1, 0), (0, 1)))
    assert CurveEncoder("custom", points=[0, 1], values=[[1, 0], [0, 1]]).basis == table


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bases": 3}, "n_bases must be a parameter of bspline, got 3"),
        ({"rescale": "max_abs", "scale": 2.0}, "scale must be a parameter of max_abs"),
        ({"scale": (1.0, 2.0)}, "scale must be one number or 4 numbers"),
        ({"center": (1.0, 2.0)}, "center must be one number or 4 numbers"),
        ({"feature_ranges": (0, 1), "scale": 2.0}, "feature_ranges must be given without"),
        ({"feature_ranges": (1, 1)}, "feature_ranges must be a pair"),
        ({"feature_ranges": [(0, 1), (1, 0), (0, 1), (0, 1)]}, "feature_ranges must be a pair"),
        ({"feature_ranges": [(0, 1), (1,), (0, 1), (0, 1)]}, "feature_ranges must be a pair"),
        ({"basis": CosineBasis(), "n_basis": 3}, "a name where n_basis is given"),
        ({"basis": 3}, "basis must be a name or a Basis, got 3"),
        ({"rescale": MaxAbsRescaler}, "rescale must be a name or a Rescaler"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(InvalidParameter, match=message):
        CurveEncoder(**parameters).fit([[0.0, 1.0]])


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownName, match=r"unknown basis 'wavelet'; known: .*bspline"):
        CurveEncoder("wavelet").fit([[0.0, 1.0]])
    with pytest.raises(UnknownName, match="unknown rescaler 'none'"):
        CurveEncoder(rescale="none").fit([[0.0, 1.0]])
    with pytest.raises(InvalidParameter, match="a part of an encoder"):
        CurveEncoder.from_dict(CurveEncoder().to_dict() | {"mean": 3})


def test_a_light_client_needs_numpy_and_scipy_only():
    code = "import sys, dpfda.curves; print(sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    for heavy in ("sklearn", "skfda", "pandas", "matplotlib", "scipy"):
        assert f"'{heavy}'" not in loaded.stdout


def test_what_a_basis_loses_is_the_energy_in_other_functions() -> None:
    t = np.linspace(2.0, 6.0, 401)
    waves = np.sqrt(2) * np.cos(np.pi * np.arange(1, 5)[:, None] * (t - 2) / 4)
    scores = np.random.default_rng(0).normal(size=(50, 4)) * [2.0, 1.0, 0.5, 0.25]
    curves = 37 + scores @ waves  # a level in common is no variation
    energy = scores.var(axis=0)
    for size in (1, 2, 3, 4, 5):
        encoder = CurveEncoder("cosine", n_basis=size, domain_range=(2, 6))
        expected = energy[size - 1 :].sum() / energy.sum()
        assert encoder.lost(curves, t) == pytest.approx(expected, abs=1e-3)
    both = np.stack([curves, curves], axis=2)
    pair = CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=2, domain_range=(2, 6))] * 2)
    assert pair.lost(both, t) == pytest.approx(energy[1:].sum() / energy.sum(), abs=1e-3)
    with pytest.raises(InvalidData, match="two curves"):
        encoder.lost(curves[:1])
    with pytest.raises(InvalidParameter, match="basis"):
        CurveEncoder("identity", n_basis=2).lost(curves)
