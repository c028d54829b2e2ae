"""Every estimator that works from sums is fitted among sites, and agreed on as JSON."""

import json
from typing import Any

import numpy as np
import pytest
from summed_cases import CASES, OF_CURVES, PRICE, N, T, cases

import dpfda
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.consortium import convene
from dpfda.sites.inquiry import Inquiry
from dpfda.sites.rehearsal import rehearse


def inquiry_of(case: Any) -> Inquiry:
    name, parameters, X, _, points, _ = case
    return Inquiry(
        estimator=name,
        parameters=PRICE | parameters,
        rows=N,
        columns=tuple(map(str, range(X.shape[1]))),
        grid_points=None if points is None else tuple(points.tolist()),
    )


def tables(case: Any, cuts: Any = (700, 1900)) -> dict[str, Any]:
    _, _, X, y, _, _ = case
    ys = [None] * (len(cuts) + 1) if y is None else np.split(y, cuts)
    return dict(zip("ABCDEF", zip(np.split(X, cuts), ys, strict=True), strict=False))


@cases
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_inquiry_that_travels_is_the_same_fit(case: Any) -> None:
    name, parameters, _, _, points, left = case
    model = getattr(dpfda, name)(**PRICE, **parameters, random_state=7)
    fitted, consortium = rehearse(model, tables(case), grid_points=points, colluders=0)
    assert fitted is model
    assert consortium.noise_ratio == pytest.approx([1.0] * len(consortium.transcript), rel=1e-6)
    assert fitted.guarantee_.model == "decentralized"
    sent = json.loads(json.dumps(inquiry_of(case).to_dict()))
    coordinator, *hospitals = [Inquiry.from_dict(sent) for _ in range(4)]
    assert len({one.digest for one in (coordinator, *hospitals)}) == 1
    held = {
        site: own.records(*table)
        for own, (site, table) in zip(hospitals, tables(case).items(), strict=True)
    }
    asked = coordinator.conversation
    result, sites = convene(asked, held, source=SimulationSource(7))
    known: Any = {"transcript": sites.transcript, "guarantee": sites.guarantee(asked.guarantee)}
    again = coordinator.conclude(result, **known)
    assert np.array_equal(getattr(again, left), getattr(fitted, left))
    assert again.guarantee_ == fitted.guarantee_


@cases
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sites_learn_what_a_curator_does(case: Any) -> None:
    name, parameters, X, y, points, left = case
    model = getattr(dpfda, name)
    pooled = model(50.0, delta=1e-3, **parameters, random_state=0).fit(X, y, grid_points=points)
    among, _ = rehearse(
        model(50.0, delta=1e-3, **parameters, random_state=0), tables(case), grid_points=points
    )
    one, other = getattr(pooled, left), getattr(among, left)
    if left == "coef_" and points is T:  # of functions that tell nearly the same
        assert among.score(X, y, grid_points=T) > pooled.score(X, y, grid_points=T) - 0.02
    elif left == "components_":  # whose signs are free
        along = np.abs(np.trapezoid(one * other, T, axis=1) / np.trapezoid(one * one, T, axis=1))
        assert np.abs(along - 1).max() < 0.15
    else:
        assert np.abs(one - other).max() < 0.15 * np.abs(one).max()


def test_what_no_site_could_answer_is_refused_before_anything_is_spent() -> None:
    ledger = Ledger(2.0)
    model = dpfda.PrivateMean(1.0, delta=0, value_range=(-3, 3), ledger=ledger, random_state=0)
    with pytest.raises(InvalidParameter, match=r"sums with Gaussian noise \(delta above 0\)"):
        rehearse(model, tables(CASES["mean"]))
    assert ledger.entries == ()
    local = dpfda.LocalCurveClassifier(1.0, value_range=(-3, 3), classes=(0, 1), random_state=0)
    with pytest.raises(InvalidParameter, match=r"sums with .*LocalCurveClassifier"):
        rehearse(local, tables(CASES["mean"]))  # type: ignore[type-var]
    groups = dpfda.PrivateGroupComparison(1.0, value_range=(-3, 3), random_state=0)
    with pytest.raises(InvalidParameter, match="groups must be given, because no process sees"):
        rehearse(groups, tables(CASES["groups"]))


def test_no_site_takes_the_place_of_another_of_the_same_name() -> None:
    model = dpfda.PrivateMean(1.0, delta=1e-5, value_range=(-3, 3), random_state=0)
    rows = np.zeros((20, 5))
    with pytest.raises(InvalidData, match="sites whose names differ as text"):
        rehearse(model, {1: rows, "1": rows, 2: rows})


def test_an_inquiry_says_nothing_that_is_somebodys_own() -> None:
    known = {"estimator": "PrivateMean", "rows": 10, "columns": ("a", "b")}
    for name, value in (("ledger", None), ("random_state", 3)):
        with pytest.raises(InvalidParameter, match="each site sets its own"):
            Inquiry(**known, parameters=PRICE | OF_CURVES | {name: value})
    for wrong in ("Ledger", "LocalCurveClassifier", "os"):
        with pytest.raises(InvalidParameter, match="estimator that works from sums"):
            Inquiry(**known | {"estimator": wrong}, parameters=PRICE)
    with pytest.raises(InvalidParameter, match="sigma must be a parameter of PrivateMean"):
        Inquiry(**known, parameters=PRICE | OF_CURVES | {"sigma": 0})
    with pytest.raises(InvalidParameter, match="rows must be"):
        Inquiry(**known | {"rows": 1}, parameters=PRICE | OF_CURVES)
    one, other = (Inquiry(**known | {"rows": n}, parameters=PRICE | OF_CURVES) for n in (10, 11))
    assert one.digest != other.digest


def test_named_columns() -> None:
    import pandas as pd

    ranges = {"age": [0, 100], "sex": ["f", "m"]}
    inquiry = Inquiry(
        estimator="PrivateLinearRegression",
        parameters=PRICE | {"feature_ranges": ranges, "target_range": [0, 1]},
        rows=100,
        columns=("age", "sex"),
    )
    patients = pd.DataFrame({"sex": ["m", "f"], "age": [20.0, 30.0]})
    rows, targets, outside = inquiry.records(patients, [0.5, 1.0])
    assert not outside.any()
    assert rows.shape == (2, 2)  # age, and one column for two categories
    assert targets.tolist() == [0.5, 1.0]
    with pytest.raises(InvalidData, match="a table with the column 'sex'"):
        inquiry.records(patients[["age"]], [0.5, 1.0])
