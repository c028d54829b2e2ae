"""Pages are templates: HTML is in no Python file, and whatever is put into a page is escaped."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest

from dpfda import plan_study
from dpfda.collector.pages import templating
from dpfda.curves import CurveEncoder
from dpfda.local import recipe

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
        templating.text(templating.page("login", visitor=None))


def test_everything_has_a_plain_name() -> None:
    assert {*recipe._ASKED, *recipe._ASKED_OF_NUMBERS} <= set(templating._PHASES)
    two = plan_study(9, 1.0, value_range=[(0, 1), (0, 2)], classes=(0, 1)).encoder
    named = [templating.feature_name(two, place) for place in range(3)]
    assert named == ["channel 1: level", "channel 2: level", "channel 1: start versus end"]
    table = plan_study(9, 1.0, feature_ranges={"age": (18, 99), "sex": ["f", "m"]}, classes=(0, 1))
    named = [templating.feature_name(table.encoder, place) for place in range(3)]
    assert named == ["age", "sex=f", "sex=m"]
    assert templating.feature_name(CurveEncoder("bspline", n_basis=4), 1) == "bspline function 2"
    assert templating.feature_name(object(), 1) == "feature 2"
