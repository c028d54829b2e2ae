"""Whatever the documentation shows, runs; whatever the package offers, is documented."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import click
import pytest

import dpfda
import dpfda_bench
from dpfda.checks import load_all
from dpfda.cli._group import dpfda as command_line
from dpfda.mechanisms import Mechanism
from dpfda_bench import catalog

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDES = sorted(page for page in DOCS.rglob("*.md") if page.parent != DOCS / "gallery")
PAGES = [ROOT / "README.md", *GUIDES]
load_all()
MODULES = [
    module.name
    for package in (dpfda, dpfda_bench)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


sys.path.insert(0, str(ROOT / "tools"))
from printed import Block, blocks, printed, same  # noqa: E402


def code(page: Path) -> list[Block]:
    return blocks(page.read_text(encoding="utf-8"))


def run_doctest(text: str, namespace: dict[str, object], name: str, line: int) -> None:
    example = doctest.DocTestParser().get_doctest(text, {}, name, name, line)
    example.globs = namespace
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)


@pytest.mark.flaky(reruns=1)  # without a seed, one right range in 500 is called too small
@pytest.mark.parametrize(
    "page", [p for p in PAGES if code(p)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in code(page):
        if block.is_doctest:
            run_doctest(block.code, namespace, page.name, block.line)
            continue
        output = printed(block, namespace, str(page))
        shown = block.output
        assert shown is None or same(output, shown), f"run tools/printed.py: {output}"
    shown = re.findall(r"!\[[^]]*\]\(([^):]+\.png)\)", page.read_text(encoding="utf-8"))
    assert [name for name in shown if not (page.parent / name).is_file()] == []
    drawn = [path.name for path in tmp_path.glob("*.png")]
    assert [name for name in drawn if name not in shown] == []


@pytest.mark.parametrize("name", ["dpfda", "dpfda_bench", *MODULES])
def test_examples_in_docstrings_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        failures: list[str] = []
        doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
        assert not failures, "".join(failures)


def test_a_wrong_example_is_noticed() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_doctest(">>> 1 + 1\n3\n", {}, "planted", 0)


def test_wrong_output_is_noticed() -> None:
    assert same("a [0.123, -1] b", "a  [0.124, -1]\nb")
    assert not same("a 0.12", "a 0.14")
    assert not same("12 people", "13 people")
    assert not same("better", "worse")
    text = 'x\n```python\nprint(1)\n```\n\n```text title="prints"\n2\n```\n'
    (block,) = blocks(text)
    assert block.output == "2\n"
    assert not same(printed(block, {}, "planted"), block.output)


def public_classes() -> list[type]:
    exported = [getattr(dpfda, name) for name in dpfda.__all__]
    return [thing for thing in exported if inspect.isclass(thing)]


@pytest.mark.parametrize(
    "member", [*public_classes(), *Mechanism.members().values()], ids=lambda member: member.__name__
)
def test_every_public_class_has_an_example(member: type) -> None:
    if inspect.isabstract(member) or member is Mechanism:
        pytest.skip("abstract: its subclasses show how it is used")
    assert ">>>" in (member.__doc__ or "")


def test_every_command_is_documented() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = command_line.list_commands(click.Context(command_line))
    assert commands
    assert [name for name in commands if f"`dpfda {name}" not in text] == []


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    names = [name for name in dpfda.__all__ if not name.startswith("__")]
    assert [name for name in names if not re.search(rf"^::: .*\b{name}$", text, re.M)] == [
        "Mechanism"  # shown with its whole package
    ]


def test_every_path_in_the_reference_exists() -> None:
    text = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
        home, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(home), name), path


def test_every_mechanism_is_documented() -> None:
    text = (ROOT / "docs" / "methods" / "mechanisms.md").read_text(encoding="utf-8")
    assert [name for name in Mechanism.members() if f"`{name}`" not in text] == []


def test_pages_load_nothing_from_elsewhere() -> None:
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "http" not in configuration
    assert "font: false" in configuration


def test_every_page_is_in_the_navigation() -> None:
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- (\S+\.md)$", configuration, re.MULTILINE)
    assert sorted(named) == sorted(page.relative_to(DOCS).as_posix() for page in GUIDES)


LINK = re.compile(r"\]\(([^)\s:#]+)(?:#[^)\s]*)?\)")
ARCHITECTURE = DOCS / "project" / "architecture.md"  # a copy of ARCHITECTURE.md, made by mkdocs


@pytest.mark.parametrize(
    "page", [*GUIDES, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = [(page.parent / link).resolve() for link in LINK.findall(page.read_text("utf-8"))]
    assert [path for path in targets if not path.exists() and path != ARCHITECTURE] == []


CODE = re.compile(r"`([\w/-]+\.(?:py|ts))`")


@pytest.mark.parametrize(
    "page", [*GUIDES, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_source_files_that_pages_name_exist(page: Path) -> None:
    named = [
        name for name in CODE.findall(page.read_text("utf-8")) if not re.search("NAME|NNN", name)
    ]
    homes = [ROOT, ROOT / "src", ROOT / "src" / "dpfda", ROOT / "bench"]
    places = {name: [*(home / name for home in homes)] for name in named if "/" in name}
    assert [name for name, found in places.items() if not any(f.is_file() for f in found)] == []


NAMED = re.compile(r"`([A-Z][a-z]\w+|[a-z]+_[a-z_]+)(?=[`.(])")  # a class or a function
COMMAND = re.compile(r"`dpfda (\S+?)(?: ([^`]*))?`")


def test_the_page_of_elements_names_what_exists() -> None:
    text = (DOCS / "project" / "elements.md").read_text(encoding="utf-8")
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src" / "dpfda").rglob("*.py"))
    named = set(NAMED.findall(text))
    assert len(named) > 20
    attributes = {"history_"}
    assert [
        name for name in named - attributes if not re.search(rf"(?:class|def) {name}\b", source)
    ] == []
    calls = set(COMMAND.findall(text)) - {("COMMAND", "--help")}
    assert len(calls) > 20
    context = click.Context(command_line)
    for name, words in calls:
        command = command_line.get_command(context, name)
        assert command is not None, name
        options = {option for one in command.params for option in one.opts}
        assert {word for word in words.split() if word.startswith("--")} <= options
        if name == "reproduce":
            assert words in catalog.reproduction_names()


def test_six_flows_name_fewer_than_25_files_each() -> None:
    text = (DOCS / "project" / "six-flows.md").read_text(encoding="utf-8")
    flows = text.split("\n## ")[1:]
    assert len(flows) == 6
    for flow in flows:
        named = set(re.findall(r"[\w/]+\.py", flow))
        assert len(named) < 25, flow.splitlines()[0]
        assert [name for name in named if not (ROOT / "src" / "dpfda" / name).is_file()] == []


def test_the_navigation_mirrors_the_folders() -> None:
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    parts = re.split(r"^  - (\w+):", configuration.partition("\nnav:")[2], flags=re.MULTILINE)[1:]
    for name, inside in zip(parts[::2], parts[1::2], strict=True):
        folders = {path.partition("/")[0] for path in re.findall(r"\S+/\S+\.md$", inside, re.M)}
        assert folders <= {name.lower()}


METHODS = DOCS / "methods"
CITED = re.compile(r"docs/[\w/-]+\.md")
FILE = re.compile(r"`((?:src|bench|tests|tools|clients)/[\w/.-]+\.\w+)`")
SECTIONS = ["Model", "Algorithm", "Guarantee", "Error", "Corrections", "Code", "References"]
INTRODUCTIONS = {"how-question-reports-work", "mrma", "boosting-with-data-owners", "mechanisms"}
METHOD_PAGES = [
    page for page in sorted(METHODS.glob("*.md")) if page.stem not in {"index", *INTRODUCTIONS}
]


def test_pages_that_code_cites_exist() -> None:
    sources = [path for part in ("src", "bench", "tests") for path in (ROOT / part).rglob("*.py")]
    cited = {
        (path, page) for path in sources for page in CITED.findall(path.read_text(encoding="utf-8"))
    }
    assert any(page.startswith("docs/methods/") for _, page in cited)
    missing = sorted(f"{path.name}: {page}" for path, page in cited if not (ROOT / page).is_file())
    assert missing == []


def test_no_code_cites_a_section_by_number() -> None:
    sources = [path for part in ("src", "bench", "tests") for path in (ROOT / part).rglob("*.py")]
    numbered = re.compile(r"\bmethods [§\d]")
    texts = ((path.name, path.read_text(encoding="utf-8")) for path in sources)
    assert sorted(name for name, text in texts if numbered.search(text)) == []


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_a_method_page_has_all_sections_and_names_files_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    code = text.partition("## Code")[2].partition("## References")[0]
    files = FILE.findall(text)
    assert FILE.search(code)
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert f"({page.name})" in (METHODS / "index.md").read_text(encoding="utf-8")
