"""The set of labels is public, and no label of a person decides whether a study goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dpfda import (
    Ledger,
    LocalCurveClassifier,
    MomentClassifier,
    MRMAClassifier,
    MultiServerMRMA,
    OnlineMRMA,
)
from dpfda.datasets import simulate_001
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC
from dpfda.protocol.person import encode_people, label_numbers

DATA = simulate_001(120, random_state=0)
CLASSIFIERS = [
    LocalCurveClassifier(epsilon=1.0, value_range=(-6, 6)),
    MomentClassifier(epsilon=1.0, value_range=(-6, 6)),
    MRMAClassifier(value_range=(-6, 6), n_classifiers=3, member_size=10),
    MultiServerMRMA(value_range=(-6, 6), n_classifiers=3, member_size=10),
    OnlineMRMA(value_range=(-6, 6), n_classifiers=3, new_classifiers=3, member_size=10),
]
INCOMPARABLE = np.array(["yes", "no"])  # as is a missing value of pandas: no truth in ==
every = pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)


def words(labels: Any) -> list[str]:
    return ["yes" if label > 0 else "no" for label in labels]


@every
def test_real_noise_needs_a_public_set_of_labels(classifier: Any) -> None:
    """One person with a rare label would show in `classes_` with probability 1."""
    with pytest.raises(InvalidParameter, match="classes must be given"):
        clone(classifier).fit(DATA.X, words(DATA.y))
    fitted = clone(classifier).set_params(classes=("no", "yes")).fit(DATA.X, words(DATA.y))
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.guarantee_.sampler == "exact"
    assert fitted.guarantee_.assumptions == ()
    assert fitted.model_.guarantee == fitted.guarantee_


@every
def test_a_simulation_says_what_it_assumes(classifier: Any) -> None:
    seeded = clone(classifier).set_params(random_state=0)
    assert CLASSES_ARE_PUBLIC in seeded.fit(DATA.X, DATA.y).guarantee_.assumptions
    seeded.set_params(classes=(-1, 1)).fit(DATA.X, DATA.y)
    assert seeded.guarantee_.assumptions == ()
    with pytest.raises(InvalidData, match="among the given classes"):
        seeded.fit(DATA.X, DATA.y + 1)


@every
@pytest.mark.parametrize("rare", ["HIV", None, float("nan"), 7, ("yes",), b"yes", INCOMPARABLE])
def test_no_label_of_a_person_stops_a_study(classifier: Any, rare: object) -> None:
    labels = words(DATA.y)
    labels[5] = rare  # type: ignore[call-overload]
    fitted = clone(classifier).set_params(classes=("no", "yes")).fit(DATA.X, labels)
    assert fitted.classes_.tolist() == ["no", "yes"]


@every
def test_no_label_changes_how_another_one_is_read(classifier: Any, monkeypatch: Any) -> None:
    """A word among numbers would make an array of words, in which no number is known."""
    seen = []
    home = "estimators.multi_server_mrma" if isinstance(classifier, MultiServerMRMA) else "simulate"

    def watched(*args: Any, **more: Any) -> Any:
        found = encode_people(*args, **more)
        seen.append(found[1])
        return found

    monkeypatch.setattr(f"dpfda.{home}.encode_people", watched)
    labels: list[Any] = DATA.y.astype(int).tolist()
    for rare in (-1, "HIV"):
        labels[5] = rare
        clone(classifier).set_params(classes=(-1, 1), ledger=Ledger(1e3)).fit(DATA.X, labels)
    assert seen[0].sum() > 0
    assert seen[0].tolist() == seen[1].tolist()


@every
def test_no_curve_of_a_person_stops_a_study(classifier: Any) -> None:
    curves = DATA.X.copy()
    curves[5, 3], curves[6], curves[7] = np.inf, np.nan, -1e308
    fitted = clone(classifier).set_params(classes=(-1, 1)).fit(curves, DATA.y)
    assert np.isfinite(fitted.model_.coefficients).all()


@every
@pytest.mark.parametrize("seed", [0, None])
def test_errors_quote_nothing_private(classifier: Any, seed: int | None) -> None:
    one = clone(classifier).set_params(random_state=seed, classes=(-1, 1))
    curves = DATA.X.astype(object)
    curves[3, 2] = "SECRET42"
    fitted = clone(one).fit(DATA.X, DATA.y)
    ragged = [*DATA.X[:3].tolist(), ["SECRET42"]]
    attempts = [
        lambda: clone(one).fit(curves, DATA.y),
        lambda: clone(one).fit(ragged, [1, -1, 1, -1]),
        lambda: clone(one).fit(["SECRET42"], [1]),
        lambda: clone(one).fit(DATA.X, ["SECRET42"] * len(DATA.X)),
        lambda: clone(one).fit(DATA.X, [["SECRET42", 1]] * len(DATA.X)),
        lambda: clone(one).fit(DATA.X, [4242.5] * len(DATA.X)),
        lambda: clone(one).fit(DATA.X, ["SECRET42"]),
        lambda: fitted.predict(curves),
        lambda: fitted.predict(ragged),
        lambda: fitted.predict(["SECRET42"]),
        lambda: fitted.predict(DATA.X * 0 + 4242.5j),
        lambda: fitted.score(DATA.X, ["SECRET42"] * 3),
        lambda: fitted.score(DATA.X, ["SECRET42"] * len(DATA.X)),
        lambda: fitted.score(DATA.X, 4242.5),
    ]
    for attempt in attempts:
        for message in shown(attempt):
            assert "SECRET" not in message
            assert "4242" not in message


def shown(attempt: Any) -> list[str]:
    """All messages that a traceback would print."""
    messages: list[str] = []
    try:
        attempt()
    except Exception as raised:
        error: BaseException | None = raised
        while error is not None:
            messages.append(str(error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return messages


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(["yes", "no", "yes"], index=[7, 5, 3]),
        pd.DataFrame({"illness": ["yes", "no", "yes"]}),
    ],
    ids=["series", "frame"],
)
def test_labels_of_a_frame_are_read_in_order(labels: Any) -> None:
    assert label_numbers(labels, ("no", "yes")).tolist() == [1, 0, 1]
