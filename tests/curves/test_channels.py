"""Curves of several channels: each is encoded by an encoder of its own."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfda import FDataGrid

from dpfda.curves import CurveEncoder
from dpfda.curves.bases import ChannelBasis
from dpfda.errors import InvalidData, InvalidParameter

T = np.linspace(0, 1, 30)
X = np.random.default_rng(0).normal(size=(6, 30, 2))
FIRST = CurveEncoder("cosine", n_basis=3, scale=2.0)
SECOND = CurveEncoder("bspline", n_basis=5, scale=0.5, center=1.0)
BOTH = CurveEncoder.side_by_side([FIRST, SECOND])
TURNS = [0, 3, 1, 4, 2, 5, 6, 7]  # first features first, whatever the channel


def test_features_are_those_of_the_channels_in_turns() -> None:
    apart = np.hstack([FIRST.encode(X[:, :, 0]), SECOND.encode(X[:, :, 1])])
    np.testing.assert_allclose(BOTH.encode(X), apart[:, TURNS], atol=1e-12)
    assert (BOTH.channels, BOTH.n_features) == (2, 8)


def test_every_form_of_two_channels_says_the_same() -> None:
    expected = BOTH.encode(X, T)
    grid = SimpleNamespace(data_matrix=X, grid_points=(T,), dim_domain=1, dim_codomain=2)
    starts = np.arange(6) * 30
    irregular = SimpleNamespace(
        start_indices=starts, points=np.tile(T, 6)[:, None], values=X.reshape(-1, 2)
    )
    for given_X, points in (
        (X.tolist(), None),
        (grid, None),
        (irregular, None),
        ([(T, x) for x in X], None),
        (list(X), [T] * 6),
    ):
        np.testing.assert_allclose(BOTH.encode(given_X, points), expected, atol=1e-9)


def test_scikit_fda_curves_of_two_coordinates() -> None:
    skfda = pytest.importorskip("skfda", reason="scikit-fda is not installed")
    np.testing.assert_allclose(BOTH.encode(skfda.FDataGrid(X, T)), BOTH.encode(X, T), atol=1e-9)


def test_the_slope_function_is_the_rule_channel_by_channel() -> None:
    plain = CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=3, rescale="clip")] * 2)
    fine = np.linspace(0, 1, 4001)
    small = 0.1 * np.stack([np.cos(np.pi * fine), 1 + 0 * fine], axis=1)[None]
    rule = np.arange(1.0, 7.0)
    slope = plain.slope(rule, fine)
    assert slope.shape == (2, 4001)
    integral = sum(np.trapezoid(small[0, :, c] * slope[c], fine) for c in range(2))
    assert integral == pytest.approx(float(plain.encode(small, fine)[0] @ rule), rel=1e-3)


def test_curves_come_back_channel_by_channel() -> None:
    curves = np.stack([np.cos(np.pi * T), 1 + T], axis=1)[None]
    drawn = BOTH.draw(BOTH.encode(curves, T), T)
    np.testing.assert_allclose(drawn[0].T, curves[0], atol=1e-9)


def test_channels_travel_as_json() -> None:
    again = CurveEncoder.from_dict(json.loads(json.dumps(BOTH.to_dict())))
    assert again == BOTH
    assert hash(again) == hash(BOTH)
    assert np.array_equal(again.encode(X), BOTH.encode(X))


def test_functions_of_different_channels_are_orthogonal() -> None:
    gram = BOTH.gram()
    first, second = TURNS.index(0), TURNS.index(3)
    assert gram[first, second] == 0
    apart = np.ix_([TURNS.index(k) for k in range(3, 8)], [TURNS.index(k) for k in range(3, 8)])
    np.testing.assert_allclose(gram[apart], SECOND.gram())


@pytest.mark.parametrize(
    "bad", [X[:, :, :1], X[:, :, 0], np.zeros((2, 3, 4, 2)), [(T, X[0, :, 0])]]
)
def test_another_number_of_channels_is_refused(bad: object) -> None:
    with pytest.raises(InvalidData, match="channels"):
        BOTH.encode(bad)


@given(
    odd=st.one_of(
        st.none(),
        st.text(),
        st.lists(st.floats(), max_size=3),
        st.lists(st.lists(st.floats(), max_size=3), max_size=3),
        st.tuples(st.lists(st.floats(), max_size=3), st.lists(st.floats(), max_size=3)),
    )
)
@settings(deadline=None, max_examples=60)
def test_a_client_always_gets_a_vector_in_the_box(odd: object) -> None:
    for curve in (odd, [odd], [(T, odd)], [odd, (T, X[0])]):
        encoded = BOTH.encode(curve, strict=False)
        assert encoded.shape[1] == 8
        assert np.all(np.abs(encoded) <= 1)


def test_one_unusable_curve_does_not_touch_another() -> None:
    pairs = [(T, X[0]), (T, "?"), (T[:3], X[1]), None, (T, X[2, :, :1])]
    encoded = BOTH.encode(pairs, strict=False)
    np.testing.assert_allclose(encoded[0], BOTH.encode(X[:1])[0], atol=1e-9)
    assert np.all(encoded[1:] == 0)


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (CurveEncoder("identity", n_basis=2).basis,),
        (BOTH.basis,),
        (FIRST.basis, CurveEncoder("cosine", domain_range=(0, 2)).basis),
        ("cosine",),
    ],
)
def test_parts_that_do_not_fit_are_named(parts: object) -> None:
    with pytest.raises(InvalidParameter, match="parts"):
        ChannelBasis(parts=parts)  # type: ignore[arg-type]


def test_channels_are_rescaled_alike() -> None:
    with pytest.raises(InvalidParameter, match="one rescaler for all channels"):
        CurveEncoder.side_by_side([FIRST, CurveEncoder(feature_ranges=(0, 1))])
    shape_only = CurveEncoder.side_by_side([CurveEncoder(rescale="max_abs")] * 2)
    assert np.abs(shape_only.encode(X)).max() == 1


def test_lists_of_grids_are_own_grids() -> None:
    ragged = [X[0, :20, 0], X[1, ::3, 0]]
    grids = [T[:20], T[::3]]
    pairs = FIRST.encode(list(zip(grids, ragged, strict=True)))
    assert np.array_equal(FIRST.encode(ragged, grids), pairs)
    assert np.array_equal(FIRST.encode(X[:, :, 0], [T]), FIRST.encode(X[:, :, 0], T))
    each = FIRST.encode(X[:, :, 0], np.tile(T, (6, 1)))
    np.testing.assert_allclose(each, FIRST.encode(X[:, :, 0], T), atol=1e-12)
    with pytest.raises(InvalidData, match="one for each curve"):
        FIRST.encode(ragged, [*grids, T])
    assert FIRST.encode(ragged, [*grids, T], strict=False).shape == (2, 3)


def test_an_encoder_of_one_channel_says_so() -> None:
    told = r"of one channel, as the encoder is .CurveEncoder.side_by_side is for several., got 2"
    both = np.zeros((4, 9, 2))
    for curves in (both, FDataGrid(both, np.linspace(0, 1, 9))):
        with pytest.raises(InvalidData, match=told):
            CurveEncoder().encode(curves)
        assert CurveEncoder().encode(curves, strict=False).shape == (4, 4)
    assert CurveEncoder().encode(both[:, :, :1]).shape == (4, 4)
