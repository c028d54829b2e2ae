"""The documentation as people look at it: built strictly, opened from disk in a real browser.

DPFDA_SCREENSHOTS names a folder for pictures of the pages.
"""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.timeout(1200)  # a build takes minutes on a busy machine
ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(DOCS).with_suffix("").as_posix()
    for page in DOCS.rglob("*.md")
    if page.parent != DOCS / "gallery"
)
EXAMPLES = sorted(script.stem for script in (ROOT / "examples").glob("plot_*.py"))
OTHERS = [
    "project/architecture",
    "gallery/index",
    f"gallery/{EXAMPLES[0]}",
    "reference/PrivateMean",
]
SCREENSHOTS = os.environ.get("DPFDA_SCREENSHOTS")
AXE = ROOT / "clients/browser/node_modules/axe-core/axe.min.js"
ACCESSIBLE = ("index", "project/reproductions/001", "reference/PrivateMean")
OUTSIDE = """() => {
  const article = document.querySelector("article");
  const edge = article.getBoundingClientRect().right + 6;  // a word of code has a frame
  const scrolls = ".md-typeset__scrollwrap, pre, .highlight, .headerlink, .md-code__nav";
  return [...article.querySelectorAll("*")]
    .filter((one) => !one.closest(scrolls) && one.getBoundingClientRect().right > edge)
    .map((one) => one.outerHTML.slice(0, 80));
}"""
AXE_RUN = """axe.run("article", { resultTypes: ["violations"],
  // Browsers let wide tables be scrolled with the keyboard by themselves.
  rules: { "scrollable-region-focusable": { enabled: false } } })"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once, also when several processes run the tests."""
    pytest.importorskip("mkdocs", reason="the documentation's tools are not installed")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, finished = shared / "site", shared / "site-finished"
    with (shared / "site-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
            done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            finished.touch()
    return folder


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_fit_and_ask_nobody_else(site: Path, browser: Any, width: int, scheme: str) -> None:
    asked: list[str] = []
    wrong: list[tuple[str, Any]] = []
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    # An article on a wide screen has more room than a phone: what fits there fits here.
    shown = [*PAGES, *OTHERS] if width < 600 or SCREENSHOTS else [*ACCESSIBLE, *OTHERS]
    for name in shown:
        page.goto((site / f"{name}.html").as_uri(), wait_until="load")
        wrong += [(name, found) for found in looked_at(page, name)]
        if SCREENSHOTS:
            path = Path(SCREENSHOTS, f"{name.replace('/', '-')}-{width}.png")
            page.screenshot(path=str(path), full_page=True)
    page.close()
    assert wrong == []
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []


def looked_at(page: Any, name: str) -> list[Any]:
    """What a machine sees to be wrong with a page as it is shown now."""
    wrong: list[Any] = page.evaluate(OUTSIDE)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wrong.append("must be scrolled sideways")
    if name in ACCESSIBLE and AXE.is_file():
        page.add_script_tag(path=str(AXE))
        found = page.evaluate(AXE_RUN)["violations"]
        bad = [one for one in found if one["impact"] in ("serious", "critical")]
        wrong += [(one["id"], one["nodes"][0]["html"]) for one in bad]
    return wrong


class Addresses(HTMLParser):
    """What a page links to, and where it can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and key in ("href", "src"):
                self.links.append(value)
            elif value and key in ("id", "name"):
                self.places.add(value)


def broken(folder: Path) -> list[tuple[str, str]]:
    """Links within the folder that lead nowhere, by page."""
    pages = {path.resolve(): Addresses(path) for path in folder.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or path.name == "404.html":  # that one is a server's
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            theirs = place.startswith("__") or target not in pages or not place  # of the theme
            if not target.is_file() or not (theirs or place in pages[target].places):
                lost.append((path.name, link))
    return lost


def test_every_link_leads_somewhere(site: Path, tmp_path: Path) -> None:
    assert broken(site) == []
    (tmp_path / "a.html").write_text('<a id="x" href="b.html"></a><a href="#y"></a><a href="#x">')
    assert broken(tmp_path) == [("a.html", "b.html"), ("a.html", "#y")]


def test_a_class_has_a_page_that_begins_with_its_guarantee(site: Path) -> None:
    names = re.findall(r'<a href="(\w+)\.html"', (site / "reference" / "index.html").read_text())
    assert {"PrivateMean", "Person", "Laplace", "errors"} <= set(names)
    promised = 0
    for name in set(names):
        shown = (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
        text = re.sub(r"<[^>]*>", "", shown[shown.index("<article") :])
        places = [text.find(word) for word in ("Privacy", "Examples:", "Parameters:")]
        if min(places) >= 0:
            promised += 1
            assert places == sorted(places), name
    assert promised > 15
    guide = (site / "start" / "which-method.html").read_text(encoding="utf-8")
    assert '<a href="../reference/PrivateMoments.html"><code>PrivateMoments</code></a>' in guide
    assert "[<code>" not in guide  # no link within a link


def test_every_example_ran_and_can_be_had_as_a_notebook(site: Path) -> None:
    assert len(EXAMPLES) >= 16
    for name in EXAMPLES:
        notebook = json.loads((site / "gallery" / f"{name}.ipynb").read_text(encoding="utf-8"))
        cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
        code = "\n".join(line for line in "\n".join(cells).splitlines() if line[:1] != "%")
        script = ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
        assert ast.dump(ast.parse(code)) == ast.dump(ast.Module(script.body[1:], []))  # which ran
        shown = (site / "gallery" / f"{name}.html").read_text(encoding="utf-8")
        assert f"images/mkd_glr_{name}_001.png" in shown  # the picture that it drew


def test_the_search_works_from_disk(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__input").first.fill("clipping")
    found = page.locator(".md-search-result__item a")
    found.first.wait_for(state="attached", timeout=60_000)
    assert any("glossary" in link.get_attribute("href") for link in found.all())
    page.close()
