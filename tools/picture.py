"""Draw the picture of the README: what a study without trust and a curator's release look like.

    python tools/picture.py     writes docs/first-picture.png (two minutes)

Seeded, so that it is the same picture every time; the curves are those of the README.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from dpfda import LocalCurveClassifier, PrivateMean
from dpfda.datasets import simulate_001
from dpfda.datasets.catalogue import Dataset
from dpfda.protocol.estimate import majority_error, non_private_classifier

TARGET = Path(__file__).resolve().parent.parent / "docs" / "first-picture.png"
PEOPLE = (30, 100, 300, 1000, 3000)
EPSILONS = (0.1, 0.5)
REPEATS = 60


def local(ax: Axes) -> None:
    """Errors on new people, by the number of people who answered.

    Means, not medians: with few people a study now and then learns its rule the wrong way round,
    and that is what privacy costs here.
    """
    others = simulate_001(3000, 10**6)
    for epsilon in EPSILONS:
        errors = [
            [_study_error(n, epsilon, seed, others) for seed in range(REPEATS)] for n in PEOPLE
        ]
        means, spread = np.mean(errors, axis=1), np.std(errors, axis=1) / np.sqrt(REPEATS)
        ax.errorbar(
            PEOPLE, means, spread, marker="o", markersize=3, label=f"local, ε = {epsilon:g}"
        )
        print(f"ε = {epsilon:g}:", dict(zip(PEOPLE, means.round(3).tolist(), strict=True)))
    people = simulate_001(PEOPLE[-1], 0)
    free = non_private_classifier(people.X, people.y)
    lines = {
        "guessing": majority_error(others.y),
        "non-private": 1 - free.score(others.X, others.y),
    }
    for (name, error), style in zip(lines.items(), ("--", ":"), strict=True):
        ax.axhline(error, color="0.45", linestyle=style, linewidth=1, label=name)
        print(f"{name}: {error:.3f}")
    ax.set(xscale="log", xlabel="people who answered", ylabel="error on new people")
    ax.set(ylim=(0, 0.6), title="Local: people randomize their answers")
    ax.legend(fontsize="small", frameon=False, ncols=2)


def _study_error(count: int, epsilon: float, seed: int, others: Dataset) -> float:
    people = simulate_001(count, seed)
    study = LocalCurveClassifier(
        epsilon, value_range=(-6, 6), classes=(-1, 1), random_state=1000 + seed
    )
    study.fit(people.X, people.y, grid_points=people.grid_points)
    return 1 - study.score(others.X, others.y)


def central(ax: Axes) -> None:
    """A mean under differential privacy over the curves that it hides."""
    t = np.linspace(0, 1, 50)
    shapes = np.stack([np.ones(50), np.cos(np.pi * t)])
    spread = np.random.default_rng(0).normal(0, 0.04, (1000, 2))
    scans = 0.5 + 0.3 * np.sin(2 * np.pi * t) + spread @ shapes
    release = PrivateMean(1, value_range=(0, 1), random_state=0).fit(scans, grid_points=t).release_
    low, high = release.interval(0.95, simultaneous=True)
    ax.plot(t, scans[:25].T, color="0.85", linewidth=0.5)
    ax.plot(t, scans.mean(axis=0), color="black", linestyle="--", linewidth=1, label="true mean")
    ax.fill_between(t, low, high, color="C0", alpha=0.3, linewidth=0, label="95 % noise band")
    ax.plot(t, release.values(), color="C0", label="released, ε = 1")
    ax.set(xlabel="t", ylabel="x(t)", ylim=(0, 1), title="Central: a curator releases the mean")
    ax.legend(fontsize="small", frameon=False)


def main() -> None:
    """Both, side by side."""
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.1), layout="constrained")
    local(axes[0])
    central(axes[1])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(TARGET, dpi=90, metadata={"Software": None})
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
