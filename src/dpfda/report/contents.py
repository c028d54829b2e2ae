"""The contents of a report: words, tables, pictures, verdicts, and outcomes of measurements."""

from __future__ import annotations

import io
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

import msgspec
import numpy as np

from dpfda.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBER = re.compile(r"[-–+\d.,…e %∞±()\[\]]*")
_MOST = 12  # largest number of shown entries of a list


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table for readers.

    Attributes:
        headings: headings of the columns.
        rows: rows with one cell per column.
        title: title of the table.
        note: a sentence on how to read it.

    Examples:
        >>> table = Table.of([{"task": "a", "error": 3}, {"task": "b", "guessing": 50}])
        >>> table.headings, table.rows[1], table.of_numbers(1)
        (('task', 'error', 'guessing'), ('b', None, 50), True)
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""
    note: str = ""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], **more: str) -> Self:
        """A table from dictionaries; missing entries are None."""
        names = tuple(dict.fromkeys(key for row in rows for key in row))
        cells = tuple(tuple(row.get(name) for name in names) for row in rows)
        return cls(headings=names, rows=cells, **more)

    def of_numbers(self, column: int) -> bool:
        """Whether all cells of a column are numbers, or texts that look like numbers."""
        return all(_is_number(row[column]) for row in self.rows)


def _is_number(cell: object) -> bool:
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell) is not None
    numbers = (int, float, np.integer, np.floating)
    return cell is None or (isinstance(cell, numbers) and not isinstance(cell, bool))


def show(value: object) -> str:
    """The text of a cell: four significant digits for floats, other text unchanged.

    Examples:
        >>> show(0.123456), show(3), show(None), show(math.nan), show(True), show(1234567.0)
        ('0.1235', '3', '–', '–', 'yes', '1.235e+06')
        >>> show((0.0, 1 / 3)), show({"low": 0.25})
        ('(0, 0.3333)', 'low 0.25')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return show(value.tolist())
    if isinstance(value, (tuple, list)):
        shown = [show(part) for part in value[:_MOST]]
        rest = [f"… {len(value)} in all"] if len(value) > _MOST else []
        return f"({', '.join(shown + rest)})"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {show(part)}" for key, part in value.items())
    return str(value)


_NARROW = 4.2, 3.2
"""Inches; a figure of this size with 10-point text is readable on a screen of 390 pixels."""


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
    """A picture with a caption.

    Attributes:
        caption: a sentence below the picture, also used as text for screen readers.
        draw: creates a matplotlib figure.
        svg: markup instead of a figure; not escaped, because its templates escape text.
    """

    caption: str
    draw: Callable[[], Figure] | None = None
    svg: str = ""

    @classmethod
    def of(cls, plot: Callable[[Axes], object], caption: str) -> Self:
        """A picture from a function that draws on matplotlib axes."""

        def draw() -> Figure:
            from matplotlib.figure import Figure

            figure = Figure(figsize=_NARROW, layout="constrained")
            axes = figure.subplots()
            plot(axes)
            if axes in figure.axes:  # otherwise panels have replaced the axes
                axes.set_title("")
            else:
                figure.suptitle("")
            return figure

        return cls(caption=caption, draw=draw)

    def drawn(self, *, dark: bool = False) -> Drawn:
        """The figure as PNG, drawn without a display."""
        assert self.draw is not None
        try:
            import matplotlib
        except ImportError:
            raise MissingExtra("matplotlib", "plot") from None
        if "matplotlib.pyplot" not in sys.modules and "MPLBACKEND" not in os.environ:
            matplotlib.use("Agg")  # only without a notebook, which keeps its backend
        from matplotlib import pyplot

        with warnings.catch_warnings(), pyplot.style.context(_STYLES[dark]):
            warnings.simplefilter("ignore", UserWarning)  # the page states these warnings as text
            figure, data = self.draw(), io.BytesIO()
            inches = float(figure.get_size_inches()[0])
            figure.savefig(data, format="png", dpi=150, bbox_inches="tight")
            pyplot.close(figure)
        return Drawn(data.getvalue(), inches)


_STYLES = {False: "default", True: "dark_background"}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The contents of a report about one result.

    Attributes:
        verdict: the findings, in sentences.
        doubts: reasons for doubting the result; shown first.
        tables: numbers with intervals, and numbers for comparison.
        pictures: pictures of the results.
        settings: all public choices, by name.
        notes: explanations for readers.
    """

    verdict: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


Kind = Literal["signal", "unclear", "guessing", "center", "noise"]
_KINDS = get_args(Kind)  # from best to worst


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evaluation of one result, computed from public numbers only.

    Every document has one (`Documented.verdict`). The sentences are part of the report, of the
    output on the terminal and of the JSON. If the kind is not ``signal``, they are also warnings of
    the release.

    Attributes:
        kind: ``signal``; ``noise``, if the result is mostly noise; ``center``, if it is mostly the
            public center; ``guessing``, if it may predict no better than a constant; ``unclear``,
            if the released numbers do not decide.
        sentences: complete sentences about the result.

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
        """Whether the kind is not ``signal``."""
        return self.kind != "signal"

    def added_to(self, warnings: Iterable[str]) -> tuple[str, ...]:
        """The warnings and, for a doubted result, its sentences, without repetitions."""
        return tuple(dict.fromkeys((*warnings, *(self.sentences if self.doubted else ()))))

    @property
    def findings(self) -> tuple[str, ...]:
        """The sentences of a result that is not doubted; otherwise empty."""
        return () if self.doubted else self.sentences


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a result with several parts: the worst kind, and all sentences.

    Examples:
        >>> worst_of([Verdict(), Verdict(kind="noise", sentences=("a.",))])
        Verdict(kind='noise', sentences=('a.',))
    """
    parts = list(verdicts)
    worst = max(parts, key=lambda part: _KINDS.index(part.kind), default=Verdict())
    return Verdict(
        kind=worst.kind, sentences=tuple(one for part in parts for one in part.sentences)
    )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A measured result, ready to be printed as a table, as JSON and as a picture.

    Attributes:
        rows: a table, one dictionary per row; missing entries are shown as a dash.
        figures: numbers by name.
        notes: sentences that a reader of the table needs.
        plot: draws the picture and returns the matplotlib figure; None if there is none.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    plot: Callable[[], Any] | None = None

    def contents(self, *, caption: str = "", **more: object) -> Contents:
        """The contents of a report; `more` are further fields of `Contents`."""
        figures = [{"figure": name, "value": value} for name, value in self.figures.items()]
        tables = tuple(map(Table.of, filter(None, (self.rows, figures))))
        pictures = (Picture(caption=caption, draw=self.plot),) if self.plot is not None else ()
        known: dict[str, Any] = {"tables": tables, "pictures": pictures, "notes": tuple(self.notes)}
        return Contents(**(known | more))
