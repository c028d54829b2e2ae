"""The scikit-learn face, all shares, options and refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpfda
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.local_ada_boost_classifier import RULES, LocalAdaBoostClassifier
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.privacy.guarantee import CLASSES_ARE_PUBLIC, ROWS_ARE_PUBLIC, USER_IS_NOT_PROTECTED

METHODS = ("gradient", *RULES)


def boosting(method, epsilon, *, validation="clean", **parameters):
    """Boosting by gradients, or by one of the rules of the paper."""
    if method == "gradient":
        return LocalGradientBoostingClassifier(epsilon, **parameters)
    return LocalAdaBoostClassifier(epsilon, rule=method, validation=validation, **parameters)


@pytest.mark.parametrize("rule", METHODS)
@pytest.mark.parametrize("validation", ["clean", "feedback"])
def test_every_rule_learns(study, rule, validation):
    """The classes are 12 % apart from each other at best; ε is large, so every rule gets near."""
    X, y, groups, own, own_y, test, test_y = study
    classifier = boosting(rule, 20.0, validation=validation, n_rounds=4, random_state=0)
    labels = None if validation == "feedback" and rule != "gradient" else own_y
    classifier.fit(X, y, groups=groups, reference=own, reference_labels=labels)
    # Measured 0.14 to 0.22 over seeds; a coin has 0.5.
    assert np.mean(classifier.predict(test) != test_y) < 0.27
    assert classifier.owners_spent_ <= classifier.n_owners_ == 1500
    assert classifier.owners_spent_ == sum(row["owners"] for row in classifier.history_)
    assert classifier.guarantee_.unit == "owner"
    assert classifier.guarantee_.epsilon == 20.0
    assert classifier.guarantee_.sampler == "simulation"


def test_gradient_needs_no_labels_and_beats_shares(study):
    X, y, groups, own, own_y, test, test_y = study
    errors = {}
    for rule, labels in (("gradient", None), ("statistic", own_y)):
        models = [boosting(rule, 1.0, random_state=seed) for seed in range(4)]
        own_rows = {"reference": own, "reference_labels": labels}
        fits = [model.fit(X, y, groups=groups, **own_rows) for model in models]
        errors[rule] = np.mean([np.mean(fit.predict(test) != test_y) for fit in fits])
    ours_error, their_error = errors["gradient"], errors["statistic"]
    # The best linear rule has 0.144; over 120 seeds ours had 0.180, with a deviation of 0.016.
    assert ours_error < 0.21
    assert ours_error < their_error


def test_own_labels_help_when_owners_are_few(study):
    X, y, groups, own, own_y, test, test_y = study
    few = groups < 60
    arguments = {"groups": groups[few], "reference": own}
    alone = LocalGradientBoostingClassifier(0.5, random_state=0).fit(X[few], y[few], **arguments)
    helped = LocalGradientBoostingClassifier(0.5, random_state=0)
    helped.fit(X[few], y[few], **arguments, reference_labels=own_y[:200])
    assert helped.score(test, test_y) > alone.score(test, test_y)
    assert helped.score(test, test_y) > 0.82


@pytest.mark.parametrize("rule", METHODS)
def test_three_classes(rule):
    rng = np.random.default_rng(0)
    centers = 2.2 * np.array([[0, 1], [1, -1], [-1, -1]])
    y = rng.integers(0, 3, 8000)
    X = rng.normal(size=(8000, 2)) + centers[y]
    own_y = rng.integers(0, 3, 300)
    own = rng.normal(size=(300, 2)) + centers[own_y]
    classifier = boosting(rule, 20.0, n_rounds=4, random_state=0)
    classifier.fit(
        X[:6000],
        np.array(["a", "b", "c"])[y[:6000]],
        groups=np.repeat(np.arange(1500), 4),
        reference=own,
        reference_labels=np.array(["a", "b", "c"])[own_y],
    )
    error = np.mean(classifier.predict(X[6000:]) != np.array(["a", "b", "c"])[y[6000:]])
    assert error < 0.3  # a coin has 0.67, stumps in four rounds about 0.2
    assert classifier.decision_function(X[:5]).shape == (5, 3)


def test_owners_may_spend_different_budgets(study):
    X, y, groups, own, _, test, test_y = study
    budgets = {owner: (0.5, 1.0, 4.0)[owner % 3] for owner in range(1500)}
    classifier = LocalGradientBoostingClassifier(budgets, random_state=0)
    classifier.fit(X, y, groups=groups, reference=own)
    listed = LocalGradientBoostingClassifier(list(budgets.values()), random_state=0)
    listed.fit(X, y, groups=groups, reference=own)
    assert np.array_equal(classifier.predict(test), listed.predict(test))
    assert classifier.guarantee_.epsilon == 4.0
    assert np.mean(classifier.predict(test) != test_y) < 0.2


def test_owners_with_different_numbers_of_rows(study):
    X, y, _, own, own_y, test, test_y = study
    groups = np.random.default_rng(0).integers(0, 1200, len(X))
    for rule in METHODS:
        classifier = boosting(rule, 10.0, n_rounds=3, random_state=0)
        classifier.fit(X, y, groups=groups, reference=own, reference_labels=own_y)
        assert classifier.score(test, test_y) > 0.7


def test_same_seed_same_model_other_seed_other(study):
    X, y, groups, own, _, test, _ = study
    fits = [
        LocalGradientBoostingClassifier(1.0, random_state=seed).fit(
            X, y, groups=groups, reference=own
        )
        for seed in (1, 1, 2)
    ]
    first, same, other = (fit.decision_function(test) for fit in fits)
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_public_labels_are_said_so(study):
    X, y, groups, own, own_y, _, _ = study
    classifier = LocalAdaBoostClassifier(5.0, rule="sample", protects="features", random_state=0)
    classifier.fit(X, y, groups=groups, reference=own, reference_labels=own_y)
    assert "labels are public" in str(classifier.guarantee_)
    assert "not protected" in str(classifier.guarantee_)


def test_models_travel_as_json(study, tmp_path):
    X, y, groups, own, own_y, test, _ = study
    for rule in ("gradient", "statistic"):
        classifier = boosting(rule, 5.0, n_rounds=2, random_state=0)
        classifier.fit(X, y, groups=groups, reference=own, reference_labels=own_y)
        classifier.model_.save(tmp_path / "model.json")
        again = dpfda.load(tmp_path / "model.json")
        assert np.array_equal(again.predict(test), classifier.predict(test))
        assert again.guarantee == classifier.guarantee_ == classifier.model_.guarantee
        assert np.array_equal(
            pickle.loads(pickle.dumps(classifier)).predict(test), classifier.predict(test)
        )
        assert classifier.plot() is not None
    assert clone(classifier).get_params() == classifier.get_params()


def test_a_model_reads_the_table_that_it_was_fitted_to(tmp_path):
    rng = np.random.default_rng(0)
    ages, sexes = rng.uniform(20, 80, 2000), rng.choice(["f", "m"], 2000)
    X = pd.DataFrame({"sex": sexes, "age": ages})
    y = np.where(ages > 50, "old", "young")
    ranges = {"age": (20, 80), "sex": ["f", "m"]}
    fitted = LocalGradientBoostingClassifier(8.0, feature_ranges=ranges, random_state=0).fit(X, y)
    fitted.model_.save(tmp_path / "model.json")
    again = dpfda.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert np.mean(again.predict(X[["age", "sex"]]) == y) > 0.85


def test_the_unit_is_the_users_word(two_classes):
    X, y = two_classes(400, seed=0)
    fitted = LocalGradientBoostingClassifier(
        2.0, feature_ranges=(-4, 4), unit="family", random_state=0
    )
    assert fitted.fit(X, y).guarantee_.unit == "family"
    assert fitted.plan_.unit == "family"


def test_points_of_curves_are_for_an_encoder(two_classes):
    X, y = two_classes(400, seed=0)
    fitted = LocalGradientBoostingClassifier(2.0, feature_ranges=(-1, 1), random_state=0)
    with pytest.raises(InvalidParameter, match=r"grid_points must be None.*CurveEncoder"):
        fitted.fit(X, y, grid_points=[0, 1])
    encoder = CurveEncoder("cosine", n_basis=2, rescale="clip", scale=4.0)
    assert make_pipeline(encoder, fitted).fit(X, y).predict(X).shape == (400,)
    with pytest.raises(InvalidParameter, match=r"grid_points must be None.*CurveEncoder"):
        fitted.model_.predict(X, grid_points=[0, 1])


def test_without_reference_public_bounds_do(two_classes):
    X, y = two_classes(4000, seed=0)
    classifier = LocalGradientBoostingClassifier(2.0, feature_ranges=(-4, 4), random_state=0)
    classifier.fit(X, y)
    assert classifier.score(X, y) > 0.75  # every row an owner


def test_secure_randomness_is_the_default(study):
    X, y, groups, own, *_ = study
    classifier = LocalGradientBoostingClassifier(1.0, n_rounds=2, classes=(0, 1), rows_per_owner=4)
    classifier.fit(X, y, groups=groups, reference=own)
    assert classifier.guarantee_.sampler == "exact"
    assert classifier.guarantee_.assumptions == (USER_IS_NOT_PROTECTED,)


def test_what_is_read_off_the_data_is_said(study):
    X, y, groups, own, *_ = study
    fitted = LocalGradientBoostingClassifier(1.0, n_rounds=2, random_state=0)
    fitted.fit(X, y, groups=groups, reference=own)
    assert CLASSES_ARE_PUBLIC in fitted.guarantee_.assumptions
    assert ROWS_ARE_PUBLIC in fitted.guarantee_.assumptions
    with pytest.raises(InvalidParameter, match="classes"):
        LocalGradientBoostingClassifier(1.0).fit(X, y, groups=groups, reference=own)


@pytest.mark.parametrize("kind", [list, np.array, pd.DataFrame])
def test_text_is_refused_without_quoting_it(study, kind):
    X, y, groups, own, *_ = study
    fitted = LocalGradientBoostingClassifier(1.0, n_rounds=1, random_state=0)
    fitted.fit(X, y, groups=groups, reference=own)
    rows = [["SECRET42", 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]
    odd = rows if kind is list else kind(np.array(rows, dtype=object))
    for ask in (
        lambda: clone(fitted).fit(odd, [0, 1]),
        lambda: fitted.predict(odd),
        lambda: fitted.decision_function(odd),
        lambda: clone(fitted).fit(X, y, reference=odd),
    ):
        with pytest.raises(InvalidData) as caught:
            ask()
        assert "SECRET" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "odd", [[42.42] * 4, 42.42, ["SECRET42"] * 4, b"SECRET42", np.full((2, 4), 42.42j)]
)
def test_rows_of_the_wrong_kind_are_refused_without_quoting_them(study, odd):
    X, y, groups, own, *_ = study
    fitted = LocalGradientBoostingClassifier(1.0, n_rounds=1, random_state=0)
    fitted.fit(X, y, groups=groups, reference=own)
    for ask in (lambda: clone(fitted).fit(odd, y), lambda: fitted.predict(odd)):
        with pytest.raises(InvalidData) as caught:
            ask()
        assert not any(text in str(caught.value) for text in ("SECRET", "42."))
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_with_real_noise_no_row_of_an_owner_stops_a_study(study, value):
    X, y, groups, own, *_ = study
    odd = X.copy()
    odd[7, 1] = value
    labels = y.astype(object)
    labels[9] = np.ones(2)  # as a missing value of pandas: no truth in ==
    asked = LocalGradientBoostingClassifier(1.0, n_rounds=1, classes=np.unique(y), rows_per_owner=4)
    assert asked.fit(odd, labels, groups=groups, reference=own).owners_spent_ > 0


def test_an_owner_of_thousands_of_rows_uses_the_first_ones(two_classes):
    X, y = two_classes(5000, seed=0)
    classifier = LocalGradientBoostingClassifier(1.0, n_rounds=1, random_state=0)
    classifier.fit(X, y, groups=np.minimum(np.arange(5000) // 4500, 1))
    assert classifier.plan_.design["n_rows"] == 4096


def test_owners_with_more_rows_than_count_use_their_first(study):
    X, y, groups, own, _, test, _ = study
    first = np.zeros(len(X), dtype=bool)
    for owner in range(1500):
        first[np.flatnonzero(groups == owner)[:2]] = True
    two = LocalGradientBoostingClassifier(1.0, rows_per_owner=2, random_state=0)
    cut = clone(two).fit(X, y, groups=groups, reference=own)
    short = two.fit(X[first], y[first], groups=groups[first], reference=own)
    assert np.array_equal(cut.decision_function(test), short.decision_function(test))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"rule": "everything"}, "rule"),
        ({"mechanism": "none", "rule": "sample"}, "mechanism"),
        ({"mechanism": "none"}, "mechanism"),
        ({"protects": "features"}, "protects"),
        ({"protects": "labels", "rule": "sample"}, "protects"),
        ({"n_rounds": 0}, "n_rounds"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": {0: 1.0}}, "epsilon"),
        ({"owners_per_round": 0}, "owners_per_round"),
        ({"retries": -1, "rule": "sample"}, "retries"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters_are_named(study, parameters, name):
    X, y, groups, own, own_y, *_ = study
    with pytest.raises(InvalidParameter, match=name):
        LocalAdaBoostClassifier(**{"classes": (0, 1)} | parameters).fit(
            X, y, groups=groups, reference=own, reference_labels=own_y
        )


def test_bad_parameters_of_gradients_are_named(study):
    X, y, groups, own, *_ = study
    for parameters in ({"products": -1}, {"n_rounds": 0}, {"epsilon": 0.0}):
        (name,) = parameters
        with pytest.raises(InvalidParameter, match=name):
            LocalGradientBoostingClassifier(**{"classes": (0, 1)} | parameters).fit(
                X, y, groups=groups, reference=own
            )


def test_bad_data_are_refused(study):
    X, y, groups, own, *_ = study
    classifier = LocalGradientBoostingClassifier(random_state=0)
    with pytest.raises(InvalidData, match="one class"):
        classifier.fit(X, np.zeros(len(X)), groups=groups, reference=own)
    with pytest.raises(InvalidData, match="groups"):
        classifier.fit(X, y, groups=groups[:5], reference=own)
    with pytest.raises(InvalidParameter, match="reference_labels"):
        LocalAdaBoostClassifier(random_state=0).fit(X, y, groups=groups, reference=own)
    with pytest.raises(InvalidData, match="reference"):
        classifier.fit(X, y, groups=groups, reference=own[:, :2])


@parametrize_with_checks(
    [
        LocalGradientBoostingClassifier(random_state=0),
        LocalGradientBoostingClassifier(2.0, feature_ranges=(-10, 10), n_rounds=3, random_state=0),
        LocalAdaBoostClassifier(2.0, validation="feedback", n_rounds=3, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:too few people")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("rule", ["gradient", "statistic"])
def test_a_study_is_planned_as_it_is_fitted(rule) -> None:
    """From public facts alone: whoever plans for owners elsewhere holds the study of `fit`."""
    rng = np.random.default_rng(0)
    X, reference = rng.normal(size=(120, 2)), rng.normal(size=(50, 2))
    y, labels = (X[:, 0] > 0).astype(int), (reference[:, 0] > 0).astype(int)
    public = {"feature_ranges": [(-3, 3)] * 2, "classes": [0, 1], "rows_per_owner": 2}
    known = {"reference": reference, "reference_labels": labels}
    classifier = boosting(rule, 4.0, n_rounds=2, random_state=1, **public)
    planned = classifier.planned(60, **known)
    assert not hasattr(classifier, "n_features_in_")  # nothing is left of it
    classifier.fit(X, y, groups=np.repeat(np.arange(60), 2), **known)
    assert planned.to_dict() == classifier.plan_.to_dict()
    for name in public:
        with pytest.raises(InvalidParameter, match=f"{name} must be given, because no rows"):
            classifier.set_params(**{name: None}).planned(60)
        classifier.set_params(**public)
