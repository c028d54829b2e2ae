"""The utility of a perturbed data set (001, Proposition 2)."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.errors import DpfdaError
from dpfda.local.mrma.utility import report_utility
from dpfda.noise import SimulationSource
from dpfda.protocol.tasks.vector import VectorTask


def test_three_rows_by_hand() -> None:
    """ε_z = ε_y = 1: a weight is e^(-distance/2), and 2q - 1 = tanh(½)."""
    near, far = np.exp(-0.25), np.exp(-0.5)  # of rows 0.5 and 1 apart
    shown = np.array([(near - far) / (near + far), 0.0, 1.0])  # of the others' signs
    found = report_utility([[0.0], [0.5], [1.0]], [1, 1, -1], epsilon=2.0)
    wanted = 0.5 + 0.5 * np.tanh(0.5) * np.mean([shown[0], 0.0, -1.0])
    assert found == pytest.approx(wanted)


def test_it_is_how_often_labels_of_reports_agree() -> None:
    """Real reports, sorted into narrow cells, beside the formula."""
    people, epsilon, cells = 400_000, 4.0, 80
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, people)
    chance = np.where(z > 0, 0.9, 0.2)
    label = np.where(rng.random(people) < chance, 1, 0)
    task = VectorTask(epsilon=epsilon, people=people, dimension=1)
    told = task.answer((z[:, None], label), SimulationSource(0)).values
    inside = np.abs(told[:, 0]) < 1
    cell = np.floor((told[inside, 0] + 1) / 2 * cells).astype(int)
    yes = np.bincount(cell, told[inside, 1] > 0, cells) / np.bincount(cell, minlength=cells)
    at = np.where(np.arange(cells) < cells // 2, 0.2, 0.9)
    agree = np.mean(at * yes + (1 - at) * (1 - yes))
    some = slice(0, 2000)
    found = report_utility(z[some, None], 2 * label[some] - 1, epsilon=epsilon)
    # 2000 labels: a standard error of at most ½ tanh(1)/√2000 = 0.009 each for row and weight.
    assert abs(found - agree) < 0.03
    assert agree > 0.55


def test_small_budgets_teach_nothing_and_labels_must_be_signs() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    signs = np.where(rows[:, 0] > 0, 1, -1)
    assert report_utility(rows, signs, epsilon=0.01) == pytest.approx(0.5, abs=0.002)
    assert report_utility(rows, signs, epsilon=1000.0) > 0.75
    for labels in (signs[:-1], 0 * signs):
        with pytest.raises(DpfdaError, match="labels"):
            report_utility(rows, labels, epsilon=1.0)
