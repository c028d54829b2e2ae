"""Owners whose rows lie at sites: requests travel, perturbed shares come back, each owner once."""

from __future__ import annotations

import dataclasses
import json

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hospitals import Hospitals, write_owners

from dpfda.cli._group import dpfda as command_line
from dpfda.curves.files import Reading
from dpfda.errors import (
    BudgetExceeded,
    InvalidData,
    InvalidParameter,
    LedgerDamaged,
    ProtocolError,
)
from dpfda.estimators.local_ada_boost_classifier import LocalAdaBoostClassifier
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.request import OwnerRows, Owners, public_order
from dpfda.local.boosting.samme_study import SammeDesign
from dpfda.noise import SimulationSource
from dpfda.protocol.person import Scattered
from dpfda.protocol.server import Server
from dpfda.simulate import ask_everybody
from dpfda.sites.coordinator import StudyFailed
from dpfda.sites.messages import REPLIED, AskOwners, Envelope, Reply, StoredReplies, decode, encode
from dpfda.sites.owners import OwnersInquiry
from dpfda.sites.plan import Plan
from dpfda.sites.stored_files import Begun, KeptAnswers

OWNERS, EACH, SITES = 60, 4, 3
RANGES = {"age": [18.0, 100.0], "weight": [30.0, 150.0]}
OFFERED = RANGES | {"sick": ["no", "yes"]}


def own_rows(count=200):
    rng = np.random.default_rng(99)
    rows = np.column_stack([rng.uniform(20, 90, count), rng.uniform(45, 120, count)])
    return rows, (rows.sum(axis=1) > 140).astype(np.int64)


def study(rule="statistic", owners=OWNERS * SITES, epsilon=4.0, **changes):
    rows, labels = own_rows()
    common = {"n_rows": EACH, "n_rounds": 3, "labeled": rows, "labels": labels}
    if rule == "gradient":
        design = GradientDesign(features=FeatureMap.learnt(rows), reference=rows, **common)
    else:
        # Judges: owners, of whom some are at every site.
        judged = {"judges": 15, "labeled": [], "labels": []} if rule == "judged" else {}
        design = SammeDesign(
            rule="classifier" if rule == "judged" else rule, owners_per_round=20,
            feature_ranges=list(RANGES.values()), **(common | judged),
        )  # fmt: skip
    given = {"epsilon": epsilon, "owners": owners, "classes": ("no", "yes"), "seed": 5}
    return design.plan(**(given | changes))


def asked(rule="statistic", **changes):
    return OwnersInquiry(study=study(rule, **changes), feature_ranges=RANGES, target="sick")


def written(path, seed, rows):
    write_owners(path, seed, owners=OWNERS, each=EACH)


def sites(place, inquiry=None, **changes):
    given = {
        "sites": SITES, "dropouts": 0, "write": written,
        "ranges": OFFERED, "unit": "owner", "owner": "client", "epsilon": 4.0,
        "delta": 0.0,
    }  # fmt: skip
    return Hospitals(place, asked=(inquiry or asked()).to_dict(), **(given | changes))


def in_one_process(hospitals):
    """The same study, its owners in places of this process: nothing of a message, guard or disk."""
    inquiry, cards = hospitals.plan.inquiry, hospitals.plan.body.sites
    sources = SimulationSource(7).spawn(len(cards))
    crowds = [
        Owners(
            inquiry.study, inquiry.records(folder.table(), "client"),
            order=inquiry.own_order(cards, name)[1], source=source,
        )
        for (name, folder), source in zip(hospitals.folders.items(), sources, strict=True)
    ]  # fmt: skip

    def ask(tasks, start, stop):
        return {place: crowds[place].answer(task).values for place, task in tasks.items()}

    crowd = Scattered(inquiry.study, inquiry.places(cards), ask)
    return ask_everybody(
        inquiry.study, crowd, source=SimulationSource(0), at_once=inquiry.study.n_people
    )


@pytest.mark.parametrize("rule", ["statistic", "sample", "gradient", "judged"])
def test_over_guards_it_has_the_bits_of_one_process(tmp_path, rule):
    hospitals = sites(tmp_path, asked(rule))
    model = hospitals.coordinator().run()["result"]
    there = in_one_process(hospitals)
    assert model.boosted.to_dict() == there.model.boosted.to_dict()
    assert model.guarantee == hospitals.plan.guarantee
    assert "every site draws its own noise" in " ".join(model.guarantee.assumptions)
    table = {"age": [20.0, 90.0], "weight": [50.0, 120.0]}
    assert set(model.predict(table)) <= {"no", "yes"}
    answered = sum(len(hospitals.folder.who(n)) for n in range(len(hospitals.folder.attempts)))
    assert answered == SITES * len(hospitals.folder.attempts) > SITES


def test_one_place_is_the_estimator():
    """Where all owners live in one place, it is `LocalAdaBoostClassifier`, bit for bit."""
    rows, labels = own_rows()
    X, y = own_rows(OWNERS * EACH)
    owner = np.arange(OWNERS).repeat(EACH)
    classifier = LocalAdaBoostClassifier(
        4.0, rule="statistic", n_rounds=3, owners_per_round=20, rows_per_owner=EACH,
        feature_ranges=list(RANGES.values()), classes=[0, 1], random_state=3,
    )  # fmt: skip
    classifier.fit(X, y, groups=owner, reference=rows, reference_labels=labels)
    plan = classifier.plan_
    held = OwnerRows.grouped(X, y, groups=owner)
    owners = Owners(plan, held, order=public_order(plan), source=classifier._source())

    def ask(tasks, start, stop):
        return {place: owners.answer(task).values for place, task in tasks.items()}

    crowd = Scattered(plan, np.zeros(OWNERS, dtype=int), ask)
    server = ask_everybody(plan, crowd, source=SimulationSource(0), at_once=OWNERS)
    assert server.model.boosted.to_dict() == classifier.model_.boosted.to_dict()


# -- what a site lets in and out ---------------------------------------------------------------


def request(hospitals, site="h0", *, number=0, start=0, stop=20, **changes):
    """A request as an honest coordinator would send it, but for the changes."""
    inquiry = hospitals.plan.inquiry
    mine = inquiry.own_order(hospitals.plan.body.sites, site)[0]
    people = int(np.sum((mine >= start) & (mine < stop)))
    task = Server(inquiry.study).issue(20).rows(np.arange(people)).to_dict()
    return AskOwners(number=number, start=start, stop=stop, query=task | changes)


def send(hospitals, message, name="h0", step="owners"):
    envelope = Envelope(plan=hospitals.plan.digest, step=step, body=encode(message))
    return decode(hospitals.guards[name].handle(encode(envelope)), Reply)


def test_only_what_the_study_may_ask_is_answered_and_it_is_paid_once(tmp_path):
    hospitals = sites(tmp_path)
    for changes, said in (
        ({"epsilon": 8.0}, "epsilon of a statistic task must be 4.0 here"),
        ({"name": "classifier"}, "asks no such task"),
        ({"n_rows": 1}, "n_rows of a statistic task must be 4 here"),
        ({"people": 1}, "the query is for 1 owners, but the next ones of this site are 9"),
        (
            {"people": 0, "start": 20},
            "the query is for 0 owners, but the next ones of this site are 0",
        ),
        ({"unit": "row"}, "unit of a statistic task must be owner here"),
    ):
        assert said in send(hospitals, request(hospitals, **changes)).refused, changes
    assert "no such step" in send(hospitals, "x", step="advertise").refused
    assert hospitals.spent("h0") == ()
    hospitals.coordinator().run()
    entries = hospitals.spent("h0")
    assert [entry.event.epsilon for entry in entries] == [4.0, 0.0, 0.0, 0.0]
    assert [entry.key for entry in entries] == [
        f"{hospitals.plan.digest} {stop}" for stop in (20, 40, 60, 80)
    ]
    assert {entry.unit for entry in entries} == {"owner"}
    assert len(hospitals.folders["h0"].ledger.releases) == 1
    lines = [line[21:] for line in hospitals.guards["h0"].journal.lines if "refused" not in line]
    assert [line.split()[0] for line in lines] == ["signed", "leaves", *["asked", "leaves"] * 4]
    assert lines[2].startswith("asked     question 0: statistic to ")
    assert "noisy numbers of owners, question 0" in lines[3]


def test_an_owner_answers_once_whoever_asks(tmp_path):
    hospitals = sites(tmp_path)
    assert "is out of order" in send(hospitals, request(hospitals, number=-1)).refused
    assert not (first := send(hospitals, request(hospitals))).refused
    for again, said in (
        (request(hospitals, number=1), "each owner is asked only once"),
        (request(hospitals, number=1, start=19, stop=40), "each owner is asked only once"),
        (request(hospitals, number=0, start=20, stop=40), "question 0 differs from"),
        (request(hospitals, number=0, cap=0.5), "question 0 differs from"),
        (request(hospitals, number=1, start=40, stop=20), "each owner is asked only once"),
        (request(hospitals, number=1, start=160, stop=181), "each owner is asked only once"),
        (request(hospitals, number=180, start=20, stop=40), "or comes after all owners"),
        (request(hospitals, number=-1, start=20, stop=40), "is out of order"),
    ):
        assert said in send(hospitals, again).refused
    hospitals.restart("h0")
    assert send(hospitals, request(hospitals)) == first  # from the disk, with the noise of before
    assert "each owner is asked only once" in send(hospitals, request(hospitals, number=1)).refused
    assert not send(hospitals, request(hospitals, number=3, start=40, stop=60)).refused
    late = request(hospitals, number=2, start=60, stop=80)
    assert "is out of order" in send(hospitals, late).refused
    assert [entry.event.epsilon for entry in hospitals.spent("h0")] == [4.0, 0.0]


def test_what_left_is_on_the_disk_and_in_the_log_first(tmp_path, monkeypatch):
    hospitals = sites(tmp_path)
    part = hospitals.guards["h0"].part
    monkeypatch.setattr(part._kept, "keep", lambda *_: (_ for _ in ()).throw(OSError("full")))
    assert "this cannot be computed" in send(hospitals, request(hospitals)).refused
    hospitals.restart("h0")
    said = send(hospitals, request(hospitals)).refused
    assert "stopped while it answered question 0, and does not answer it again" in said
    assert "never answered" in hospitals.folders["h0"].progress(hospitals.plan)[0]
    assert len(hospitals.spent("h0")) == 1


def test_nothing_is_drawn_before_it_is_paid(tmp_path, monkeypatch):
    hospitals = sites(tmp_path)
    part, drawn = hospitals.guards["h0"].part, []
    monkeypatch.setattr(part._owners, "answer", drawn.append)

    def refused(*_, **__):
        raise BudgetExceeded("nothing is left")

    monkeypatch.setattr(part._ledger, "spend", refused)
    assert "nothing is left" in send(hospitals, request(hospitals)).refused
    assert drawn == []


def test_a_folder_that_forgot_what_it_answered_refuses(tmp_path):
    hospitals = sites(tmp_path)
    send(hospitals, request(hospitals))
    account = hospitals.folders["h0"].account(hospitals.plan)
    for path in account.glob("0000.*"):
        path.unlink()
    hospitals.restart("h0")
    gone = "its answers are missing from this folder"
    assert gone in send(hospitals, request(hospitals)).refused
    assert gone in send(hospitals, request(hospitals, start=19, stop=40)).refused
    assert not send(hospitals, request(hospitals, number=1, start=20, stop=40)).refused


def test_an_account_that_was_put_back_asks_nobody_twice(tmp_path):
    """The ledger remembers whose turn it was: not under a number that it never saw either."""
    hospitals = sites(tmp_path)
    for number in (0, 1):
        start = 20 * number
        sent = request(hospitals, number=number, start=start, stop=start + 20)
        assert not send(hospitals, sent).refused
    for path in hospitals.folders["h0"].account(hospitals.plan).glob("0001.*"):
        path.unlink()
    hospitals.restart("h0")
    for number in (1, 2, 9):
        again = request(hospitals, number=number, start=20, stop=40)
        assert "its answers are missing from this folder" in send(hospitals, again).refused
    assert not send(hospitals, request(hospitals, number=2, start=40, stop=60)).refused
    assert [entry.event.epsilon for entry in hospitals.spent("h0")] == [4.0, 0.0, 0.0]


def test_owners_who_changed_meanwhile_would_be_asked_twice(tmp_path):
    """One leaves and another comes: their number is the same, and everybody's turn is another."""
    hospitals = sites(tmp_path)
    assert not (first := send(hospitals, request(hospitals))).refused
    table = hospitals.folders["h0"].path / "table.csv"
    was = table.read_text(encoding="utf-8")
    table.write_text(was.replace("c000,", "c999,"), encoding="utf-8")
    hospitals.restart("h0")
    second = request(hospitals, number=1, start=20, stop=40)
    assert "the owners at this site changed since the study" in send(hospitals, second).refused
    assert send(hospitals, request(hospitals)) == first
    table.write_text(was, encoding="utf-8")
    hospitals.restart("h0")
    assert not send(hospitals, second).refused


def test_a_person_is_asked_first_and_may_say_no(tmp_path):
    hospitals, shown = sites(tmp_path), []
    hospitals.guards["h0"] = hospitals.folders["h0"].guard(hospitals.plan, approve=shown.append)
    with pytest.raises(StudyFailed, match="'h0' refused owners: this site did not agree to que"):
        hospitals.coordinator().run()
    assert "statistic to" in shown[0]
    assert hospitals.spent("h0") == ()


# -- faults ------------------------------------------------------------------------------------


def test_a_site_that_is_missing_is_named(tmp_path):
    hospitals = sites(tmp_path)
    hospitals.silent = {("owners", "h1")}
    said = "question 0 was not answered: 2 of 3 sites answered: site 'h1' was silent at owners"
    with pytest.raises(StudyFailed, match=said):
        hospitals.coordinator().run()
    assert hospitals.folder.attempts == [3]
    hospitals.silent = set()
    model = hospitals.coordinator().run()["result"]  # the others send the bytes of before
    assert model.boosted.to_dict() == in_one_process(hospitals).model.boosted.to_dict()


def test_a_study_goes_on_without_those_who_may_be_missing(tmp_path):
    hospitals, said = sites(tmp_path, dropouts=1, colluders=0), []
    hospitals.silent = {("owners", "h1")}
    coordinator = hospitals.coordinator()
    coordinator.say = said.append
    coordinator.run()
    assert hospitals.folder.who(0) == ("h0", "h2")
    assert "question 0: site 'h1' was silent at owners" in said
    assert "question 0: statistic: 2 sites, without h1" in said
    assert hospitals.spent("h1") == ()


LIES = {
    "shape": (lambda m: msgspec.structs.replace(m, values=m.values[:-8]),
        "site 'h1' sent no owners: the reply has .* numbers, not"),
    "name": (lambda m: msgspec.structs.replace(m, site="h0"), "replied in another site's name"),
    "number": (lambda m: msgspec.structs.replace(m, number=7), "or to another question"),
    "infinite": (lambda m: msgspec.structs.replace(m, values=b"\xff" * len(m.values)),
        "reply must be a possible output"),
    "huge": (lambda m: msgspec.structs.replace(m, values=np.full(len(m.values) // 8, 1e101)
        .astype("<f8").tobytes()), "reply must be a possible output"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_site_that_lies_is_named(tmp_path, lie):
    change, said = LIES[lie]
    hospitals = sites(tmp_path)

    def carrier(messages):
        replies = hospitals.carry(messages)
        if "h1" in replies and hospitals.step_of(next(iter(messages.values()))) == "owners":
            body = decode(decode(replies["h1"], Reply).body, REPLIED["owners"])
            replies["h1"] = hospitals.signed("h1", messages["h1"], change(body))
        return replies

    with pytest.raises(StudyFailed, match=said):
        hospitals.coordinator(carrier).run()
    assert hospitals.folder.answer(0, StoredReplies) is None


def test_replies_of_other_sites_and_of_before_are_not_taken(tmp_path):
    """Whoever carries messages, or is taken for another node, speaks in nobody's name."""
    hospitals, before = sites(tmp_path), {}

    def forged(messages, site, lie):
        replies = hospitals.carry(messages)
        if hospitals.step_of(messages[site]) == "owners":
            replies[site] = lie(replies)
        before.setdefault(site, replies[site])
        return replies

    def unsigned(replies):
        body = decode(decode(replies["h1"], Reply).body, REPLIED["owners"])
        return encode(Reply(body=encode(msgspec.structs.replace(body, site="h0"))))

    for lie in (
        lambda replies: replies["h1"],
        unsigned,
        lambda replies: hospitals.signed("h1", b"", decode(replies["h0"], Reply).body),
        lambda replies: before["h0"],  # to another message
    ):
        with pytest.raises(StudyFailed, match="site 'h0' sent no owners that its key signed"):
            hospitals.coordinator(lambda m, lie=lie: forged(m, "h0", lie)).run()
    assert hospitals.folder.answer(0, StoredReplies) is None
    hospitals.coordinator().run()


def test_a_coordinator_that_dies_asks_nothing_twice(tmp_path):
    hospitals, calls = sites(tmp_path), []

    class Killed(Exception):
        pass

    def carrier(messages):
        calls.append(messages)
        if len(calls) == 3:  # agree, question 0, question 1
            raise Killed
        return hospitals.carry(messages)

    with pytest.raises(Killed):
        hospitals.coordinator(carrier).run()
    kept = hospitals.folder.answer(0, StoredReplies)
    model = hospitals.coordinator().run()["result"]
    assert hospitals.folder.answer(0, StoredReplies) == kept
    assert hospitals.folder.attempts == [1, 2, 1, 1]
    assert model.boosted.to_dict() == in_one_process(hospitals).model.boosted.to_dict()
    path = hospitals.folder.path / "answers" / "0001.json"
    question = hospitals.folder.answer(1, StoredReplies).question
    path.write_bytes(path.read_bytes().replace(question.encode(), b"0" * 64))
    with pytest.raises(ProtocolError, match="stored answer to question 1 belongs to another"):
        hospitals.coordinator().run()


def test_whoever_is_silent_later_is_missing_then(tmp_path):
    """A site that answers the first question alone: its later owners are missing, nobody else's."""
    hospitals = sites(tmp_path, dropouts=1, colluders=0)
    cards, inquiry = hospitals.plan.body.sites, hospitals.plan.inquiry
    heard = []

    def ask(tasks, start, stop):
        heard.append(start)
        here = {k: t for k, t in tasks.items() if k != 1 or start == 0}
        return {k: np.ones((t.people, t.width)) for k, t in here.items()}

    crowd = Scattered(inquiry.study, inquiry.places(cards), ask)
    ask_everybody(
        inquiry.study, crowd, source=SimulationSource(0), at_once=180, answers=crowd.answered
    )
    places, last = inquiry.places(cards), crowd.asked
    there = (places[:last] != 1) | (np.arange(last) < heard[1])
    assert crowd.answered(np.arange(last)).tolist() == there.tolist()
    with pytest.raises(ProtocolError, match="the plan is for 180 people"):
        Scattered(inquiry.study, places[:-1], ask)


def test_what_was_answered_is_kept_once_and_for_its_study(tmp_path):
    kept = KeptAnswers(tmp_path / "a", study="s")
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0
    kept.begin(0, Begun("q"))
    with pytest.raises(ProtocolError, match="question 0 was begun already"):
        kept.begin(0, Begun("q"))
    kept.keep(0, b"x")
    with pytest.raises(ProtocolError, match="question 0 has an answer already"):
        kept.keep(0, b"y")
    assert KeptAnswers(tmp_path / "a", study="s").again(0, "q") == b"x"
    with pytest.raises(ProtocolError, match="belongs to another study"):
        KeptAnswers(tmp_path / "a", study="t")
    (tmp_path / "a" / "0000.begun").write_bytes(b"[")
    with pytest.raises(LedgerDamaged, match="is damaged"):
        kept.again(0, "q")


# -- plans -------------------------------------------------------------------------------------


def test_what_cannot_be_asked_of_owners_is_no_plan(tmp_path):
    hospitals = sites(tmp_path)

    def signed(inquiry):
        body = msgspec.structs.replace(hospitals.plan.body, inquiry=inquiry.to_dict())
        return Plan.signed_by(hospitals.folder.identity, body)

    with pytest.raises(InvalidParameter, match="owners must be 180, as the cards say, got 179"):
        signed(asked(owners=179))
    with pytest.raises(InvalidParameter, match="send nothing in clear"):
        asked("sample", protects="features")
    with pytest.raises(InvalidParameter, match="feature_ranges must be of 2 numbers"):
        OwnersInquiry(study=study(), feature_ranges={"age": [0, 1]}, target="sick")
    with pytest.raises(InvalidParameter, match="different from the other columns"):
        OwnersInquiry(study=study(), feature_ranges=RANGES, target="age")
    with pytest.raises(InvalidParameter, match="study must be a boosting study"):
        OwnersInquiry(
            study=dataclasses.replace(study(), design={"name": "moments"}),
            feature_ranges=RANGES, target="sick",
        )  # fmt: skip
    for inquiry, said in (
        (asked(unit="person"), "protects each person, but this site each owner"),
        (asked(epsilon=4.5), "cannot pay for the plan"),
        (
            OwnersInquiry(study=study(), feature_ranges=RANGES, target="ill"),
            "asks for the column 'ill'",
        ),
    ):
        with pytest.raises(ProtocolError, match=said):
            hospitals.folders["h0"].agree(signed(inquiry))


def test_a_sites_card_counts_owners(tmp_path):
    hospitals = sites(tmp_path)
    assert [card.rows for card in hospitals.plan.body.sites] == [OWNERS] * SITES
    write_owners(hospitals.folders["h0"].path / "table.csv", 0, owners=25)
    with pytest.raises(ProtocolError, match="lists 60 rows of this site, which has 25"):
        hospitals.folders["h0"].guard(hospitals.plan)
    with pytest.raises(InvalidData, match="--owner must be a column of table"):
        sites(tmp_path / "x", owner="whose")


def write_skewed(path, seed, rows):
    """Clients with incomes mostly far below the public range; those above the median are sick."""
    rng = np.random.default_rng(seed)
    income = 10 * np.exp(rng.normal(0, 1, OWNERS * EACH))
    sick = np.where(income > 10, "yes", "no")
    lines = [f"c{k % OWNERS:03d},{income[k]:.4f},{sick[k]}" for k in range(OWNERS * EACH)]
    path.write_text("\n".join(["client,income,sick", *lines]) + "\n", encoding="utf-8")


def test_public_reference_rows_in_the_plan_make_a_skewed_column_useful(tmp_path, monkeypatch):
    """Features built for even rows put all clients into one bin; a warning says so."""
    monkeypatch.setattr(LocalGradientBoostingClassifier, "_public_seed", lambda self: 5)
    offered = {"income": [0.0, 10_000.0], "sick": ["no", "yes"]}
    write_skewed(tmp_path / "public.csv", 99, 0)
    tables = [tmp_path / f"{name}.csv" for name in "abc"]
    (tmp_path / "columns.json").write_text(json.dumps(offered), encoding="utf-8")
    for seed, table in enumerate(tables):
        write_skewed(table, seed, 0)
        site = f"site init {tmp_path / table.stem} --name {table.stem} --data {table} "
        done = CliRunner().invoke(
            command_line,
            f"{site} --owner client --feature-ranges {tmp_path / 'columns.json'} --epsilon 8",
        )
        assert done.exit_code == 0, done.output
    cards = " ".join(f"--site {tmp_path / table.stem / 'card.json'}" for table in tables)
    asked = (
        "--ask gradient-boosting --target sick --classes no,yes --feature-ranges income=0:10000 "
    )
    asked += "--rows-per-owner 4 --rounds 3 --epsilon 8 --name registry --study visits"
    wrong, warned = {}, {}
    for name, more in {"none": "", "public": f"--reference {tmp_path / 'public.csv'}"}.items():
        place = tmp_path / name
        done = CliRunner().invoke(
            command_line, f"consortium plan {place / 'plan'} {cards} {asked} {more}"
        )
        assert done.exit_code == 0, done.output
        warned[name] = "without --reference" in done.output
        inquiry = Plan.load(place / "plan" / "plan.json").inquiry
        hospitals = sites(place, inquiry, write=write_skewed, ranges=offered, epsilon=8.0)
        model = hospitals.coordinator().run()["result"]
        table = Reading().open(tmp_path / "public.csv").table()
        found = model.predict({"income": table.numbers(["income"])[:, 0]})
        wrong[name] = np.mean(found != np.array(table.text("sick")))
    assert warned == {"none": True, "public": False}
    assert wrong["public"] < 0.1 < 0.3 < wrong["none"], wrong
    (tmp_path / "other.csv").write_text("age\n5\n6\n", encoding="utf-8")
    done = CliRunner().invoke(
        command_line,
        f"consortium plan {tmp_path / 'x'} {cards} {asked} --reference {tmp_path / 'other.csv'}",
    )
    assert (done.exit_code, "a table with the column 'income'" in done.output) == (2, True)
