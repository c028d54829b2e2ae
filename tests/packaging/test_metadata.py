"""What package indexes show, where links lead, and what the lock pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from trove_classifiers import classifiers as known_classifiers

import dpfda

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT, ROOT / "bench"]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


ADDRESS = project(ROOT)["urls"]["Repository"]


def dead(link: str) -> bool:
    """Whether a reader of a package index, who has no checkout, would get nowhere."""
    if not link.startswith(ADDRESS):
        return True
    below = re.fullmatch(r"/(?:blob|raw)/main/([^#]+)(?:#.*)?", link.removeprefix(ADDRESS))
    return link != ADDRESS and (below is None or not (ROOT / below[1]).is_file())


@pytest.mark.parametrize("folder", FOLDERS, ids=["dpfda", "bench"])
def test_every_link_leads_somewhere(folder: Path) -> None:
    links = LINK.findall((folder / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in [*links, *project(folder)["urls"].values()] if dead(link)] == []


@pytest.mark.parametrize("link", ["docs/index.md", f"{ADDRESS}/blob/main/none.md", f"{ADDRESS}x"])
def test_dead_links_are_noticed(link: str) -> None:
    assert dead(link)


def test_there_is_one_address() -> None:
    docs = (page for page in ROOT.glob("docs/**/*.md") if "gallery" not in page.parts)  # built
    pages = [*ROOT.glob("*.md"), *docs, *ROOT.glob("bench/*.*")]
    hosts = [
        found
        for page in [*pages, ROOT / "pyproject.toml"]
        for found in re.findall(r"https?://[\w.]*github[\w.]*/[\w/-]+", page.read_text("utf-8"))
    ]
    assert hosts
    assert [host for host in hosts if not host.startswith(ADDRESS)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=["dpfda", "bench"])
def test_classifiers_are_known_and_complete(folder: Path) -> None:
    told = project(folder)["classifiers"]
    assert set(told) <= known_classifiers
    for start in ("Development Status", "Intended Audience", "Operating System", "Topic", "Typing"):
        assert any(line.startswith(f"{start} ::") for line in told), start
    # The license is an SPDX expression; the two together are refused by indexes.
    assert not any(line.startswith("License ::") for line in told)
    assert project(folder)["license"] == "Apache-2.0"
    assert project(folder)["authors"]


def test_both_distributions_promise_the_same_pythons() -> None:
    first, second = (
        [line for line in project(folder)["classifiers"] if ":: Python ::" in line]
        for folder in FOLDERS
    )
    assert first == second
    assert (
        project(ROOT)["requires-python"] == project(ROOT / "bench")["requires-python"] == ">=3.11"
    )


def test_benchmarks_belong_to_this_version() -> None:
    bench = project(ROOT / "bench")
    assert bench["version"] == dpfda.__version__
    assert bench["dependencies"] == [f"dpfda[full]=={dpfda.__version__}"]
    assert (ROOT / "bench" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


LOCKS = ("constraints.txt", "constraints-federation.txt")


def requirements() -> list[tuple[str, Requirement]]:
    """What pyproject.toml names, by lock, but the extra that no target installs."""
    extras = project(ROOT)["optional-dependencies"]
    elsewhere = {"gpu", "federation"}
    named = [line for extra, lines in extras.items() if extra not in elsewhere for line in lines]
    core = project(ROOT)["dependencies"]
    found = [(LOCKS[0], line) for line in (*core, *named)]
    found += [(LOCKS[1], line) for line in (*core, *extras["federation"])]
    pairs = [(lock, Requirement(line)) for lock, line in found]
    return [(lock, requirement) for lock, requirement in pairs if requirement.name != "dpfda"]


@pytest.mark.parametrize(("lock", "requirement"), requirements(), ids=str)
def test_the_lock_pins_every_dependency_within_its_bounds(
    lock: str, requirement: Requirement
) -> None:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    pins = {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in lines)
        if version
    }
    version = pins.get(canonicalize_name(requirement.name))
    assert version is not None, "run `python tools/lock.py --keep`"
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_says_how_it_was_made_and_names_no_place(lock: str) -> None:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    header = [line for line in lines if line.startswith("#")]
    pins = lines[len(header) :]
    assert "make lock" in header[0]
    assert len(pins) > 50
    assert pins == sorted(pins, key=str.lower)
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+", pin)] == []


def test_what_runs_on_every_python_needs_the_light_extras_only() -> None:
    listed = re.search(r"^TESTS = \[(.*?)\]", (ROOT / "tools/pythons.py").read_text(), re.M | re.S)
    assert listed is not None
    heavy = {"pandas", "pyarrow", "openpyxl", "skfda", "skimage", "torch", "opendp", "mpmath"}
    for path in [*re.findall(r'"(.*?)"', listed[1]), "tests/conftest.py"]:
        text = (ROOT / path).read_text(encoding="utf-8")
        imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.M))
        assert not imported & (heavy | {"dpfda_bench"}), path
