"""The contract of a weak learner, run on any registered one: ``check_learner(Logistic())``.

Every check uses small fixed data and no randomness of its own; any warning counts as a failure.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda.checks import expect
from dpfda.errors import InvalidData
from dpfda.local.mrma.learners import Learner, LinearModels

Floats = npt.NDArray[np.float64]

FAMILY = Learner
MEMBERS, ROWS, FEATURES = 5, 24, 3


def check_learner(learner: Learner) -> None:
    """Run every check on one learner.

    Examples:
        >>> check_learner(Learner.named("nearest_centroid")())
    """
    for check in CHECKS:
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            try:
                check(learner)
            except AssertionError as broken:
                raise AssertionError(f"{learner!r} fails {check.__name__}: {broken}") from broken


check = check_learner


def check_shapes_and_precision(learner: Learner) -> None:
    """B members give scores (B, n) in double precision and leave their input unchanged."""
    features, labels = _data()
    untouched = features.copy(), labels.copy()
    models = learner.fit(features, labels)
    expect(len(models) == MEMBERS, "one model per member")
    expect(np.array_equal(features, untouched[0]), "features were changed")
    expect(np.array_equal(labels, untouched[1]), "labels were changed")
    for given in (features[0], features):
        scores = models.scores(given)
        expect(scores.shape == (MEMBERS, ROWS), "scores must have shape (B, n)")
        expect(bool(scores.dtype == np.float64), "scores must be double precision")
    expect(
        bool(np.allclose(models.scores(features)[0], models.scores(features[0])[0])),
        "shared and own rows must be scored alike",
    )
    coarse = learner.fit(features.astype(np.float32), labels.astype(np.int8))
    expect(
        bool(coarse.scores(features).dtype == np.float64),
        "single precision input must give double precision",
    )


def check_learns(learner: Learner) -> None:
    """Classes with little overlap are separated."""
    rng = np.random.default_rng(1)
    labels = np.where(np.arange(400) % 2 == 0, 1.0, -1.0)[None, :]
    features = np.clip(rng.normal(0.4 * labels[:, :, None], 0.3, (1, 400, FEATURES)), -1, 1)
    right = np.mean(learner.fit(features, labels).predict(features) == labels)
    # Bayes accuracy is Φ(0.4·√3/0.3) = 0.99.
    expect(bool(right > 0.9), "accuracy on easy data")


def check_batch_equals_single_fits(learner: Learner) -> None:
    """A member's model does not depend on the other members of its batch."""
    features, labels = _data()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, labels.shape)
    together = learner.fit(features, labels, weights=weights)
    for b in range(MEMBERS):
        part = slice(b, b + 1)
        alone = learner.fit(features[part], labels[part], weights=weights[part])
        own = LinearModels(
            intercept=together.intercept[part], coefficients=together.coefficients[part]
        )
        _same(own, alone, "batch against single fit")


def check_zero_weight_is_absence(learner: Learner) -> None:
    """A row of weight 0 changes nothing, even with extreme values."""
    features, labels = _data()
    wild = np.concatenate([features, np.full((MEMBERS, 2, FEATURES), 1e6)], axis=1)
    more = np.concatenate([labels, np.ones((MEMBERS, 2))], axis=1)
    weights = np.ones_like(more)
    weights[:, -2:] = 0.0
    _same(learner.fit(wild, more, weights=weights), learner.fit(features, labels), "absent rows")


def check_integer_weights_are_repeats(learner: Learner) -> None:
    """A row with weight 3 equals three copies of the row."""
    features, labels = _data()
    repeats = 1 + np.arange(ROWS) % 3
    weights = np.broadcast_to(repeats, labels.shape)
    repeated = learner.fit(np.repeat(features, repeats, axis=1), np.repeat(labels, repeats, axis=1))
    _same(learner.fit(features, labels, weights=weights), repeated, "repeated rows")


def check_flipped_labels_flip_the_model(learner: Learner) -> None:
    """The two classes are treated alike."""
    features, labels = _data()
    models = learner.fit(features, -labels)
    flipped = LinearModels(intercept=-models.intercept, coefficients=-models.coefficients)
    _same(flipped, learner.fit(features, labels), "flipped labels")


def check_identity_gram_is_the_default(learner: Learner) -> None:
    """Without a Gram matrix, the basis is orthonormal."""
    features, labels = _data()
    explicit = learner.fit(features, labels, gram=np.eye(FEATURES))
    _same(explicit, learner.fit(features, labels), "identity Gram matrix")


def check_degenerate_members(learner: Learner) -> None:
    """One class, no rows, constant, repeated or too many features, huge scales: all defined."""
    features, labels = _data()
    for name, (odd, signs, weights) in _degenerate(features, labels).items():
        models = learner.fit(odd, signs, weights=weights)
        scores = models.scores(odd)
        expect(bool(np.all(np.isfinite(scores))), f"{name}: a score is not finite")
        expect(bool(np.all(np.isfinite(models.intercept))), name)
        expect(bool(np.all(np.isfinite(models.coefficients))), name)
    for sign in (-1.0, 1.0):
        models = learner.fit(features, np.full_like(labels, sign))
        expect(bool(np.all(models.predict(features) == sign)), "one class must predict that class")
        expect(
            bool(np.all(models.scores(features) == sign)), "one class must give its constant score"
        )
    nothing = learner.fit(features, labels, weights=np.zeros_like(labels))
    expect(bool(np.all(nothing.scores(features) == 0.0)), "no rows must give the score 0")


def check_learner_travels(learner: Learner) -> None:
    """The parameters are plain, frozen values."""
    again = Learner.from_dict(json.loads(json.dumps(learner.to_dict())))
    expect(again == learner, "JSON changed the learner")
    expect(hash(again) == hash(learner), "equal learners must have equal hashes")


def check_refuses_bad_input(learner: Learner) -> None:
    """Broken data are refused, and no value appears in the message."""
    features, labels = _data()
    broken: list[tuple[Any, Any, Any]] = [
        (np.where(features == features[0, 0, 0], np.nan, features), labels, None),
        (features, 0.123 * labels, None),
        (features, labels, -0.123 * np.ones_like(labels)),
        (features[0], labels, None),
        (features, labels[:, 1:], None),
    ]
    for odd, signs, weights in broken:
        try:
            learner.fit(odd, signs, weights=weights)
        except InvalidData as refusal:
            expect("0.123" not in str(refusal), "a value leaked into the message")
        else:
            raise AssertionError("broken input was accepted")


CHECKS: tuple[Callable[[Learner], None], ...] = (
    check_shapes_and_precision,
    check_learns,
    check_batch_equals_single_fits,
    check_zero_weight_is_absence,
    check_integer_weights_are_repeats,
    check_flipped_labels_flip_the_model,
    check_identity_gram_is_the_default,
    check_degenerate_members,
    check_learner_travels,
    check_refuses_bad_input,
)
"""All checks, in their order."""


def _data() -> tuple[Floats, Floats]:
    """Overlapping classes in [−1, 1]³, both present in every member."""
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(ROWS) % 2 == 0, 1.0, -1.0) * np.ones((MEMBERS, 1))
    centers = 0.3 * labels[:, :, None] * np.array([1.0, -0.5, 0.2])
    return np.clip(rng.normal(centers, 0.5), -1.0, 1.0), labels


def _degenerate(
    features: Floats, labels: Floats
) -> dict[str, tuple[Floats, Floats, Floats | None]]:
    constant = features.copy()
    constant[:, :, 1] = 0.1
    repeated = features.copy()
    repeated[:, :, 2] = repeated[:, :, 0]
    apart = features + 3.0 * labels[:, :, None]
    mixed = np.where(np.arange(MEMBERS)[:, None] % 2 == 0, labels, 1.0)
    spread = features * np.array([1e-8, 1.0, 1e8])
    uneven = np.abs(labels) * np.logspace(-6.0, 6.0, ROWS, dtype=np.float64)
    return {
        "constant feature": (constant, labels, None),
        "all features constant": (np.full_like(features, 0.3), labels, None),
        "all features zero": (np.zeros_like(features), labels, None),
        "repeated feature": (repeated, labels, None),
        "separable classes": (apart, labels, None),
        "some members with one class": (features, mixed, None),
        "fewer rows than features": (features[:, :2], labels[:, :2], None),
        "one row": (features[:, :1], labels[:, :1], None),
        "tiny weights": (features, labels, np.full_like(labels, 1e-12)),
        "uneven weights": (features, labels, uneven),
        "large features": (1e6 * features, labels, None),
        "small features": (1e-6 * features, labels, None),
        "spread scales": (spread, labels, None),
        "far from the origin": (features + 1e6, labels, None),
    }


def _same(left: LinearModels, right: LinearModels, what: str) -> None:
    probe = np.random.default_rng(3).uniform(-1.0, 1.0, (50, FEATURES))
    a, b = left.scores(probe), right.scores(probe)
    # 1e-6 of the largest score: the promise of every iterative learner at its default tolerance.
    expect(bool(np.max(np.abs(a - b)) <= 1e-6 * (1.0 + np.max(np.abs(b)))), what)
