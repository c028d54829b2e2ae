"""A result as one HTML file: nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from dpfda.study.outcome import Outcome, columns
from dpfda.study.results import picture, show

_STYLE = """
:root { color-scheme: light dark;
  --ink: #1c2430; --paper: #fbfbf9; --line: #d9dbd5; --soft: #5b6472; --accent: #2457a6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #14171c; --line: #343a44; --soft: #9aa4b2; --accent: #8ab4f8; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; padding: 2.5rem 1.25rem; max-width: 56rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; padding-bottom: .5rem;
  border-bottom: 3px solid var(--accent); }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .45rem .75rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
figure { margin: 1.5rem 0; }
li { margin: .3rem 0; }
"""


def write_report(outcome: Outcome, path: Path, *, title: str, caption: str = "") -> Path:
    """Write the report and return its path.

    Args:
        outcome: what to show.
        path: the HTML file; its folder is made if needed.
        title: heading of the page.
        caption: one sentence under the picture, which is also its text for screen readers.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_html(outcome, title=title, caption=caption), encoding="utf-8")
    return path


def to_html(outcome: Outcome, *, title: str, caption: str = "") -> str:
    """The page as text.

    Examples:
        >>> page = to_html(Outcome(rows=[{"name": "a < b", "error": 0.25}]), title="Result")
        >>> "a &lt; b" in page and "0.25" in page and "http" not in page
        True
    """
    figures = [{"figure": name, "value": value} for name, value in outcome.figures.items()]
    parts = [_table(outcome.rows), _picture(outcome, caption), _table(figures), _notes(outcome)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(parts)}</body>\n</html>\n"
    )


def _table(rows: list[dict[str, object]]) -> str:
    if not rows:
        return ""
    names = columns(rows)
    head = "".join(f'<th scope="col">{escape(key)}</th>' for key in names)
    cells = [[f"<td>{escape(show(row.get(name)))}</td>" for name in names] for row in rows]
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in cells)
    return (
        f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _picture(outcome: Outcome, caption: str) -> str:
    if outcome.plot is None:
        return ""
    light, dark = (_inline(picture(outcome, dark=dark)) for dark in (False, True))
    return (
        f'<figure><picture><source srcset="{dark}" media="(prefers-color-scheme: dark)">'
        f'<img src="{light}" alt="{escape(caption)}"></picture>'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def _inline(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _notes(outcome: Outcome) -> str:
    if not outcome.notes:
        return ""
    return "<ul>\n" + "".join(f"<li>{escape(note)}</li>\n" for note in outcome.notes) + "</ul>\n"
