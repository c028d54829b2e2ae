"""docs/project/reproductions: what the committed run found, and nothing else."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpfda_bench import catalog
from dpfda_bench.commands.reproduce import NO_VERDICT

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "project" / "reproductions"
AGAIN = "run `python tools/reproductions.py --page`"


@pytest.fixture(scope="module")
def tool() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("reproductions")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    text = (FOLDER / "reproductions.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def written() -> dict[str, str]:
    return {page.name: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}


def test_the_pages_are_what_the_tool_prints(tool: Any, found: dict[str, Any]) -> None:
    assert written() == tool.pages(found, tool.titles()), AGAIN


def test_every_entry_is_on_the_page_of_its_paper(found: dict[str, Any]) -> None:
    pages = written()
    text = "".join(pages.values())
    names = catalog.reproduction_names()
    covered = [other for n in names for other in getattr(catalog.reproduction(n), "COVERS", ())]
    assert [name for name in names if f"\n## {name}\n" not in pages[f"{name[:3]}.md"]] == [], AGAIN
    assert [name for name in found if name not in names] == [], AGAIN
    held = [other for entry in found.values() for other in entry["covers"]]
    assert [name for name in held if name not in covered or name not in text] == []


def test_the_run_was_of_entries_as_they_are(found: dict[str, Any]) -> None:
    """What an entry is, what it needs and what it promises was not changed after it was run."""
    for name in found:
        module = catalog.reproduction(name)
        known = {
            "title": module.TITLE,
            "covers": list(getattr(module, "COVERS", ())),
            "needs": list(module.NEEDS),
            "guarantees": module.GUARANTEES,
            "claimed": module.CLAIMED,
            "reading": module.READING,
            "full": found[name]["verdict"] != NO_VERDICT,
        }
        assert {key: found[name][key] for key in known} == known, name


def test_entries_have_their_pictures_and_reasons(found: dict[str, Any]) -> None:
    drawn = {path.stem for path in FOLDER.glob("*.png")}
    assert drawn == {name for name, entry in found.items() if entry["picture"]}
    for name, entry in found.items():
        assert entry["verdict"] in ("agrees", "differs", "not comparable", NO_VERDICT), name
        assert len(entry["why"]) > 20 or entry["verdict"] == NO_VERDICT, name
        assert entry["guarantees"], name
        assert all(len(row) == len(entry["columns"]) for row in entry["rows"]), name


def test_what_the_page_shows(tool: Any) -> None:
    entry = {
        "title": "T", "covers": ["000-table-9"], "needs": ["dti"], "verdict": "differs",
        "why": "a | b < c *", "guarantees": {"sound": "ε for one scan"}, "full": False,
        "claimed": "ε", "reading": "h = 2", "replications": 5, "took_seconds": 7.0, "commit": "abc",
        "core_seconds": 3.0,
        "figures": {"gap": 0.25}, "goals": {"gap": "at most 0.1"}, "notes": ["`x_*` * y"],
        "machine": {"python": "3", "numpy": "2"}, "picture": False,
        "columns": ["data", "method", "majority class", "error"],
        "rows": [["a", "trivial", 50.0, 0.5], ["a", "x", 40.0, 0.4], ["b", "x", 30.0, None]],
    }  # fmt: skip
    pages = tool.pages({"001-table-1": entry}, {"001-table-1": "T", "002-new": "New"})
    shown = "\n".join(pages.values())
    assert "2 entries: 1 differs, 1 not run." in shown
    assert "**differs** | a \\| b &lt; c \\* |" in shown
    assert list(pages) == ["index.md", "000.md", "001.md", "002.md"]
    assert "shown there: 000-table-9 ([001-table-1](001.md#001-table-1))." in shown
    assert "| claimed guarantee | ε |" in shown
    assert "| true guarantee, sound | ε for one scan |" in shown
    assert "*Reading.* h = 2" in shown
    assert "| run | up to 5 replications, 3 seconds of a core, commit abc |" in shown
    assert "| majority class, a | 40 to 50 |" in shown
    assert "| majority class, b | 30 |" in shown
    assert "| trivial predictor, a | 0.5 |" in shown
    assert "trivial predictor, b" not in shown
    assert "| `gap` | 0.25 | at most 0.1 |" in shown
    assert "* `x_*` \\* y" in shown
    assert "1 of them for a quick look only" in shown
    assert "## 002-new\n\nNew.\n\n**Not run**" in shown


def test_what_is_missing(tool: Any) -> None:
    entries = {"a": {"full": True}, "b": {"full": False}}
    assert tool.missing(entries, ["a", "b", "c"]) == ["b", "c"]


def test_a_report_is_kept_short(tool: Any) -> None:
    report = {"name": "a", "rows": [{"x": 0.123456}, {"x": 1.0, "y": True}], "seconds": 9}
    assert tool.kept(report) == {"columns": ["x", "y"], "rows": [[0.1235, None], [1, True]]}
