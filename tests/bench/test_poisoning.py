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
