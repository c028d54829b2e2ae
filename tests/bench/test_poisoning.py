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


def test_hostile_owners_spoil_gradient_reports() -> None:
    test = simulate_001(2000, random_state=10_000)
    errors = [poisoning._boosting_error(test, 3000, share=share, seed=3) for share in (0.0, 0.1)]
    # 13 % without them; a tenth of all reports, all in one direction, outweighs small gradients.
    assert errors[0] < 0.25
    assert errors[1] > errors[0] + 0.15
