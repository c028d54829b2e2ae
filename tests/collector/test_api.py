"""The interface of a real collector process on loopback: who may do what, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from forked_collector import QuickCollector

from dpfda.cli._group import dpfda
from dpfda.client import RemoteClient
from dpfda.client.http import Answer, Connection, Unreachable
from dpfda.collector.collector_process import CollectorProcess
from dpfda.errors import ProtocolError
from dpfda.noise import SimulationSource
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import Task
from dpfda.protocol.wire import ReplyMessage, nonce_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("collector")


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[CollectorProcess]:
    options = ("--rate", "50", "--patience", "2", "--enrolments", "0")
    database = f"sqlite:///{folder / 'study.db'}"
    with QuickCollector(database, log=folder / "log", options=options) as process:
        yield process


@pytest.fixture(scope="module")
def http(collector: CollectorProcess) -> Iterator[Any]:
    with Connection(collector.url) as connection:

        def ask(method: str, path: str, body: Any = None, *, token: str | None = None) -> Answer:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            try:
                return connection.ask(method, path, body=data, headers=headers)
            except Unreachable:  # an idle connection was closed
                return connection.ask(method, path, body=data, headers=headers)

        yield ask


SEEDS = iter(range(1000, 2000))


@pytest.fixture
def study(collector: CollectorProcess, make_plan: Any) -> dict[str, Any]:
    return collector.create(make_plan(4, seed=next(SEEDS)), open=True)


class Person:
    """Somebody with a token, who does as told."""

    def __init__(self, http: Any, study: dict[str, Any], token: str | None = None) -> None:
        self.http = http
        self.path = f"/api/studies/{study['id']}"
        self.token = token or http("POST", self.path + "/enrol").json()["token"]

    def task(self) -> Answer:
        answer: Answer = self.http("GET", self.path + "/task", token=self.token)
        return answer

    def body(self, *, seed: int = 0) -> bytes:
        message = self.task().json()
        task = Task.from_dict(message["task"])
        values = task.answer((np.array([[0.5, 0.0]]), np.array([1])), SimulationSource(seed)).values
        reply = ReplyMessage.saying(
            message["plan"], message["phase"], message["ticket"], values[0].tolist()
        )
        return msgspec.json.encode(reply)

    def send(self, body: bytes) -> Answer:
        answer: Answer = self.http("POST", self.path + "/reply", body, token=self.token)
        return answer


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


def test_a_study_from_plan_to_model(collector: CollectorProcess, http: Any, study: Any) -> None:
    assert StudyPlan.from_dict(study["plan"]).hash == study["hash"]
    for _ in range(4):
        person = Person(http, study)
        assert person.send(person.body()).status == 200
    status = collector.wait_until(study["id"])
    assert status["status"] == "finished"
    model = CurveModel.from_json(http("GET", f"/api/studies/{study['id']}/model").body)
    assert model.guarantee.epsilon == 4.0
    assert model.guarantee.sampler == "unknown", "people's devices draw, out of sight"
    history = http("GET", f"/api/studies/{study['id']}/models").json()
    assert [(entry["phase"], entry["people"]) for entry in history] == [(-1, 0), (0, 4)]
    assert CurveModel.from_dict(history[-1]["model"]).to_json() == model.to_json()
    assert code(http("POST", f"/api/studies/{study['id']}/enrol")) == (410, "finished")


def test_the_same_task_however_often_one_asks(http: Any, study: Any) -> None:
    person = Person(http, study)
    assert person.task().body == person.task().body


def test_the_same_bytes_get_the_same_answer(http: Any, study: Any) -> None:
    person = Person(http, study)
    body, other = person.body(), person.body(seed=1)
    first, second = person.send(body), person.send(body)
    assert first.status == second.status == 200
    assert first.body == second.body
    assert code(person.task()) == (409, "answered"), "nobody is asked again who has answered"
    assert code(person.send(other)) == (409, "answered")
    assert code(person.send(body + b" ")) == (409, "answered"), "the same values are not enough"


def withdrawal(body: bytes, secret: str) -> bytes:
    return json.dumps({"reply": body.decode(), "secret": secret}).encode()


def test_a_reply_is_withdrawn_until_its_phase_ends(
    collector: CollectorProcess, http: Any, study: Any
) -> None:
    """Only with token, bytes and secret; then no result contains it, and its sender can tell."""
    secret = "5e" * 32
    people = [Person(http, study) for _ in range(4)]
    bodies = [one.body() for one in people]
    mine, path = {**json.loads(bodies[0]), "nonce": nonce_of(secret)}, people[0].path + "/withdraw"
    bodies[0] = json.dumps(mine).encode()
    receipt = people[0].send(bodies[0]).json()["receipt"]
    assert people[1].send(bodies[1]).status == 200

    def ask(who: int, body: bytes) -> Answer:
        answer: Answer = http("POST", path, body, token=people[who].token)
        return answer

    wish = withdrawal(bodies[0], secret)
    assert code(ask(0, withdrawal(bodies[0], "5f" * 32))) == (403, "wrong_secret")
    assert code(ask(1, wish)) == (403, "wrong_ticket"), "everybody has another token"
    assert code(ask(0, withdrawal(bodies[0] + b" ", secret))) == (409, "not_stored")
    mine["plan"] = "0" * 64
    assert code(ask(0, withdrawal(json.dumps(mine).encode(), secret))) == (409, "wrong_study")
    for wrong in (b"", b"{}", b'{"reply": 3}', wish[:-1], withdrawal(b"{}", secret), b"\xff"):
        assert code(ask(0, wrong)) == (400, "malformed")
    assert http("POST", path, wish).status == 401
    stored = collector.read("GET", f"/api/studies/{study['id']}/phases/0/replies")
    assert len(stored.splitlines()) == 2
    assert [ask(0, wish).json() for _ in range(2)] == [{"withdrawn": True}] * 2
    assert code(people[0].send(bodies[0])) == (410, "withdrawn")
    assert code(people[0].task()) == (409, "answered")
    assert http("GET", f"/api/studies/{study['id']}/receipts/{receipt}").status == 404
    for person, body in zip(people[2:], bodies[2:], strict=True):
        assert person.send(body).status == 200
    assert collector.wait_until(study["id"])["status"] == "finished"
    history = http("GET", f"/api/studies/{study['id']}/models").json()
    assert [entry["people"] for entry in history] == [0, 3]
    assert ask(0, wish).json() == {"withdrawn": True}
    late = {**json.loads(bodies[1]), "nonce": nonce_of(secret)}
    assert code(ask(1, withdrawal(json.dumps(late).encode(), secret))) == (410, "late")


def test_a_device_withdraws_its_reply(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan(4, seed=31)
    name = collector.create(plan, open=True, deadline=3600)["id"]
    device = RemoteClient(tmp_path, limit_epsilon=9.0)
    device.join(collector.url, plan.hash, most_epsilon=4.0)
    with pytest.raises(ProtocolError, match="nothing was prepared"):
        device.withdraw(plan.hash)
    device.submit(plan.hash, curve=[0.5, 0.0], label="yes")
    letter = json.loads((tmp_path / "studies" / f"{plan.hash}.json").read_text())
    assert json.loads(letter["body"])["nonce"] == nonce_of(letter["secret"])
    assert collector.request("GET", f"/api/studies/{name}")["answered"] == 1
    run = CliRunner().invoke(
        dpfda, ["receipt", plan.hash, "--withdraw", "--home", str(tmp_path)], catch_exceptions=False
    )
    assert run.output == "withdrawn; it does not count\n"
    device.withdraw(plan.hash)
    assert collector.read("GET", f"/api/studies/{name}/phases/0/replies") == b""
    assert device.stage(plan.hash) == "withdrawn"
    assert device.ledger.remaining.epsilon == 5.0
    for again in (device.send, device.counted):
        with pytest.raises(ProtocolError, match="was withdrawn"):
            again(plan.hash)
    with pytest.raises(ProtocolError, match="was withdrawn"):  # nothing is drawn anew either
        device.submit(plan.hash, curve=[0.5, 0.0], label="yes")


def test_the_same_bytes_are_known_after_the_phase(
    collector: CollectorProcess, http: Any, study: Any
) -> None:
    early, silent = Person(http, study), Person(http, study)
    body, late = early.body(), silent.body()
    first = early.send(body)
    assert http("POST", f"/api/studies/{study['id']}/phases/0/close").status == 401
    collector.request("POST", f"/api/studies/{study['id']}/phases/0/close")
    collector.wait_until(study["id"])
    assert early.send(body).body == first.body
    assert code(silent.send(late)) == (410, "late")
    assert code(silent.task()) == (410, "late")


def test_replies_that_belong_elsewhere(
    collector: CollectorProcess, http: Any, study: Any, make_plan: Any
) -> None:
    person, other = Person(http, study), Person(http, study)
    body = person.body()
    other.task()
    assert code(other.send(body)) == (403, "wrong_ticket")
    elsewhere = collector.create(make_plan(4, seed=next(SEEDS)), open=True)
    stranger = Person(http, elsewhere, token=person.token)
    assert code(stranger.send(body)) == (409, "wrong_study")
    assert code(stranger.task()) == (403, "wrong_study")
    message = json.loads(body)
    for change, expected in [
        ({"phase": 1}, (409, "wrong_phase")),
        ({"phase": -1}, (400, "malformed")),
        ({"ticket": 99}, (422, "bad_reply")),
        ({"ticket": 2**70}, (400, "malformed")),
        ({"plan": "0" * 64}, (409, "wrong_study")),
        ({"values": [1.0]}, (422, "bad_reply")),
        ({"values": [1e400, 0.0]}, (400, "malformed")),
        ({"values": "x"}, (400, "malformed")),
        ({"more": 1}, (400, "malformed")),
        ({"nonce": message["nonce"][:-1]}, (400, "bad_nonce")),
        ({"nonce": message["nonce"] + "0"}, (400, "bad_nonce")),
        ({"nonce": message["nonce"] + "\n"}, (400, "bad_nonce")),
        ({"nonce": message["nonce"][:-1] + "\n"}, (400, "bad_nonce")),
        ({"nonce": "A" * 32}, (400, "bad_nonce")),
        ({"nonce": None}, (400, "bad_nonce")),
    ]:
        changed = json.dumps(message | change).replace("Infinity", "1e999").encode()
        assert code(person.send(changed)) == expected, change
    del message["nonce"]
    missing = person.send(json.dumps(message).encode())
    assert code(missing) == (400, "bad_nonce")
    assert "needs a nonce: 32 hexadecimal digits" in missing.json()["error"]["message"]
    assert person.send(body).status == 200, "nothing of that was counted"


@pytest.mark.parametrize("token", [None, "", "guess", "é", "x" * 5000])
def test_no_token_no_task(http: Any, study: Any, token: str | None) -> None:
    encoded = None if token is None else token.encode().decode("latin-1")
    answer = http("GET", f"/api/studies/{study['id']}/task", token=encoded)
    assert code(answer) == (401, "unknown_token")


def test_only_the_administrator_changes_or_sees(
    collector: CollectorProcess, http: Any, study: Any, make_plan: Any
) -> None:
    path = f"/api/studies/{study['id']}"
    person = Person(http, study)
    body = person.body()
    person.send(body)
    new = {"plan": make_plan(seed=5).to_dict()}
    peer = {"url": collector.url, "study": study["id"]}
    wrong = (None, person.token, collector.admin_key[:-1], collector.admin_key + "x")
    for number, token in enumerate(wrong):  # each from elsewhere: ten are compared for an address
        for method, place, sent in [
            ("POST", "/api/studies", new),
            ("POST", path + "/tokens", {"count": 1}),
            ("POST", path + "/phases/0/close", None),
            ("GET", path + "/phases/0/replies", None),
            ("POST", "/api/exchanges", {"peers": [peer], "epsilon": 1, "n_people": 1}),
        ]:
            known = {"Content-Type": "application/json"}
            known |= {} if token is None else {"Authorization": f"Bearer {token}"}
            wire = HTTPConnection(
                "127.0.0.1", collector.port, source_address=(f"127.0.1.{number + 1}", 0)
            )
            wire.request(method, place, None if sent is None else json.dumps(sent), known)
            assert wire.getresponse().status == 401, (method, place)
            wire.close()
    seen = http("GET", path + "/phases/0/replies", token=collector.admin_key)
    kept = msgspec.json.decode(body, type=ReplyMessage).kept()
    assert seen.body == msgspec.json.encode(kept) + b"\n"


def test_invitations(collector: CollectorProcess, http: Any, make_plan: Any) -> None:
    study = collector.create(make_plan(4, seed=next(SEEDS)))
    path = f"/api/studies/{study['id']}"
    assert code(http("POST", path + "/enrol")) == (403, "invited_only")
    tokens = collector.request("POST", path + "/tokens", {"count": 3})["tokens"]
    assert len(set(tokens)) == 3
    assert min(map(len, tokens)) >= 43, "256 bits"
    person = Person(http, study, token=tokens[0])
    assert person.send(person.body()).status == 200


def test_a_full_phase_lets_others_wait(http: Any, study: Any) -> None:
    people = [Person(http, study) for _ in range(5)]
    assert [person.task().status for person in people] == [200] * 4 + [202]
    assert code(people[-1].task()) == (202, "wait")


def test_a_deadline_ends_a_phase(collector: CollectorProcess, http: Any, make_plan: Any) -> None:
    study = collector.create(make_plan(4, seed=next(SEEDS)), deadline=0.5, open=True)
    person = Person(http, study)
    person.send(person.body())
    assert collector.wait_until(study["id"])["status"] == "finished"


def test_bad_plans(collector: CollectorProcess, http: Any, make_plan: Any) -> None:
    good = make_plan(4, seed=next(SEEDS)).to_dict()
    for change in [
        {"epsilon": -1},
        {"epsilon": "x"},
        {"design": {"name": "nothing"}},
        {"design": {"name": "moments", "what": 1}},
        {"design": {}},
        {"design": 5},
        {"encoder": {}},
        {"encoder": {"basis": {"name": "identity", "n_basis": 10**12}, "rescale": {"name": "x"}}},
        {"classes": 3},
        {"classes": [{}, []]},
        {"unknown": 1},
        {"n_people": 2.5},
        {"n_people": 10**9},
    ]:
        answer = http("POST", "/api/studies", {"plan": good | change}, token=collector.admin_key)
        assert answer.status == 400, change
    assert http("POST", "/api/studies", {"plan": good}, token=collector.admin_key).status == 201
    again = http("POST", "/api/studies", {"plan": good}, token=collector.admin_key)
    assert code(again) == (409, "exists")


def test_large_bodies_are_refused(collector: CollectorProcess, http: Any, study: Any) -> None:
    person = Person(http, study)
    assert person.send(b"[" + b"1," * 40_000 + b"1]").status == 413


def test_a_token_that_asks_too_often_is_slowed_down(
    collector: CollectorProcess, http: Any, study: Any
) -> None:
    person = Person(http, study)
    statuses = [person.task().status for _ in range(200)]
    assert 429 in statuses
    assert Person(http, study).task().status == 200, "others are not"


def test_health_metrics_and_openapi(http: Any, study: Any) -> None:
    assert http("GET", "/health").json() == {"status": "ok"}
    text = http("GET", "/metrics").body.decode()
    count = r'dpfda_request_seconds_count\{route="/health",status="200"\} [1-9]'
    assert re.search(count, text)
    assert http("HEAD", "/health").body == b""
    assert http("GET", "/live").json() == http("GET", "/ready").json() == {"status": "ok"}
    document = http("GET", "/openapi/openapi.json").json()
    assert "/api/studies/{study}/reply" in document["paths"]
    said = document["components"]
    assert said["schemas"]["StumpTask"]["properties"]["thresholds"]["description"]
    assert said["schemas"]["StudyStatus"]["properties"]["plan"]["$ref"].endswith("/StudyPlan")
    assert said["schemas"]["TaskMessage"]["properties"]["task"]["$ref"].endswith("/Task")
    assert {one["scheme"] for one in said["securitySchemes"].values()} == {"bearer"}
    needs = {
        f"{method} {path.removeprefix('/api/studies/')}": operation.get("security")
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert needs["post {study}/reply"] == needs["get {study}/task"] == [{"token": []}]
    assert needs["delete {study}"] == needs["post {study}/tokens"] == [{"key": []}]
    assert needs["post {study}/enrol"] is None


def test_the_list_comes_in_pages(http: Any, study: Any) -> None:
    newest = http("GET", "/api/studies?most=1").json()
    assert [one["id"] for one in newest["studies"]] == [study["id"]]
    assert newest["studies"][0]["title"] == study["title"] == "a small study"
    older = http("GET", f"/api/studies?most=1&after={newest['next']}").json()
    assert older["studies"][0]["id"] != study["id"]
    everything = http("GET", "/api/studies?most=200").json()
    assert everything["next"] is None
    assert {newest["studies"][0]["id"], older["studies"][0]["id"]} <= {
        one["id"] for one in everything["studies"]
    }
    for wrong in ("most=0", "most=201", "after=x", "after=1", "after=1-", "after=1e9-ab"):
        assert http("GET", f"/api/studies?{wrong}").status == 400


def test_unknown_things(http: Any) -> None:
    assert code(http("GET", "/api/studies/abc")) == (404, "unknown_study")
    assert code(http("GET", "/api/studies/abc/model")) == (404, "unknown_study")
    assert code(http("POST", "/api/studies/abc/enrol")) == (404, "unknown_study")
    assert http("GET", "/api/nothing").status == 404
    assert http("PUT", "/api/studies/abc").status == 405


def test_the_log_holds_neither_tokens_nor_replies(
    collector: CollectorProcess, http: Any, study: Any, folder: Path
) -> None:
    person = Person(http, study)
    body = person.body()
    person.send(body)
    person.send(body[:-5])
    person.send(body.replace(b"values", b"valuez"))
    http("GET", "/metrics")
    log = (folder / "log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert not any("reply" in line.get("route", "") for line in lines)
    values = [str(value) for value in json.loads(body)["values"] if len(str(value)) > 6]
    assert values
    nonce = json.loads(body)["nonce"]
    for secret in (person.token, collector.admin_key, nonce, *values):
        assert secret not in log
    stored = (folder / "study.db").read_bytes() + (folder / "study.db-wal").read_bytes()
    assert person.token.encode() not in stored, "only hashes are stored"
    assert nonce.encode() not in stored
    assert bytes.fromhex(nonce) not in stored
    assert collector.admin_key.encode() not in stored
