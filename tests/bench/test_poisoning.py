"""Liars: the benchmark tells a server that believes everything from one that does not."""

from dpfda.datasets import simulate_001
from dpfda_bench.benchmarks import poisoning


def test_without_a_defense_liars_do_more_damage() -> None:
    test = simulate_001(2000, random_state=10_000)
    errors = {
        defense: poisoning._error(
            poisoning._DESIGNS["mrma"], test, 1500, share=0.05, defense=defense, seed=0
        )
        for defense in ("none", "clipped")
    }
    # Ten studies: means 0.47 and 0.14, standard deviations 0.06 and 0.05; four of their root sum
    # of squares are 0.3.
    assert errors["none"] > errors["clipped"]


def test_hostile_owners_spoil_gradient_reports_that_do_not_expect_them() -> None:
    test = simulate_001(2000, random_state=10_000)
    errors = {
        (share, expected): poisoning._boosting_error(
            test, 5000, share, seed=3, expected=expected, own=500
        )
        for share in (0.0, 0.05)
        for expected in (0.0, 0.1)
    }
    # Four studies without hostile owners: 10.4 to 12.2 %. With them 25 to 47 % if they are not
    # expected, and 10.8 to 11.8 % if they are.
    assert errors[0.0, 0.0] < 0.15
    assert errors[0.0, 0.1] < 0.15
    assert errors[0.05, 0.0] > 0.2
    assert errors[0.05, 0.1] < 0.15
