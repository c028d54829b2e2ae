"""The five messiest files for every command that reads one; the page holds what was said."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openpyxl")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def messy() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield importlib.import_module("messy")


def test_the_page_holds_what_the_tool_prints(messy: Any) -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    held = page[page.index("| command | file | options | it said |") :].partition("\n\n")[0]
    assert messy.table().splitlines() == held.splitlines()


def test_every_command_that_reads_a_file_has_five(messy: Any) -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    listed = re.search(r"`release`[^.]*? read the same files", page)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[0])) <= set(messy.COMMANDS)
    assert all(len(files) == 5 for _, files in messy.COMMANDS.values())


@pytest.mark.parametrize("name", ["release", "regress", "submit", "show", "ledger"])
def test_what_is_refused_ends_with_2(
    messy: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, options, line, code in messy.said(name):
        # No study was joined here: a curve that is read is sent nowhere.
        worked = line.startswith("read ") and name != "submit"
        assert code == (0 if worked else 2), (words, options, line)
        told = (" must be ", "Leave it out", "Leave them out", "ledger's", "lost")
        assert line.startswith("read ") or any(words in line for words in told)
