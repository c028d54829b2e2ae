"""Whether a study found anything: what its result says where the replies do not show it."""

from __future__ import annotations

_SIGNAL_SEEN = (0.25, 0.5)  # evidence below which a study found nothing, or may have


def found_nothing(evidence: float, *, constant: bool) -> list[str]:
    """That a model is, or may be, no better than guessing; nothing where it is better.

    Args:
        evidence: how likely it is that any feature goes with the label.
        constant: whether the model gives everybody the same label.

    Example:
        >>> found_nothing(0.1, constant=False)[0][:45]
        'This model is no better than guessing: that a'
        >>> found_nothing(0.9, constant=False)
        []
    """
    nothing, doubtful = _SIGNAL_SEEN
    verdict = "is"
    if evidence < doubtful:
        verdict = "is" if evidence < nothing else "may be"
        reason = f"that any feature goes with the label is {evidence:.0%} likely"
    elif constant:
        reason = "one label is so frequent that the features seen do not outweigh it"
    else:
        return []
    return [f"This model {verdict} no better than guessing: {reason}."]
