"""The documentation as people look at it: built strictly, opened from disk in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md"))
EXAMPLES = sorted(script.stem for script in (ROOT / "examples").glob("plot_*.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the documentation's tools are not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    told = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return folder


def test_pages_fit_and_ask_nobody_else(site: Path, browser: Any) -> None:
    asked: list[str] = []
    wide: list[tuple[str, int]] = []
    for width in (1280, 390):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: asked.append(str(error)))
        for name in [*PAGES, "gallery/index", f"gallery/{EXAMPLES[0]}"]:
            page.goto((site / f"{name}.html").as_uri(), wait_until="load")
            excess = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            if excess > 0:
                wide.append((name, width))
        page.close()
    assert wide == []
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []


def test_every_example_ran_and_can_be_had_as_a_notebook(site: Path) -> None:
    assert len(EXAMPLES) >= 16
    for name in EXAMPLES:
        assert (site / "gallery" / f"{name}.ipynb").is_file()
        shown = (site / "gallery" / f"{name}.html").read_text(encoding="utf-8")
        assert f"images/mkd_glr_{name}_001.png" in shown  # the picture that it drew


def test_the_search_works_from_disk(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__input").first.fill("clipping")
    found = page.locator(".md-search-result__item a")
    found.first.wait_for(state="attached", timeout=20_000)
    assert any("glossary" in link.get_attribute("href") for link in found.all())
    page.close()
