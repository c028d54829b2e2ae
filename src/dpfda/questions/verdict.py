"""Whether a study found anything: what its result says where the replies do not show it."""

from __future__ import annotations

_SIGNAL_SEEN = (1 / 3, 3 / 4)
"""Evidence below which a study found nothing, or may have.

Chosen on `dpfda bench guessing` at ε = 1. With a few dozen effective people replies often fit
both: of studies without signal most can only say that they may have found nothing."""


def found_nothing(evidence: float, *, constant: bool) -> list[str]:
    """That a model is, or may be, no better than guessing; nothing where it is better.

    Args:
        evidence: how likely it is that any feature goes with the label, if it was as likely as
            not before the replies.
        constant: whether the model gives everybody the same label.

    Examples:
        >>> found_nothing(0.1, constant=False)[0][:48]
        'This model is no better than guessing: replies m'
        >>> found_nothing(0.9, constant=False)
        []
    """
    nothing, doubtful = _SIGNAL_SEEN
    verdict = "is"
    if evidence < doubtful:
        verdict = "is" if evidence < nothing else "may be"
        reason = f"replies make it {evidence:.0%} likely that any feature goes with the label, "
        reason += "if it was 50% before"
    elif constant:
        reason = "one label is so frequent that the features seen do not outweigh it"
    else:
        return []
    return [f"This model {verdict} no better than guessing: {reason}."]
