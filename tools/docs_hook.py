"""Hooks of mkdocs: a page for every name in docs/reference/index.md, and links that work on disk.

docs/reference/index.md has headings, and under each heading lines ``::: dpfda.module.Name``. The
lines become a table, and each name gets its own page in the same folder, which mkdocstrings fills
in the order of `docs_order.py`. A package or module with several classes is one page. Mechanisms
are the exception: each registered mechanism has its own page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from dpfda.mechanisms import Mechanism

INDEX = "reference/index.md"
ARCHITECTURE = "project/architecture.md"
SHOWN = re.compile(r"(?:^::: \S+\n+)+", re.MULTILINE)
"""Names that follow each other."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the navigation, part by part, below the index."""
    text = Path(config.docs_dir, INDEX).read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    below = [
        {part: [{short(path): address(path)} for path in paths(inside)]}
        for part, inside in parts.items()
    ]
    for entry in config.nav or ():
        for listed in entry.values() if isinstance(entry, dict) else ():
            if INDEX in listed:
                listed[listed.index(INDEX)] = {"Overview": INDEX}
                listed.extend(below)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and ARCHITECTURE.md of the repository's root as a page of the project."""
    root = Path(config.docs_dir).parent
    architecture = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    architecture = architecture.replace("](docs/project/", "](").replace("](docs/", "](../")
    files.append(File.generated(config, ARCHITECTURE, content=architecture))
    text = Path(config.docs_dir, INDEX).read_text(encoding="utf-8")
    for path in paths(text):
        page = (
            f"---\ntitle: {short(path)}\n---\n\n::: {path}\n    options:\n      heading_level: 1\n"
        )
        files.append(File.generated(config, address(path), content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the names of the index into tables; link what guides name, and the gallery's pages."""
    if page.file.src_uri == "gallery/index.md":
        return re.sub(r'href="(plot_\w+)"', r'href="\1.html"', markdown)
    if page.file.src_uri == INDEX:
        return SHOWN.sub(lambda found: table(found.group()), markdown + "\n")
    index = Path(config.docs_dir, INDEX).read_text(encoding="utf-8")
    if page.file.src_uri.startswith(("gallery/", "reference/")):
        return markdown
    return linked(markdown, index, source=page.file.src_uri)


def on_page_context(
    context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Any
) -> dict[str, Any]:
    """The footer leads to the glossary from every folder."""
    glossary = get_relative_url("start/glossary.html", page.url)
    config.copyright = f'Words are explained in the <a href="{glossary}">glossary</a>.'
    return context


def linked(markdown: str, index: str, *, source: str) -> str:
    """The text of a page, with a link where it first names a class that the index shows."""
    shown = [path for path in paths(index) if short(path)[0].isupper()]
    pages = {short(path): get_relative_url(address(path), source) for path in shown}

    def link(found: re.Match[str]) -> str:
        before = found.string[: found.start()]
        if found.group(1) not in pages or before.count("[") > before.count("]"):
            return found.group()  # of no page, or in a link already
        return f"[{found.group()}]({pages.pop(found.group(1))})"

    lines, code = markdown.split("\n"), False
    for place, line in enumerate(lines):
        code ^= line.lstrip().startswith("```")
        if not code and not line.startswith(("#", "    ")):
            lines[place] = re.sub(r"(?<!`)`(\w+)`(?!`)", link, line)
    return "\n".join(lines)


def paths(text: str) -> Iterator[str]:
    """Every object that is shown, by its full name."""
    for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
        if path == "dpfda.mechanisms":
            members = (Mechanism, *Mechanism.members().values())
            yield from (f"{member.__module__}.{member.__name__}" for member in members)
        else:
            yield path


def short(path: str) -> str:
    """Its last name."""
    return path.rpartition(".")[2]


def address(path: str) -> str:
    """Its page; `Forecast` and `forecast` would be one file where cases do not count."""
    folder = "reference/functions" if inspect.isfunction(named(path)) else "reference"
    return f"{folder}/{short(path)}.md"


def table(text: str) -> str:
    """What each is, and the first sentence of its guarantee."""
    lines = ["| name | what it is | guarantee |", "|---|---|---|"]
    for path in paths(text):
        told = inspect.getdoc(named(path)) or ""
        privacy = re.search(r"^Privacy:\n(.+?)(?:\. |\.$|;|\Z)", told, re.MULTILINE | re.DOTALL)
        promise = " ".join(privacy.group(1).split()) if privacy else "–"
        first = told.partition("\n\n")[0].replace("\n", " ")
        place = get_relative_url(address(path), INDEX)
        cells = (f"[{short(path)}]({place})", first, promise)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n\n"


def named(path: str) -> Any:
    """The object."""
    home, _, name = path.rpartition(".")
    return getattr(import_module(home), name, None) or import_module(path)
