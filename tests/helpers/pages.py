"""What a browser would make of a report, and what must hold of every one."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import yaml

VOID = {"meta", "img", "source"}
MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'
EVIL = MARKUP + "\u202e\x00"


class Seen(HTMLParser):
    """Elements, each closed where it must be, and the text of those that have an id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.named: dict[str, str] = {}
        self.words = ""
        self._open: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert len(named) == len(attrs), "no attribute twice"
        self.tags.append((tag, named))
        if tag not in VOID:
            self._open.append((tag, named.get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag not in VOID
        assert self._open, f"{tag} was never opened"
        assert self._open.pop()[0] == tag, "elements are nested"

    def handle_data(self, data: str) -> None:
        if any(tag == "style" for tag, _ in self._open):
            return
        self.words += data
        for _, name in self._open:
            if name is not None:
                self.named[name] = self.named.get(name, "") + data


def checked(page: str) -> Seen:
    """A page that is valid, loads nothing, runs nothing, and has one heading."""
    assert page.startswith("<!doctype html>\n")
    seen = Seen(page)
    names = [tag for tag, _ in seen.tags]
    assert names[:2] == ["html", "head"]
    for once in ("main", "h1", "body"):
        assert names.count(once) == 1, once
    assert names[: names.index("body")].count("title") == 1
    assert not {"script", "iframe", "object", "link", "form", "base"} & set(names)
    for tag, attributes in seen.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "srcset", "href"):
            assert (attributes.get(name) or "data:image/png;base64,").startswith("data:image/png;")
        if tag == "img":
            assert attributes["alt"]
    assert not re.search(r"@import|url\(|://", re.sub('base64,[^"]*', "", page))
    assert "\u202e" not in page
    assert "\x00" not in page
    return seen


def record(seen: Seen) -> dict[str, Any]:
    """The deployment record of a page."""
    found: dict[str, Any] = yaml.safe_load(seen.named["deployment-record"])
    return found
