"""What a site's guard lets in and out, and which plans a site signs."""

from __future__ import annotations

import hashlib
import importlib
import tomllib
from multiprocessing import Pipe

import msgspec
import numpy as np
import pytest
from hospitals import RANGES, ROWS, Hospitals, inquiry, site_folder, write_table

from dpfda.curves.files import Reading
from dpfda.errors import DpfdaError, InvalidData, InvalidParameter, ProtocolError
from dpfda.privacy.ledger_file import FileLedger
from dpfda.protocol.query import Query
from dpfda.protocol.secure_sum import Identity
from dpfda.protocol.secure_sum.messages import RoundId
from dpfda.sites import app
from dpfda.sites.coordinator import StudyFailed
from dpfda.sites.identity import Card, node_public
from dpfda.sites.messages import Ask, Envelope, Reply, SiteAnswer, decode, encode
from dpfda.sites.node import answer
from dpfda.sites.plan import Plan
from dpfda.sites.sums import TableInquiry, same_question


@pytest.fixture
def hospitals(tmp_path):
    return Hospitals(tmp_path, sites=3, dropouts=0)


def first_question(hospitals):
    return next(hospitals.plan.inquiry.conversation.questions())


def asked(hospitals, query, *, number=0, answers=(), attempt=1, plan=None, step="advertise"):
    round_id = RoundId(stage=number, attempt=attempt, question=query.digest)
    ask = Ask(round=round_id, query=query.to_dict(), answers=answers)
    envelope = Envelope(plan=plan or hospitals.plan.digest, step=step, body=encode(ask))
    return decode(hospitals.guards["h0"].handle(encode(envelope)), Reply)


def test_only_the_plans_question_is_answered_and_paid(hospitals):
    query = first_question(hospitals)
    others = [one for member in Query.members().values() for one in member.examples()]
    for other in others:
        refused = asked(hospitals, other).refused
        assert "the plan does not ask this" in refused, other
    assert hospitals.spent("h0") == ()
    assert not asked(hospitals, query).refused
    (entry,) = hospitals.spent("h0")
    assert entry.event == query.event
    assert entry.label.startswith("doses ")


@pytest.mark.parametrize("change", ["price", "bounds", "rows"])
def test_a_question_that_is_nearly_the_plans_is_refused(hospitals, change):
    plain = first_question(hospitals).to_dict()
    if change == "price":
        plain["cost"]["epsilon"] *= 1 + 1e-9
    elif change == "bounds":
        plain["problem"]["bounds"]["radius"] *= 1 + 1e-5
    else:
        plain["problem"]["rows"] = plain["problem"]["rows"] + 1
    near = Query.from_dict(plain)
    assert "the plan does not ask this as question 0" in asked(hospitals, near).refused
    assert hospitals.spent("h0") == ()


def test_rounding_of_another_machine_is_no_other_question(hospitals):
    plain = first_question(hospitals).to_dict()
    center = np.array(plain["problem"]["bounds"]["center"])
    plain["problem"]["bounds"]["center"] = (center + 1e-12).tolist()
    near = Query.from_dict(plain)
    assert near.digest != first_question(hospitals).digest
    assert same_question(first_question(hospitals), near)


def test_told_answers_must_be_those_of_the_questions_before(hospitals):
    hospitals.coordinator().run()
    told, last = (hospitals.folder.answer(number, SiteAnswer) for number in (0, 1))
    hospitals.restart("h0")
    second = first_question(hospitals)
    replace = msgspec.structs.replace
    for wrong, reason in (
        ((), "must come with the answers to all earlier questions"),
        ((told,), "must come with the answers to all earlier questions"),
        ((replace(told, total=told.total[:-1]), last), "the length of the sum differs"),
        ((replace(told, survivors=told.survivors[:-1]), last), "at least 3 different sites"),
        ((replace(told, survivors=("h0",) * 3), last), "at least 3 different sites"),
        ((replace(told, question="0" * 64), last), "question 0 differs from"),
        ((told, last), "the plan does not ask this as question 2"),
    ):
        refused = asked(hospitals, second, number=2, answers=wrong).refused
        assert reason in refused


def test_messages_of_other_plans_and_steps_are_refused(hospitals):
    query = first_question(hospitals)
    assert "did not sign the plan" in asked(hospitals, query, plan="0" * 64).refused
    for step in ("contribute", "account", "__class__", "answer", ""):
        assert "no such step" in asked(hospitals, query, step=step).refused
    for garbage in (b"", b"\xc1", encode({"a": 1}), encode(["x"] * 3), b"\x93" * 5000):
        assert decode(hospitals.guards["h0"].handle(garbage), Reply).refused
    assert hospitals.spent("h0") == ()


def test_nothing_private_leaves_in_a_refusal_or_stands_in_the_log(hospitals):
    hospitals.coordinator().run()
    journal = hospitals.guards["h0"].journal.path.read_text(encoding="utf-8")
    table = (hospitals.folders["h0"].path / "table.csv").read_text(encoding="utf-8")
    cells = {cell for line in table.split("\n")[1:] for cell in line.split(",") if cell}
    assert not [cell for cell in cells if cell in journal]


def test_what_leaves_is_in_the_log_first(hospitals, monkeypatch):
    guard = hospitals.guards["h0"]
    monkeypatch.setattr(guard.journal, "write", lambda *_: (_ for _ in ()).throw(OSError("full")))
    monkeypatch.setattr(type(guard.journal), "lines", property(lambda self: []))
    with pytest.raises(OSError, match="full"):
        asked(hospitals, first_question(hospitals))


def test_what_left_can_be_told_from_anything_else(hospitals):
    reply = asked(hospitals, first_question(hospitals))
    assert f"({hashlib.sha256(reply.body).hexdigest()})" in hospitals.guards["h0"].journal.lines[-1]


def test_the_log_says_what_was_asked_and_what_left(hospitals):
    hospitals.coordinator().run()
    lines = [line[21:] for line in hospitals.guards["h0"].journal.lines]
    assert [line.split()[0] for line in lines] == [
        "signed", "leaves", *["asked", *["leaves"] * 5] * 2,
    ]  # fmt: skip
    assert lines[2].startswith("asked     question 0: regression_location about a person, 5 sums")
    assert "mask: 5 numbers under masks" in lines[5]


def test_a_person_is_asked_first_and_may_say_no(hospitals):
    shown, says = [], [False, True]
    guard = hospitals.folders["h0"].guard(
        hospitals.plan, approve=lambda text: shown.append(text) or says.pop(0)
    )
    hospitals.guards["h0"] = guard
    query = first_question(hospitals)
    assert "this site did not agree to question 0" in asked(hospitals, query).refused
    assert hospitals.spent("h0") == ()
    assert not asked(hospitals, query).refused
    assert not asked(hospitals, query, attempt=2).refused  # the same question is not asked again
    assert len(shown) == 2
    assert "question 0: regression_location" in shown[0]
    assert "epsilon" in shown[0]


def test_sites_are_told_that_there_is_a_result(hospitals):
    coordinator = hospitals.coordinator()
    coordinator.run()
    assert not hospitals.guards["h0"].over
    coordinator.trouble = {"h1": "was silent"}  # nobody waits for those
    before = hospitals.spent("h0")
    coordinator.end()
    assert [guard.over for guard in hospitals.guards.values()] == [True, False, True]
    assert hospitals.spent("h0") == before


def test_a_no_ends_a_study_that_needs_everybody(hospitals):
    hospitals.guards["h0"] = hospitals.folders["h0"].guard(hospitals.plan, approve=lambda _: False)
    with pytest.raises(StudyFailed, match="site 'h0' refused advertise: this site did not"):
        hospitals.coordinator().run()


# -- plans ------------------------------------------------------------------------------------


def signed_again(hospitals, **changes):
    body = msgspec.structs.replace(hospitals.plan.body, **changes)
    return Plan.signed_by(hospitals.folder.identity, body)


def test_a_plan_that_was_changed_is_not_read(hospitals):
    text = hospitals.plan.to_json()
    with pytest.raises(ProtocolError, match="not signed by the coordinator"):
        Plan.from_json(text.replace(b'"study": "doses"', b'"study": "dosez"'))
    first, *others = hospitals.plan.body.sites
    with pytest.raises(ProtocolError, match="card of 'h0' is not signed by its key"):
        signed_again(hospitals, sites=(msgspec.structs.replace(first, rows=900), *others))
    deep = text.replace(b'"parameters": {', b'"parameters": {"x": ' + b"[" * 10**5)
    for broken in (b"", b"{}", text[:-3], text.replace(b'"dropouts"', b'"dropout"'), deep):
        with pytest.raises(InvalidData, match="plan must be a plan of a shared study"):
            Plan.from_json(broken)


def test_what_is_signed_has_an_order(hospitals):
    """The same columns in another order are another plan: rows would be read by other names."""
    body = msgspec.to_builtins(hospitals.plan.body)
    parameters = body["inquiry"]["inquiry"]["parameters"]
    parameters["feature_ranges"] = dict(reversed(parameters["feature_ranges"].items()))
    with pytest.raises(ProtocolError, match="not signed by the coordinator"):
        Plan.from_json(msgspec.json.encode(body))


def test_nothing_in_a_plan_writes_lines_of_its_own(hospitals):
    shown = "x\n  price        ε = 0.001"
    asked = inquiry(3 * ROWS, feature_ranges={shown: [0, 1]}, unit=shown)
    plan = signed_again(hospitals, inquiry=asked, address=shown)
    words = [line.split()[0] for line in str(plan).split("\n")]
    assert words == [
        "plan", "study", "coordinator", "reached", *["site"] * 3, *["column"] * 2, "price", "trust",
    ]  # fmt: skip


def test_keys_that_are_wrong_or_missing_are_named(hospitals, tmp_path):
    stranger = site_folder(tmp_path / "x", "h1", 9).card
    _, own, third = hospitals.plan.body.sites
    cards = (hospitals.plan.body.sites[0], stranger, third)
    with pytest.raises(ProtocolError, match="lists another key of 'h1' than the one pinned here"):
        hospitals.folders["h0"].agree(signed_again(hospitals, sites=cards))
    with pytest.raises(ProtocolError, match="lists another card of this site than its own"):
        hospitals.folders["h1"].agree(signed_again(hospitals, sites=cards))
    unknown = site_folder(tmp_path / "y", "h9", 9).card
    more = {"sites": (*hospitals.plan.body.sites, unknown), "inquiry": inquiry(4 * ROWS)}
    with pytest.raises(ProtocolError, match=f"no key of 'h9' is pinned.*{unknown.fingerprint}"):
        hospitals.folders["h0"].agree(signed_again(hospitals, **more))
    with pytest.raises(ProtocolError, match="site 'h0' is not in the plan"):
        hospitals.folders["h0"].agree(
            signed_again(hospitals, sites=(own, third), inquiry=inquiry(2 * ROWS))
        )
    with pytest.raises(ProtocolError, match="holds another key than the one pinned here"):
        hospitals.folders["h0"].pin([stranger])


def test_another_coordinator_is_named(hospitals):
    other = Identity()
    card = Card.signed_by(other, name="registry")
    body = msgspec.structs.replace(hospitals.plan.body, coordinator=card)
    plan = Plan.signed_by(other, body)
    with pytest.raises(ProtocolError, match="another key of 'registry'"):
        hospitals.folders["h0"].agree(plan)


def test_a_coordinator_cannot_hide_behind_a_sites_name(hospitals):
    """Its key is asked for whatever it calls itself."""
    other = Identity()
    body = msgspec.structs.replace(
        hospitals.plan.body, coordinator=Card.signed_by(other, name="h0")
    )
    with pytest.raises(InvalidParameter, match="a name that no site has"):
        Plan.signed_by(other, body)


def test_a_site_says_from_how_many_it_wants_to_be_protected(tmp_path):
    with pytest.raises(ProtocolError, match="protects against 0 colluding sites, but this site"):
        Hospitals(tmp_path / "a", sites=3, colluders=0, dropouts=0)
    Hospitals(tmp_path / "b", sites=3, colluders=0, dropouts=0, **{"colluders_": 0})


TASKS = {
    "column": ({"feature_ranges": {"age": [18, 100], "hiv": [0, 1]}},
        "asks for the column 'hiv', which this site does not offer"),
    "range": ({"feature_ranges": {"age": [18, 50]}}, r"takes \[18.0, 50.0\] for the public range"),
    "target": ({"target_range": [0, 50]}, r"takes \[0, 50\] for the public range of 'dose'"),
    "unit": ({"unit": "visit"}, "protects each visit, but this site each person"),
    "price": ({"epsilon": 2.5}, "this site cannot pay for the plan"),
}  # fmt: skip


@pytest.mark.parametrize("case", TASKS)
def test_a_site_signs_only_what_it_offers_and_can_pay(hospitals, case):
    changes, said = TASKS[case]
    plan = signed_again(hospitals, inquiry=inquiry(3 * ROWS, **changes))
    with pytest.raises(ProtocolError, match=said):
        hospitals.folders["h0"].agree(plan)
    with pytest.raises(ProtocolError, match="did not sign the plan"):
        hospitals.folders["h0"].guard(plan)
    assert hospitals.folders["h0"].config.agreed == [hospitals.plan.digest]
    assert FileLedger(hospitals.folders["h0"].ledger_path).entries == ()


def test_a_site_whose_rows_are_not_those_of_its_card_does_not_serve(hospitals):
    write_table(hospitals.folders["h0"].path / "table.csv", 0, rows=150)
    with pytest.raises(ProtocolError, match="lists 200 rows of this site, which has 150"):
        hospitals.folders["h0"].guard(hospitals.plan)


def test_a_lifetime_is_spent_by_all_studies_together(tmp_path):
    """ε = 1 pays for one study of ε = 1."""
    hospitals = Hospitals(tmp_path, sites=3, dropouts=0, epsilon=1.0, delta=1e-6)
    hospitals.coordinator().run()
    hospitals.restart("h0")  # its own study is paid for
    with pytest.raises(ProtocolError, match=r"cannot pay for the plan.* ε = 0 is left"):
        hospitals.folders["h0"].agree(signed_again(hospitals, study="again"))


@pytest.mark.parametrize(
    "given",
    [
        {"target_range": None}, {"delta": 0.0}, {"mechanism": "output_perturbation"},
        {"epsilon": 0.0}, {"epsilon": 1e308}, {"feature_ranges": {}}, {"ledger": "x"},
        {"random_state": 0}, {"surprise": 1},
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_no_plan(hospitals, given):
    with pytest.raises(InvalidParameter):
        signed_again(hospitals, inquiry=inquiry(3 * ROWS, **given))


def test_a_plan_says_the_range_of_every_column(hospitals):
    unbounded = inquiry(3 * ROWS, feature_ranges=None, feature_norm_bound=1.0)
    with pytest.raises(ProtocolError, match="no public range of the column 'age'"):
        signed_again(hospitals, inquiry=unbounded)
    with pytest.raises(ProtocolError, match="no public range of the column 'dose'"):
        signed_again(hospitals, inquiry=inquiry(3 * ROWS, targets=("dose", "sick")))
    others = inquiry(3 * ROWS, targets=("weight",))
    others["inquiry"]["columns"] = ["age", "dose"]
    with pytest.raises(DpfdaError):
        signed_again(hospitals, inquiry=others)


def test_a_plan_counts_the_rows_of_its_cards(hospitals):
    with pytest.raises(InvalidParameter, match="rows must be 600, as the cards say, got 599"):
        signed_again(hospitals, inquiry=inquiry(599))
    with pytest.raises(InvalidParameter, match="different from the other columns"):
        signed_again(hospitals, inquiry=inquiry(3 * ROWS, targets=("age",)))


def test_labels_are_read_as_the_plan_writes_them(tmp_path):
    given = inquiry(
        4, target_range=None, classes=[0, 1], estimator="PrivateLogisticRegression",
        targets=("sick",),
    )  # fmt: skip
    (tmp_path / "t.csv").write_text("age,weight,sick\n30,70,1.0\n40,80,0\n", encoding="utf-8")
    asked = TableInquiry.from_dict(given)
    rows, targets, outside = asked.records(Reading().open(tmp_path / "t.csv").table())
    assert not outside.any()
    assert asked.columns["sick"] == [0, 1]
    assert targets.tolist() == [1.0, 0.0]
    assert np.abs(rows).max() <= 1


def test_what_is_offered_exists(tmp_path):
    with pytest.raises(InvalidData, match=r"about columns of table\.csv"):
        site_folder(tmp_path / "a", "a", 0, ranges=RANGES | {"height": [0, 3]})
    assert not (tmp_path / "a" / "site.toml").exists()
    site_folder(tmp_path / "b", "b", 0)
    with pytest.raises(InvalidParameter, match="one without a site"):
        site_folder(tmp_path / "b", "b", 0)


def test_secrets_are_their_owners_only(hospitals):
    for folder in hospitals.folders.values():
        for name in ("identity.key", "node.key", "site.toml"):
            assert (folder.path / name).stat().st_mode & 0o077 == 0
    assert (hospitals.folder.private / "identity.key").stat().st_mode & 0o077 == 0
    site = hospitals.folders["h0"]
    assert node_public(site.node_key_path.read_bytes()) == site.card.node
    (site.path / "node.key").chmod(0o640)
    with pytest.raises(ProtocolError, match=r"node\.key may be read by others"):
        _ = site.node_key_path


def test_told_is_what_it_says():
    assert decode(encode(SiteAnswer("q", (1, -2), ("a",))), SiteAnswer).total == (1, -2)
    with pytest.raises(DpfdaError):
        decode(encode(["q", [1.5], ["a"]]), SiteAnswer)


# -- the node ----------------------------------------------------------------------------------


def test_the_guard_answers_components_and_survives_those_that_break(hospitals):
    guard = hospitals.guards["h0"]
    agree = encode(
        Envelope(plan=hospitals.plan.digest, step="agree", body=encode(hospitals.plan.digest))
    )
    for content, gone in ((agree, False), (agree, True), (b"no message of a plan", False)):
        here, there = Pipe()
        here.send_bytes(content)
        if gone:
            here.close()
        answer(there, guard)
        assert there.closed
        if not gone:
            reply = decode(here.recv_bytes(), Reply)
            assert bool(reply.refused) is (content != agree)
            here.close()


def test_the_app_names_components_that_are_there():
    project = tomllib.loads(app.PROJECT)
    for named in project["tool"]["flwr"]["app"]["components"].values():
        module, _, name = named.partition(":")
        assert hasattr(importlib.import_module(module), name)
