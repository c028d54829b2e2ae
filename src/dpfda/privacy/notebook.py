"""Tables for notebooks: no colors of their own, so that they fit a dark and a light theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def as_table(
    rows: Iterable[Sequence[object]], *, headings: Sequence[str] = (), note: str = ""
) -> str:
    """HTML of a table, all text escaped.

    Examples:
        >>> as_table([("ε", "1 < 2")])
        '<table><tbody><tr><td>ε</td><td>1 &lt; 2</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{head}<tbody>{body}</tbody></table>{below}"
