"""One judge says whether a model is better than guessing, whoever replied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from dpfda.protocol.estimate import Estimate, accuracy_estimate
from dpfda.protocol.findings import Findings
from dpfda.protocol.verdict import _by_evaluation, judged, judged_number, unfinished
from dpfda.report import Verdict

SAID = "no better than guessing"


@pytest.mark.parametrize(
    ("evidence", "constant", "kind"),
    [(0.32, False, "guessing"), (0.34, False, "unclear"), (0.88, False, "signal"),
     (0.86, False, "unclear"), (0.95, True, "guessing")],
)  # fmt: skip
def test_what_replies_say_that_the_model_was_learnt_from(
    evidence: float, constant: bool, kind: str
) -> None:
    found = judged(evidence, n_classes=2, constant=constant)
    assert found.kind == kind
    assert (SAID in found.sentences[0]) == (kind == "guessing")
    assert ("cannot tell whether" in found.sentences[0]) == (kind == "unclear")
    assert ("one label is so frequent" in found.sentences[0]) == constant


@pytest.mark.parametrize(
    ("error", "guessing", "told", "kind"),
    [
        ((0.1, 0.05), (0.4, 0.1), "This model is better than guessing.", "signal"),
        ((0.1, 0.05), (0.2, 0.1), "cannot tell", "unclear"),
        ((0.1, 0.05), (0.24, 0.1), "probably better", "signal"),
        ((0.3, 0.25), (0.4, 0.1), "cannot tell", "unclear"),
        ((0.399, 0.122), (0.377, 0.169), "cannot tell", "unclear"),
        ((0.6, 0.05), (0.3, 0.1), "worse than guessing: do not use it", "guessing"),
        ((0.47, 0.01), (0.45, 0.1), SAID, "guessing"),
        ((0.1, 0.05), None, "better than tossing a coin (how frequent the labels", "signal"),
        ((0.5, 0.05), None, "no better than tossing a coin", "guessing"),
        ((0.5, math.inf), (0.4, 0.1), "9 evaluation answers cannot tell how often", "unclear"),
        ((5.504, 8.49), (0.4, 0.1), "9 evaluation answers cannot tell how often", "unclear"),
    ],
)  # fmt: skip
def test_what_people_say_who_judge_the_finished_model(
    error: tuple[float, float], guessing: tuple[float, float] | None, told: str, kind: str
) -> None:
    """Who knows the labels' shares badly must not call a model better than the most frequent."""
    stated, beside = (
        None if pair is None else Estimate(pair[0], pair[1] / 1.96, 9) for pair in (error, guessing)
    )
    found = judged(None, n_classes=2, error=stated, guessing=beside)
    assert told in " ".join(found.sentences)
    assert found.kind == kind


def test_both_have_their_say_in_one_sentence() -> None:
    """No page says that a model is better and that it may not be."""
    good, fair = Estimate(0.2, 0.04, 900), Estimate(0.4, 0.02, 900)
    assert judged(0.5, n_classes=2, error=good, guessing=fair).kind == "signal"
    unsure = judged(1e-4, n_classes=2, error=good, guessing=fair)
    odds = math.log(1e-4 / (1 - 1e-4)) + _by_evaluation(good, fair)
    assert f"{100 * expit(odds):.0f} % likely that it is better" in unsure.sentences[0]
    assert unsure.kind == "unclear", "the evaluation answers do not exclude a useful model"


@pytest.mark.parametrize("people", [40, 300, 2000])
@pytest.mark.parametrize("gain", [0.0, 0.25])
def test_a_model_is_seldom_called_what_it_is_not(people: int, gain: float) -> None:
    """Randomized answers of evaluation participants at ε = 1, in 2000 studies each."""
    rng, q = np.random.default_rng(7), 1 / (1 + math.exp(-1))
    right = 0.5 + gain
    said = rng.binomial(people, q * right + (1 - q) * (1 - right), size=2000)
    kinds = [
        judged(None, n_classes=2, guessing=Estimate(0.5, 0.02, people), error=found).kind
        for one in said
        for found in [
            accuracy_estimate(total=2.0 * one - people, people=people, epsilon=1.0).complement()
        ]
    ]
    wrong = kinds.count("guessing" if gain else "signal") / len(kinds)
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_half_a_study_has_no_verdict() -> None:
    found = unfinished(1034, 2000)
    assert found.kind == "unclear"
    assert found.sentences[0].startswith("So far, from 1,034 of 2,000 replies.")
    assert "guessing" not in found.sentences[0]


@pytest.mark.parametrize(
    ("evidence", "error", "guessing", "kind"),
    [
        (0.9, (6.0, 0.4), (9.0, 3.0), "signal"),
        (0.3, (6.0, 0.4), (9.0, 3.0), "unclear"),
        (0.3, (6.0, 0.4), (9.0, 0.5), "signal"),
        (0.6, (9.4, 0.4), (9.0, 3.0), "unclear"),
        (0.3, (9.4, 0.4), (9.0, 0.5), "guessing"),
        (0.9, (9.4, 0.1), (5.0, 0.5), "guessing"),
        (0.6, (6.0, 0.4), (9.0, math.inf), "unclear"),
        (0.95, None, None, "signal"),
        (0.6, None, None, "unclear"),
        (0.1, None, None, "guessing"),
    ],
)
def test_numbers_have_three_verdicts_too(
    evidence: float, error: Any, guessing: Any, kind: str
) -> None:
    stated, beside = (None if one is None else Estimate(*one, 90) for one in (error, guessing))
    found = judged_number(evidence, error=stated, guessing=beside)
    assert found.kind == kind
    assert all("the mean alone" in one for one in found.sentences)
    if stated is None:  # what a model is worth counts where nobody was asked about it
        assert judged_number(evidence, better=0.5).kind != "signal"


def test_judges_weigh_as_much_as_their_likelihood_says() -> None:
    """An error anywhere below guessing's, against guessing's own: by quadrature."""
    error, guessing = Estimate(0.3, 0.06, 100), Estimate(0.4, 0.03, 100)
    noise = math.hypot(0.06, 0.03)
    grid = np.linspace(0, 0.4, 20_001)
    ratio = norm.pdf(0.3, grid, noise).mean() / norm.pdf(0.3, 0.4, noise)
    assert _by_evaluation(error, guessing) == pytest.approx(math.log(ratio), abs=1e-3)
    worse = Estimate(0.45, 0.06, 100)  # not the better explained the farther above
    ratio = norm.pdf(0.45, grid, noise).mean() / norm.pdf(0, 0, noise)
    assert _by_evaluation(worse, guessing) == pytest.approx(math.log(ratio), abs=1e-3)


def test_of_several_classes_a_coin_is_wrong_more_often() -> None:
    found = judged(None, n_classes=4, error=Estimate(0.6, 0.02, 900))
    assert found.sentences[0].startswith("This model is better than tossing a coin")


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
    assert found.verdict == Verdict(sentences=("This model is better than guessing.",))
    assert Findings(classes=(), phases=(), error=good).verdict == Verdict(kind="unclear")


def test_a_signal_is_not_enough_where_the_rule_may_be_no_better() -> None:
    """Features go with the label, but it is not known which way, or the larger class outweighs."""
    assert judged(0.99, n_classes=2).kind == "signal"
    assert judged(0.99, n_classes=2, better=0.6).kind == "unclear"
    assert judged(0.2, n_classes=2, better=0.6).kind == "guessing"
    told = judged(0.99, n_classes=2, better=0.6).sentences[0]
    assert "they make it 59 % likely that it is better" in told
    good = Estimate(0.1, 0.02, 900)
    assert judged(0.99, n_classes=2, better=0.1, error=good).kind == "signal"  # it was evaluated
