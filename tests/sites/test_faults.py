"""Sites and coordinators that stop, lie or ask twice: the right sum, or a failure that says why.

Each fault leaves three things to look at: what was opened (the sum of vectors that sites fixed,
number by number), how often each site drew noise for a question, and what its ledger paid.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np
import pytest
from hospitals import Hospitals

from dpfda.errors import ProtocolError
from dpfda.protocol.secure_sum import Identity, Member
from dpfda.protocol.secure_sum.messages import OfferList, Sharers, Survivors, survivors_content
from dpfda.sites.coordinator import StudyFailed
from dpfda.sites.messages import REPLIED, Ask, Envelope, Reply, SiteAnswer, decode, encode

STEPS = ("advertise", "share", "mask", "confirm", "unmask")
NAMES = tuple(f"h{k}" for k in range(5))


class Killed(Exception):
    pass


@pytest.fixture
def noises(monkeypatch):
    """(site, question) -> every noisy vector that was ever fixed for it."""
    found = defaultdict(list)
    contribute = Member.contribute

    def recorded(self, stage, noisy, **more):
        contribute(self, stage, noisy, **more)
        found[self.name, stage].append(np.array(noisy))

    monkeypatch.setattr(Member, "contribute", recorded)
    return found


def check(hospitals, noises, *, answered=2, lost=()):
    """Sums are right, nobody drew twice, nobody paid twice."""
    for number in range(answered):
        told = hospitals.folder.answer(number, SiteAnswer)
        right = sum(noises[name, number][0] for name in told.survivors)
        assert list(told.total) == right.tolist()
    assert all(len(vectors) == 1 for vectors in noises.values())
    for name in hospitals.guards:
        keys = [entry.key for entry in hospitals.spent(name)]
        assert len(keys) == len(set(keys)) == sum(who == name for who, _ in noises) + (name in lost)


def test_nothing_happens(tmp_path, noises):
    hospitals = Hospitals(tmp_path)
    model = hospitals.coordinator().run()["result"]
    assert [len(hospitals.folder.who(number)) for number in (0, 1)] == [5, 5]
    assert model.rows == 1000
    assert model.guarantee.model == "decentralized"
    assert hospitals.folder.agreed == list(NAMES)
    check(hospitals, noises)


@pytest.mark.parametrize("step", STEPS)
def test_a_site_dies_and_stays_away(tmp_path, noises, step):
    hospitals = Hospitals(tmp_path)
    hospitals.silent = {(later, "h2") for later in STEPS[STEPS.index(step) :]}
    hospitals.coordinator().run()
    left = [name for name in NAMES if name != "h2"]
    sent = list(NAMES) if step in ("confirm", "unmask") else left
    assert list(hospitals.folder.answer(0, SiteAnswer).survivors) == sent
    check(hospitals, noises)


@pytest.mark.parametrize("step", STEPS)
def test_a_site_restarts_in_the_middle(tmp_path, noises, step):
    """Nobody may be missing: the round is repeated with new masks and the old noise."""
    hospitals = Hospitals(tmp_path, dropouts=0)
    pending = {"h2"}

    def carrier(messages):
        if hospitals.step_of(next(iter(messages.values()))) == step and pending:
            hospitals.restart(pending.pop())
        return hospitals.carry(messages)

    hospitals.coordinator(carrier).run()
    again = step in ("share", "mask")  # later, the others are enough to open the sum
    assert hospitals.folder.attempts == [1 + again, 1]
    assert len(hospitals.folder.answer(0, SiteAnswer).survivors) == 5
    check(hospitals, noises)


def test_a_sum_that_too_few_open_is_lost_and_says_so(tmp_path, noises):
    hospitals = Hospitals(tmp_path, colluders=4, dropouts=0)
    hospitals.silent = {("unmask", "h2")}
    with pytest.raises(StudyFailed, match="4 sites helped to open the sum, 5 are needed"):
        hospitals.coordinator().run()
    hospitals.silent = set()
    with pytest.raises(StudyFailed, match="'h0' refused advertise: this stage was opened already"):
        hospitals.coordinator().run()
    check(hospitals, noises, answered=0)


def test_a_site_that_missed_a_question_answers_the_next(tmp_path, noises):
    hospitals = Hospitals(tmp_path)
    hospitals.silent = {("advertise", "h2")}

    def carrier(messages):
        if hospitals.folder.answer(0, SiteAnswer) is not None:
            hospitals.silent = set()
        return hospitals.carry(messages)

    hospitals.coordinator(carrier).run()
    assert "h2" not in hospitals.folder.answer(0, SiteAnswer).survivors
    assert "h2" in hospitals.folder.answer(1, SiteAnswer).survivors
    assert hospitals.folders["h2"].progress(hospitals.plan)[0].startswith("missed")
    check(hospitals, noises)


def test_a_reply_is_lost_and_the_question_asked_again(tmp_path, noises):
    hospitals = Hospitals(tmp_path, dropouts=0)
    hospitals.deaf = {("mask", "h4")}

    def carrier(messages):
        replies = hospitals.carry(messages)
        if hospitals.step_of(next(iter(messages.values()))) == "mask":
            hospitals.deaf = set()
        return replies

    hospitals.coordinator(carrier).run()
    assert hospitals.folder.attempts == [2, 1]
    check(hospitals, noises)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_coordinator_dies_and_starts_again(tmp_path, noises, step, number, when):
    hospitals = Hospitals(tmp_path)
    ended = []

    def carrier(messages):
        here = hospitals.step_of(next(iter(messages.values()))) == step
        here = (
            here
            and (hospitals.folder.answer(0, SiteAnswer) is not None) == bool(number)
            and not ended
        )
        if here and when == "before":
            ended.append(step)
            raise Killed
        replies = hospitals.carry(messages)
        if here:
            ended.append(step)
            raise Killed
        return replies

    with pytest.raises(Killed):
        hospitals.coordinator(carrier).run()
    if step == "unmask" and when == "after":  # opened, and lost with the process
        with pytest.raises(StudyFailed, match=f"question {number} was not answered.*opened alread"):
            hospitals.coordinator(carrier).run()
        check(hospitals, noises, answered=number)
        return
    hospitals.coordinator(carrier).run()
    check(hospitals, noises)


def test_too_many_are_silent(tmp_path, noises):
    hospitals = Hospitals(tmp_path)
    hospitals.silent = {("mask", "h1"), ("mask", "h3")}
    with pytest.raises(StudyFailed) as failure:
        hospitals.coordinator().run()
    assert "question 0 was not answered: 3 sites sent their vectors, 4 are needed" in str(
        failure.value
    )
    assert "site 'h1' was silent at mask; site 'h3' was silent at mask" in str(failure.value)
    assert hospitals.folder.attempts == [3]
    hospitals.silent = set()
    hospitals.coordinator().run()  # later, with the same noise
    check(hospitals, noises)


def rewriting(hospitals, name, step, change):
    """A site that sends something else in a step."""

    def carrier(messages):
        replies = hospitals.carry(messages)
        if hospitals.step_of(next(iter(messages.values()))) == step and name in replies:
            reply = decode(replies[name], Reply)
            if not reply.refused:
                body = decode(reply.body, REPLIED[step])
                replies[name] = hospitals.signed(name, messages[name], change(body))
        return replies

    return carrier


LIES = {
    "shorter": ("mask", lambda m: msgspec.structs.replace(m, residues=m.residues[:-8]),
        "site 'h1' sent 4 numbers where 5 were asked for"),
    "other name": ("mask", lambda m: msgspec.structs.replace(m, site="h0"),
        "site 'h1' replied in another site's name"),
    "old round": ("share", lambda m: msgspec.structs.replace(
        m, round=msgspec.structs.replace(m.round, attempt=9)), "or to another round"),
    "other key": ("advertise", lambda m: msgspec.structs.replace(
        m, keys=msgspec.structs.replace(m.keys, signature=bytes(64))),
        "site 'h1' signed with another key than the plan's"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_site_that_lies_is_left_out_and_named(tmp_path, noises, lie):
    step, change, said = LIES[lie]
    hospitals, seen = Hospitals(tmp_path), []
    coordinator = hospitals.coordinator(rewriting(hospitals, "h1", step, change))
    coordinator.say = seen.append
    coordinator.run()
    assert said in "\n".join(seen)
    assert "h1" not in hospitals.folder.answer(0, SiteAnswer).survivors
    check(hospitals, noises)


@pytest.mark.parametrize("lie", LIES)
def test_a_site_that_lies_ends_a_study_that_needs_everybody(tmp_path, noises, lie):
    step, change, said = LIES[lie]
    hospitals = Hospitals(tmp_path, dropouts=0)
    with pytest.raises(StudyFailed, match=said):
        hospitals.coordinator(rewriting(hospitals, "h1", step, change)).run()
    check(hospitals, noises, answered=0)


AGREEMENTS = {
    "signature": lambda m: msgspec.structs.replace(m, signature=bytes(64)),
    "name": lambda m: msgspec.structs.replace(m, site="h0"),
}


@pytest.mark.parametrize("lie", AGREEMENTS)
def test_a_study_begins_with_signatures_by_the_plans_keys(tmp_path, noises, lie):
    hospitals = Hospitals(tmp_path, dropouts=0)
    with pytest.raises(StudyFailed, match="did not begin: site 'h1' sent a signature that is not"):
        hospitals.coordinator(rewriting(hospitals, "h1", "agree", AGREEMENTS[lie])).run()
    assert hospitals.folder.attempts == []
    assert "h1" not in hospitals.folder.agreed
    assert not noises


def test_a_study_begins_without_those_who_may_be_missing(tmp_path, noises):
    hospitals = Hospitals(tmp_path)
    hospitals.silent = {("agree", "h1")}
    hospitals.coordinator().run()
    assert hospitals.folder.agreed == ["h0", "h2", "h3", "h4"]
    hospitals.silent |= {("agree", "h3")}
    with pytest.raises(StudyFailed, match="'h1' was silent at agree; site 'h3' was silent"):
        hospitals.coordinator().run()
    check(hospitals, noises)


@pytest.mark.parametrize("change", ["seeds", "sealed"])
def test_shares_that_do_not_fit_open_nothing(tmp_path, noises, change):
    """Never a sum with masks left in it."""
    hospitals = Hospitals(tmp_path, dropouts=0)

    def spoiled(message):
        if change == "seeds":
            seeds = {name: bytes(33) for name in message.seeds}
            return msgspec.structs.replace(message, seeds=seeds)
        return msgspec.structs.replace(message, sealed={})

    step = "unmask" if change == "seeds" else "share"
    with pytest.raises(StudyFailed, match="not answered"):
        hospitals.coordinator(rewriting(hospitals, "h1", step, spoiled)).run()
    assert hospitals.folder.answer(0, SiteAnswer) is None


class Wire:
    """Everything that one site was sent, to be sent again."""

    def __init__(self, hospitals, name="h0"):
        self.hospitals, self.name, self.sent = hospitals, name, []

    def __call__(self, messages):
        replies = self.hospitals.carry(messages)
        if self.name in messages:
            self.sent.append((messages[self.name], replies.get(self.name)))
        return replies

    def refused(self, content):
        reply = decode(self.hospitals.guards[self.name].handle(content), Reply)
        assert not reply.body
        return reply.refused


def test_a_message_that_comes_twice_gets_the_same_bytes(tmp_path, noises):
    hospitals = Hospitals(tmp_path)

    def twice(messages):
        first = hospitals.carry(messages)
        assert hospitals.carry(messages) == first
        return first

    hospitals.coordinator(twice).run()
    check(hospitals, noises)


def test_an_old_round_is_answered_by_nothing_new(tmp_path, noises):
    """Replayed to the running site and to one that restarted: old bytes, or a refusal."""
    hospitals = Hospitals(tmp_path)
    wire = Wire(hospitals)
    hospitals.coordinator(wire).run()
    for content, before in wire.sent:
        again = hospitals.guards["h0"].handle(content)
        assert again == before or decode(again, Reply).refused
    for content, before in wire.sent[-5:]:  # of the last round, whatever came in between
        assert hospitals.guards["h0"].handle(content) == before
    hospitals.restart("h0")
    reasons = [
        wire.refused(content) for content, _ in wire.sent if hospitals.step_of(content) != "agree"
    ]
    assert any("opened already" in reason for reason in reasons)
    assert all("opened already" in r or "no round is in progress" in r for r in reasons)
    check(hospitals, noises)


def test_a_replayed_key_offer_does_not_reuse_keys(tmp_path):
    """The same attempt at a stage that is not opened: a site that did not restart refuses it."""
    hospitals = Hospitals(tmp_path)
    wire = Wire(hospitals)

    def carrier(messages):
        replies = wire(messages)
        if hospitals.step_of(next(iter(messages.values()))) == "share":
            raise Killed
        return replies

    for _ in range(2):
        with pytest.raises(Killed):
            hospitals.coordinator(carrier).run()
    first = next(content for content, _ in wire.sent if hospitals.step_of(content) == "advertise")
    assert "attempt was used already" in wire.refused(first)


def test_another_question_in_the_same_stage_is_refused(tmp_path, noises):
    hospitals = Hospitals(tmp_path)
    wire = Wire(hospitals)
    hospitals.coordinator(wire).run()
    asks = [
        decode(decode(content, Envelope).body, Ask)
        for content, _ in wire.sent
        if hospitals.step_of(content) == "advertise"
    ]
    first, second = asks

    def asked(ask):
        return wire.refused(
            encode(Envelope(plan=hospitals.plan.digest, step="advertise", body=encode(ask)))
        )

    crossed = msgspec.structs.replace(second.round, stage=0)
    assert "question 0 differs from" in asked(
        msgspec.structs.replace(second, round=crossed, answers=())
    )
    further = msgspec.structs.replace(first.round, stage=2)
    told = tuple(hospitals.folder.answer(number, SiteAnswer) for number in (0, 1))
    assert "the plan does not ask this as question 2" in asked(
        msgspec.structs.replace(first, round=further, answers=told)
    )
    named = msgspec.structs.replace(first.round, question="0" * 64)
    assert "not the one that its round names" in asked(msgspec.structs.replace(first, round=named))
    check(hospitals, noises)


def told_differently(hospitals, step, other):
    """A coordinator that tells h0 another thing than the others, under its own signature."""

    def carrier(messages):
        if hospitals.step_of(next(iter(messages.values()))) != step:
            return hospitals.carry(messages)
        envelope = decode(messages["h0"], Envelope)
        lie = encode(msgspec.structs.replace(envelope, body=other(envelope.body)))
        replies = hospitals.carry(dict(messages) | {"h0": lie})
        body = decode(replies["h0"], Reply).body
        if body:  # it takes the reply to the lie for one to the truth
            replies["h0"] = hospitals.signed("h0", messages["h0"], msgspec.Raw(body))
        return replies

    return carrier


def test_a_coordinator_that_tells_two_sets_of_survivors_is_named(tmp_path, noises):
    hospitals = Hospitals(tmp_path)
    identity, terms = hospitals.folder.identity, hospitals.plan.terms
    lists = {}

    def other(body):
        told = decode(body, Survivors)
        fewer = told.sites[:-1]
        content = survivors_content("told", terms, told.round, lists["sharers"], fewer)
        return encode(Survivors(round=told.round, sites=fewer, signature=identity.sign(content)))

    lying = told_differently(hospitals, "confirm", other)

    def carrier(messages):
        if hospitals.step_of(next(iter(messages.values()))) == "mask":
            lists["sharers"] = decode(decode(messages["h0"], Envelope).body, Sharers).sites
        return lying(messages)

    hospitals.coordinator(carrier).run()  # the other four, who agree, open the one sum there is
    journal = "\n".join(hospitals.guards["h0"].journal.lines)
    assert "the coordinator passed on another confirmation of site 'h1'" in journal
    assert not any("unmask" in line and "leaves" in line for line in journal.split("\n"))
    check(hospitals, noises)


def test_two_lists_of_keys_open_nothing(tmp_path, noises):
    hospitals = Hospitals(tmp_path)

    def other(body):
        shown = decode(body, OfferList)
        fewer = {name: keys for name, keys in shown.offers.items() if name != "h4"}
        return encode(OfferList(round=shown.round, offers=fewer))

    with pytest.raises(StudyFailed, match="site 'h0' sealed no share for every neighbor"):
        hospitals.coordinator(told_differently(hospitals, "share", other)).run()
    check(hospitals, noises, answered=0)


def test_somebody_elses_coordinator_opens_nothing(tmp_path):
    hospitals = Hospitals(tmp_path)
    with pytest.raises(ProtocolError, match="name another coordinator"):
        hospitals.coordinator().__class__(
            hospitals.plan, identity=Identity(), folder=hospitals.folder, carrier=hospitals.carry
        ).run()
