import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.errors import InvalidParameter
from dpfda.mechanisms.additive import Gaussian
from dpfda.privacy.calibration import (
    LATTICE_RESERVE,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
    lattice_charge,
)

epsilons = st.floats(math.log(1e-4), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(0.3)).map(math.exp)
multipliers = st.floats(math.log(0.05), math.log(1e5)).map(math.exp)


def exact_delta(epsilon: float, multiplier: float) -> mpmath.mpf:
    """Theorem 8 of Balle & Wang with 60 digits: the textbook form, which cancels in floats."""
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), 1 / mpmath.mpf(multiplier)

        def upper_tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return upper_tail(a) - mpmath.exp(epsilon) * upper_tail(b)


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.1, 0.0325), (0.5, 0.1422), (1.0, 0.2681), (2.0, 0.5016)]
)
def test_mu_of_the_specification(epsilon, mu):
    assert round(gaussian_mu(epsilon=epsilon, delta=1e-5), 4) == mu


@given(epsilons, deltas)
def test_sigma_is_enough_and_no_larger_than_needed(epsilon, delta):
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
    assert exact_delta(epsilon, sigma) <= delta
    # 1e-10 of ε is reserved for the lattice, 1e-6 of the smallest ε here: 1e-5 less is too little.
    assert exact_delta(epsilon, sigma * (1 - 1e-5)) > delta


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 10.0, 60.0, 1e4])
def test_mu_is_the_largest_at_every_corner(epsilon, delta):
    mu = gaussian_mu(epsilon=epsilon, delta=delta)
    assert exact_delta(epsilon, 1 / mpmath.mpf(mu)) <= delta
    assert exact_delta(epsilon, 1 / (mpmath.mpf(mu) * (1 + mpmath.mpf("1e-5")))) > delta


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
@pytest.mark.parametrize("multiplier", [0.05, 0.5, 1.0, 30.0, 1e4])
def test_epsilon_is_the_smallest_at_every_corner(multiplier, delta):
    epsilon = gaussian_epsilon(delta=delta, multiplier=multiplier)
    assert exact_delta(epsilon, multiplier) <= delta
    if epsilon:
        # 1e-10 is kept back for the lattice.
        assert exact_delta(epsilon * (1 - 1e-6) - 3e-10, multiplier) > delta


@pytest.mark.parametrize(
    ("epsilon", "multiplier"),
    [
        (0.0, 0.05), (50.0, 0.05), (90.0, 0.05), (0.0, 1e5), (1.0, 1e5),
        (1.0, 1.0), (30.0, 0.2), (0.0, 1e-3), (3.0, 1e-3), (1e-5, 1e3), (0.2, 10.0),
    ],
)  # fmt: skip
def test_delta_has_nine_digits_at_every_corner(epsilon, multiplier):
    delta = gaussian_delta(epsilon=epsilon, multiplier=multiplier)
    with mpmath.workdps(80):
        reserved = exact_delta(mpmath.mpf(epsilon) - LATTICE_RESERVE, multiplier)
    assert reserved <= min(delta, 1)
    assert delta <= reserved * (1 + mpmath.mpf("2e-9")) + mpmath.mpf("1e-300")


def test_no_corner_is_free():
    """An underflow to 0 would read as pure differential privacy."""
    assert gaussian_delta(epsilon=700.0, multiplier=100.0) > 0
    # So much noise that the reserve of ε is all there is: δ is about that, never above 1.
    for multiplier in (5.1e10, 1e11):
        delta = gaussian_delta(epsilon=0.0, multiplier=multiplier)
        assert delta == pytest.approx(LATTICE_RESERVE, rel=0.2)
    assert 1 - 1e-8 < gaussian_delta(epsilon=0.0, multiplier=1e-3) <= 1
    with pytest.raises(InvalidParameter, match="epsilon must be above 2e-10"):
        gaussian_mu(epsilon=2 * LATTICE_RESERVE, delta=1e-5)


@pytest.mark.parametrize("epsilon", [-1e-9, -1.0, math.nan, math.inf])
def test_delta_of_no_epsilon_is_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        gaussian_delta(epsilon=epsilon, multiplier=1.0)


@given(st.floats(0, 50), multipliers)
def test_delta_is_an_upper_bound_to_nine_digits(epsilon, multiplier):
    delta = gaussian_delta(epsilon=epsilon, multiplier=multiplier)
    with mpmath.workdps(60):
        reserved = exact_delta(mpmath.mpf(epsilon) - LATTICE_RESERVE, multiplier)
    assert exact_delta(epsilon, multiplier) <= delta
    # 1e-300: where δ itself underflows to 0 or to a subnormal number.
    assert delta <= reserved * (1 + 2e-9) + mpmath.mpf("1e-300")


@given(epsilons, deltas)
def test_epsilon_inverts_sigma(epsilon, delta):
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
    back = gaussian_epsilon(delta=delta, multiplier=sigma)
    assert back <= epsilon  # a ledger with this very limit accepts the release
    assert gaussian_delta(epsilon=back, multiplier=sigma) <= delta


@given(epsilons, deltas, st.floats(1.001, 3))
def test_more_budget_needs_less_noise(epsilon, delta, factor):
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
    assert gaussian_sigma(epsilon=epsilon * factor, delta=delta) < sigma
    assert gaussian_sigma(epsilon=epsilon, delta=delta * factor) < sigma


def test_sigma_scales_with_sensitivity():
    single = gaussian_sigma(epsilon=1.0, delta=1e-6)
    assert gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=8.0) == 8 * single


@settings(max_examples=30)
def lattice_excess(steps: int, dimension: int) -> float:
    """η of the module: how much ε a discrete Gaussian may cost beyond the continuous curve."""
    normalizer = dimension * 3 * math.exp(-2 * math.pi**2 * steps**2)
    return (4 * dimension + 500) / (24 * steps**2) + normalizer


def lattice_delta(epsilon: float, steps: int, shift: int) -> float:
    """δ of the discrete Gaussian with σ = `steps`, shifted by `shift` steps: the plain sum."""
    with mpmath.workdps(40):
        radius = 14 * steps
        weight = [
            mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * steps**2)) for k in range(-radius, radius)
        ]
        excess = (
            p - mpmath.exp(epsilon) * q
            for p, q in zip(weight[shift:], weight[:-shift], strict=True)
        )
        return sum(x for x in excess if x > 0) / sum(weight)


@pytest.mark.parametrize("shift", [3, 7, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_discrete_curve_stays_within_the_stated_excess(epsilon, shift):
    # On a coarse lattice (20 steps instead of 2^20) the bound of the docstring is far from 0; the
    # factor is its e^{J/24s²}, and e^ε τ is below e^{-100}.
    steps = 20
    excess = lattice_excess(steps=steps, dimension=1)
    allowed = exact_delta(epsilon - excess, steps / shift) * math.exp(1 / (24 * steps**2))
    assert lattice_delta(epsilon, steps, shift) <= allowed


def test_discrete_curve_can_lie_above_the_continuous_one():
    # What the excess pays for exists: here 0.4 % of δ, at 20 steps.
    assert lattice_delta(2.5, 20, 7) > 1.003 * exact_delta(2.5, 20 / 7)


STEPS = 2**24


@pytest.mark.parametrize("coordinates", [1, 10**5, 4096 * 4097 // 2, 10**8])
@pytest.mark.parametrize("releases", [1, 30, 1000])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-3, 1e-6), (0.1, 1e-15), (1.0, 1e-6), (1.0, 0.5), (8.0, 1e-9), (60.0, 1e-15), (60.0, 0.5)],
)
def test_the_lattice_is_paid_for_whatever_the_number_of_coordinates(
    epsilon, delta, releases, coordinates
):
    """The chain of the docstring, over all releases of a budget, in 60 digits."""
    each = gaussian_mu(epsilon=epsilon, delta=delta) / math.sqrt(releases)
    made_for = each - lattice_charge(coordinates=coordinates, steps=STEPS, mu=each)
    if made_for <= 0:
        return  # `Gaussian` refuses it
    with mpmath.workdps(60):
        excess = lattice_excess(steps=STEPS, dimension=coordinates * releases)
        factor = mpmath.exp(mpmath.mpf(coordinates * releases) / (24 * STEPS**2))
        multiplier = 1 / (mpmath.mpf(made_for) * mpmath.sqrt(releases))
        assert exact_delta(mpmath.mpf(epsilon) - excess, multiplier) * factor <= delta


def test_without_the_charge_many_coordinates_are_not_paid_for():
    mu = gaussian_mu(epsilon=1.0, delta=1e-6)
    with mpmath.workdps(60):
        excess = lattice_excess(steps=STEPS, dimension=4096 * 4097 // 2)
        assert exact_delta(1 - mpmath.mpf(excess), 1 / mpmath.mpf(mu)) > 1e-6


def test_the_charge_is_that_of_the_proof():
    """2·12·4.4 times the part J/6s² of the excess that grows with J, over μ; and little more."""
    for coordinates, mu in ((1, 0.01), (10**5, 0.3), (10**8, 5.0)):
        needed = 2 * 12 * 4.4 * coordinates / (6 * STEPS**2) / mu
        charge = lattice_charge(coordinates=coordinates, steps=STEPS, mu=mu)
        assert needed <= charge <= 1.2 * needed


def test_gaussian_noise_is_made_for_what_is_left():
    noise = Gaussian(mu=0.1, sensitivity=1.0, axes=(1.0,) * 1000)
    rounding = 2 * math.sqrt(1000) / STEPS
    charge = lattice_charge(coordinates=1000, steps=STEPS, mu=0.1)
    assert noise.scales[0] == pytest.approx(1 / (0.1 - rounding - charge), rel=1e-14)
    with pytest.raises(InvalidParameter, match="cost of rounding"):
        Gaussian(mu=1e-7, sensitivity=1.0)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, 1e-10, "1", True])
def test_refuses_epsilon(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        gaussian_sigma(epsilon=epsilon, delta=1e-5)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan])
def test_refuses_delta(delta):
    with pytest.raises(InvalidParameter, match="delta must be strictly between 0 and 1, got"):
        gaussian_sigma(epsilon=1.0, delta=delta)
    with pytest.raises(InvalidParameter, match="delta"):
        gaussian_epsilon(delta=delta, multiplier=1.0)


@pytest.mark.parametrize("value", [0, -2.0, math.inf, math.nan])
def test_refuses_other_numbers(value):
    with pytest.raises(InvalidParameter, match="sensitivity must be"):
        gaussian_sigma(epsilon=1.0, delta=1e-5, sensitivity=value)
    with pytest.raises(InvalidParameter, match="multiplier must be"):
        gaussian_delta(epsilon=1.0, multiplier=value)
