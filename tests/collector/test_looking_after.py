"""An administrator at work: `dpfda studies`, the dashboard's forms, `dpfda receipt`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from click.testing import CliRunner, Result
from forked_collector import QuickCollector
from organizer import Organizer

from dpfda.cli._group import dpfda
from dpfda.client import RemoteClient
from dpfda.client.administrator import Administrator
from dpfda.client.http import Answer, Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages.templating import phase_name
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.protocol.plan import StudyPlan

SEEDS = iter(range(7000, 8000))
CURVE = np.array([0.2, -0.4])


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder: Path = tmp_path_factory.mktemp("collector")
    with QuickCollector(f"sqlite:///{folder / 'study.db'}", log=folder / "log") as process:
        yield process
    assert "Traceback" not in (folder / "log").read_text()


@pytest.fixture
def plan(make_plan: Any) -> StudyPlan:
    made: StudyPlan = make_plan(2, seed=next(SEEDS))
    return made


def answered(collector: CollectorProcess, plan: StudyPlan, home: Path) -> RemoteClient:
    client = RemoteClient(home, limit_epsilon=9.0)
    client.join(collector.url, plan.hash, most_epsilon=9.0)
    client.submit(plan.hash, curve=CURVE, label="yes")
    return client


def studies(collector: CollectorProcess, *command: str, code: int = 0, said: str = "") -> Result:
    done = CliRunner().invoke(
        dpfda,
        ["studies", *command, "--url", collector.url],
        env={"DPFDA_ADMIN_KEY": collector.admin_key},
        input=said,
    )
    assert done.exit_code == code, done.output
    return done


def test_the_command_line_looks_after_a_study(
    collector: CollectorProcess, plan: StudyPlan, tmp_path: Path
) -> None:
    study = collector.create(plan, open=True)["id"]
    answered(collector, plan, tmp_path / "home")
    assert study in studies(collector, "list").stdout
    (listed,) = [
        one for one in json.loads(studies(collector, "list", "--json").stdout) if one["id"] == study
    ]
    assert (listed["answered"], listed["wanted"]) == (1, 2)
    other = collector.create(replace(plan, seed=plan.seed + 10**6))["id"]
    newest = studies(collector, "list", "--json", "--most", "1")
    assert [one["id"] for one in json.loads(newest.stdout)] == [other]
    assert newest.stderr == "there are older ones: --most 0 lists all\n"
    everything = studies(collector, "list", "--json", "--most", "0")
    assert {study, other} <= {one["id"] for one in json.loads(everything.stdout)}
    assert everything.stderr == ""
    words = studies(collector, "show", study).stdout
    assert f"hash: {plan.hash}" in words
    assert "answered in it: 1\n" in words
    assert f"asked now: {phase_name(listed['kind'])}\n" in words
    assert "phase: " not in words
    assert "links" in studies(collector, "list").stdout
    assert "enrolled" not in studies(collector, "list").stdout
    shown = json.loads(studies(collector, "show", plan.hash, "--json").stdout)
    assert shown["plan"] == json.loads(json.dumps(plan.to_dict()))

    home = ["--home", str(tmp_path / "home")]
    receipt = CliRunner().invoke(dpfda, ["receipt", plan.hash, *home])
    assert receipt.output == "received; its phase goes on\n"
    assert "status: closing" in studies(collector, "close", study).stdout
    collector.wait_until(study)
    assert "asked now" not in studies(collector, "show", study).stdout
    assert CliRunner().invoke(dpfda, ["receipt", plan.hash, *home]).output == "counted\n"
    asked = CliRunner().invoke(dpfda, ["receipt", plan.hash, "--json", *home])
    assert json.loads(asked.output) == {"counted": True}

    out = tmp_path / "exported" / "study"
    wrote = studies(collector, "export", study, "--out", str(out)).stdout.split()
    assert [Path(name).name for name in wrote] == [
        *("study.json", "models.json", "model.json", "replies-0.ndjson")
    ]
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    (reply,) = (out / "replies-0.ndjson").read_text().splitlines()
    assert json.loads(reply)["plan"] == plan.hash
    assert json.loads((out / "study.json").read_text())["hash"] == plan.hash
    assert [one["phase"] for one in json.loads((out / "models.json").read_text())] == [-1, 0]
    shown = CliRunner().invoke(dpfda, ["show", str(out / "model.json"), "--json"])
    assert json.loads(shown.output) == json.loads((out / "models.json").read_text())[-1]["model"]
    again = studies(collector, "export", study, "--out", str(out), code=2)
    assert "a folder that does not exist yet" in again.output

    declined = studies(collector, "purge", study, code=1, said="n\n")
    assert "Delete the replies" in declined.output
    assert collector.read("GET", f"/api/studies/{study}/phases/0/replies") != b""
    assert studies(collector, "purge", study, said="y\n").stdout == f"purged: {study}\n"
    assert collector.read("GET", f"/api/studies/{study}/phases/0/replies") == b""
    assert CliRunner().invoke(dpfda, ["receipt", plan.hash, *home]).output == "counted\n"

    studies(collector, "delete", study, code=1, said="n\n")
    gone = json.loads(studies(collector, "delete", study, "--yes", "--json").stdout)
    assert gone == {"study": study, "deleted": True, "done": True}
    for what in ("show", "close"):
        assert "there is no such study" in studies(collector, what, study, code=2).output
    assert "refused" in CliRunner().invoke(dpfda, ["receipt", plan.hash, *home]).output


def test_one_judge_speaks_everywhere(
    collector: CollectorProcess, plan: StudyPlan, tmp_path: Path
) -> None:
    """Page, report, JSON and terminal say the same of a study, half of it and all of it."""
    study = str(collector.create(plan, open=True)["id"])
    organizer = Organizer(collector)

    def everywhere() -> str:
        found = collector.request("GET", f"/api/studies/{study}/verdict")
        told = " ".join(found["sentences"])
        as_json = json.loads(studies(collector, "show", study, "--json").stdout)
        assert as_json["verdict"] == found
        assert f"found: {told}\n" in studies(collector, "show", study).stdout
        for page in (f"/study/{study}", f"/study/{study}/report"):
            with Connection(collector.url) as connection:
                answer = connection.ask("GET", page, headers={"Cookie": organizer.cookie})
            assert told in unescape(answer.body.decode()), page
        return f"{found['kind']}: {told}"

    answered(collector, plan, tmp_path / "one")
    assert everywhere().startswith("unclear: So far, from 1 of 2 replies.")
    answered(collector, plan, tmp_path / "two")
    collector.wait_until(study)
    over = everywhere()
    assert "So far" not in over
    assert over.startswith("unclear: Nobody was asked about the finished model"), "nobody judged"


def test_only_with_the_key(collector: CollectorProcess, plan: StudyPlan, tmp_path: Path) -> None:
    study = collector.create(plan, open=True)["id"]
    file = tmp_path / "key"
    file.write_text(collector.admin_key + "\n")
    command = ["studies", "delete", study, "--yes", "--url", collector.url]
    for wrong, words in (
        ("w" * 30, "needs an organizer's key"),
        ("", "--admin-key-file must be given"),
        ("two words", "one word of visible characters"),
    ):
        done = CliRunner().invoke(dpfda, command, env={"DPFDA_ADMIN_KEY": wrong})
        assert done.exit_code == 2
        assert words in done.output
    file.chmod(0o644)
    opened = CliRunner().invoke(dpfda, [*command, "--admin-key-file", str(file)])
    assert "closed to other users" in opened.output
    assert collector.request("GET", f"/api/studies/{study}")["id"] == study
    file.chmod(0o600)
    done = CliRunner().invoke(dpfda, [*command, "--admin-key-file", str(file)])
    assert (done.exit_code, done.stdout) == (0, f"deleted: {study}\n")


def test_the_key_travels_in_clear_to_no_other_machine() -> None:
    with pytest.raises(InvalidParameter, match="https"):
        Administrator("http://collector.example.org", "k" * 24)
    Administrator("http://collector.example.org", "k" * 24, insecure=True)


def test_every_study_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "/api/studies?most=200": {"studies": [{"id": "c"}, {"id": "b"}], "next": "1.5-b&c"},
        "/api/studies?most=200&after=1.5-b%26c": {"studies": [{"id": "a"}], "next": None},
    }
    monkeypatch.setattr(
        Connection, "ask", lambda _, __, path, **___: Answer(200, json.dumps(pages[path]).encode())
    )
    found = Administrator("http://127.0.0.1", "k" * 24).studies()
    assert [one["id"] for one in found] == ["c", "b", "a"]


def test_a_collector_that_says_the_same_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = json.dumps({"studies": [], "next": "1-a"}).encode()
    monkeypatch.setattr(Connection, "ask", lambda *_, **__: Answer(200, nothing))
    assert list(Administrator("http://127.0.0.1", "k" * 24).studies()) == []


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"null", b'"x"', b"{}", b"[" * 10**5, b'{"studies": [1]}', b"\xff"]
)
def test_odd_answers_are_told_in_words(
    answer: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Connection, "ask", lambda *_, **__: Answer(200, answer))
    administrator = Administrator("http://127.0.0.1", "k" * 24)
    for use in (
        lambda: list(administrator.studies()),
        lambda: administrator.close("ab"),
        lambda: administrator.export("ab", tmp_path / "out"),
    ):
        with pytest.raises(ProtocolError, match="cannot be understood"):
            use()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["", "../x", "ABC", "g", "a" * 65])
def test_a_study_has_a_hexadecimal_name(name: str) -> None:
    with pytest.raises(InvalidParameter, match="hexadecimal"):
        Administrator("http://127.0.0.1", "k" * 24).delete(name)


def test_the_dashboard_forgets_for_those_who_are_sure(
    collector: CollectorProcess, plan: StudyPlan, tmp_path: Path
) -> None:
    study = collector.create(plan, open=True)["id"]
    for number in range(2):
        answered(collector, plan, tmp_path / str(number))
    collector.wait_until(study)
    replies = f"/api/studies/{study}/phases/0/replies"
    with Connection(collector.url) as connection:

        def post(path: str, cookie: str = "", **fields: str) -> Any:
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
            connection._connection.request("POST", path, urlencode(fields), headers)
            answer = connection._connection.getresponse()
            answer.read()
            return answer

        signed_in = post("/login", key=collector.admin_key)
        cookie = signed_in.headers["Set-Cookie"].partition(";")[0]
        page = connection.ask("GET", f"/study/{study}", headers={"Cookie": cookie}).body.decode()
        csrf = re.search(r'name="csrf" value="(\w+)"', page)[1]  # type: ignore[index]
        assert f'action="/study/{study}/delete"' in page
        for action in ("purge", "delete"):
            path = f"/study/{study}/{action}"
            assert post(path, sure="yes").status == 303, "to the form that asks for the key"
            assert post(path, cookie, sure="yes").status == 403, "no form of this session"
            assert post(path, cookie, csrf=csrf).status == 422, "no tick"
        assert collector.read("GET", replies) != b"", "nothing happened"
        assert post(f"/study/{study}/purge", cookie, csrf=csrf, sure="yes").status == 303
        assert collector.read("GET", replies) == b""
        done = post(f"/study/{study}/delete", cookie, csrf=csrf, sure="yes")
        assert (done.status, done.headers["Location"]) == (303, "/")
        for path in (f"/study/{study}", f"/study/{study}/live", f"/study/{study}/report"):
            assert connection.ask("GET", path, headers={"Cookie": cookie}).status == 404
        assert post(f"/study/{study}/delete", cookie, csrf=csrf, sure="yes").status == 404
        assert connection.ask("GET", "/", headers={"Cookie": cookie}).status == 200
