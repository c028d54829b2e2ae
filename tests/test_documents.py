"""Whatever was released can be saved, and read again to the bit; what is malformed is named."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import dpfda
from dpfda import PrivateMean
from dpfda.central import (
    PrivateCovariance,
    PrivateDensity,
    PrivateFunctionOnScalar,
    PrivateKernelMachine,
)
from dpfda.central.mean import FunctionMechanism
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.private_curve_classifier import PrivateCurveClassifier
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_logistic_regression import PrivateLogisticRegression
from dpfda.local.boosting.ensemble import Ensemble
from dpfda.local.boosting.model import RowModel
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.report import documents

RNG = np.random.default_rng(0)
T = np.linspace(0, 2, 12)
CURVES = np.sin(T) + 0.2 * RNG.normal(size=(400, 1))
X = RNG.uniform(-0.5, 0.5, (800, 3))
PROMISE = Guarantee(epsilon=0.5, model="local", unit="owner", assumptions=("a", "b"))
ENCODER = CurveEncoder("bspline", n_basis=4, domain_range=(0, 2))


def releases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some mechanisms add much noise, and say so
        return _releases()


def _releases() -> list[Any]:
    box = {"feature_ranges": (-1, 1), "random_state": 0}
    curves = {"bound": 2.0, "random_state": 0}
    point = X[:, 0]
    means = [
        PrivateMean(2.0, **curves, mechanism=name, delta=1e-3 * member.needs_delta)
        for name, member in FunctionMechanism.members().items()
    ]
    return [
        *(mean.fit(CURVES, grid_points=T) for mean in means),
        PrivateMean(2.0, **curves, center=0.5, delta=1e-3).fit(CURVES, grid_points=T),
        PrivateCovariance(2.0, **curves).fit(CURVES, grid_points=T),
        PrivateFunctionOnScalar(20.0, **curves, feature_ranges=(-1, 1)).fit(X[:400], CURVES),
        PrivateDensity(2.0, **box).fit(point),
        PrivateDensity(2.0, feature_ranges=[(-1, 1), (-1, 1)], random_state=0).fit(X[:, :2]),
        PrivateKernelMachine(2.0, **box, target_range=(-1, 1)).fit(point, point),
    ]


@pytest.mark.parametrize("fitted", releases(), ids=lambda model: type(model).__name__)
def test_releases_are_read_again(fitted: Any, tmp_path: Path) -> None:
    release = fitted.release_
    release.save(tmp_path / "a.json")
    again = dpfda.load(tmp_path / "a.json")
    assert again.guarantee == release.guarantee
    one, other = again.to_dict(), release.to_dict()
    np.testing.assert_allclose(one.pop("values"), other.pop("values"), atol=1e-12)
    assert one == other
    places = tuple(np.linspace(axis[0], axis[-1], 5) for axis in release.basis.grid)
    np.testing.assert_allclose(again.values(places), release.values(places), atol=1e-12)
    for here, there in zip(again.interval(0.9), release.interval(0.9), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-12)


def regressions() -> list[Any]:
    y = X @ [0.8, -0.4, 0.1]
    ranges = {"feature_ranges": (-0.5, 0.5), "random_state": 0}
    target = {"target_range": (-1, 1)}
    of_curves = PrivateCurveClassifier(2.0, encoder=ENCODER, classes=("no", "yes"), random_state=0)
    return [
        PrivateLinearRegression(2.0, feature_norm_bound=1.0, random_state=0, **target).fit(X, y),
        PrivateLinearRegression(2.0, mechanism="gaussian_fm", **ranges, **target).fit(X, y),
        PrivateLogisticRegression(2.0, classes=(0, 1), **ranges).fit(X, (y > 0).astype(int)),
        of_curves.fit(CURVES, np.where(CURVES[:, 0] > 0, "yes", "no"), grid_points=T),
    ]


@pytest.mark.parametrize("place", range(4))
def test_regressions_predict_again(place: int, tmp_path: Path) -> None:
    fitted = regressions()[place]
    new = CURVES if place == 3 else X
    fitted.model_.save(tmp_path / "a.json")
    again = dpfda.load(tmp_path / "a.json")
    np.testing.assert_array_equal(again.predict(new), fitted.predict(new))
    assert again.guarantee == fitted.guarantee_
    assert again.to_json() == fitted.model_.to_json()
    if place > 1:
        np.testing.assert_allclose(again.predict_proba(new), fitted.predict_proba(new))
    if place in (1, 2):  # in the units of the features, where nothing is clipped
        intercept, found = again.coefficients()
        line = intercept + 0.01 * X @ [one.value for one in found]
        np.testing.assert_allclose(again.decision_function(0.01 * X), line, atol=1e-12)


def test_models_are_read_again(tmp_path: Path) -> None:
    shared = {"encoder": ENCODER, "classes": ("no", "yes"), "guarantee": PROMISE}
    slopes = RNG.normal(size=(3, 4))
    models = [
        CurveModel.linear(intercept=[0.1], coefficients=slopes[:1], **shared),
    ]
    for model in models:
        model.save(tmp_path / "a.json")
        again = dpfda.load(tmp_path / "a.json")
        assert type(again) is type(model)
        assert again.guarantee == PROMISE
        kept, read = (one.predict(CURVES, grid_points=T) for one in (model, again))
        assert kept.tolist() == read.tolist()
    rows = RowModel(boosted=Ensemble.empty([(0, 1)], classes=2), classes=(0, 1), guarantee=PROMISE)
    rows.save(tmp_path / "a.json")
    assert dpfda.load(tmp_path / "a.json").predict([[0.5]]).tolist() == [1]


def changed(**fields: Any) -> str:
    document = PrivateMean(2.0, bound=2.0, random_state=0).fit(CURVES).release_.to_dict()
    return json.dumps({key: value for key, value in (document | fields).items() if value != "gone"})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `format`"),
        ('{"format": 2, "kind": "release"}', r"\$.format"),
        ('{"format": 1, "kind": "dream"}', "'dream'"),
        (changed(values="gone"), "missing required field `values`"),
        (changed(extra=1), "unknown field `extra`"),
        (changed(sensitivity="a"), r"\$.sensitivity"),
        (changed(noisy=[1.0]), "noisy must be numbers of shape"),
        (changed(coefficients=[1.0, [2.0]]), "coefficients must be numbers"),
        (changed(functions=[[1.0], [2.0, 3.0]]), "functions must be numbers"),
        (changed(guarantee={"epsilon": "much"}), r"\$.guarantee.epsilon"),
        (changed(guarantee={"epsilon": -1.0}), "epsilon must be"),
        (changed(grid_points=[[1.0, 0.0]]), "grid_points must be"),
    ],
)
def test_malformed_documents_name_the_field(document: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(document)
    with pytest.raises((InvalidData, InvalidParameter), match=message):
        dpfda.load(tmp_path / "a.json")


def test_another_kind_is_named() -> None:
    with pytest.raises(InvalidData, match=r"another kind, 'release'|unknown field"):
        CurveModel.from_json(changed())


def test_a_save_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = PrivateMean(2.0, bound=2.0, random_state=0).fit(CURVES).release_
    release.save(tmp_path / "a.json")
    before = (tmp_path / "a.json").read_text()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        release.save(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == before


def test_documents_follow_the_schema() -> None:
    schema = documents.schema()
    kinds = {part["properties"]["kind"]["const"] for part in schema["$defs"].values()
             if "format" in part.get("properties", {})}  # fmt: skip
    assert kinds == set(documents.HOMES)
    msgspec.json.encode(schema)
    jsonschema = pytest.importorskip("jsonschema_rs")
    check = jsonschema.Draft202012Validator(schema).validate
    for fitted in releases():
        check(json.loads(fitted.release_.to_json()))
    for fitted in regressions():
        check(json.loads(fitted.model_.to_json()))
    with pytest.raises(jsonschema.ValidationError):
        check(json.loads(changed(sensitivity="a")))
