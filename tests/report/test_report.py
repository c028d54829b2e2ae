"""One form of report: every door writes it, and it says what was spent and what it is worth."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from pages import EVIL, MARKUP, checked, record

import dpfda
from dpfda import Ledger
from dpfda.errors import InvalidParameter
from dpfda.estimators.study_report import LEFT_OUT
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.report import Contents, Picture, Report, Table
from dpfda.report.contents import Drawn
from dpfda.report.report import SIMULATED, guarantee_in_words, guessing_bound

N = 600
T = np.linspace(0, 1, 12)
RNG = np.random.default_rng(0)
CURVES = np.sin(3 * T) + RNG.normal(0, 0.3, (N, 1)) + RNG.normal(0, 0.05, (N, 12))
CLASSES = ("a", MARKUP)
LABELS = np.array(CLASSES)[(CURVES[:, 4] > 0.9).astype(int)]
KNOWN: dict[str, Any] = {"value_range": (-2, 3), "random_state": 0}
TARGET = {"target_range": (-3, 3)}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_report_says_what_the_band_of_a_mean_counts(delta: float) -> None:
    mean = dpfda.PrivateMean(1.5, delta=delta, **KNOWN).fit(CURVES).release_
    assert mean.unseen.any()  # what clipping and left-out coefficients may take off is in the band
    (note,) = mean._contents().notes
    assert "privacy noise and of what coefficients that were left out" in note
    assert "alone" not in note
    assert "not of who else might have been asked, nor of values outside the public range" in note
    assert "may miss a part" in note
    (bare,) = replace(mean, unseen=np.zeros(1))._contents().notes
    assert "of the privacy noise alone" in bare


def fitted(name: str, ledger: Ledger) -> Any:
    """A fit that spends ε = 1.5 of the ledger."""
    estimator = getattr(dpfda, name)
    given: dict[str, Any] = {"epsilon": 1.5, "ledger": ledger}
    if name == "PrivateLinearRegression":
        columns = {MARKUP: (-2, 3), "other": (-2, 3)}
        rows = {MARKUP: CURVES[:, 0], "other": CURVES[:, 5]}
        rows = pytest.importorskip("pandas").DataFrame(rows)
        how = {"feature_ranges": columns, "random_state": 0, "mechanism": "gaussian_fm"} | TARGET
        return estimator(**given, **how).fit(rows, CURVES[:, 3])
    if name == "PrivateDensity":
        return estimator(**given, feature_ranges=(-2, 3), random_state=0).fit(CURVES[:, :1])
    if name == "PrivateKernelMachine":
        how = {"feature_ranges": (-2, 3), "random_state": 0, **TARGET}
        return estimator(**given, **how).fit(CURVES[:, :1], CURVES[:, 3])
    if name == "PrivateFunctionOnScalar":
        how = {"feature_ranges": (-2, 3), **KNOWN}
        return estimator(**given, **how).fit(CURVES[:, :1], CURVES)
    if "Boost" in name:
        how = {"feature_ranges": (-2, 3), "random_state": 0}
        if name == "LocalAdaBoostClassifier":
            how["validation"] = "feedback"
        return estimator(**given, **how).fit(CURVES[:, :2], LABELS)
    if name in ("PrivateCurveRegression", "LocalCurveRegressor"):
        return estimator(**given, **KNOWN, **TARGET).fit(CURVES, CURVES[:, 3])
    if name == "PrivateGroupComparison":
        return estimator(**given, **KNOWN, groups=CLASSES).fit(CURVES, LABELS)
    if name in ("PrivateCurveClassifier", "LocalCurveClassifier", "MRMAClassifier"):
        more = {"evaluation_share": 0.2} if name.startswith("Local") else {}
        return estimator(**given, **KNOWN, classes=CLASSES, **more).fit(CURVES, LABELS)
    return estimator(**given, **KNOWN).fit(CURVES)


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made, and not painted: that is what takes time."""

    def drawn(picture: Picture, *, dark: bool = False) -> Drawn:
        assert picture.draw is not None
        figure = picture.draw()
        pyplot.close(figure)
        return Drawn(b"", float(figure.get_size_inches()[0]))

    monkeypatch.setattr(Picture, "drawn", drawn)


@pytest.mark.parametrize(
    "name",
    [
        "PrivateMean", "PrivateCovariance", "PrivateDensity", "PrivateFPCA", "PrivateMoments",
        "PrivateGroupComparison", "PrivateFunctionOnScalar", "PrivateKernelMachine",
        "PrivateLinearRegression", "PrivateCurveRegression", "PrivateCurveClassifier",
        "LocalCurveClassifier", "LocalCurveRegressor", "MRMAClassifier",
        "LocalGradientBoostingClassifier", "LocalAdaBoostClassifier",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("sketched")
def test_every_estimator_reports_what_it_spent(name: str, tmp_path: Path) -> None:
    local = name.startswith(("Local", "MRMA"))
    ledger = Ledger(1.5) if local else Ledger(1.5, limit_delta=1e-6)
    model = fitted(name, ledger)
    seen = checked(model.report(title=EVIL).write(tmp_path / "r.html").read_text(encoding="utf-8"))
    found = record(seen)
    promised = found["privacy"]
    spent = ledger.spent
    assert (promised["epsilon"], promised["delta"]) == pytest.approx((spent.epsilon, spent.delta))
    assert "ε = 1.5" in seen.words
    assert f"have spent {ledger.spent} of {ledger.limit}" in seen.words
    assert SIMULATED in seen.words
    assert seen.words.count("<script>alert(1)</script>") >= 1
    assert found["implementation"]["other_releases"] == [one.label for one in ledger.entries]
    assert found["implementation"]["method"].startswith(seen.named["method"].strip())
    assert {"picture", "pre"} <= {tag for tag, _ in seen.tags}
    assert "table" in {tag for tag, _ in seen.tags} or "Boost" in name
    assert dpfda.__version__ in seen.words


def facts(**more: Any) -> Deployment:
    promise = Guarantee(epsilon=0.7, delta=1e-6, unit="home", assumptions=("n is public",))
    known = {"product": "the mean of curves", "mechanism": "adaptive", "domain": {}}
    return Deployment(**(known | {"guarantee": promise} | more))


def test_whatever_others_wrote_is_text() -> None:
    shown = Contents(
        verdict=(EVIL,),
        doubts=(EVIL,),
        tables=(Table(headings=(EVIL,), rows=((EVIL,),), title=EVIL, note=EVIL),),
        settings={EVIL: EVIL, "range": (EVIL, EVIL)},
        notes=(EVIL, "half a letter: \ud800"),
        pictures=(Picture(caption=EVIL, svg="<svg></svg>"),),
    )
    made = facts(
        product=EVIL,
        mechanism=EVIL,
        domain={EVIL: [EVIL]},
        guarantee=Guarantee(epsilon=1.0, unit=EVIL, assumptions=(EVIL,)),
    )
    told = {"curator": EVIL, "data": EVIL, "date": "2026-01-31", "purpose": "\x7f\u2028\ufeff"}
    page = Report.of(made, shown, title=EVIL, **told).html()
    seen = checked(page)
    page.encode("utf-8")
    assert {tag for tag, _ in seen.tags} & {"img", "script", "b"} == set()
    found = record(seen)["deployment"]
    assert found["curator"] == EVIL.replace("\u202e", "\ufffd")
    assert found["intended_use"] == "\x7f\u2028\ufeff"


@pytest.mark.parametrize("missing", ["curator", "data", "date"])
def test_a_record_is_whole_or_a_draft(missing: str) -> None:
    told = {"curator": "A", "data": "B", "date": "2026-01-31"}
    del told[missing]
    with pytest.raises(InvalidParameter, match=f"^{missing} must be"):
        Report.of(facts(), Contents(), **told)


def test_a_promise_in_plain_words() -> None:
    page = checked(Report.of(facts(), Contents()).html())
    for words in (
        "ε = 0.7 and δ = 1e-06 for each home",
        "by a factor of e^ε = 2.01, and by δ = 1e-06 on top",
        "is right in 66.9 % of cases at most",
        "n is public",
        "Balle & Wang",
        "Curator, data and day of publication are missing",
    ):
        assert words in page.words
    assert SIMULATED not in page.words
    assert "next to nothing" not in page.words
    told = " ".join(guarantee_in_words(Guarantee(epsilon=800.0, model="local")))
    assert "nearly 100 %" not in told  # e^-800 is 0 in a float
    assert "So large an ε promises next to nothing." in told
    assert "Every person added the noise" in told
    assert "next to nothing" not in " ".join(guarantee_in_words(Guarantee(epsilon=4.5)))
    assert "next to nothing" in " ".join(guarantee_in_words(Guarantee(epsilon=4.6)))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.01), (3.0, 0.2)])
def test_the_best_guess_is_that_of_the_worst_mechanism(epsilon: float, delta: float) -> None:
    """The pair of laws that keeps (ε, δ) with equality, written down; the best guess on it."""
    rest = (1 - delta) / (1 + math.exp(epsilon))
    here = np.array([delta, (1 - delta) - rest, rest, 0.0])
    other = here[::-1]
    assert np.sum(np.maximum(here - math.exp(epsilon) * other, 0)) <= delta + 1e-12
    best = 0.5 * np.maximum(here, other).sum()
    assert guessing_bound(Guarantee(epsilon=epsilon, delta=delta)) == pytest.approx(best)


def test_errors_on_people_who_are_not_protected_stay_out() -> None:
    known: dict[str, Any] = {"value_range": (-2, 3), "classes": CLASSES, "evaluation_share": 0.2}
    for seed, shown in ((0, True), (None, False)):
        model = dpfda.LocalCurveClassifier(4.0, random_state=seed, **known).fit(CURVES, LABELS)
        model.evaluate(CURVES, LABELS)
        told = model._contents()
        assert ("error, private" in str(told.tables)) is shown
        said = " ".join((*told.doubts, *told.verdict, *told.notes))
        assert ("% wrong, against" in said) is shown
        assert (LEFT_OUT in told.notes) is not shown


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_means_nothing_is_called_so() -> None:
    def doubts(model: Any) -> str:
        return " ".join(model.report().contents.doubts)

    flat = np.zeros((60, 12)) + RNG.normal(0, 0.3, (60, 1))
    few = dpfda.PrivateMean(0.01, **KNOWN).fit(flat)
    assert "as wide as the public range of values, so this release says nothing" in doubts(few)
    ten = 2.2 + np.random.default_rng(0).normal(0, 0.4, (10, 12))  # far from the center
    for model, why in (
        (dpfda.PrivateMean(5.0, inference=True, **KNOWN), "too few people were asked"),
        (dpfda.PrivateMean(3.0, inference=True, **KNOWN), "noise hides the shape of the curve"),
    ):
        told = doubts(model.fit(ten))
        assert "the band is as wide as the public range of values: " in told
        assert why in told
        assert "the public center" not in told
    many = np.zeros((3000, 12)) + RNG.normal(0, 0.3, (3000, 1))
    level = dpfda.PrivateMean(1.0, **KNOWN).fit(many).report().contents
    assert "no shape of the curve was found" in " ".join(level.verdict)
    assert "found" not in " ".join(level.doubts)
    assert "found" not in doubts(dpfda.PrivateMean(5.0, **KNOWN).fit(CURVES))
    how: dict[str, Any] = {"feature_ranges": (-2, 3), "mechanism": "gaussian_fm", "random_state": 0}
    rows = RNG.normal(size=(5000, 2))
    regression = dpfda.PrivateLinearRegression(**how, target_range=(-9, 9))
    assert "may be noise alone" in doubts(regression.fit(rows, RNG.normal(size=5000)))
    assert "noise alone" not in doubts(regression.fit(rows, 3 * rows[:, 0]))
    slopes = dpfda.PrivateCurveRegression(0.2, **KNOWN, **TARGET)
    assert "no better than one number for everybody" in doubts(
        slopes.fit(CURVES, RNG.normal(size=N))
    )
    coin = np.array(["no", "yes"])[RNG.integers(2, size=N)]
    local = dpfda.LocalCurveClassifier(1.0, **KNOWN, classes=("no", "yes"), evaluation_share=0.2)
    assert "better than guessing: starting from" in doubts(local.fit(CURVES, coin))
    members = dpfda.MRMAClassifier(1.0, **KNOWN, classes=("no", "yes")).fit(CURVES, coin)
    members.evaluate(CURVES, coin)
    assert "than guessing: " in doubts(members)
    clear = np.where(CURVES[:, 4] > 0.9, "yes", "no")
    found = dpfda.LocalCurveClassifier(9.0, **KNOWN, classes=("no", "yes")).fit(CURVES, clear)
    found.evaluate(CURVES, clear)
    assert "Better than guessing" in " ".join(found.report().contents.verdict)
    assert "guessing" not in doubts(found)
    number = dpfda.LocalCurveRegressor(0.5, **KNOWN, **TARGET)
    number.fit(CURVES, RNG.normal(size=N)).evaluate(CURVES, RNG.normal(size=N))
    assert "No better than the mean" in doubts(number)
    alone = dpfda.LocalCurveClassifier(1.0, **KNOWN, classes=("no", "yes"))
    assert "its error is not known" in doubts(alone.fit(CURVES, coin))


def test_without_matplotlib_a_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    shown = Contents(pictures=(Picture.of(lambda axes: axes.plot([0, 1]), "a line"),))
    page = checked(Report.of(facts(), shown).html())
    assert "There is no picture here" in page.words


def test_a_page_can_be_read_on_a_telephone(browser: Any, tmp_path: Path) -> None:
    wide = Picture(caption="wide", draw=lambda: pyplot.subplots(figsize=(9, 3))[0])
    labels = np.where(LABELS == "a", "a", "b")
    model = dpfda.PrivateGroupComparison(1.0, **KNOWN, groups=("a", "b")).fit(CURVES, labels)
    shown = model.report().contents
    long = Table.of([{f"column {k}": 1 / (k + 3) for k in range(15)}])
    shown = replace(shown, pictures=(*shown.pictures[:1], wide), tables=(*shown.tables, long))
    path = model.moments_.report(contents=shown, title="long" * 40).write(tmp_path / "r.html")
    grounds = []
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": 390, "height": 844}, color_scheme=scheme, java_script_enabled=False
        )
        page = context.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        small = page.evaluate(
            "[...document.querySelectorAll('p, td, li, dd, h1, code')]"
            ".filter(e => parseFloat(getComputedStyle(e).fontSize) < 13).length"
        )
        assert small == 0
        sizes = page.evaluate("[...document.images].map(i => [i.naturalWidth, i.clientWidth])")
        (whole, narrow), (_, scrolled) = sizes
        # Ten points of type, at 150 dots an inch, have ten pixels or more.
        assert narrow / whole * 150 * 10 / 72 >= 10
        assert narrow <= 390 < scrolled
        cells = page.locator("td").all()
        assert all(0 <= one.bounding_box()["x"] < 390 for one in cells[:30])
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert grounds[0] != grounds[1]
