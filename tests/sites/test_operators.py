"""What operators of sites rely on: one identity, policies, a journal that shows changes."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import pytest
from click.testing import CliRunner
from hospitals import Hospitals, inquiry, write_table

from dpfda.cli import consortium as consortium_commands
from dpfda.cli import site as site_commands
from dpfda.cli._group import dpfda as command_line
from dpfda.errors import LedgerDamaged
from dpfda.privacy.ledger import Ledger
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.plan import Plan
from dpfda.sites.shared import SharedInquiry
from dpfda.sites.site_folder import SiteFolder
from dpfda.sites.stored_files import Journal

RANGES = "age=18:100,weight=30:150,dose=0:100"
LINEAR = (
    "--ask", "linear", "--target", "dose", "--feature-ranges", "age=18:100,weight=30:150",
    "--target-range", 0, 100,
)  # fmt: skip


def run(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(command_line, [str(one) for one in arguments], input="n\n")
    assert done.exit_code == code, done.output
    return done.output


# -- the journal -------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path):
    found = Journal(tmp_path / "journal.txt")
    for number in range(4):
        found.write("asked", f"question {number}")
    return found


CHANGES = {
    "changed": (lambda lines: [*lines[:1], lines[1].replace(b"1", b"7"), *lines[2:]], 2),
    "removed": (lambda lines: [*lines[:1], *lines[2:]], 2),
    "added": (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
    "swapped": (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),
    "first removed": (lambda lines: lines[1:], 1),
    "mark changed": (lambda lines: [*lines[:3], b"0" * 32 + lines[3][32:]], 4),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_journal_shows_that_a_line_was(what, journal):
    assert journal.check()[-1] == journal.head
    change, where = CHANGES[what]
    lines = change(journal.path.read_bytes().split(b"\n")[:-1])
    journal.path.write_bytes(b"".join(line + b"\n" for line in lines))
    with pytest.raises(LedgerDamaged, match=rf"line {where} of journal\.txt does not follow"):
        journal.check()


def test_a_line_that_a_crash_cut_short_is_named_and_others_follow(journal):
    os.truncate(journal.path, journal.path.stat().st_size - 3)
    for text in ("question 4", "x" * 100_000, "question 6"):
        journal.write("asked", text)
    assert [line[-10:] for line in journal.lines][4:] == ["question 4", "x" * 10, "question 6"]
    with pytest.raises(LedgerDamaged, match=r"line 4 of journal\.txt .* cut short"):
        journal.check()


# -- sites that are asked more than once -------------------------------------------------------


@pytest.fixture
def offline(monkeypatch):
    """Commands without Flower: nobody is asked anything."""

    class NoNode:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def serve(self, guard: Any) -> None: ...

    monkeypatch.setattr(site_commands, "environment", lambda _: {})
    monkeypatch.setattr(site_commands, "Node", NoNode)


def hospital(place, name, *more, rows=40):
    write_table(place / f"{name}.csv", len(name), rows=rows)
    run("site", "init", place / name, "--name", name, "--data", place / f"{name}.csv",
        "--feature-ranges", RANGES, "--epsilon", 2, *more)  # fmt: skip
    return SiteFolder(place / name)


def planned(place, study, *more, sites=("north", "south"), epsilon=0.5):
    cards = [word for name in sites for word in ("--site", place / name / "card.json")]
    run("consortium", "plan", place / study, "--study", study, *cards, "--epsilon", epsilon,
        *LINEAR, *(more or ("--identity", place / "registry")))  # fmt: skip
    return place / study / "plan.json"


@pytest.mark.usefixtures("offline")
def test_one_identity_leads_many_studies_of_hospitals_that_pinned_it_once(tmp_path):
    north, south = hospital(tmp_path, "north"), hospital(tmp_path, "south")
    said = run("consortium", "init", tmp_path / "registry", "--name", "registry")
    card = tmp_path / "registry" / "card.json"
    assert re.search(r"coordinator registry, fingerprint [0-9a-f-]{24}", said)
    pins = ("--trust", card, "--trust", south.card_path)
    first = planned(tmp_path, "first")
    said = run("site", "serve", north.path, "--plan", first, *pins, "--agree", "policy")
    assert f"serves plan {Plan.load(first).digest[:16]}" in said
    second = planned(tmp_path, "second")  # of the same registry: nothing is pinned again
    run("site", "serve", north.path, "--plan", second, "--agree", "policy")
    assert north.config.agreed == [Plan.load(one).digest for one in (first, second)]
    assert (tmp_path / "second" / "card.json").read_bytes() == card.read_bytes()
    private = tmp_path / "second" / "private" / "identity.key"
    assert private.stat().st_mode & 0o077 == 0
    other = planned(tmp_path, "third", "--name", "registry")  # of somebody who took the name
    said = run("site", "serve", north.path, "--plan", other, "--agree", "policy", code=2)
    assert "the plan lists another key of 'registry' than the one pinned here" in said
    for more, rule in (
        ((), "--name must be given, or --identity"),
        (("--name", "r", "--identity", tmp_path / "registry"), "and not both"),
        (("--identity", tmp_path / "first" / "private"), "a folder of `dpfda consortium init`"),
    ):
        words = ("consortium", "plan", tmp_path / "x", "--study", "x", "--site", north.card_path)
        assert rule in " ".join(run(*words, "--epsilon", 1, *LINEAR, *more, code=2).split())
    said = run("consortium", "init", tmp_path / "registry", "--name", "registry", code=2)
    assert "without an identity" in said


@pytest.mark.usefixtures("offline")
def test_a_plan_that_is_refused_pins_nothing_and_leaves_a_line(tmp_path):
    policy = ("--least-together", 100, "--question", "PrivateMean", "--question",
              "PrivateLinearRegression")  # fmt: skip
    north, south = hospital(tmp_path, "north", *policy), hospital(tmp_path, "south")
    hospital(tmp_path, "east", rows=60)
    run("consortium", "init", tmp_path / "registry", "--name", "registry")
    pins = ("--trust", tmp_path / "registry" / "card.json", "--trust", south.card_path,
            "--trust", tmp_path / "east" / "card.json")  # fmt: skip

    def refused(plan, *more, rule):
        said = run("site", "serve", north.path, "--plan", plan, *pins, *more, code=2)
        assert rule in " ".join(said.split())
        assert north.config.trust == {}
        assert north.config.agreed == []
        assert f"refused   plan {Plan.load(plan).digest} of registry: " in north.journal.lines[-1]

    small = planned(tmp_path, "small")
    refused(small, "--agree", "policy", rule="hold fewer than 100 records together")
    dear = planned(tmp_path, "dear", sites=("north", "south", "east"), epsilon=3)
    refused(dear, "--agree", "policy", rule="this site cannot pay for the plan")
    plan = planned(tmp_path, "study", sites=("north", "south", "east"))
    refused(plan, rule="the plan was not signed")  # nobody typed y
    config = north.path / "site.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"PrivateLinearRegression"', '"PrivateFPCA"'), encoding="utf-8")
    refused(plan, "--agree", "policy", rule="which is not among the questions of site.toml")
    config.write_text(text, encoding="utf-8")
    run("site", "serve", north.path, "--plan", plan, *pins, "--agree", "policy")
    assert sorted(north.config.trust) == ["east", "registry", "south"]
    mark = re.search(r"5 lines, the last one marked (\w{32})", run("site", "status", north.path))
    assert mark is not None
    north.journal.write("asked", "question 0")
    said = run("site", "verify", north.path, "--mark", mark[1])
    assert f"6 lines follow from each other, the last one marked {north.journal.head}" in said
    assert "--mark must be" in run("site", "verify", north.path, "--mark", "0" * 32, code=2)
    lines = north.journal.path.read_bytes().replace(b"cannot pay", b"wants it ")
    north.journal.path.write_bytes(lines)
    assert "line 2 of journal.txt does not follow" in run("site", "verify", north.path, code=2)


def test_a_card_of_few_people_is_not_made(tmp_path):
    write_table(tmp_path / "few.csv", 0, rows=9)
    words = ("site", "init", tmp_path / "few", "--name", "few", "--data", tmp_path / "few.csv",
             "--feature-ranges", RANGES, "--epsilon", 2, "--least-rows", 10)  # fmt: skip
    said = run(*words, code=2)
    assert "data with at least 10 records (--least-rows), got fewer" in " ".join(said.split())
    assert not (tmp_path / "few" / "card.json").exists()


def test_four_studies_fit_into_the_budget_that_the_page_names():
    asked, ledger = SharedInquiry.from_dict(inquiry(600)), Ledger(2.0, limit_delta=1e-5)
    for _ in range(4):
        assert ledger.refusal(asked.facts.most) == ""
        ledger.spend(asked.conversation.event, label="a study")
    assert "does not fit into ε = 2" in ledger.refusal(asked.facts.most)


# -- a registry that stops between the result and the farewell ---------------------------------


def test_a_registry_that_stopped_before_its_farewell_ends_cleanly(tmp_path, monkeypatch):
    hospitals = Hospitals(tmp_path, sites=3, dropouts=0)

    class Carrier:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

        def __call__(self, messages: Any) -> Any:
            return hospitals.carry(messages)

        def present(self) -> list[str]:
            return [name for name in hospitals.folders if ("over", name) not in hospitals.silent]

    monkeypatch.setattr(consortium_commands, "environment", lambda _: {})
    monkeypatch.setattr(consortium_commands, "FlowerCarrier", Carrier)
    with monkeypatch.context() as dying, contextlib.suppress(KeyboardInterrupt):
        dying.setattr(Coordinator, "end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        CliRunner().invoke(command_line, ["consortium", "run", str(hospitals.folder.path)])
    assert hospitals.folder.finished
    assert not any(guard.over for guard in hospitals.guards.values())
    first, asked = hospitals.folder.result_path.read_bytes(), len(hospitals.calls)
    hospitals.silent = {("over", "h1")}  # gone
    run("consortium", "run", hospitals.folder.path, "--wait", 0.2)
    assert hospitals.folder.result_path.read_bytes() == first
    assert hospitals.calls[asked:] == [("over", "h0"), ("over", "h2")]
    assert [guard.over for guard in hospitals.guards.values()] == [True, False, True]
    said = run("consortium", "run", hospitals.folder.path, code=2)
    assert "a folder without a result" in " ".join(said.split())
