"""How far a record can move a kernel machine: from vectors, pair by pair, instead of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dpfda.central.functions import Matern
from dpfda.central.kernel_machine import Space
from dpfda.central.losses import Loss

VALUES: dict[str, Callable[[float, float], float]] = {
    "squared": lambda y, f: (y - f) ** 2,
    "logistic": lambda y, f: math.log1p(math.exp(-y * f)),
    "smoothed_hinge": lambda y, f: (
        0.0 if y * f >= 1.5 else 1 - y * f if y * f <= 0.5 else (1.5 - y * f) ** 2 / 2
    ),
}
FEATURES = np.random.default_rng(3).normal(size=(7, 3)) * np.array([1.0, 0.5, 0.1])


@pytest.mark.parametrize("name", sorted(VALUES))
def test_slopes_are_those_of_the_loss(name: str) -> None:
    loss, value = Loss.named(name)(), VALUES[name]
    for y, f in product((-1.0, 1.0), (-2.3, -0.7, 0.0, 0.2, 0.9, 1.8)):
        numeric = (value(y, f + 1e-6) - value(y, f - 1e-6)) / 2e-6
        assert float(loss.slope(y, np.array(f))) == pytest.approx(numeric, abs=1e-5)
    bound = 1.0 if loss.classification else 3.0
    assert loss.at_zero(bound) == pytest.approx(value(bound, 0.0))
    f = np.linspace(-2, 2, 5)
    y, places = np.array([1.0, -1.0, 1.0, 1.0]), np.array([0, 0, 4, 2])
    totals = loss.tally(places, y, count=5, units=8.0).reshape(2, -1).astype(float)
    if not loss.classification:
        totals[1] /= 8
    by_hand = np.zeros(5)
    for place, target in zip(places, y, strict=True):
        by_hand[place] += float(loss.slope(float(target), f[place]))
    np.testing.assert_allclose(loss.total_slopes(f, totals), by_hand, atol=1e-12)


@pytest.mark.parametrize("psi", [1e-3, 0.1, 1.0, 30.0])
def test_squared_loss_by_operators(psi: float) -> None:
    """2‖(r'r'ᵀ - rrᵀ)w - (y'r' - yr)‖ with the norm of the operator as an eigenvalue."""
    kappa = max(np.linalg.norm(FEATURES, axis=1))
    # |f| ≤ κ‖w‖ bounds ‖w‖ better than Y/(2√ψ) as soon as κ² < ψ.
    length = kappa / (psi + kappa**2) if kappa**2 < psi else 1 / (2 * math.sqrt(psi))
    worst = 0.0
    for r, other in product(FEATURES, FEATURES):
        operator = np.abs(np.linalg.eigvalsh(np.outer(other, other) - np.outer(r, r))).max()
        targets = max(np.linalg.norm(other + r), np.linalg.norm(other - r))
        worst = max(worst, length * operator + targets)
    found = Loss.named("squared")().widest(FEATURES, psi=psi, target_bound=3.0)
    assert found == pytest.approx(2 * 3.0 * worst, rel=1e-9)


PLACES = {
    "scattered": FEATURES,
    "opposite": np.array([[1.0, 0.0], [-1.0, 0.0]]),
    "apart": np.array([[2.0, 0.0], [0.0, 3.0]]),
    "close": np.array([[0.2], [0.3]]),
    "small": np.array([[0.5], [-0.5]]),
    "far": np.array([[4.0, 0.1], [3.0, 2.0]]),
}


@pytest.mark.parametrize("psi", [1e-3, 0.02, 0.1, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("places", sorted(PLACES))
def test_logistic_loss_over_all_slopes(places: str, psi: float) -> None:
    """The largest ‖s' r' - s r‖ over a grid of slopes that a minimizer can have."""
    features = PLACES[places]
    kappa = max(np.linalg.norm(features, axis=1))
    length = min(math.sqrt(0.27847 / (2 * psi)), kappa / (4 * psi))
    shares, worst = np.linspace(0, 1, 101), 0.0
    for r, other in product(features, features):
        most, others = expit(length * np.linalg.norm(r)), expit(length * np.linalg.norm(other))
        together = 2 * expit(length * np.linalg.norm(r - other) / 2)
        for p in most * shares:
            q = others * shares
            opposite = q[p + q <= together + 1e-12]
            if opposite.size:
                worst = max(worst, np.linalg.norm(p * r + opposite.max() * other))
            worst = max(worst, np.linalg.norm(p * r[None] - q[:, None] * other[None], axis=1).max())
    found = Loss.named("logistic")().widest(features, psi=psi, target_bound=1.0)
    # A grid of slopes comes within a hundredth of the corner.
    assert worst <= found * (1 + 1e-9)
    assert worst >= 0.985 * found


def test_hinge_loss_turns_a_label_round() -> None:
    kappa = max(np.linalg.norm(FEATURES, axis=1))
    found = Loss.named("smoothed_hinge")().widest(FEATURES, psi=0.1, target_bound=1.0)
    assert found == pytest.approx(2 * kappa)


def exact_widest(name: str, features: np.ndarray, psi: float, bound: float) -> mpmath.mpf:
    """The formulas of the docstrings, in 50 digits, of features that are taken as they are."""
    root = mpmath.sqrt
    rows = [[mpmath.mpf(float(x)) for x in row] for row in features]

    def length(row: list[mpmath.mpf]) -> mpmath.mpf:
        return root(mpmath.fsum(x * x for x in row))

    kappa, psi = max(map(length, rows)), mpmath.mpf(psi)
    if name == "smoothed_hinge":
        return 2 * kappa
    worst = mpmath.mpf(0)
    for r, other in product(rows, rows):
        less = [x - y for x, y in zip(other, r, strict=True)]
        more = [x + y for x, y in zip(other, r, strict=True)]
        if name == "squared":
            w = kappa / (psi + kappa**2) if kappa**2 < psi else 1 / (2 * root(psi))
            operator = abs(length(other) ** 2 - length(r) ** 2) + length(less) * length(more)
            worst = max(worst, w * operator / 2 + max(length(less), length(more)))
            continue
        w = min(root(mpmath.mpf("0.27847") / (2 * psi)), kappa / (4 * psi))
        sigma = lambda x: 1 / (1 + mpmath.exp(-x))  # noqa: E731
        p, others = sigma(w * length(r)), sigma(w * length(other))
        q = min(others, 2 * sigma(w * length(less) / 2) - p)
        for slope in (0, q, -others):
            corner = [p * x + slope * y for x, y in zip(r, other, strict=True)]
            worst = max(worst, length(corner))
    return 2 * bound * worst if name == "squared" else worst


@pytest.mark.parametrize("name", sorted(VALUES))
@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("psi", [1e-5, 0.02, 3.0])
def test_widths_keep_their_digits_where_features_are_nearly_alike(
    name: str, spread: float, psi: float
) -> None:
    """Far below the margin of 1e-9 that the sensitivity has; squares minus squares lost 1e-6."""
    rng = np.random.default_rng(5)
    features = np.array([1.0, 0.0, 0.0]) + spread * rng.normal(size=(5, 3))
    with mpmath.workdps(50):
        exact = exact_widest(name, features, psi, 3.0)
        found = Loss.named(name)().widest(features, psi=psi, target_bound=3.0)
        assert abs(found / exact - 1) <= 1e-13


@pytest.mark.parametrize("length", [0.3, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("name", sorted(VALUES))
def test_sensitivities_of_long_kernels_cover_the_exact_ones(name: str, length: float) -> None:
    space = Space.of(Matern(nu=2.5, length=length), ((0.0, 1.0),), along=12)
    with mpmath.workdps(50):
        exact = exact_widest(name, space.features, 1e-3, 1.0) / (2 * mpmath.mpf(1e-3) * 40)
        stated = space.reach(Loss.named(name)(), n=40, psi=1e-3, target_bound=1.0)
        assert exact <= stated <= exact * (1 + 1e-6)
