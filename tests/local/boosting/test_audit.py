"""Attacks on every share, for the unit it promises to protect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda.local.boosting.request import OwnerRows
from dpfda.local.boosting.shares import box_mechanism
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import compose

EPSILON = 1.0


class OwnerAudit:
    """A request as a mechanism of one owner's whole data: two rows of two features, two labels."""

    log_likelihood = None

    def __init__(self, request, pairs, promise):
        self.request, self.pairs, self.guarantee = request, pairs, promise

    def randomize(self, values, rng):
        rows = np.asarray(values)
        present = np.ones((len(rows), 2), dtype=bool)
        features, labels = rows[:, :4].reshape(-1, 2, 2), rows[:, 4:].astype(np.int64)
        many = replace(self.request, people=len(rows))
        return many.answer(OwnerRows(features, labels, present), rng).values

    def worst_cases(self):
        return self.pairs


def promise(epsilon=EPSILON, unit="owner"):
    return Guarantee(epsilon=epsilon, model="local", unit=unit)


def pair(one, other):
    return np.array([one], dtype=float), np.array([other], dtype=float)


EVERYTHING = [
    pair([0.9, 0.9, 0.9, 0.9, 1, 1], [-0.9, -0.9, -0.9, -0.9, 1, 1]),  # other rows
    pair([0.9, 0.9, 0.9, 0.9, 1, 1], [0.9, 0.9, 0.9, 0.9, 0, 0]),  # other labels
    pair([1, 1, -1, -1, 1, 0], [-1, -1, 1, 1, 1, 0]),  # all of it, nothing on average
]
LABELS = EVERYTHING[1:2]


@pytest.mark.parametrize("name", ["gradient", "sample", "statistic", "classifier", "feedback"])
def test_an_owner_is_protected(name, request_of):
    request = request_of(name, n_rows=2)
    assert float(compose([request.event]).epsilon) <= EPSILON
    subject = OwnerAudit(request, EVERYTHING, promise())
    result = audit(subject, name=name, draws=8000, source=SimulationSource(1))
    assert result.passed, result


def test_the_attack_has_power(request_of):
    """One bit's worth of a gradient report is found: the bound is well above 0."""
    request = request_of("feedback", n_rows=2)
    subject = OwnerAudit(request, LABELS, promise())
    result = audit(subject, name="feedback", draws=40_000, source=SimulationSource(2))
    assert result.lower_bound > 0.5 * EPSILON


def test_labels_in_clear_are_caught(request_of):
    """The printed form would be caught if it claimed to protect labels (C16)."""
    request = request_of("sample", n_rows=2, protects="features")
    assert "labels are public" in request.assumptions
    subject = OwnerAudit(request, LABELS, promise())
    result = audit(subject, name="clear", draws=4000, source=SimulationSource(3))
    assert not result.passed
    assert result.lower_bound > 3


def test_public_labels_still_protect_features(request_of):
    request = request_of("sample", n_rows=2, protects="features")
    subject = OwnerAudit(request, EVERYTHING[:1], promise())
    result = audit(subject, name="features", draws=20_000, source=SimulationSource(4))
    assert result.passed


def test_a_single_sample_has_its_part_of_the_budget(request_of):
    """Nearest centroid protects one of N rows at ε/N (C18)."""
    request = request_of("sample", n_rows=2)
    one_row = [pair([0.9, 0.9, 0.2, 0.1, 1, 1], [-0.9, -0.9, 0.2, 0.1, 0, 1])]
    subject = OwnerAudit(request, one_row, promise(EPSILON / 2, "sample"))
    result = audit(subject, name="sample", draws=40_000, source=SimulationSource(5))
    assert result.passed


def test_weights_after_perturbation_would_be_caught(request_of):
    """The printed product w·x' tells the weight: its support does (C16)."""
    request = request_of("sample", n_rows=2)

    class Printed(OwnerAudit):
        def randomize(self, values, rng):
            rows = np.asarray(values)
            inside = rows[:, :4].reshape(-1, 2, 2)
            weights = self.request.ensemble.weights(inside, rows[:, 4:].astype(np.int64))
            mechanism = box_mechanism("piecewise", epsilon=EPSILON / 2, dimension=2)
            noisy = mechanism.randomize(inside.reshape(-1, 2), rng).reshape(-1, 2, 2)
            return (noisy * weights[..., None]).sum(axis=2)[:, :1]

    # Same features, another label: the rule is right on one and wrong on the other.
    pairs = [pair([0.9, 0.9, 0.5, 0.5, 1, 1], [0.9, 0.9, 0.5, 0.5, 0, 1])]
    result = audit(
        Printed(request, pairs, promise()),
        name="printed",
        draws=20_000,
        source=SimulationSource(6),
    )
    assert not result.passed
