"""How an `Outcome` is shown: table on the terminal, JSON, PNG."""

from __future__ import annotations

import io
import json
import math
import os
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.errors import MissingExtra
from dpfda.study.outcome import Outcome, columns

if TYPE_CHECKING:
    from rich.console import RenderableType


def machine() -> dict[str, Any]:
    """Where a number was measured.

    Examples:
        >>> sorted(machine())
        ['cpus', 'numpy', 'platform', 'python']
    """
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "platform": platform.platform(),
    }


def to_json(value: Any) -> str:
    """JSON text of plain values and numpy numbers; NaN and infinity become null.

    Examples:
        >>> print(to_json({"ratio": np.float64(2.0), "missing": math.nan}))
        {
          "ratio": 2.0,
          "missing": null
        }
    """
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def rows_table(outcome: Outcome, *, title: str = "") -> RenderableType:
    """The rows as a table, with the notes below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for key in columns(outcome.rows):
        told = [row[key] for row in outcome.rows if row.get(key) is not None]
        numeric = all(isinstance(value, (int, float, np.number)) for value in told)
        table.add_column(key, justify="right" if numeric else "left")
    for row in outcome.rows:
        table.add_row(*(Text(show(row.get(key))) for key in columns(outcome.rows)))
    return Group(table, *(Text(note) for note in outcome.notes))


def picture(outcome: Outcome, *, dark: bool = False) -> bytes:
    """The plot as PNG, drawn without a display."""
    assert outcome.plot is not None
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.style.context("dark_background" if dark else "default"):
        figure = outcome.plot()
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    return data.getvalue()


def show(value: Any) -> str:
    """One cell: four significant digits for a float, text as it is.

    Examples:
        >>> show(0.123456), show(3), show(None), show(math.nan), show(True), show(1234567.0)
        ('0.1235', '3', '–', '–', 'yes', '1.235e+06')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
