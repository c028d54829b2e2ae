"""Pages are templates: HTML is in no Python file, and whatever is put into a page is escaped."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest

from dpfda.collector.pages import templating

PAGES = Path(templating.__file__).parent
TEMPLATES = sorted(templating.FOLDER.glob("*.html"))


def test_no_python_file_writes_html() -> None:
    for path in PAGES.glob("*.py"):
        written = re.findall(r"</?(?:p|div|a|form|input|table|polyline)[ >]", path.read_text())
        assert written == [], path


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_escapes_and_runs_nothing(path: Path) -> None:
    source = path.read_text()
    templating.ENGINE.engine.parse(source)
    assert not re.search(r"\|\s*safe|autoescape|\bon\w+=|style=|javascript:|https?:", source)
    for script in re.findall(r"<script[^>]*>", source):
        assert " src=" in script, "the policy runs no script that is written in a page"


def test_what_is_missing_is_no_empty_place() -> None:
    with pytest.raises(jinja2.UndefinedError):
        templating.text(templating.page("login", csrf=""))
