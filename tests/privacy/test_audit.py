"""The audit catches every broken twin; tests/checks/test_audits.py shows that sound ones pass."""

import math

import numpy as np
import pytest

from dpfda.checks.twins import Twin, all_twins
from dpfda.errors import InvalidParameter
from dpfda.mechanisms import Mechanism
from dpfda.mechanisms.exponential import Exponential
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.audit_evidence import lowest_bit


@pytest.mark.parametrize("name", all_twins())
def test_twins_are_caught(name):
    # 10^5 draws put the bound several standard errors above the claim for all but the
    # Gaussian, whose excess is small: it gets ten times as many.
    draws = 1_000_000 if name == "per_order_gaussian" else 100_000
    result = audit(
        Twin.named(name)(), name=name, draws=draws, source=SimulationSource(12), goal=0.001
    )
    assert not result.passed


@pytest.mark.parametrize(
    ("name", "parameters", "additive"),
    [
        ("randomized_response", {}, False),
        ("ellipsoid_laplace", {"sensitivity": 1.0, "axes": (1.0, 1.0, 0.5)}, True),
    ],
)
def test_what_an_audit_says_it_detects_it_detects(name, parameters, additive):
    """Twins that are false by a little more than `detects` are caught, by far less they are not."""
    sound = Mechanism.named(name)(epsilon=1.0, **parameters)
    depths = sound.depths if additive else None

    def caught(violation, seed):
        wrong = Mechanism.named(name)(epsilon=1.0 + violation, **parameters)

        class Twin:
            guarantee, worst_cases = sound.guarantee, sound.worst_cases
            log_likelihood, randomize = sound.log_likelihood, wrong.randomize

        return not audit(
            Twin(), name="twin", draws=100_000, source=SimulationSource(seed), depths=depths
        ).passed

    stated = audit(
        sound, name="m", draws=100_000, source=SimulationSource(9), depths=depths
    ).detects
    assert 0.005 < stated < 0.12
    # 95 % power each: fewer than 5 of 6 happen once in 30 times; the seeds are fixed.
    assert sum(caught(1.1 * stated, seed) for seed in range(6)) >= 5
    assert sum(caught(stated / 8, seed) for seed in range(4)) == 0


FLAT = [(0.5, (1, 1)), (1.0, (1, 50)), (3.0, (1,) * 8)]


@pytest.mark.parametrize("sharp", [1.5, 10])
@pytest.mark.parametrize(("epsilon", "prior"), FLAT)
@pytest.mark.parametrize("stated", [True, False])
def test_choices_that_are_too_sharp_are_caught_however_sharp(epsilon, prior, sharp, stated):
    """Where the worst case looks, a candidate vanishes if the draw is far too sharp."""
    sound = Exponential(epsilon=epsilon, prior=prior)

    class Twin:
        guarantee, worst_cases = sound.guarantee, sound.worst_cases
        log_likelihood = sound.log_likelihood if stated else None
        randomize = Exponential(epsilon=sharp * epsilon, prior=prior).randomize

    result = audit(Twin(), name="twin", draws=60_000, source=SimulationSource(5), goal=0.1)
    assert not result.passed


@pytest.mark.parametrize("pair", [(0, 1), (0, 3), (1, 2)])
def test_any_two_coordinates_that_share_noise_are_seen_in_reports_alone(pair):
    sound = Mechanism.named("laplace")(epsilon=1.0, dimension=4)

    class Twin:
        guarantee, worst_cases, log_likelihood = sound.guarantee, sound.worst_cases, None

        def randomize(self, values, source):
            noise = sound.randomize(0 * values, source)
            noise[:, pair[1]] = noise[:, pair[0]]
            return values + noise

    result = audit(Twin(), name="twin", draws=8000, source=SimulationSource(5), goal=0.1)
    assert result.lower_bound > 2  # the difference of the two has no noise


@pytest.mark.parametrize("depths", [True, False])
def test_correlated_noise_is_seen_where_noise_is_added(depths):
    """Correlated only a little: no event is far more likely, and all sizes are right."""
    sound = Mechanism.named("gaussian").examples()[1]

    class Twin:
        guarantee, worst_cases = sound.guarantee, sound.worst_cases
        log_likelihood = sound.log_likelihood

        def randomize(self, values, source):
            noise = sound.randomize(0 * values, source) / sound.scales
            noise[:, 2] = 0.2 * noise[:, 1] + math.sqrt(1 - 0.2**2) * noise[:, 2]
            return values + np.rint(noise * sound.steps) * sound.lattice_step

    result = audit(Twin(), name="twin", draws=50_000, source=SimulationSource(5), mu=sound.mu,
                   depths=sound.depths if depths else None)  # fmt: skip
    assert (result.dependence > 6) == depths


@pytest.mark.parametrize("lag", [1, 2, "half"])
def test_people_who_share_noise_are_seen(lag):
    bit = Mechanism.named("randomized_response")(epsilon=1.0)

    class Twin:
        guarantee, worst_cases, log_likelihood = bit.guarantee, bit.worst_cases, None

        def randomize(self, values, source):
            reports = bit.randomize(values, source)
            step = len(reports) // 2 if lag == "half" else lag
            who = np.arange(len(reports))
            return reports[np.where(who // step % 2, np.maximum(who - step, 0), who)]

    result = audit(Twin(), name="twin", draws=20_000, source=SimulationSource(5))
    assert result.dependence > 6
    assert not result.passed


def test_bound_is_close_to_the_truth():
    """A pure mechanism on one bit: the bound is within its own sampling error of ε."""
    bit = Mechanism.named("randomized_response")(epsilon=1.0)
    result = audit(bit, name="bit", draws=400_000, source=SimulationSource(3))
    # Standard error of ln(p/q) at 200 000 draws is 0.0039; 3.7 of them on each side at 99.9 %.
    assert 1 - 8 * 0.0039 < result.lower_bound < 1


def test_density_check_sees_a_false_likelihood_ratio():
    honest = Mechanism.named("laplace")(epsilon=1.0)

    class Overclaiming(type(honest)):
        @property
        def guarantee(self):
            return super().guarantee.__class__(epsilon=0.9, model="local")

    result = audit(Overclaiming(epsilon=1.0), name="m", draws=1000, source=SimulationSource(0))
    assert result.density_excess == pytest.approx(0.1, abs=1e-6)
    assert not result.passed


def testlowest_bit():
    numbers = np.array([1.0, 1.5, 0.375, -6.0, 0.0, 2.0**-60 + 2.0**-80])
    lowest = lowest_bit(numbers)
    assert np.array_equal(lowest[[0, 1, 2, 3, 5]] - lowest[0], [0, -1, -3, 1, -80])
    assert lowest[4] > lowest.max(initial=0, where=numbers != 0)


def test_result_is_plain_json_material():
    bit = Mechanism.named("randomized_response")(epsilon=1.0)
    row = audit(bit, name="bit", draws=1000, source=SimulationSource(0)).to_dict()
    assert {"name", "claimed_epsilon", "claimed_delta", "lower_bound", "passed"} <= set(row)
    assert math.isfinite(row["lower_bound"])


def test_too_few_draws_are_refused():
    bit = Mechanism.named("randomized_response")(epsilon=1.0)
    with pytest.raises(InvalidParameter, match="draws must be an integer, 1000 or above, got 10"):
        audit(bit, name="bit", draws=10, source=SimulationSource(0))
