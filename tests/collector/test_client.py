"""A person's device: what it refuses, what it stores, and what it sends again."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfda.client import RemoteClient
from dpfda.client.http import Connection, Unreachable
from dpfda.client.remote import NotGranted
from dpfda.curves import CurveEncoder
from dpfda.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, ProtocolError
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server


class Villain(ThreadingHTTPServer):
    """A collector that does what a test tells it to."""

    daemon_threads = True

    def __init__(self, plan: StudyPlan) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan = plan.to_dict()
        self.task: dict[str, Any] = Server(plan).issue(1).to_dict()
        self.hash = plan.hash
        self.failures: list[int] = []  # statuses to answer replies with first; 0 hangs up
        self.received: list[bytes] = []
        self.raw: bytes | None = None  # sent instead of every answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Villain

    def do_GET(self) -> None:
        if self.path.endswith("/task"):
            message = {"plan": self.server.hash, "phase": 0, "ticket": 0, "task": self.server.task}
            self.answer(200, message)
        else:
            self.answer(200, {"plan": self.server.plan})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/enrol"):
            self.answer(201, {"token": "t" * 43})
            return
        self.server.received.append(body)
        status = self.server.failures.pop(0) if self.server.failures else 200
        if status:
            self.answer(status, {"receipt": "r"} if status == 200 else {"error": {"message": "no"}})
        else:
            self.close_connection = True

    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode() if self.server.raw is None else self.server.raw
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def plan(make_plan: Any) -> StudyPlan:
    return make_plan(10, epsilon=1.0)


@pytest.fixture
def serve() -> Iterator[Callable[[StudyPlan], Villain]]:
    begun: list[tuple[Villain, threading.Thread]] = []

    def start(plan: StudyPlan) -> Villain:
        server = Villain(plan)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        begun.append((server, thread))
        return server

    yield start
    for server, thread in begun:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def villain(plan: StudyPlan, serve: Callable[[StudyPlan], Villain]) -> Villain:
    return serve(plan)


@pytest.fixture
def client(tmp_path: Path) -> RemoteClient:
    made = RemoteClient(tmp_path / "home", limit_epsilon=3.0, patience=0.5)
    made._sleep = lambda seconds: None
    return made


CURVE = np.array([0.2, -0.4])


def joined(client: RemoteClient, villain: Villain) -> str:
    client.join(villain.url, villain.hash, most_epsilon=1.0)
    return villain.hash


def test_a_report_is_sent_once_and_its_bytes_again(client: RemoteClient, villain: Villain) -> None:
    study = joined(client, villain)
    villain.failures = [500, 0, 429, 503]
    assert client.submit(study, curve=CURVE, label="yes") == "r"
    assert len(villain.received) == 5
    assert len(set(villain.received)) == 1, "never new noise"
    assert client.submit(study, curve=-CURVE, label="no") == "r"
    assert len(villain.received) == 5, "acknowledged: nothing more is sent"
    assert client.ledger.spent.epsilon == 1.0


def test_a_device_that_restarts_sends_the_same_bytes(
    client: RemoteClient, villain: Villain, tmp_path: Path
) -> None:
    study = joined(client, villain)
    villain.failures = [500] * 8
    with pytest.raises(Unreachable):
        client.submit(study, curve=CURVE, label="yes")
    again = RemoteClient(tmp_path / "home")
    assert again.send(study) == "r"
    assert len(set(villain.received)) == 1
    assert again.ledger.spent.epsilon == 1.0


def test_what_was_spent_but_not_stored_is_not_drawn_again(
    client: RemoteClient, villain: Villain, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = joined(client, villain)

    def power_cut(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(client._outbox, "keep", power_cut)
        with pytest.raises(KeyboardInterrupt):
            client.prepare(study, curve=CURVE, label="yes")
    with pytest.raises(BudgetExceeded):
        client.prepare(study, curve=CURVE, label="yes")
    assert villain.received == []


def test_a_refusal_is_final(client: RemoteClient, villain: Villain) -> None:
    study = joined(client, villain)
    villain.failures = [410]
    with pytest.raises(NotGranted, match="refused"):
        client.submit(study, curve=CURVE, label="yes")
    assert len(villain.received) == 1


def test_another_plan_is_refused(client: RemoteClient, villain: Villain) -> None:
    villain.plan = villain.plan | {"epsilon": 0.5}
    with pytest.raises(ProtocolError, match="not the one with this hash"):
        joined(client, villain)
    with pytest.raises(InvalidParameter, match="64 digits"):
        client.join(villain.url, "../../etc/passwd", most_epsilon=1.0)


def test_assumptions_are_the_persons_to_accept(
    client: RemoteClient, make_plan: Any, serve: Any
) -> None:
    """A plan may protect the curve alone and tell labels in clear: only who agrees takes part."""
    plan = replace(make_plan(10, epsilon=1.0, name="mrma"), protects="features")
    villain = serve(plan)
    with pytest.raises(ProtocolError, match="labels are public: this was not agreed to"):
        joined(client, villain)
    assert client.studies() == []
    client.join(villain.url, plan.hash, most_epsilon=1.0, accepts=["labels are public"])
    client.submit(plan.hash, curve=CURVE, label="yes")
    assert client.ledger.entries[0].assumptions == ("labels are public",)
    assert json.loads(villain.received[0])["values"][-1] == 1.0, "in clear, as agreed"


def test_a_device_that_did_not_accept_answers_nothing(
    client: RemoteClient, make_plan: Any, serve: Any, tmp_path: Path
) -> None:
    """Also where a letter of this study lies in the outbox already."""
    plan = replace(make_plan(10, epsilon=1.0, name="mrma"), protects="features")
    villain = serve(plan)
    client.join(villain.url, plan.hash, most_epsilon=1.0, accepts=["labels are public"])
    path = tmp_path / "home" / "studies" / f"{plan.hash}.json"
    path.write_text(path.read_text().replace('["labels are public"]', "[]"))
    with pytest.raises(ProtocolError, match="not agreed"):
        client.submit(plan.hash, curve=CURVE, label="yes")
    assert client.ledger.spent.epsilon == 0
    assert villain.received == []


def test_a_stored_plan_that_was_changed_is_refused(
    client: RemoteClient, make_plan: Any, serve: Any, tmp_path: Path
) -> None:
    """It would have another price, and another key in the ledger: a second answer."""
    plan = make_plan(10, epsilon=1.0)
    villain = serve(plan)
    joined(client, villain)
    client.prepare(plan.hash, curve=CURVE, label="yes")
    path = tmp_path / "home" / "studies" / f"{plan.hash}.json"
    letter = json.loads(path.read_text())
    letter["plan"]["title"], letter["body"] = "another", None
    path.write_text(json.dumps(letter))
    for again in (
        lambda: client.submit(plan.hash, curve=CURVE, label="yes"),
        lambda: joined(client, villain),
    ):
        with pytest.raises(LedgerDamaged, match="changed"):
            again()
    assert len(client.ledger.entries) == 1
    assert villain.received == []


def test_the_command_line_asks_for_assumptions(make_plan: Any, serve: Any, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from dpfda.cli._group import dpfda

    plan = replace(make_plan(10, epsilon=1.0, name="mrma"), protects="features")
    villain = serve(plan)
    command = ["join", villain.url, plan.hash, "--most-epsilon", "1", "--limit-epsilon", "2"]
    command += ["--home", str(tmp_path / "home")]
    refused = CliRunner().invoke(dpfda, command)
    assert refused.exit_code == 2
    assert "not agreed to" in refused.output
    done = CliRunner().invoke(dpfda, [*command, "--accept", "labels are public"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("host", ["collector.example.org", "10.0.0.7", "127.0.0.1.example.org"])
def test_nothing_travels_in_clear_to_another_machine(client: RemoteClient, host: str) -> None:
    with pytest.raises(InvalidParameter, match="https"):
        client.join(f"http://{host}/", "0" * 64, most_epsilon=1.0)
    Connection(f"http://{host}/", insecure=True)


def test_shapes_without_sizes_can_be_submitted(
    client: RemoteClient, make_plan: Any, serve: Any
) -> None:
    """`max_abs` cannot be undone: its preview shows the shape."""
    for encoder in (
        CurveEncoder("cosine", n_basis=3, rescale="max_abs"),
        CurveEncoder("identity", n_basis=2, rescale="max_abs"),
    ):
        plan = replace(make_plan(10, epsilon=1.0), encoder=encoder)
        villain = serve(plan)
        joined(client, villain)
        preview = client.prepare(plan.hash, curve=CURVE, label="yes")
        assert np.isfinite(preview.original).all()
        assert client.send(plan.hash) == "r"
        assert villain.received == [preview.body]


def test_a_plan_that_is_none_is_refused(client: RemoteClient, villain: Villain) -> None:
    for plan in ({}, [], None, villain.plan | {"design": {"name": "mind_reading"}}):
        villain.plan = plan
        with pytest.raises(ProtocolError, match="understood"):
            joined(client, villain)
    assert client.studies() == []


def test_a_plan_above_the_ceiling_is_refused(client: RemoteClient, villain: Villain) -> None:
    with pytest.raises(BudgetExceeded, match="above most_epsilon"):
        client.join(villain.url, villain.hash, most_epsilon=0.9)
    assert client.studies() == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"epsilon": 1.5}, ProtocolError),
        ({"name": "everything"}, ProtocolError),
        ({"name": "vector", "positive": [[1] * 2000]}, ProtocolError),
        ({"mechanism_name": "laplace"}, ProtocolError),
        ({"positive": [7]}, ProtocolError),
        ({"positive": [0]}, ProtocolError),
        ({"dimension": 1}, ProtocolError),
        ({"epsilon": 0.5}, ProtocolError),
        ({"mechanism_name": "cap_index"}, ProtocolError),
        ({"extra": 1}, ProtocolError),
        ({"people": 2, "positive": [1, 1]}, ProtocolError),
        ({"positive": "x"}, ProtocolError),
    ],
)
def test_bad_tasks_cost_nothing(
    client: RemoteClient, villain: Villain, change: dict[str, Any], error: type[Exception]
) -> None:
    study = joined(client, villain)
    villain.task = villain.task | change
    with pytest.raises(error):
        client.prepare(study, curve=CURVE, label="yes")
    assert client.ledger.spent.epsilon == 0
    assert villain.received == []


@pytest.mark.parametrize(
    "task",
    [
        {"name": "vector", "epsilon": 1.0, "people": 1, "dimension": 2, "positive": [[1] * 2000]},
        {
            "name": "vector",
            "epsilon": 1.0,
            "people": 1,
            "dimension": 2,
            "mechanism_name": "cap_index",
        },
        {"name": "vector", "epsilon": 1.0, "people": 1, "dimension": 2, "label_share": 0.999},
        {"name": "vector", "epsilon": 1.0, "people": 1, "dimension": 2, "protects": "features"},
        {"name": "vector", "epsilon": 1.0, "people": 1, "dimension": 2, "positive": 7},
        {"name": "moment", "epsilon": 1.0, "people": 1, "dimension": 2, "positive": [1]},
        {
            "name": "evaluation", "epsilon": 1.0, "people": 1,
            "intercept": np.zeros((1, 1, 50)).tolist(), "coefficients": [[[1, 0]]],
            "centers": [[[0, 0]]], "scales": [[[1, 1]]],
        },
    ],
)  # fmt: skip
def test_what_mrma_does_not_ask_costs_nothing(
    client: RemoteClient, make_plan: Any, serve: Any, task: dict[str, Any], tmp_path: Path
) -> None:
    """Through the client, and through the command line."""
    villain = serve(make_plan(10, epsilon=1.0, name="mrma"))
    villain.task = task
    study = joined(client, villain)
    with pytest.raises(ProtocolError):
        client.prepare(study, curve=CURVE, label="yes")
    assert client.ledger.spent.epsilon == 0
    done = submitted(tmp_path / "home", study)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert RemoteClient(tmp_path / "home").ledger.spent.epsilon == 0
    assert villain.received == []


def submitted(home: Path, study: str) -> Any:
    from click.testing import CliRunner

    from dpfda.cli._group import dpfda

    curve = home.parent / "curve.csv"
    curve.write_text("0.2\n-0.4\n")
    command = ["submit", study, str(curve), "--label", "yes", "--home", str(home)]
    return CliRunner().invoke(dpfda, command)


@pytest.mark.parametrize("raw", [b"", b'"\xbf"', b"[" * 100_000, b"{}", b"null", b'{"plan": 1}'])
def test_bytes_that_mean_nothing_cost_nothing(
    client: RemoteClient, villain: Villain, raw: bytes, tmp_path: Path
) -> None:
    study = joined(client, villain)
    villain.raw = raw
    with pytest.raises(ProtocolError):
        client.prepare(study, curve=CURVE, label="yes")
    with pytest.raises(ProtocolError):
        RemoteClient(tmp_path / "new", limit_epsilon=1.0).join(villain.url, study, most_epsilon=1.0)
    assert client.ledger.spent.epsilon == 0


def test_a_second_question_is_not_answered(client: RemoteClient, villain: Villain) -> None:
    study = joined(client, villain)
    client.submit(study, curve=CURVE, label="yes")
    villain.task = villain.task | {"positive": [0]}
    client.submit(study, curve=CURVE, label="yes")
    assert len(villain.received) == 1


def test_the_overall_limit_holds(client: RemoteClient, villain: Villain, make_plan: Any) -> None:
    big = make_plan(10, epsilon=5.0)
    villain.plan, villain.hash = big.to_dict(), big.hash
    with pytest.raises(BudgetExceeded, match="ε = 5 does not fit into ε = 3"):
        client.join(villain.url, big.hash, most_epsilon=9.0)
    assert client.studies() == []


def test_the_preview_is_what_is_sent(client: RemoteClient, villain: Villain) -> None:
    study = joined(client, villain)
    preview = client.prepare(study, curve=CURVE, label="yes")
    assert villain.received == []
    assert np.allclose(preview.original, CURVE)
    assert preview.perturbed is not None
    assert preview.perturbed.shape == CURVE.shape
    client.send(study)
    assert villain.received == [preview.body]


def test_files_are_the_persons_own(client: RemoteClient, villain: Villain, tmp_path: Path) -> None:
    study = joined(client, villain)
    client.submit(study, curve=CURVE, label="yes")
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
    stored = (tmp_path / "home" / "studies" / f"{study}.json").read_text()
    assert "-0.4" not in stored, "the curve itself is not kept"


def test_the_command_line_joins_shows_and_submits(villain: Villain, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from dpfda.cli._group import dpfda

    curve = tmp_path / "curve.csv"
    curve.write_text("0.2\n-0.4\n")
    home = ["--home", str(tmp_path / "home")]
    runner = CliRunner()
    done = runner.invoke(
        dpfda,
        ["join", villain.url, villain.hash, "--most-epsilon", "1", "--limit-epsilon", "2", *home],
    )
    assert done.exit_code == 0, done.output
    assert "promise: ε = 1, local" in done.stdout
    submit = ["submit", villain.hash, str(curve), "--label", "yes", *home]
    assert f"next: dpfda submit {villain.hash} YOUR_FILE --label YOUR_LABEL" in done.stdout
    assert f"{shlex.join(home)} --show\n" in done.stdout
    unwilling = runner.invoke(dpfda, [*submit, "--show"], input="n\n")
    assert unwilling.stdout == "nothing was spent or sent\n"
    assert RemoteClient(tmp_path / "home").ledger.entries == ()
    declined = runner.invoke(dpfda, [*submit, "--show"], input="y\nn\n")
    assert "nothing was sent" in declined.stdout
    assert "what the reply shows" in declined.stderr
    assert villain.received == []
    done = runner.invoke(dpfda, [*submit, "--json"])
    assert json.loads(done.stdout) == {"receipt": "r"}
    assert len(villain.received) == 1


def test_the_client_needs_the_core_only() -> None:
    code = (
        "import sys; import dpfda.client;"
        "print(sorted({'litestar', 'sqlalchemy', 'httpx', 'sklearn', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
