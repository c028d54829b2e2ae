"""Whether a study found anything: the one judge of all results, and its words.

Two kinds of replies bear on it: those that the model was learnt from, and those of people who
judged the finished model. Each has its say once, as a factor of the odds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr

from dpfda.protocol.estimate import Estimate

_NOTHING, _DOUBTFUL, _SURE = 1 / 3, 0.87, 0.975
"""Evidence below which a model is no better than guessing, or may be; and above which it is better.

The first two were chosen on `dpfda bench guessing` at ε = 1. With a few dozen effective people
replies often fit both: most studies without signal can only say that they may have found nothing.
"""
_LEAST = 1e-12


class Verdict(NamedTuple):
    """What is said of a model beside guessing.

    Attributes:
        told: a sentence; empty where there is nothing to say.
        nothing: whether the model is not known to be worth anything.
    """

    told: str = ""
    nothing: bool = False


def judged(
    evidence: float | None,
    *,
    n_classes: int,
    constant: bool = False,
    error: Estimate | None = None,
    guessing: Estimate | None = None,
) -> Verdict:
    """Whether a model is better than guessing, as far as replies show it.

    Args:
        evidence: how likely it is that any feature goes with the label, by the replies that the
            model was learnt from, if it was as likely as not before; None where they do not say.
        n_classes: how many labels there are.
        constant: whether the model gives everybody the same label.
        error: of the finished model, by people who judged it.
        guessing: the error of always naming the most frequent label.

    Examples:
        >>> judged(0.1, n_classes=2).told[:48]
        'This model is no better than guessing: replies m'
        >>> judged(0.95, n_classes=2)
        Verdict(told='', nothing=False)
        >>> judged(None, n_classes=2, error=Estimate(0.2, 0.03, 900)).told[:34]
        'This model is better than tossing '
    """
    if evidence is None and error is None:
        return Verdict()
    odds = 0.0 if evidence is None else float(logit(np.clip(evidence, _LEAST, 1 - _LEAST)))
    beside = "guessing"
    if error is not None:
        if guessing is None or not np.isfinite(guessing.standard_error):
            guessing, beside = Estimate(1 - 1 / n_classes, 0.0, 0), "tossing a coin"
            beside += "; how frequent labels are was not asked"
        if error.interval()[0] > guessing.interval()[1]:
            return Verdict(f"This model is worse than {beside}: do not use it.", True)
        odds += _by_judges(error, guessing)
    likely = float(expit(odds))
    if likely < _DOUBTFUL:
        verb = "is" if likely < _NOTHING else "may be"
        better = "that any feature goes with the label" if error is None else "that it is better"
        reason = f"replies make it {likely:.0%} likely {better}, if it was 50% before"
        return Verdict(f"This model {verb} no better than {beside}: {reason}.", True)
    if constant:
        reason = "one label is so frequent that the features seen do not outweigh it"
        return Verdict(f"This model is no better than {beside}: {reason}.", True)
    if error is None:
        return Verdict()
    return Verdict(f"This model is {'' if likely > _SURE else 'probably '}better than {beside}.")


def _by_judges(error: Estimate, guessing: Estimate) -> float:
    """How much better an error is explained by any below guessing's than by none, a logarithm.

    If the model is better, its error may be anything from 0 to guessing's. If not, it is
    guessing's, or as far above it as the judges say.
    """
    most = max(guessing.value, _LEAST)
    doubt = float(np.hypot(error.standard_error, guessing.standard_error))
    if not np.isfinite(doubt):
        return 0.0
    doubt = max(doubt, _LEAST)
    below, above = (most - error.value) / doubt, -error.value / doubt
    better = max(float(ndtr(below) - ndtr(above)) / most, _LEAST)
    same = -0.5 * max(below, 0.0) ** 2 - np.log(doubt * np.sqrt(2 * np.pi))
    return float(np.log(better) - same)
