"""The verdict of a study of people: whether its model is better than guessing.

Two kinds of replies contribute: those from which the model was fitted, and those of evaluation
participants, who were asked about the finished model. Each kind is one factor of the odds. There
are three verdicts: better than guessing (``signal``), no better (``guessing``), or undetermined by
the replies (``unclear``). Pages, reports, JSON and terminals print its sentences.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from scipy.special import expit, logit, ndtr

from dpfda.mechanisms.randomized_response import RandomizedResponse
from dpfda.protocol.estimate import Estimate, as_share
from dpfda.report import Verdict

_NOTHING, _DOUBTFUL, _SURE = 1 / 3, 0.87, 0.975
"""Thresholds of the probability that a model is better than guessing: no better below the first,
undetermined below the second, and better without "probably" above the third.

The first two were chosen on `dpfda bench guessing` at ε = 1. If N_eff is a few dozen, replies are
often compatible with both, and most studies without signal are undetermined.
"""
_WORTH = 1 / 3
"""Smallest share of the errors of guessing that a useful model avoids. The verdict is "no better
than guessing" only if the evaluation answers exclude such a model at 95 %."""
_LEAST = 1e-12
_COIN = "tossing a coin (how frequent the labels are was not asked)"
_MEAN = "the mean alone"


def judged(
    evidence: float | None,
    *,
    n_classes: int,
    better: float = 1.0,
    constant: bool = False,
    error: Estimate | None = None,
    guessing: Estimate | None = None,
) -> Verdict:
    """The verdict whether a classifier is better than guessing.

    Args:
        evidence: posterior probability, from the replies that the model was fitted to, that any
            feature is associated with the label, at even prior odds; None if not known.
        n_classes: the number of labels.
        better: probability that the model is better than guessing, if any feature is associated.
        constant: whether the model gives everybody the same label.
        error: error of the finished model, from evaluation participants.
        guessing: the error of always predicting the most frequent label.

    Examples:
        >>> judged(0.1, n_classes=2).kind
        'guessing'
        >>> judged(0.6, n_classes=2).kind
        'unclear'
        >>> judged(None, n_classes=2, error=Estimate(0.2, 0.03, 900)).sentences[0][:34]
        'This model is better than tossing '
    """
    said: tuple[str, ...] = ()
    if error is not None and tells_nothing(error, n_classes=n_classes):
        said, error = (cannot_tell(error),), None
    beside = "guessing"
    if error is not None and not _is_known(guessing):
        guessing, beside = Estimate(1 - 1 / n_classes, 0.0, 0), _COIN
    found = _weighed(evidence, better=better, error=error, guessing=guessing, beside=beside)
    if constant and not found.doubted:
        reason = "one label is so frequent that the features seen do not outweigh it"
        found = _no_better(f"This model is no better than {beside}: {reason}.")
    return replace(found, sentences=(*found.sentences, *said))


def judged_number(
    evidence: float | None,
    *,
    better: float = 1.0,
    error: Estimate | None = None,
    guessing: Estimate | None = None,
) -> Verdict:
    """The verdict whether a regression is better than the mean alone.

    Args:
        evidence: posterior probability, from the replies that the model was fitted to, that any
            feature is associated with the target, at even prior odds; None if not known.
        better: probability that the model is better than the mean, if any feature is associated.
        error: its root mean squared error, from evaluation participants.
        guessing: the error of the mean alone: the standard deviation of the target.

    Examples:
        >>> judged_number(0.9, error=Estimate(6, 0.4, 90), guessing=Estimate(9, 2, 90)).sentences
        ('This model is probably better than the mean alone.',)
        >>> judged_number(None).kind
        'unclear'
    """
    if not (_is_known(error) and _is_known(guessing)):
        error = guessing = None
    return _weighed(evidence, better=better, error=error, guessing=guessing, beside=_MEAN)


def _weighed(
    evidence: float | None,
    *,
    better: float,
    error: Estimate | None,
    guessing: Estimate | None,
    beside: str,
) -> Verdict:
    """Combine the evidence of both kinds of replies about a model and its baseline."""
    if evidence is None and error is None:
        return Verdict(kind="unclear")
    odds = 0.0 if evidence is None else float(logit(np.clip(evidence, _LEAST, 1 - _LEAST)))
    excluded = True
    if error is not None:
        assert guessing is not None
        if error.interval()[0] > guessing.interval()[1]:
            return _no_better(f"This model is worse than {beside}: do not use it.")
        odds += _by_evaluation(error, guessing)
        excluded = _gain(error, guessing).interval()[1] < _WORTH * guessing.value
    likely = signal = float(expit(odds))
    if error is None:
        likely *= better
    reason = (
        f"starting from 50:50, the replies make it {100 * likely:.0f} % likely that it is better"
    )
    if signal < _NOTHING and excluded:
        return _no_better(f"This model is no better than {beside}: {reason}.")
    if likely < _DOUBTFUL:
        reason = reason.replace("the replies make", "they make")
        text = f"The replies cannot tell whether this model is better than {beside}: {reason}."
        return Verdict(kind="unclear", sentences=(text,))
    if error is None:
        reason = reason.replace("it is better", f"this model is better than {beside}")
        return Verdict(sentences=(f"{reason[:1].upper()}{reason[1:]}.",))
    sure = "" if likely > _SURE else "probably "
    return Verdict(sentences=(f"This model is {sure}better than {beside}.",))


def liars_behind(error: Estimate, guessing: Estimate | None, *, epsilon: float) -> float:
    """The smallest share of lying evaluation participants that explains this error under guessing.

    Liars answer that the model is right about them. Randomized response attenuates the honest
    answers, so that fewer liars suffice if ε is smaller.

    Examples:
        >>> round(liars_behind(Estimate(0.2, 0.03, 900), Estimate(0.5, 0.02, 900), epsilon=1.0), 3)
        0.277
    """
    known = guessing if _is_known(guessing) else None
    guessed = 0.5 if known is None else known.value
    truth = 2 * RandomizedResponse(epsilon=epsilon).keep_probability - 1
    moved = 2 * truth * (guessed - error.value)
    return float(np.clip(moved / (1 - truth * (1 - 2 * guessed)), 0.0, 1.0))


def beside_liars(found: Verdict, share: float) -> Verdict:
    """A verdict with a sentence on the smallest share of liars that could have produced it.

    Examples:
        >>> beside_liars(Verdict(sentences=("It is better.",)), 0.234).sentences[1]
        'If 23 % of the participants had lied in agreement, they alone could have produced it.'
    """
    if found.doubted:
        return found
    text = f"If {max(100 * share, 1):.0f} % of the participants had lied in agreement,"
    return Verdict(
        kind=found.kind,
        sentences=(*found.sentences, f"{text} they alone could have produced it."),
    )


def unfinished(answered: int, wanted: int) -> Verdict:
    """The statement about an unfinished study, which has no verdict yet.

    Examples:
        >>> unfinished(1034, 2000).sentences
        ('So far, from 1,034 of 2,000 replies. A verdict on the model follows at the end.',)
    """
    text = f"So far, from {answered:,} of {wanted:,} replies."
    verdict = "A verdict on the model follows at the end."
    return Verdict(kind="unclear", sentences=(f"{text} {verdict}",))


def tells_nothing(error: Estimate, *, n_classes: int) -> bool:
    """Whether the interval of an error is at least as wide as from 0 to the error of a tossed coin.

    Such an error is not reported as a number.

    Examples:
        >>> tells_nothing(Estimate(5.5, 4.3, 4), n_classes=2)
        True
        >>> tells_nothing(Estimate(0.3, 0.1, 90), n_classes=2)
        False
    """
    low, high = as_share(error.interval())
    return high - low >= 1 - 1 / n_classes


def cannot_tell(error: Estimate) -> str:
    """The sentence for an error whose interval is this wide."""
    answers = "answer" if error.people == 1 else "answers"
    return f"{error.people:,} evaluation {answers} cannot tell how often the model is wrong."


def _no_better(*sentences: str) -> Verdict:
    return Verdict(kind="guessing", sentences=sentences)


def _is_known(estimate: Estimate | None) -> bool:
    return estimate is not None and bool(np.isfinite(estimate.standard_error))


def _gain(error: Estimate, guessing: Estimate) -> Estimate:
    """The error of guessing minus this error."""
    doubt = float(np.hypot(error.standard_error, guessing.standard_error))
    return Estimate(guessing.value - error.value, doubt, error.people)


def _by_evaluation(error: Estimate, guessing: Estimate) -> float:
    """Log Bayes factor of a model better than guessing against one that is not.

    If the model is better, its error is uniform between 0 and the error of guessing. If not, it is
    the error of guessing or, if larger, the estimate from the evaluation answers.
    """
    most = max(guessing.value, _LEAST)
    doubt = _gain(error, guessing).standard_error
    if not np.isfinite(doubt):
        return 0.0
    doubt = max(doubt, _LEAST)
    below, above = (most - error.value) / doubt, -error.value / doubt
    better = max(float(ndtr(below) - ndtr(above)) / most, _LEAST)
    same = -0.5 * max(below, 0.0) ** 2 - np.log(doubt * np.sqrt(2 * np.pi))
    return float(np.log(better) - same)
