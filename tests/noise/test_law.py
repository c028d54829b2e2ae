"""The stated law of noise: variances, and draws that look like it."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.noise.law import NoiseLaw

SCALES = np.array([1.0, 0.5, 3.0])
MIXING = np.array([[1.0, 2.0], [0.0, -3.0], [0.5, 1.0]])
BLOCKS = ((0, 2), (2, 3))
FACTORS = {"laplace": [2, 2, 2], "gaussian": [1, 1, 1], "spherical": [3, 3, 2]}


def law(name: str, *, mixed: bool = False) -> NoiseLaw:
    blocks = BLOCKS if name == "spherical" else ()
    return NoiseLaw(law=name, scales=SCALES, blocks=blocks, mixing=MIXING if mixed else None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(FACTORS))
def test_variances_are_those_of_the_law(name: str) -> None:
    plain = np.array(FACTORS[name]) * SCALES**2
    np.testing.assert_allclose(law(name).variance, plain)
    np.testing.assert_allclose(law(name, mixed=True).variance, plain @ MIXING**2)
    functions = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5]])
    np.testing.assert_allclose(law(name).along(functions), plain @ functions**2)
    np.testing.assert_allclose(
        law(name, mixed=True).along(functions[:2]), plain @ (MIXING @ functions[:2]) ** 2
    )
    np.testing.assert_allclose(law(name).times(np.full(3, 2.0)).variance, 4 * plain)


@pytest.mark.parametrize("name", sorted(FACTORS))
@pytest.mark.parametrize("mixed", [False, True])
def test_further_coefficients_have_no_noise(name: str, *, mixed: bool) -> None:
    stated = law(name, mixed=mixed)
    known = stated.variance.size
    assert stated.widened(known).variance.tolist() == stated.variance.tolist()
    wide = stated.widened(known + 2)
    assert wide.variance.tolist() == [*stated.variance, 0.0, 0.0]
    noise = wide.draw(5, np.random.default_rng(3))
    assert noise.shape == (5, known + 2)
    assert not noise[:, known:].any()


@pytest.mark.parametrize("name", sorted(FACTORS))
@pytest.mark.parametrize("mixed", [False, True])
def test_draws_have_the_variances(name: str, *, mixed: bool) -> None:
    stated = law(name, mixed=mixed)
    noise = stated.draw(40_000, np.random.default_rng(1))
    assert noise.shape == (40_000, 2 if mixed else 3)
    # A fourth moment of 10 at most: six standard errors of a variance are 6 √(9/40000) = 9 %.
    np.testing.assert_allclose((noise**2).mean(axis=0), stated.variance, rtol=0.09)


def test_draws_have_the_tails() -> None:
    rng = np.random.default_rng(2)
    scaled = {name: law(name).draw(40_000, rng) / SCALES for name in FACTORS}
    # E|z|: 1 for Laplace, √(2/π) for a Gaussian; five standard errors are 0.025 at most.
    np.testing.assert_allclose(np.abs(scaled["laplace"]).mean(axis=0), 1, atol=0.025)
    np.testing.assert_allclose(np.abs(scaled["gaussian"]).mean(axis=0), 0.7979, atol=0.025)
    # The radius of a block of d is Gamma(d): mean d, variance d.
    radius = np.linalg.norm(scaled["spherical"][:, :2], axis=1)
    assert radius.mean() == pytest.approx(2, abs=0.04)
    assert radius.var() == pytest.approx(2, rel=0.1)
    assert np.abs(scaled["spherical"][:, 2]).mean() == pytest.approx(1, abs=0.025)


@pytest.mark.parametrize("name", sorted(FACTORS))
def test_the_first_coefficients_keep_their_law(name: str) -> None:
    known = law(name)
    for size in (1, 2):
        few = known.first(size)
        np.testing.assert_allclose(few.variance, known.variance[:size])
        drawn = few.draw(50_000, np.random.default_rng(0))
        assert drawn.shape == (50_000, size)
        np.testing.assert_allclose(drawn.var(axis=0), known.variance[:size], rtol=0.06)
        np.testing.assert_allclose(
            few.times(np.full(size, 2.0)).variance, 4 * known.variance[:size]
        )
    np.testing.assert_allclose(
        law(name, mixed=True).first(1).variance, law(name, mixed=True).variance[:1]
    )


def test_a_normal_law_has_its_covariance() -> None:
    covariance = np.array([[2.0, 1.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 0.0]])  # singular
    normal = NoiseLaw.normal(covariance)
    np.testing.assert_allclose(normal.variance, np.diag(covariance), atol=1e-12)
    drawn = normal.draw(50_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.05)
