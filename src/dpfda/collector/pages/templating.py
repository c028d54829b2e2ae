"""Templates of the pages: a designer changes them without Python.

Whatever is put into one is escaped, and a name that is missing is an error, not an empty place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.response import Template

FOLDER = Path(__file__).parent / "templates"


def show(value: Any) -> str:
    """A cell: three digits after the point, a dash for nothing.

    Examples:
        >>> show(0.25), show(None), show(True), show("a")
        ('0.250', '–', 'yes', 'a')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


_environment = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_environment.filters["show"] = show
ENGINE = JinjaTemplateEngine.from_environment(_environment)


def page(name: str, *, status: int = 200, **context: Any) -> Template:
    """A page of the template of this name; the framework fills it in."""
    return Template(f"{name}.html", context=context, media_type=MediaType.HTML, status_code=status)


def text(shown: Template) -> str:
    """The same page now.

    Examples:
        >>> '<h1>Sign in</h1>' in text(page("login", csrf="", wrong=False))
        True
    """
    return ENGINE.get_template(str(shown.template_name)).render(**shown.context)


def drawn(chart: str, parts: Any) -> str:
    """A picture of `charts.html` by its name, as markup.

    Examples:
        >>> from dpfda.collector.pages import charts
        >>> drawn("curve", charts.curve("<b>", [0.0, 1.0], [0.0, 2.0])).count("&lt;b&gt;")
        2
    """
    return str(getattr(_environment.get_template("charts.html").module, chart)(parts)).strip()
