"""One judge says whether a model is better than guessing, whoever replied."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from dpfda.protocol.estimate import Estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.verdict import Verdict, _by_judges, judged

SAID = "no better than guessing"


@pytest.mark.parametrize(
    ("evidence", "constant", "told"),
    [(0.32, False, f"is {SAID}"), (0.34, False, f"may be {SAID}"), (0.88, False, ""),
     (0.86, False, f"may be {SAID}"), (0.95, True, f"is {SAID}: one label")],
)  # fmt: skip
def test_what_replies_say_that_the_model_was_learnt_from(
    evidence: float, constant: bool, told: str
) -> None:
    found = judged(evidence, n_classes=2, constant=constant)
    assert told in found.told
    assert found.nothing == bool(told) == bool(found.told)


@pytest.mark.parametrize(
    ("error", "guessing", "told", "nothing"),
    [
        ((0.1, 0.05), (0.4, 0.1), "This model is better than guessing.", False),
        ((0.1, 0.05), (0.2, 0.1), SAID, True),
        ((0.1, 0.05), (0.24, 0.1), "probably better", False),
        ((0.3, 0.25), (0.4, 0.1), SAID, True),
        ((0.6, 0.05), (0.3, 0.1), "worse than guessing: do not use it", True),
        ((0.47, 0.01), (0.45, 0.2), SAID, True),
        ((0.1, 0.05), None, "better than tossing a coin; how frequent labels are", False),
        ((0.5, 0.05), None, "no better than tossing a coin", True),
        ((0.5, math.inf), (0.4, 0.1), f"may be {SAID}", True),
    ],
)  # fmt: skip
def test_what_people_say_who_judge_the_finished_model(
    error: tuple[float, float], guessing: tuple[float, float] | None, told: str, nothing: bool
) -> None:
    """Who knows the labels' shares badly must not call a model better than the most frequent."""
    stated, beside = (
        None if pair is None else Estimate(pair[0], pair[1] / 1.96, 9) for pair in (error, guessing)
    )
    found = judged(None, n_classes=2, error=stated, guessing=beside)
    assert told in found.told
    assert found.nothing is nothing


def test_both_have_their_say_in_one_sentence() -> None:
    """No page says that a model is better and that it may not be."""
    good, fair = Estimate(0.2, 0.04, 900), Estimate(0.4, 0.02, 900)
    assert not judged(0.5, n_classes=2, error=good, guessing=fair).nothing
    unsure = judged(1e-4, n_classes=2, error=good, guessing=fair)
    odds = math.log(1e-4 / (1 - 1e-4)) + _by_judges(good, fair)
    assert f"{expit(odds):.0%} likely that it is better" in unsure.told
    assert unsure.nothing


def test_judges_weigh_as_much_as_their_likelihood_says() -> None:
    """An error anywhere below guessing's, against guessing's own: by quadrature."""
    error, guessing = Estimate(0.3, 0.06, 100), Estimate(0.4, 0.03, 100)
    noise = math.hypot(0.06, 0.03)
    grid = np.linspace(0, 0.4, 20_001)
    ratio = norm.pdf(0.3, grid, noise).mean() / norm.pdf(0.3, 0.4, noise)
    assert _by_judges(error, guessing) == pytest.approx(math.log(ratio), abs=1e-3)
    worse = Estimate(0.45, 0.06, 100)  # not the better explained the farther above
    ratio = norm.pdf(0.45, grid, noise).mean() / norm.pdf(0, 0, noise)
    assert _by_judges(worse, guessing) == pytest.approx(math.log(ratio), abs=1e-3)


def test_of_several_classes_a_coin_is_wrong_more_often() -> None:
    found = judged(None, n_classes=4, error=Estimate(0.6, 0.02, 900))
    assert found.told.startswith("This model is better than tossing a coin")


def test_findings_say_the_verdict_where_it_is_that_nothing_was_found() -> None:
    known = {"classes": ("no", "yes"), "phases": (), "notes": ["A note."]}
    assert Findings(**known).said == ["A note."]
    assert Findings(**known, evidence=0.99).said == ["A note."]
    told = Findings(**known, evidence=0.2).said
    assert told[0] == "A note."
    assert SAID in told[1]
    good = Estimate(0.1, 0.01, 900)
    found = Findings(**known, evidence=0.9, error=good, guessing=Estimate(0.4, 0.01, 90))
    assert found.said == ["A note."]
    assert found.verdict.told == "This model is better than guessing."
    assert Findings(classes=(), phases=(), error=good).verdict == Verdict()
