"""What a result is worth, in one word and in sentences: the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

Kind = Literal["signal", "unclear", "guessing", "center", "noise"]
_KINDS = get_args(Kind)  # from best to worst


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The judgement of one result, made from public numbers alone.

    Every document has one (`Documented.verdict`). Its sentences stand in the report, on the
    terminal and in JSON; if the kind is not ``signal`` they are warnings of the release as well.

    Attributes:
        kind: ``signal``; ``noise``, if the result is mostly noise; ``center``, if it is mostly the
            public center; ``guessing``, if it predicts no better than a constant may; ``unclear``,
            if the released numbers do not tell.
        sentences: what a reader should know of it, each with its full stop.

    Examples:
        >>> Verdict(kind="noise", sentences=("This is noise.",)).added_to(("a range is too small",))
        ('a range is too small', 'This is noise.')
        >>> Verdict(sentences=("Two groups differ.",)).added_to(())
        ()
    """

    kind: Kind = "signal"
    sentences: tuple[str, ...] = ()

    @property
    def doubted(self) -> bool:
        """Whether it is anything but a signal."""
        return self.kind != "signal"

    def added_to(self, warnings: Iterable[str]) -> tuple[str, ...]:
        """Warnings, and the sentences of a doubted result, each once."""
        return tuple(dict.fromkeys((*warnings, *(self.sentences if self.doubted else ()))))

    @property
    def findings(self) -> tuple[str, ...]:
        """The sentences, if they are no warnings."""
        return () if self.doubted else self.sentences


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Of the parts of one result: the worst kind, and all sentences.

    Examples:
        >>> worst_of([Verdict(), Verdict(kind="noise", sentences=("a.",))])
        Verdict(kind='noise', sentences=('a.',))
    """
    parts = list(verdicts)
    worst = max(parts, key=lambda part: _KINDS.index(part.kind), default=Verdict())
    return Verdict(
        kind=worst.kind, sentences=tuple(one for part in parts for one in part.sentences)
    )
