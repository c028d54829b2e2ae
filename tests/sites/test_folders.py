"""What sites and coordinators keep and print: cards, plans, answers, and the commands for them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re

import msgspec
import pytest
from click.testing import CliRunner
from hospitals import Hospitals, inquiry, write_table

from dpfda.central.queries import BallMean
from dpfda.cli._group import dpfda as command_line
from dpfda.errors import InvalidData, InvalidParameter, LedgerDamaged, ProtocolError
from dpfda.privacy.cost import Cost
from dpfda.protocol.secure_sum import Identity
from dpfda.sites.identity import Card, new_node_key, node_public
from dpfda.sites.messages import SiteAnswer
from dpfda.sites.plan import Plan
from dpfda.sites.site_folder import SiteConfig, SiteFolder
from dpfda.sites.stored_files import Journal, kept_identity
from dpfda.sites.study_folder import StudyFolder, read_card
from dpfda.sites.sums import length

RANGES = "age=18:100,weight=30:150,dose=0:100"


def run(*arguments):
    done = CliRunner().invoke(command_line, [str(one) for one in arguments])
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that ended; nothing here changes it."""
    hospitals = Hospitals(tmp_path_factory.mktemp("study"), sites=3, dropouts=0)
    hospitals.coordinator().run()
    return hospitals


# -- cards and plans ---------------------------------------------------------------------------


def test_a_card_that_was_changed_is_not_read(tmp_path):
    card = Card.signed_by(Identity(), name="north", rows=400)
    for name, content in (
        ("rows", msgspec.structs.replace(card, rows=40)),
        ("key", msgspec.structs.replace(card, key=Identity().public.hex())),
        ("short", msgspec.structs.replace(card, key="ab")),
    ):
        path = tmp_path / f"{name}.json"
        path.write_bytes(msgspec.json.encode(content))
        with pytest.raises(ProtocolError, match="card of 'north' is not signed by its key"):
            read_card(path)
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidParameter, match="a card"):
        read_card(tmp_path / "other.json")
    (tmp_path / "hex.json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(card, signature="no"))
    )
    with pytest.raises(ProtocolError, match="hexadecimal digits"):
        read_card(tmp_path / "hex.json")


def test_a_fingerprint_is_eighty_bits_of_the_key():
    card = Card.signed_by(Identity(), name="north")
    assert re.fullmatch("[0-9a-f]{4}(-[0-9a-f]{4}){4}", card.fingerprint)
    digest = hashlib.sha256(bytes.fromhex(card.key)).hexdigest()
    assert digest.startswith(card.fingerprint.replace("-", ""))


@pytest.mark.parametrize("name", ["", "  ", " x", "x" * 61, "病" * 21, "two\nlines"])
def test_a_name_is_a_name_whoever_signs_it(name):
    with pytest.raises(InvalidParameter, match="name must be a name of at most 60 bytes"):
        Card.signed_by(Identity(), name=name)
    itself = Identity()
    card = Card(name=name, key=itself.public.hex())
    card = msgspec.structs.replace(card, signature=itself.sign(card.content).hex())
    with pytest.raises(InvalidParameter, match="name must be"):
        card.check()


def test_what_others_are_called_leaves_a_site_readable(tmp_path):
    """A name outside the first plane, as many a card may have it; a delete in a category."""
    write_table(tmp_path / "table.csv", 0)
    config = SiteConfig(
        name="nörd", data="table.csv", epsilon=1.0, delta=0.0, ranges={"age": ["\x7f", '\x01"\n']}
    )
    folder = SiteFolder.begin(tmp_path, config)
    folder.pin([Card.signed_by(Identity(), name="south 🏥")])
    assert list(folder.config.trust) == ["south 🏥"]
    assert folder.config.ranges == config.ranges


def test_what_cannot_be_read_again_is_not_written(tmp_path):
    write_table(tmp_path / "table.csv", 0)
    given = {"name": "n", "data": "table.csv", "epsilon": 1.0, "delta": 0.0}
    with pytest.raises(InvalidData, match=r"site\.toml must be a site's configuration"):
        SiteFolder.begin(tmp_path, SiteConfig(**given, ranges={"age": [0.0, float("inf")]}))
    assert not (tmp_path / "site.toml").exists()
    folder = SiteFolder.begin(tmp_path, SiteConfig(**given, ranges={"age": [0.0, 1.0]}))
    (tmp_path / "site.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(InvalidData, match=r"site\.toml must be a site's configuration"):
        _ = folder.config


def test_a_name_of_any_letters_names_files(tmp_path):
    folder, name = StudyFolder(tmp_path), "病" * 20
    folder.keep_agreement(Card.signed_by(Identity(), name=name).name, b"signature")
    assert folder.agreed == [name]


def test_what_is_too_long_for_a_journal_stands_there_by_its_hash(tmp_path):
    journal, most = Journal(tmp_path / "journal.txt"), 1 << 20
    for end in "ab":
        journal.write("asked", "x" * most + end)
    journal.write("asked", "x" * most)
    first, second, third = (line[31:] for line in journal.lines)
    digest = hashlib.sha256(b"x" * most + b"a").hexdigest()
    assert first == "x" * most + f"… SHA-256 of {most + 1} letters: {digest}"
    assert first != second
    assert third == "x" * most


def test_a_journal_line_is_whole_or_nothing_leaves(tmp_path, monkeypatch):
    """A disk that is nearly full takes a part of what is written."""
    journal, write = Journal(tmp_path / "journal.txt"), os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:7]))
    journal.write("leaves", "share: sealed shares")
    journal.write("leaves", "mask: numbers under masks")
    assert [line[21:] for line in journal.lines] == [
        "leaves    share: sealed shares", "leaves    mask: numbers under masks",
    ]  # fmt: skip


def test_plans_of_impossible_sites_are_refused(finished):
    identity, body = finished.folder.identity, finished.plan.body
    first, second, third = body.sites

    def signed(**changes):
        return Plan.signed_by(identity, msgspec.structs.replace(body, **changes))

    for study in ("", " ", "a\nb", "x" * 201):
        with pytest.raises(InvalidParameter, match="study must be a name"):
            signed(study=study)
    twin = Identity()
    same = Card.signed_by(twin, name="h2", node=second.node, rows=200)
    with pytest.raises(InvalidParameter, match="different for every site"):
        signed(sites=(first, second, same))
    absent = Card.signed_by(twin, name="h2", node="", rows=200)
    with pytest.raises(InvalidParameter, match="different for every site"):
        signed(sites=(first, second, absent))
    spaced = second.node.replace(" ", "  ")  # the same key, written in another way
    for node in ("no key", spaced, second.node + "\n", "ecdsa-sha2-nistp384 "):
        odd = Card.signed_by(twin, name="h2", node=node, rows=200)
        with pytest.raises(InvalidParameter, match="different for every site"):
            signed(sites=(first, second, odd))
    node = node_public(new_node_key())
    empty = Card.signed_by(twin, name="h2", node=node, rows=0)
    with pytest.raises(InvalidParameter, match="rows of 'h2' must be"):
        signed(sites=(first, second, empty), inquiry=inquiry(400))
    stranger = msgspec.structs.replace(
        Card.signed_by(twin, name="h2", node=node, rows=200), app=second.app, signature=""
    )
    stranger = msgspec.structs.replace(stranger, signature=twin.sign(stranger.content).hex())
    with pytest.raises(ProtocolError, match="'h2' signs the Flower app of another"):
        signed(sites=(first, second, stranger))
    with pytest.raises(InvalidParameter, match="the owner of the key that signs the plan"):
        Plan.signed_by(twin, body)
    assert third.name == "h2"


def test_questions_that_are_no_gaussian_sums_have_no_length():
    pure = BallMean(cost=Cost(epsilon=1.0), n=5, center=[0.0], axes=[1.0], radius=1.0)
    with pytest.raises(ProtocolError, match="sums with Gaussian noise"):
        length(pure)


# -- the coordinator's folder ------------------------------------------------------------------


def test_answers_are_kept_once(finished):
    told = finished.folder.answer(0, SiteAnswer)
    with pytest.raises(ProtocolError, match="question 0 has an answer already"):
        finished.folder.keep(0, told)
    assert finished.folder.answer(7, SiteAnswer) is None


def test_a_kept_answer_is_to_its_question(tmp_path):
    hospitals = Hospitals(tmp_path, sites=3, dropouts=0)
    hospitals.coordinator().run()
    path = hospitals.folder.path / "answers" / "0000.json"
    path.write_bytes(
        path.read_bytes().replace(hospitals.folder.answer(0, SiteAnswer).question.encode(), b"0")
    )
    with pytest.raises(ProtocolError, match="stored answer to question 0 belongs to another"):
        hospitals.coordinator().run()
    path.write_bytes(b"{")
    with pytest.raises(LedgerDamaged, match=r"0000\.json is not an answer"):
        hospitals.coordinator().run()


def test_a_plan_in_somebody_elses_folder_is_refused(finished, tmp_path):
    folder = StudyFolder(tmp_path)
    with pytest.raises(InvalidParameter, match="dpfda consortium plan"):
        folder.plan()
    folder.begin(finished.plan)
    with pytest.raises(ProtocolError, match="names another coordinator's key"):
        folder.plan()


def test_a_key_that_is_none_is_not_replaced(tmp_path):
    key = tmp_path / "identity.key"
    key.write_bytes(b"short")
    key.chmod(0o640)
    with pytest.raises(ProtocolError, match="may be read by others: chmod 600 identity"):
        kept_identity(key)
    key.chmod(0o600)
    with pytest.raises(ProtocolError, match="not an identity key"):
        kept_identity(key)


# -- commands ----------------------------------------------------------------------------------


def test_init_and_status(tmp_path):
    write_table(tmp_path / "t.csv", 0)
    given = ["--name", "north", "--data", tmp_path / "t.csv", "--epsilon", 2, "--confirm"]
    code, said = run("site", "init", tmp_path / "north", *given, "--feature-ranges", RANGES)
    assert code == 0, said
    assert "site north: 200 rows, fingerprint" in said
    code, said = run("site", "status", tmp_path / "north")
    assert code == 0
    assert "trusts nobody yet" in said
    assert "of ε = 2" in said
    assert 'ask = "every question"' in (tmp_path / "north" / "site.toml").read_text()
    code, said = run("site", "init", tmp_path / "north", *given, "--feature-ranges", RANGES)
    assert (code, "one without a site" in said) == (2, True)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o770)
    code, said = run("site", "init", tmp_path / "open", *given, "--feature-ranges", RANGES)
    assert (code, "a folder that only you can write to" in said) == (2, True)
    refused = {
        "0:1": "by their names",
        "height=0:3": "about columns of",
        "none.json": "--feature-ranges must be a file that can be read (No such file",
        "age=18;99": "--feature-ranges must be like 0:1",
        "age=100:18": "--feature-ranges['age'] must be a pair (low, high)",
    }
    for ranges, reason in refused.items():
        code, said = run("site", "init", tmp_path / "x", *given, "--feature-ranges", ranges)
        assert (code, reason in said) == (2, True), said
    assert not (tmp_path / "x" / "site.toml").exists()
    code, said = run("site", "status", tmp_path / "nowhere")
    assert (code, "dpfda site init" in said) == (2, True)


def test_status_says_how_far_questions_came(finished):
    code, said = run("site", "status", finished.folders["h0"].path)
    assert code == 0
    assert "question 1: in an opened sum" in said
    assert "doses" in said
    assert "trusts h1, h2, registry" in said
    code, said = run("consortium", "status", finished.folder.path)
    assert code == 0
    assert "h0: signed" in said
    assert "question 0: answered by 3 sites, 1 attempts" in said
    assert "not finished" in said  # the command writes the result


@pytest.mark.skipif(importlib.util.find_spec("flwr") is not None, reason="Flower is here")
def test_without_flower_it_says_what_to_install(finished):
    path = finished.folder.plan_path
    for command in (
        ["consortium", "run", finished.folder.path],
        ["site", "serve", finished.folders["h0"].path, "--plan", path],
    ):
        code, said = run(*command)
        assert (code, "pip install 'dpfda[federation]'" in said) == (2, True), said
