"""Every accepted form of input, and what happens to input that cannot be used."""

import traceback

import numpy as np
import pytest

from dpfda.curves import CurveEncoder
from dpfda.curves.basis import _projector, projector
from dpfda.errors import InvalidData

ENCODER = CurveEncoder(n_basis=5)
T = np.linspace(0, 1, 40)


@pytest.fixture
def curves(rng):
    return rng.normal(size=(8, 40))


def test_equidistant_is_the_default_grid(curves):
    np.testing.assert_array_equal(ENCODER.encode(curves), ENCODER.encode(curves, T))
    shifted = CurveEncoder(n_basis=5, domain_range=(3, 7))
    np.testing.assert_allclose(shifted.encode(curves), ENCODER.encode(curves), atol=1e-12)


def test_lists_and_other_number_types_are_read(curves):
    expected = ENCODER.encode(curves)
    np.testing.assert_array_equal(ENCODER.encode(curves.tolist()), expected)
    np.testing.assert_allclose(ENCODER.encode(curves.astype(np.float32)), expected, atol=1e-5)
    assert ENCODER.encode(np.eye(8, 40, dtype=int)).shape == (8, 5)


def test_scikit_fda_brings_its_grid(curves):
    skfda = pytest.importorskip("skfda")
    t = T**2
    np.testing.assert_array_equal(
        ENCODER.encode(skfda.FDataGrid(curves, t)), ENCODER.encode(curves, t)
    )
    irregular = skfda.FDataIrregular.from_fdatagrid(skfda.FDataGrid(curves, t))
    np.testing.assert_allclose(ENCODER.encode(irregular), ENCODER.encode(curves, t), atol=1e-12)
    surface = skfda.FDataGrid(np.zeros((2, 3, 4)), grid_points=[[0, 0.5, 1], [0, 0.3, 0.6, 1]])
    with pytest.raises(InvalidData, match="functions of one variable"):
        ENCODER.encode(surface)
    assert ENCODER.encode(surface, strict=False).tolist() == [[0.0] * 5] * 2


def test_pairs_are_solved_on_their_own_points(rng):
    series = [(np.sort(rng.uniform(size=n)), rng.normal(size=n)) for n in (30, 7, 5, 2, 1)]
    series.append((rng.uniform(0, 0.1, 30), rng.normal(size=30)))  # φ_5 is not seen, φ_4 barely
    z = ENCODER.coefficients(series)
    for row, (t, x) in zip(z, series, strict=True):
        expected = np.linalg.lstsq(ENCODER.basis.evaluate(t), x, rcond=None)[0]
        np.testing.assert_allclose(row, expected, rtol=1e-8, atol=1e-10)
    assert np.linalg.norm(z[4]) < 10 * abs(series[4][1][0])  # minimum norm, not just any solution


def test_pairs_on_one_grid_equal_the_array(curves):
    pairs = [(T.tolist(), x.tolist()) for x in curves]
    np.testing.assert_allclose(ENCODER.encode(pairs), ENCODER.encode(curves), atol=1e-12)


def test_missing_points_are_left_out(curves, rng):
    holes = np.where(rng.random(curves.shape) < 0.3, np.nan, curves)
    holes[5] = curves[5]
    holes[6, 2:] = np.nan  # fewer points than coefficients
    z = ENCODER.coefficients(holes)
    for row, x in zip(z, holes, strict=True):
        seen = ~np.isnan(x)
        expected = np.linalg.lstsq(ENCODER.basis.evaluate(T[seen]), x[seen], rcond=None)[0]
        np.testing.assert_allclose(row, expected, rtol=1e-8, atol=1e-10)


def test_many_own_grids_are_solved_in_parts(monkeypatch, rng):
    monkeypatch.setattr("dpfda.curves.basis._CHUNK", 500)
    series = [(rng.uniform(size=n), rng.normal(size=n)) for n in rng.integers(1, 20, size=60)]
    alone = np.vstack([ENCODER.coefficients([pair]) for pair in series])
    np.testing.assert_allclose(ENCODER.coefficients(series), alone, rtol=1e-9, atol=1e-9)


def test_the_projector_is_computed_once_per_grid(curves):
    _projector.cache_clear()
    for _ in range(3):
        ENCODER.encode(curves, T)
    assert _projector.cache_info().misses == 1
    assert not projector(ENCODER.basis, T).flags.writeable


def test_own_grids_are_not_kept(rng):
    """A person's measuring times are private; only public grids are cached."""
    _projector.cache_clear()
    ENCODER.encode([(rng.uniform(size=9), rng.normal(size=9))])
    assert _projector.cache_info().currsize == 0


SECRET = 1234.5678
UNUSABLE = {
    "all missing": [np.full(40, np.nan)],
    "infinite": [np.r_[np.inf, np.full(39, SECRET)]],
    "wrong length": [np.full(39, SECRET)],
    "no points": [np.empty(0)],
    "text": [["a lot", str(SECRET)]],
    "text alone": str(SECRET),
    "nothing": None,
    "complex": [np.full(40, SECRET + 1j)],
    "empty pair": [([], [])],
    "uneven pair": [([0.1, 0.2], [SECRET])],
    "outside the domain": [([1.5], [SECRET])],
    "missing time": [([np.nan], [SECRET])],
    "pair of text": [(["a"], ["b"])],
    "too large an integer": [[10**400] * 40],
}


@pytest.mark.parametrize("curve", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("center", [0.0, 3.0])
def test_a_client_with_an_unusable_curve_still_reports_zero(curve, center):
    encoder = CurveEncoder(n_basis=5, center=center)
    assert encoder.encode(curve, T, strict=False).tolist() == [[0.0] * 5]


@pytest.mark.parametrize("curve", UNUSABLE.values(), ids=UNUSABLE)
def test_a_curator_is_told_but_never_shown_a_value(curve):
    with pytest.raises(InvalidData) as caught:
        ENCODER.encode(curve, T)
    assert "1234" not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None


def test_one_unusable_curve_leaves_the_others_alone(curves):
    expected = ENCODER.encode(curves)
    spoiled = list(curves)
    spoiled[2], spoiled[5] = np.array([1.0, 2.0]), None
    z_star = ENCODER.encode(spoiled, T, strict=False)
    assert not z_star[[2, 5]].any()
    others = [0, 1, 3, 4, 6, 7]
    np.testing.assert_allclose(z_star[others], expected[others], atol=1e-12)
    pairs = [(T, x) for x in curves[:3]] + [(T, None), (T[:2], curves[0])]
    z_star = ENCODER.encode(pairs, strict=False)
    np.testing.assert_allclose(z_star[:3], expected[:3], atol=1e-12)
    assert not z_star[3:].any()


def test_points_outside_the_domain_are_missing_for_a_client(curves):
    t = np.linspace(0, 1.2, 40)
    inside = t <= 1
    z_star = ENCODER.encode(curves, t, strict=False)
    np.testing.assert_allclose(z_star, ENCODER.encode(curves[:, inside], t[inside]), atol=1e-12)
    with pytest.raises(InvalidData, match=r"grid_points must be inside the domain \[0, 1\]"):
        ENCODER.encode(curves, t)


def test_a_client_holds_one_curve(curves):
    np.testing.assert_allclose(
        ENCODER.encode(curves[0], strict=False), ENCODER.encode(curves[:1]), atol=1e-12
    )
    with pytest.raises(InvalidData, match="two-dimensional"):
        ENCODER.encode(curves[0])
    assert ENCODER.encode([], strict=False).tolist() == [[0.0] * 5]
    assert ENCODER.encode(np.empty((0, 40)), strict=False).shape == (0, 5)
    with pytest.raises(InvalidData, match="at least one curve"):
        ENCODER.encode(np.empty((0, 40)))


def test_the_grid_must_fit(curves):
    with pytest.raises(InvalidData, match="one number for each column of X, got 40 columns"):
        ENCODER.encode(curves, T[:-1])
    assert not ENCODER.encode(curves, ["a"] * 40, strict=False).any()


VECTORS = CurveEncoder("identity", feature_ranges=[(0, 10), (0, 20)])


@pytest.mark.parametrize(
    "vectors",
    [[[1.0]], [[1.0, np.nan]], [[np.inf, SECRET]], [["a", "b"]], [1.0, SECRET], [], [[]], None],
    ids=str,
)
def test_vectors_are_refused_or_neutral(vectors):
    with pytest.raises(InvalidData) as caught:
        VECTORS.encode(vectors)
    assert "1234" not in str(caught.value)
    z_star = VECTORS.encode(vectors, strict=False)
    assert z_star.shape == (1, 2)
    assert np.all(np.abs(z_star) <= 1)


def test_a_missing_number_of_a_vector_is_neutral_alone():
    z_star = VECTORS.encode([[10.0, np.nan], [np.nan, 20.0], [np.inf, 20.0]], strict=False)
    assert z_star.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert VECTORS.encode([[1.0, 2.0, 3.0]], strict=False).tolist() == [[0.0, 0.0]]
    assert VECTORS.encode([[10.0, 0.0], [1.0]], strict=False).tolist() == [[1.0, -1.0], [0.0, 0.0]]
