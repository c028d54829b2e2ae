"""What is kept of replies, of whom they are taken, and what each is told."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import msgspec
from one_process import (
    OPEN,
    TWO_PHASES,
    Recording,
    answer,
    concluded,
    person,
    read_task,
    refusal,
    reply_to,
    sent_by,
    with_collector,
)

from dpfda.collector.refusal import no_ticket, not_removed, not_stored
from dpfda.collector.replies import Sent
from dpfda.collector.service import Collector
from dpfda.protocol.wire import ReplyMessage, token_hash


def test_nobody_finds_out_what_another_person_replied(make_plan: Any) -> None:
    """Not by sending the very reply again, in a phase or after it: what says yes is the token."""

    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        (mine,), (theirs,) = await collector.invite(study, 1), await collector.invite(study, 1)
        tasks = [read_task(await collector.task(study, token_hash(one))) for one in (mine, theirs)]
        own, other = (reply_to(task) for task in tasks)
        receipt = await collector.reply(study, Sent.by(theirs, *other))
        await collector.reply(study, Sent.by(mine, *own))
        assert await refusal(collector.reply(study, Sent.by(mine, *other))) == (403, "wrong_ticket")
        await concluded(collector, study)
        assert await refusal(collector.reply(study, Sent.by(mine, *other))) == (410, "late")
        assert await collector.reply(study, Sent.by(theirs, *other)) == receipt
        digests = {reply.digest for reply in storage.received}
        assert hashlib.sha256(other[1]).digest() not in digests
        assert hmac.digest(token_hash(theirs), other[1], "sha256") not in digests

    with_collector(course)


def test_padding_is_not_stored(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        token, message = await person(collector, study)
        said, body = reply_to(message)
        padded = body + b" " * 60_000
        receipt = await collector.reply(study, sent_by(token, said, padded))
        assert storage.received[-1].body == msgspec.json.encode(said.kept())
        assert await collector.reply(study, sent_by(token, said, padded)) == receipt
        assert await refusal(collector.reply(study, sent_by(token, said, body))) == (
            409,
            "answered",
        )

    with_collector(course)


def test_what_is_stored_of_a_reply() -> None:
    message = ReplyMessage.saying("0" * 64, 0, 2**40, [0.5] * 3)
    kept = sent_by(b"?", message, msgspec.json.encode(message)).stored("study")
    said = {"plan": "0" * 64, "phase": 0, "ticket": 2**40, "values": [0.5] * 3}
    assert msgspec.json.decode(kept.body) == said
    assert (kept.study, kept.phase, kept.number) == ("study", 0, 2**31 - 1)


def test_every_message_has_a_nonce_of_its_own() -> None:
    """Of 16 bytes, each of which takes many values."""
    drawn = [bytes.fromhex(ReplyMessage.saying("p", 0, 0, []).nonce) for _ in range(200)]
    assert len(set(drawn)) == 200
    assert all(len(set(column)) > 50 for column in zip(*drawn, strict=True))
    assert {len(one) for one in drawn} == {16}


def test_one_reply_a_person(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(4, **TWO_PHASES).to_dict(), OPEN)).id
        token, message = await person(collector, study)
        silent, missed = await person(collector, study)
        good = reply_to(message)

        async def refused(token: bytes = token, **other: Any) -> tuple[int, str]:
            return await refusal(
                collector.reply(study, sent_by(token, *reply_to(message, **other)))
            )

        assert await refused(plan="0" * 64) == (409, "wrong_study")
        assert await refused(phase=1) == (409, "wrong_phase")
        assert await refused(phase=-1) == (409, "wrong_phase")
        assert await refused(ticket=-1) == (409, "wrong_phase")
        assert await refused(ticket=2) == (422, "bad_reply")
        assert await refused(values=[0.0] * 9) == (422, "bad_reply")
        assert storage.received == []
        assert await refused(token=b"?") == (401, "unknown_token")
        assert await refused(token=silent) == (403, "wrong_ticket")
        assert (await collector.phases.get(study)).answered == 0

        receipt = await collector.reply(study, sent_by(token, *good))
        assert await collector.reply(study, sent_by(token, *good)) == receipt
        assert (await collector.phases.get(study)).answered == 1
        assert not collector.watcher.called.is_set()
        other = reply_to(message, values=[-value for value in good[0].values])
        assert await refusal(collector.reply(study, sent_by(token, *other))) == (409, "answered")

        await concluded(collector, study)
        gone = sent_by(silent, *reply_to(missed))
        assert await refusal(collector.reply(study, gone)) == (410, "late")
        assert (await collector.reply(study, sent_by(token, *good))) == receipt
        late = await refused(ticket=2**40)
        assert late == (410, "late"), "which ticket it was is forgotten"
        assert storage.received[-1].number == 2**31 - 1  # what every database can hold

    with_collector(course)


def test_the_last_reply_wakes_the_watcher(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(2).to_dict(), OPEN)).id
        await answer(collector, study)
        assert not collector.watcher.called.is_set()
        await answer(collector, study)
        assert collector.watcher.called.is_set()

    with_collector(course)


def test_answers_are_counted_from_what_is_stored(make_plan: Any) -> None:
    async def course(collector: Collector, storage: Recording) -> None:
        study = (await collector.create(make_plan(2).to_dict(), OPEN)).id
        await answer(collector, study)
        collector.phases.forget(study)  # as another process would find it
        await answer(collector, study)
        assert collector.watcher.called.is_set()

    with_collector(course)


def test_every_outcome_has_its_answer() -> None:
    issued = {
        "unknown": 401,
        "foreign": 403,
        "lapsed": 410,
        "late": 410,
        "finished": 410,
        "wait": 202,
    }
    assert {name: no_ticket(name).status for name in issued} == issued  # type: ignore[arg-type]
    stored = {
        "unknown": 401,
        "foreign": 403,
        "lapsed": 410,
        "different": 409,
        "withdrawn": 410,
        "late": 410,
        "failed": 422,
    }
    assert {name: not_stored(name).status for name in stored} == stored  # type: ignore[arg-type]
    removed = {"unknown": 401, "foreign": 403, "lapsed": 410, "different": 409, "late": 410}
    assert {name: not_removed(name).status for name in removed} == removed  # type: ignore[arg-type]
