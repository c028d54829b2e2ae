"""Pieces of pages. Whatever is put into a page goes through `escape`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def page(title: str, body: str, *, session: bool = False, csrf: str = "") -> str:
    """A whole page."""
    links = ""
    if session:
        links = (
            '<a href="/">Studies</a><a href="/new">New study</a><a href="/interface">Interface</a>'
            f'<form method="post" action="/logout">{hidden(csrf)}'
            '<button class="quiet">Sign out</button></form>'
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} – dpfda</title>\n"
        '<link rel="stylesheet" href="/static/style.css">\n<link rel="icon" href="data:,">\n'
        '<script src="/static/script.js" defer></script>\n</head>\n<body>\n'
        f"<header><div><strong>dpfda collector</strong>{links}</div></header>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def hidden(csrf: str) -> str:
    """The field that shows a form came from here."""
    return f'<input type="hidden" name="csrf" value="{escape(csrf)}">'


def card(title: str, body: str, *, wide: bool = False) -> str:
    """A box."""
    kind = "card wide" if wide else "card"
    return f'<section class="{kind}"><h2>{escape(title)}</h2>{body}</section>'


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers to the right. A cell that is `Markup` is taken as it is."""
    body = ""
    for row in rows:
        cells = "".join(
            f'<td class="number">{escape(show(cell))}</td>'
            if isinstance(cell, (int, float)) and not isinstance(cell, bool)
            else f"<td>{cell if isinstance(cell, Markup) else escape(show(cell))}</td>"
            for cell in row
        )
        body += f"<tr>{cells}</tr>"
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="table">{whole}</div>'


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def link(address: str, text: str) -> Markup:
    """An anchor."""
    return Markup(f'<a href="{escape(address)}">{escape(text)}</a>')


def status_mark(status: str) -> Markup:
    """A study's status in its color."""
    return Markup(f'<span class="mark {escape(status)}">{escape(status)}</span>')


def show(value: Any) -> str:
    """A cell: three digits after the point, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)
