"""The μ of other releases, against sixty digits."""

from __future__ import annotations

import mpmath
import pytest

from dpfda.privacy.composition import laplace_mu, pure_mu, response_mu


def h(probability: mpmath.mpf) -> mpmath.mpf:
    """-Φ⁻¹ of a small probability, by Newton's method on the logarithm."""
    x = mpmath.sqrt(-2 * mpmath.log(2 * probability))
    for _ in range(200):
        tail = mpmath.erfc(x / mpmath.sqrt(2)) / 2
        slope = -mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) / tail
        step = (mpmath.log(tail) - mpmath.log(probability)) / slope
        x -= step
        if abs(step) < mpmath.mpf(10) ** -50:
            break
    return x


@pytest.mark.parametrize("epsilon", [1e-6, 9.9e-4, 1e-3, 0.1, 1.0, 10.0, 300.0, 700.0])
def test_pure_releases(epsilon: float) -> None:
    with mpmath.workdps(350 if epsilon > 100 else 60):
        exact = 2 * h(1 / (1 + mpmath.exp(mpmath.mpf(epsilon))))
        assert exact <= pure_mu(epsilon) <= exact * (1 + mpmath.mpf("1e-7"))


@pytest.mark.parametrize("epsilon", [701.0, 2000.0])
def test_pure_releases_of_hardly_any_noise(epsilon: float) -> None:
    with mpmath.workdps(1000):
        exact = 2 * h(1 / (1 + mpmath.exp(mpmath.mpf(epsilon))))
        assert exact <= pure_mu(epsilon) <= exact * mpmath.mpf("1.01")


@pytest.mark.parametrize("categories", [3, 4, 100, 10**6, 10**12])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 40.0])
def test_responses(epsilon: float, categories: int) -> None:
    with mpmath.workdps(80):
        odds = mpmath.exp(mpmath.mpf(epsilon))
        change = 1 / (odds + categories - 1)
        keep = odds * change
        # h(p) = -h(1 - p)
        exact = h(change) - (h(keep) if keep < 0.5 else -h((categories - 1) * change))
        # Differences lose digits where ε is small: 1e-16/ε of μ/ε.
        assert exact <= response_mu(epsilon, categories) <= exact * (1 + mpmath.mpf("1e-8"))


def test_many_categories_are_no_overflow() -> None:
    assert response_mu(1.0, 10**400) == response_mu(1.0, 10**15)
    assert response_mu(1.0, 2) == pytest.approx(pure_mu(1.0), rel=1e-8)


@pytest.mark.parametrize("ratio", [1e-3, 0.5, 1.0, 20.0])
def test_laplace_noise(ratio: float) -> None:
    with mpmath.workdps(60):
        exact = 2 * h(mpmath.exp(-mpmath.mpf(ratio) / 2) / 2)
        assert exact <= laplace_mu(ratio) <= exact * (1 + mpmath.mpf("1e-7"))
    assert laplace_mu(9e-4) == pure_mu(9e-4)
    assert laplace_mu(701.0) == pure_mu(701.0)
