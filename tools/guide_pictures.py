"""Draw the pictures of two guides, with the package's own plots where it has them.

    python tools/guide_pictures.py [NAME ...]     writes docs/NAME.png and prints its numbers

All of them take some minutes. Seeded, so that they are the same pictures every time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from dpfda import LocalCurveClassifier, forecast
from dpfda.datasets import simulate_001
from dpfda.mechanisms.randomized_response import QuestionResponse, best_questions, information
from dpfda.planning.page import draw
from dpfda.planning.words import notes

DOCS = Path(__file__).resolve().parent.parent / "docs"
FACTS: dict[str, Any] = {"value_range": (-6, 6), "classes": (-1, 1), "non_private_error": 0.1}
EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
STUDIES = 40


def plan() -> Figure:
    """What `dpfda plan` draws: error against ε and against the number of people."""
    found = forecast(3000, 0.5, **FACTS)
    print(*notes(found), sep="\n")
    return draw(found)


def what_is_known() -> Figure:
    """Forecasts of the same studies by one who knows less and one who knows more."""
    public = simulate_001(200, 77)
    means = np.stack([public.X[public.y == label].mean(axis=0) for label in (-1, 1)])
    told = {
        "a family": {},
        "a typical curve a class": {"typical": (means, (-1, 1), public.grid_points)},
        "200 public people": {"sample": (public.X, public.y, public.grid_points)},
    }
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    place = np.arange(len(EPSILONS))
    for number, (name, extra) in enumerate(told.items()):
        found = [
            forecast(3000, epsilon, also=(), studies=STUDIES, **FACTS, **extra).expected
            for epsilon in EPSILONS
        ]
        middle, low, high = (
            100 * np.array([getattr(one, part) for one in found])
            for part in ("error", "low", "high")
        )
        x = place + 0.18 * (number - 1)
        ax.errorbar(x, middle, [middle - low, high - middle], fmt="o", markersize=4, label=name)
        print(name, dict(zip(EPSILONS, middle.round(1).tolist(), strict=True)))
    achieved = [
        np.mean([_achieved(epsilon, seed) for seed in range(STUDIES)]) for epsilon in EPSILONS
    ]
    rounded = (100 * np.array(achieved)).round(1).tolist()
    print("achieved", dict(zip(EPSILONS, rounded, strict=True)))
    for x, error in zip(place, achieved, strict=True):
        line = ax.hlines(100 * error, x - 0.35, x + 0.35, color="black", linewidth=1)
    line.set_label("achieved")
    ax.axhline(50, color="0.5", linestyle="--", linewidth=1, label="guessing")
    ax.axhline(10, color="0.5", linestyle=":", linewidth=1, label="no privacy")
    ax.set_xticks(place, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.set(xlabel="ε, with 3000 people", ylabel="error, %", ylim=(0, 60))
    figure.legend(loc="outside lower center", fontsize="small", frameon=False, ncols=3)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _achieved(epsilon: float, seed: int) -> float:
    """The error of a study of the paper's people, on others."""
    people, others = simulate_001(3000, seed), simulate_001(2000, 10**6 + seed)
    study = LocalCurveClassifier(
        epsilon, value_range=(-6, 6), classes=(-1, 1), random_state=1000 + seed
    )
    study.fit(people.X, people.y, grid_points=people.grid_points)
    return 1 - study.score(others.X, others.y)


def question_reports() -> Figure:
    """What a reply says: how likely the truth is, and what one person is worth."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.1), layout="constrained")
    epsilon, k = 2.0, 2
    mechanism = QuestionResponse(epsilon=epsilon, questions=k)
    other = (1 - mechanism.truth_probability) / 2**k
    replies = ["yes, no\n(the truth)", "yes, yes", "no, yes", "no, no"]
    chances = [mechanism.truth_probability + other, other, other, other]
    left.bar(replies, chances, color=["C0", "0.7", "0.7", "0.7"])
    for place, chance in enumerate(chances):
        left.text(place, chance, f"{chance:.2f}", ha="center", va="bottom", fontsize="small")
    left.set(ylabel="probability of the reply", title=f"k = {k} questions, ε = {epsilon:g}")
    print("replies", [round(chance, 4) for chance in chances], "ratio", chances[0] / chances[1])
    levels = np.linspace(0.05, 6, 120)
    for questions in (1, 2, 3, 5, 8):
        worth = [information(float(level), questions=questions) for level in levels]
        right.plot(levels, worth, linewidth=1, label=f"k = {questions}")
    best = [
        information(float(level), questions=best_questions(float(level), most=8))
        for level in levels
    ]
    right.plot(levels, best, color="black", linewidth=2.5, alpha=0.3, label="the best k")
    right.set(xlabel="ε", ylabel="answers without noise", title="What one person is worth")
    right.legend(fontsize="small", frameon=False)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def question_study() -> Figure:
    """What `LocalCurveClassifier.plot` draws of the study in the guide."""
    people = simulate_001(3000, 0)
    classifier = LocalCurveClassifier(
        epsilon=2.0, value_range=(-6, 6), evaluation_share=0.2, random_state=0
    )
    classifier.fit(people.X, people.y, grid_points=people.grid_points)
    return classifier.plot()


PICTURES = {
    "start/how-much-epsilon": plan,
    "start/what-is-known": what_is_known,
    "methods/question-reports": question_reports,
    "methods/question-study": question_study,
}


def main() -> None:
    """Those that are named, or all of them."""
    for name in sys.argv[1:] or PICTURES:
        path = DOCS / f"{name}.png"
        PICTURES[name]().savefig(path, dpi=80, metadata={"Software": None})
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
