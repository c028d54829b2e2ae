"""Attacks on every share, for the unit it promises to protect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda.boosting.owners import OwnerRows
from dpfda.noise import SimulationSource
from dpfda.privacy.audit import audit
from dpfda.privacy.guarantee import Guarantee

EPSILON = 1.0


class OwnerAudit:
    """A request as a randomizer of one owner's whole data: two rows of two features, two labels."""

    log_likelihood = None

    def __init__(self, request, pairs, promise):
        self.request, self.pairs, self.guarantee = request, pairs, promise

    def randomize(self, values, rng):
        rows = np.asarray(values)
        present = np.ones((len(rows), 2), dtype=bool)
        features, labels = rows[:, :4].reshape(-1, 2, 2), rows[:, 4:].astype(np.int64)
        return self.request.answer(OwnerRows(features, labels, present), epsilon=EPSILON, rng=rng)

    def worst_cases(self):
        return self.pairs


def pair(one, other):
    return np.array([one], dtype=float), np.array([other], dtype=float)


EVERYTHING = [
    pair([0.9, 0.9, 0.9, 0.9, 1, 1], [-0.9, -0.9, -0.9, -0.9, 1, 1]),  # other rows
    pair([0.9, 0.9, 0.9, 0.9, 1, 1], [0.9, 0.9, 0.9, 0.9, 0, 0]),  # other labels
    pair([1, 1, -1, -1, 1, 0], [-1, -1, 1, 1, 1, 0]),  # all of it, nothing on average
]
LABELS = EVERYTHING[1:2]


@pytest.mark.parametrize("name", ["gradient", "sample", "statistic", "classifier", "feedback"])
def test_an_owner_is_protected(name, requests):
    request = requests()[name]
    promise = request.guarantee(EPSILON)
    assert promise.unit == "owner"
    subject = OwnerAudit(request, EVERYTHING, promise)
    result = audit(subject, name=name, draws=8000, source=SimulationSource(1))
    assert result.passed, result


def test_the_attack_has_power(requests):
    """One bit's worth of a gradient report is found: the bound is well above 0."""
    request = requests()["feedback"]
    subject = OwnerAudit(request, LABELS, request.guarantee(EPSILON))
    result = audit(subject, name="feedback", draws=40_000, source=SimulationSource(2))
    assert result.lower_bound > 0.5 * EPSILON


def test_labels_in_clear_are_caught(requests):
    """The printed form would be caught if it claimed to protect labels (C16)."""
    request = replace(requests()["sample"], labels="public")
    assert "labels are public" in request.guarantee(EPSILON).assumptions
    false_claim = Guarantee(epsilon=EPSILON, model="local", unit="owner")
    subject = OwnerAudit(request, LABELS, false_claim)
    result = audit(subject, name="clear", draws=4000, source=SimulationSource(3))
    assert not result.passed
    assert result.lower_bound > 3


def test_public_labels_still_protect_features(requests):
    request = replace(requests()["sample"], labels="public")
    subject = OwnerAudit(request, EVERYTHING[:1], request.guarantee(EPSILON))
    result = audit(subject, name="features", draws=20_000, source=SimulationSource(4))
    assert result.passed


def test_a_single_sample_has_its_part_of_the_budget(requests):
    """Nearest centroid protects one of N rows at ε/N (C18)."""
    request = requests()["sample"]
    one_row = [pair([0.9, 0.9, 0.2, 0.1, 1, 1], [-0.9, -0.9, 0.2, 0.1, 0, 1])]
    promise = request.sample_guarantee(EPSILON, rows=2)
    assert (promise.epsilon, promise.unit) == (EPSILON / 2, "sample")
    subject = OwnerAudit(request, one_row, promise)
    result = audit(subject, name="sample", draws=40_000, source=SimulationSource(5))
    assert result.passed


def test_weights_after_perturbation_would_be_caught(requests):
    """The printed product w·x' tells the weight: its support does (C16)."""
    request = requests()["sample"]

    class Printed(OwnerAudit):
        def randomize(self, values, rng):
            rows = np.asarray(values)
            inside = rows[:, :4].reshape(-1, 2, 2)
            weights = self.request.ensemble.weights(inside, rows[:, 4:].astype(np.int64))
            mechanism = self.request._randomizer(EPSILON / 2, 2)
            noisy = mechanism.randomize(inside.reshape(-1, 2), rng).reshape(-1, 2, 2)
            return (noisy * weights[..., None]).sum(axis=2)[:, :1]

    # Same features, another label: the rule is right on one and wrong on the other.
    pairs = [pair([0.9, 0.9, 0.5, 0.5, 1, 1], [0.9, 0.9, 0.5, 0.5, 0, 1])]
    result = audit(
        Printed(request, pairs, request.guarantee(EPSILON)),
        name="printed",
        draws=20_000,
        source=SimulationSource(6),
    )
    assert not result.passed
