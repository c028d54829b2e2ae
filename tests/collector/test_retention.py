"""What a running collector keeps and forgets: receipts, purged replies, deleted studies."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import subprocess
import sys
import time
import urllib.error
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
from forked_collector import QuickCollector
from one_process import Here
from stored_studies import FINISHED, every_storage, record
from stored_studies import model as stored_model

from dpfda.client.crowd import Wire
from dpfda.client.http import Answer, Connection
from dpfda.collector import watcher
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.refusal import Refused
from dpfda.collector.replies import Sent
from dpfda.collector.service import Collector
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage import open_storage, tables
from dpfda.collector.storage.base import Ended, NewReply, Storage, Unavailable
from dpfda.collector.storage.memory import MemoryStorage
from dpfda.collector.watcher import Forgetter
from dpfda.noise import SimulationSource
from dpfda.protocol.task import Task
from dpfda.protocol.wire import ReplyMessage, _masked, ticket_of, token_hash

SEEDS = iter(range(5000, 6000))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def collector(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CollectorProcess]:
    folder: Path = tmp_path_factory.mktemp("collector")
    database = f"sqlite:///{folder / 'study.db'}"
    if request.param == "postgresql":
        database = request.getfixturevalue("postgresql")
    with QuickCollector(
        database, log=folder / "log", options=["--rate", "1000", "--enrolments", "0"]
    ) as process:
        yield process
    assert "Traceback" not in (folder / "log").read_text()


@pytest.fixture
def study(collector: CollectorProcess, make_plan: Any) -> str:
    return str(collector.create(make_plan(4, seed=next(SEEDS)), open=True)["id"])


def ask(
    collector: CollectorProcess, method: str, path: str, body: bytes | None = None, token: str = ""
) -> Answer:
    with Connection(collector.url) as connection:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return connection.ask(method, path, body=body, headers=headers)


def reply_to(message: dict[str, Any]) -> bytes:
    task = Task.from_dict(message["task"])
    values = task.answer((np.array([[0.5, 0.0]]), np.array([1])), SimulationSource(0)).values
    sent = ReplyMessage.saying(
        message["plan"], message["phase"], message["ticket"], values[0].tolist()
    )
    return msgspec.json.encode(sent)


def answered(collector: CollectorProcess, study: str) -> tuple[str, bytes, str]:
    """Token, reply and receipt of somebody new."""
    path = f"/api/studies/{study}"
    token = ask(collector, "POST", path + "/enrol").json()["token"]
    body = reply_to(ask(collector, "GET", path + "/task", token=token).json())
    return token, body, ask(collector, "POST", path + "/reply", body, token).json()["receipt"]


def test_a_receipt_shows_that_a_reply_was_counted(collector: CollectorProcess, study: str) -> None:
    path = f"/api/studies/{study}"
    people = [answered(collector, study) for _ in range(3)]
    token, body, receipt = people[0]
    assert ask(collector, "GET", f"{path}/receipts/{receipt}").json() == {
        "phase": 0,
        "counted": False,
    }
    people.append(answered(collector, study))
    collector.wait_until(study)
    for _, _, shown in people:
        assert ask(collector, "GET", f"{path}/receipts/{shown}").json()["counted"] is True
    assert ask(collector, "POST", path + "/reply", body, token).json() == {"receipt": receipt}
    done = collector.request("DELETE", path + "/replies")
    assert done == {"study": study, "done": True}
    assert collector.read("GET", path + "/phases/0/replies") == b""
    assert ask(collector, "POST", path + "/reply", body, token).json() == {"receipt": receipt}
    assert ask(collector, "GET", f"{path}/receipts/{receipt}").json()["counted"] is True
    assert len(collector.request("GET", path + "/models")) == 2, "what was learnt is kept"

    for place, digit in enumerate(receipt):  # every one of them counts
        wrong = receipt[:place] + ("0" if digit != "0" else "1") + receipt[place + 1 :]
        assert ask(collector, "GET", f"{path}/receipts/{wrong}").status == 404
    swapped = receipt[:32] + people[1][2][32:]  # the mark of one, the place of another
    for wrong in (swapped, receipt[:32] + "f" * 16, "0" * 48):
        assert ask(collector, "GET", f"{path}/receipts/{wrong}").status == 404
    # Who could mask places would still need all of the mark.
    storage = open_storage(collector.database)
    record = storage.study(study)
    storage.close()
    assert record is not None
    genuine, place = bytes.fromhex(receipt)[:16], bytes(8)
    for kept in (4, 8, 15):
        mark = genuine[:kept] + bytes(one ^ 1 for one in genuine[kept:])
        forged = (mark + _masked(place, mark, record.seal)).hex()
        assert ticket_of(forged, seal=record.seal) == ticket_of(receipt, seal=record.seal) == (0, 0)
        assert ask(collector, "GET", f"{path}/receipts/{forged}").status == 404
    for odd in ("x", "1-2-3", receipt + "0", receipt.upper() + "'"):
        assert ask(collector, "GET", f"{path}/receipts/{odd}").status in (400, 404)


def test_who_gave_out_tokens_cannot_join_them_with_replies(
    collector: CollectorProcess, make_plan: Any
) -> None:
    """Before: stored replies sent with each token got 200 if they were theirs, and 410 if not."""
    study = str(collector.create(make_plan(4, seed=next(SEEDS)))["id"])
    path = f"/api/studies/{study}"
    tokens = collector.invite(study, 4)
    sent = {token: reply_to(ask(collector, "GET", path + "/task", token=token).json())
            for token in tokens}  # fmt: skip
    receipts = {token: ask(collector, "POST", path + "/reply", body, token).json()
                for token, body in sent.items()}  # fmt: skip
    collector.wait_until(study)
    storage = open_storage(collector.database)
    while storage.forget():
        pass
    lines = collector.read("GET", path + "/phases/0/replies").splitlines()
    assert [json.loads(line)["ticket"] for line in lines] == [0, 1, 2, 3]
    others = [body for token, body in sent.items() if token != tokens[0]]
    nonces = [json.loads(body)["nonce"] for body in sent.values()]
    for token in tokens:
        for line in lines:
            assert code(ask(collector, "POST", path + "/reply", line, token)) == (400, "bad_nonce")
            for guess in ("0" * 32, secrets.token_hex(16)):
                for tried in (
                    line[:-1] + b',"nonce":"%s"}' % guess.encode(),
                    json.dumps(json.loads(line) | {"nonce": guess}).encode(),
                ):
                    answer = ask(collector, "POST", path + "/reply", tried, token)
                    assert code(answer) == (410, "late"), "whoever it is"
    for body in others:
        assert code(ask(collector, "POST", path + "/reply", body, tokens[0])) == (410, "late")
    for token, body in sent.items():
        answer = ask(collector, "POST", path + "/reply", body, token)
        assert (answer.status, answer.json()) == (200, receipts[token]), "the device, once more"

    kept = everything(storage, collector)
    storage.close()
    assert lines[0] in kept
    for nonce in nonces:
        assert nonce.encode() not in kept
        assert bytes.fromhex(nonce) not in kept
        assert not any(nonce.encode() in line for line in lines)


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


def everything(storage: Any, collector: CollectorProcess) -> bytes:
    """What the collector stores and logs, as far as it can be read."""
    assert collector.log is not None
    found = [collector.log.read_bytes()]
    with storage._engine.connect() as connection:
        for table in tables.metadata.tables.values():
            for row in connection.execute(sa.select(table)):
                found += [cell if isinstance(cell, bytes) else str(cell).encode() for cell in row]
    if collector.database.startswith("sqlite"):
        path = Path(collector.database.removeprefix("sqlite:///"))
        found += [one.read_bytes() for one in path.parent.glob("study.db*")]
    return b"\0".join(found)


def test_a_deleted_study_is_gone_for_everybody(
    collector: CollectorProcess, study: str, make_plan: Any
) -> None:
    path = f"/api/studies/{study}"
    token, body, receipt = answered(collector, study)
    waiting = ask(collector, "POST", path + "/enrol").json()["token"]
    for address in (path, path + "/replies"):
        assert ask(collector, "DELETE", address).status == 401
        assert ask(collector, "DELETE", address, token=token).status == 401
    assert collector.request("DELETE", path) == {"study": study, "done": True}
    for method, address, sent, bearer in (
        ("GET", "", None, ""),
        ("GET", "/model", None, ""),
        ("GET", "/models", None, ""),
        ("POST", "/enrol", None, ""),
        ("GET", "/task", None, waiting),
        ("POST", "/reply", body, token),
        ("GET", f"/receipts/{receipt}", None, ""),
        ("DELETE", "", None, collector.admin_key),
        ("DELETE", "/replies", None, collector.admin_key),
        ("POST", "/phases/0/close", None, collector.admin_key),
        ("GET", "/phases/0/replies", None, collector.admin_key),
    ):
        answer = ask(collector, method, path + address, sent, bearer)
        assert (answer.status, answer.json()["error"]["code"]) == (404, "unknown_study")
    assert study not in {
        entry["id"] for entry in collector.request("GET", "/api/studies")["studies"]
    }


def test_a_deleted_plan_does_not_come_back(collector: CollectorProcess, make_plan: Any) -> None:
    """A device that has answered it would not answer again, and believe to have."""
    plan = make_plan(4, seed=next(SEEDS))
    collector.request("DELETE", f"/api/studies/{collector.create(plan)['id']}")
    with pytest.raises(urllib.error.HTTPError) as refused:
        collector.create(plan)
    assert refused.value.code == 409
    refused.value.close()


def test_deleting_while_people_answer_and_phases_end(
    collector: CollectorProcess, make_plan: Any
) -> None:
    """Whenever the end comes, nobody gets a 500, and the study beside it loses nothing."""
    beside = collector.create(make_plan(40, seed=next(SEEDS)), open=True)["id"]
    statuses: Counter[int] = Counter()

    async def person(study: str) -> None:
        wire, path = Wire(collector.url), f"/api/studies/{study}"

        async def ask(*what: Any, token: str | None = None) -> tuple[int, bytes]:
            for _ in range(5):
                status, found = await wire.ask(*what, token=token)
                statuses[status] += 1
                if status != 503:  # a disk may make everybody wait, and is asked again
                    break
                await asyncio.sleep(0.5)
            return status, found

        try:
            status, found = await ask("POST", path + "/enrol", b"{}")
            if status != 201:
                return
            token = json.loads(found)["token"]
            for _ in range(20):
                status, found = await ask("GET", path + "/task", token=token)
                if status != 202:
                    break
                await asyncio.sleep(0.05)
            if status == 200:
                await ask("POST", path + "/reply", reply_to(json.loads(found)), token=token)
        finally:
            wire.close()

    async def course(study: str, after: float) -> None:
        people = [asyncio.create_task(person(study)) for _ in range(12)]
        people += [asyncio.create_task(person(beside)) for _ in range(4)]
        await asyncio.sleep(after)
        for _ in range(5):
            try:
                await asyncio.to_thread(collector.request, "DELETE", f"/api/studies/{study}")
                break
            except urllib.error.HTTPError as error:
                if error.code != 503:  # a disk may make the organizer wait, too
                    raise
                await asyncio.sleep(0.5)
        await asyncio.gather(*people)
        await asyncio.sleep(0.05)  # until sockets are closed

    phases = {"name": "answers", "center_known": True, "evaluation_share": 0.5}
    for number in range(8):
        plan = make_plan(10, seed=next(SEEDS), **phases)
        asyncio.run(course(collector.create(plan, open=True)["id"], 0.02 * number))
    assert set(statuses) <= {200, 201, 202, 404, 410, 503}, statuses
    left = collector.request("GET", f"/api/studies/{beside}")
    assert (left["issued"], left["answered"]) == (32, 32)
    assert len(collector.read("GET", f"/api/studies/{beside}/phases/0/replies").split()) == 32


@every_storage
def test_old_replies_are_purged_by_themselves(storage: Storage) -> None:
    """A while after a study was finished, once, and those of no other study."""

    async def course() -> list[int]:
        for name in ("old", "young", "open"):
            assert storage.create(record(name), stored_model(name))
            token = hashlib.sha256(name.encode()).digest()
            assert storage.enrol([(name, token)]) == ["enrolled"]
            storage.issue([(name, token)], now=1.0)
            sent = NewReply(token, name, 0, 0, b"digest", b"body")
            assert storage.add_replies([sent]) == ["stored"]
            if name == "open":
                continue
            storage.begin_closing(name, 0)
            now = time.time() - (31 if name == "old" else 29) * 86400
            ended = msgspec.structs.replace(stored_model(name, 0), created=now)
            assert storage.advance(name, 0, Ended(following=FINISHED, model=ended))
        collector = Collector(storage, purge_after=30.0)
        await collector._purge_old()
        while storage.forget():
            pass
        assert storage.purgeable(before=time.time() - 30 * 86400) == []
        assert storage.purgeable(before=time.time()) == ["young"]
        kept = [len(storage.replies(name, 0)) for name in ("old", "young", "open")]
        assert storage.digest("old", 0, 0) == b"digest"
        await collector.stop()
        return kept

    assert asyncio.run(course()) == [0, 1, 1]


def test_a_study_that_another_process_deleted(make_plan: Any) -> None:
    """What a process remembers of it ends with the first request, and with a conclusion."""
    storage = MemoryStorage()

    async def refused(request: Any) -> int:
        with pytest.raises(Refused) as refusal:
            await request
        return refusal.value.status

    async def course() -> None:
        here, there = Collector(storage), Collector(storage)
        here._worker = there._worker = here._planner = there._planner = Here()
        for asked in ("enrol", "task", "reply", "conclude"):
            record = await here.create(
                make_plan(4, seed=next(SEEDS)).to_dict(), StudySettings(open=True)
            )
            token = token_hash(await here.enrol(record.id))
            message = await here.task(record.id, token)
            body = reply_to(msgspec.json.decode(message))
            await there.delete(record.id)
            assert record.id in here.phases
            if asked == "enrol":
                assert await refused(here.enrol(record.id)) == 404
            elif asked == "task":
                assert await refused(here.task(record.id, token)) == 404
            elif asked == "reply":
                sent = msgspec.json.decode(body, type=ReplyMessage)
                again = Sent(token, sent, bytes(32))
                assert await refused(here.reply(record.id, again)) == 404
            else:
                await here._conclude(record)
                assert storage.models(record.id) == []
                continue
            assert record.id not in here.phases
        await here.stop()
        await there.stop()

    asyncio.run(course())


@pytest.mark.timed
def test_what_cannot_be_forgotten_now_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[bool | Exception] = [True, True, OSError("a row"), True, False]

    async def forget() -> bool:
        found = calls.pop(0) if calls else False
        if isinstance(found, Exception):
            raise found
        return found

    async def course() -> None:
        made = Forgetter(forget)
        made.start()
        while "could not be forgotten" not in caplog.text:
            await asyncio.sleep(0.001)
        assert "a row" not in caplog.text, "of a failure its kind and place are told"
        made.call()
        while calls:
            await asyncio.sleep(0.001)
        assert await made.finish()
        await made.stop()

    asyncio.run(asyncio.wait_for(course(), 5))


def test_opening_a_file_again_keeps_the_locks_of_who_has_it_open(tmp_path: Path) -> None:
    """Without them a process that closes the database deletes the log that another writes to."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = open_storage(url)
    assert first.study("0") is None
    open_storage(url).close()
    elsewhere = f"from dpfda.collector.storage import open_storage; open_storage({url!r}).close()"
    subprocess.run([sys.executable, "-c", elsewhere], check=True)
    assert (tmp_path / "study.db-wal").exists()
    first.close()


def test_a_storage_that_fails_after_the_order_does_not_refuse_it() -> None:
    """The study is gone already: its organizer would ask again and be told that there is none."""
    calls: list[bool | Exception] = [Unavailable("the disk is busy"), True, False]

    async def forget() -> bool:
        found = calls.pop(0) if calls else False
        if isinstance(found, Exception):
            raise found
        return found

    async def course() -> None:
        made = Forgetter(forget)
        assert not await made.finish()
        made.start()
        while calls:
            await asyncio.sleep(0.001)
        assert await made.finish()
        await made.stop()

    asyncio.run(asyncio.wait_for(course(), 5))


def test_a_request_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_PATIENCE", 0.05)

    async def forget() -> bool:
        await asyncio.sleep(0.01)
        return True

    async def course() -> bool:
        return await Forgetter(forget).finish()

    assert not asyncio.run(course())
