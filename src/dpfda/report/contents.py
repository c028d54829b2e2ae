"""What a report shows of one result: words first, then numbers and pictures."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from dpfda.errors import MissingExtra
from dpfda.report.table import Table

_NARROW = 4.2, 3.2
"""Inches: with 10 points of type this can be read on a screen of 390 pixels."""


class Drawn(NamedTuple):
    """A picture as a file.

    Attributes:
        png: its bytes.
        inches: its width.
    """

    png: bytes
    inches: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Something to look at.

    Attributes:
        caption: a sentence under it, which is also its text for screen readers.
        draw: makes a matplotlib figure.
        svg: or markup, which is not escaped: it is made by templates that escape.
    """

    caption: str
    draw: Callable[[], Any] | None = None
    svg: str = ""

    @classmethod
    def of(cls, plot: Callable[[Any], Any], caption: str) -> Self:
        """Of whatever draws on matplotlib axes; their title is for those who have no caption."""

        def draw() -> Any:
            from matplotlib import pyplot

            figure, axes = pyplot.subplots(figsize=_NARROW, layout="constrained")
            plot(axes)
            axes.set_title("")
            return figure

        return cls(caption=caption, draw=draw)

    def drawn(self, *, dark: bool = False) -> Drawn:
        """The figure as PNG, drawn without a display."""
        assert self.draw is not None
        try:
            import matplotlib
        except ImportError:
            raise MissingExtra("matplotlib", "plot") from None
        matplotlib.use("Agg")
        from matplotlib import pyplot

        with warnings.catch_warnings(), pyplot.style.context(_STYLES[dark]):
            warnings.simplefilter("ignore", UserWarning)  # a page says it in words
            figure, data = self.draw(), io.BytesIO()
            inches = float(figure.get_size_inches()[0])
            figure.savefig(data, format="png", dpi=150, bbox_inches="tight")
            pyplot.close(figure)
        return Drawn(data.getvalue(), inches)


_STYLES = {False: "default", True: "dark_background"}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What one kind of result has to show.

    Attributes:
        verdict: what was found, in sentences.
        doubts: what makes it worth less, or nothing; shown before everything else.
        tables: numbers with their intervals, beside what they are to be compared with.
        pictures: of them.
        settings: every public choice, by name.
        notes: how to read all this.
    """

    verdict: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
