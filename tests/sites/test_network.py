"""Real processes on loopback: Flower's own SuperLink and SuperNodes, TLS, slow links and kill -9.

Every study is one of the page about hospitals, typed as it stands there. Each step of a study costs
seconds, because Flower polls and starts a process for every message; so each study meets several
faults.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hospitals import typed, write_owners, write_table

from dpfda.cli._group import dpfda as command_line
from dpfda.curves.files import Reading
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger_file import FileLedger
from dpfda.report import documents
from dpfda.sites.messages import SiteAnswer
from dpfda.sites.site_folder import SiteFolder
from dpfda.sites.study_folder import StudyFolder
from dpfda.sites.sums import answer_of, next_question
from dpfda_bench.relay import Relay

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-federation" / "bin" / "python"
pytestmark = [
    pytest.mark.timed,
    pytest.mark.skipif(
        not PYTHON.exists(), reason="Flower has an environment of its own: make setup"
    ),
]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Network:
    """Commands in a folder, and the processes that they leave running."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.links: dict[str, Relay] = {}
        self.relays = contextlib.ExitStack()
        self.environment = {
            "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HOME": str(place),
            "PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "COLUMNS": "200",
        }  # fmt: skip

    def start(self, name: str, command: str, *, says: str = "") -> subprocess.Popen[bytes]:
        arguments = shlex.split(command)
        assert arguments[0] == "dpfda"
        typed = self.place / f"{name}.in"
        typed.write_text(says, encoding="utf-8")
        with open(self.place / f"{name}.out", "ab") as out, open(typed, "rb") as given:
            self.running[name] = subprocess.Popen(
                [PYTHON, "-m", "dpfda.cli", *arguments[1:]],
                cwd=self.place, env=self.environment, stdin=given, stdout=out, stderr=out,
            )  # fmt: skip
        return self.running[name]

    def run(self, command: str) -> str:
        """A command that needs no network, here."""
        with contextlib.chdir(self.place):
            done = CliRunner().invoke(command_line, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
        return done.output

    def said(self, name: str) -> str:
        return (self.place / f"{name}.out").read_text(encoding="utf-8")

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
        self.relays.close()
        for path in self.place.rglob("flower-*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


@pytest.fixture
def network(tmp_path):
    found = Network(tmp_path)
    yield found
    found.close()


def until(happened, *, seconds: float = 400) -> None:
    """Wait; on a machine with ten times as many processes as cores, Flower needs minutes."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def check_sums(folder: StudyFolder, sites: dict[str, SiteFolder]) -> None:
    """Every opened sum is that of its sites' tables, but for noise; anything else is far away."""
    plan, told = folder.plan(), []
    tables = {
        name: Reading().open(one.path / one.config.data).table() for name, one in sites.items()
    }
    records = {name: plan.inquiry.records(table) for name, table in tables.items()}
    while (one := folder.answer(len(told), SiteAnswer)) is not None:
        query = next_question(plan, plan.inquiry.conversation, len(told), told)
        answer = answer_of(plan, query, one)
        held = tuple(np.concatenate(part) for part in zip(*map(records.get, one.survivors)))  # type: ignore[arg-type]  # noqa: B905
        exact = query.exact(query.fitting(held), SimulationSource(0))
        assert np.all(np.abs(answer.values - exact) < 8 * np.sqrt(answer.noise.variance))
        told.append(one)


def commands(network, title, **relays):
    """What a section of the page says is typed: (who, command); sites go through their relays."""
    port = free_port()
    for who, written in typed(title):
        command = re.sub(r":84\d\d", f":{port}", written)
        if "site serve" in command and who in relays:
            relay = network.relays.enter_context(Relay(port, relays[who]))
            network.links[who] = relay
            command += f" --superlink 127.0.0.1:{relay.port}"
        yield who, command


def begin_study(network, title, **relays):
    """Everybody types their commands; the coordinator's last one runs on."""
    for who, command in commands(network, title, **relays):
        if "site serve" in command:
            network.start(who, command, says="y\n")
        elif "consortium run" in command:
            network.start(who, command)
        else:
            network.run(command)


@pytest.mark.timeout(1200)
def test_the_page_runs_as_it_is_written_and_everything_dies_once(network, tmp_path):
    """Whatever ends is started again; every opened sum is that of the tables, paid for once."""
    for number, name in enumerate(("north", "south")):
        write_table(tmp_path / f"{name}.csv", number, rows=400)
    begin_study(network, "Three terminals")
    sites = {name: SiteFolder(tmp_path / name) for name in ("north", "south")}
    folder = StudyFolder(tmp_path / "study")
    told = dict(commands(network, "Three terminals"))  # the last command of each

    def again(who):
        port = folder.plan().body.address
        network.start(who, re.sub(r"127\.0\.0\.1:\d+", port, told[who]), says="y\n")

    def led(happened):
        """As a person would: a run that failed says why, and is started again."""
        if network.running["Registry"].poll() not in (None, 0):
            assert re.search("was not answered|did not begin", network.said("Registry"))
            again("Registry")
        return happened

    def reached(name, words):
        return led(any(re.search(words, line) for line in sites[name].journal.lines))

    # Once its noise is stored: a site that dies between ledger and noise never answers (test_site).
    until(lambda: reached("north", r"leaves +advertise: fresh keys"))
    network.kill("North")
    again("North")
    until(lambda: led(folder.answer(0, SiteAnswer) is not None))
    superlink = folder.private / "network" / "flower-superlink.pid"
    os.kill(int(superlink.read_text()), signal.SIGKILL)
    until(lambda: reached("south", r"asked +question 1:"))
    network.kill("Registry")
    kept = folder.answer(0, SiteAnswer)
    again("Registry")
    until(lambda: led(folder.result_path.exists()))
    model = documents.load(folder.result_path)
    assert (model.rows, model.guarantee.model) == (800, "decentralized")
    assert folder.answer(0, SiteAnswer) == kept
    check_sums(folder, sites)
    for name, site in sites.items():
        keys = [entry.key for entry in FileLedger(site.ledger_path).entries]
        assert len(keys) == len(set(keys)) == 2
        assert "in an opened sum" in network.run(f"dpfda site status {name}")
    assert "the SuperLink stopped" in network.said("Registry")
    assert "finished" in network.run("dpfda consortium status study")
    for who in ("North", "South", "Registry"):
        assert network.running[who].wait(300) == 0, network.said(who)


@pytest.mark.timeout(600)
def test_owners_take_part_over_slow_links_that_stall_and_break(network, tmp_path):
    """Round trips of 20, 300 and 800 ms: every site is in every answer, at the first attempt."""
    names = ("north", "south", "east")
    for number, name in enumerate(names):
        write_owners(tmp_path / f"{name}-clients.csv", number, owners=40)
    columns = {"age": [18, 100], "weight": [30, 150], "sick": ["no", "yes"]}
    (tmp_path / "columns.json").write_text(json.dumps(columns), encoding="utf-8")
    begin_study(network, "Owners behind sites", North=0.02, South=0.3, East=0.8)
    folders = {name: SiteFolder(tmp_path / f"{name}-clients") for name in names}

    def asked(name, number):
        assert network.running["Registry"].poll() in (None, 0), network.said("Registry")
        return any(f"question {number}" in line for line in folders[name].journal.lines)

    until(lambda: asked("south", 0))
    network.links["South"].reset()
    until(lambda: asked("east", 0))
    network.links["East"].stall(4)
    assert outward(network.running["North"].pid) == set()
    for who in ("Registry", "North", "South", "East"):
        assert network.running[who].wait(300) == 0, network.said(who)
    assert all(relay.passed > 0 for relay in network.links.values())
    assert "the coordinator has its result" in network.said("East")
    model = documents.load(tmp_path / "clients" / "result.json")
    assert (model.guarantee.epsilon, model.guarantee.unit) == (2.0, "owner")
    plan = StudyFolder(tmp_path / "clients").plan()
    for folder in folders.values():
        entries = folder.ledger.entries
        assert [entry.event.epsilon for entry in entries] == [2.0, 0.0, 0.0]  # paid for once
        assert [entry.key for entry in entries] == [f"{plan.digest} {n}" for n in (40, 80, 120)]
        assert folder.progress(plan) == ["answered"] * 3
    assert "question 2: answered by 3 sites, 1 attempts" in network.run(
        "dpfda consortium status clients"
    )


OTHER_APPS = """
import io, json, sys, zipfile
from pathlib import Path
from dpfda.sites import app, link
from dpfda.sites.study_folder import StudyFolder

folder, true, evil = StudyFolder(Path("study")), app.bundle(), io.BytesIO()
genuine, identity, plan = app.verification, folder.identity, folder.plan()
code = 'from pathlib import Path; Path(%r).touch(); from dpfda.sites.components import client'
with zipfile.ZipFile(io.BytesIO(true)) as old, zipfile.ZipFile(evil, "w") as new:
    files = {name: old.read(name) for name in ("pyproject.toml", "LICENSE")}
    files["pyproject.toml"] = files["pyproject.toml"].replace(
        b"dpfda.sites.components:client", b"evil:client")
    files["evil.py"] = (code % str(Path("ran").resolve())).encode()
    lines = [f"{name},{app.hashlib.sha256(text).hexdigest()},{8 * len(text)}"
        for name, text in files.items()]
    for name, text in (*files.items(), (".info/CONTENT", "\\n".join(lines).encode())):
        new.writestr(name, text)

def by_another(public, signature):
    signed = identity.sign(bytes(8) + app.hashlib.sha256(evil.getvalue()).digest())
    return genuine(public, signed)

said, outcome = [], {}
app.bundle = evil.getvalue
with link.FlowerCarrier(folder, plan, wait=25, start=120, say=said.append) as carry:
    while carry.present() != ["north"]:
        link.time.sleep(0.5)
    for name, bundle, verification in (
        ("changed", evil.getvalue, genuine),
        ("by another", evil.getvalue, by_another),
        ("ours", lambda: true, genuine),
    ):
        app.bundle, app.verification = bundle, verification
        carry._app.close()
        carry._connect()
        outcome[name] = sorted(carry({"north": b"no message"}))
print(json.dumps({"outcome": outcome, "said": said}))
"""


@pytest.mark.timeout(600)
def test_a_site_runs_only_the_app_that_it_signed(network, tmp_path):
    """A coordinator that sends other code gets no reply, and the code does not run."""
    for number, name in enumerate(("north", "south")):
        write_table(tmp_path / f"{name}.csv", number, rows=400)
    for who, command in commands(network, "Three terminals"):
        if "consortium run" not in command and "serve south" not in command:
            if "site serve" in command:
                network.start(who, command, says="y\n")
            else:
                network.run(command)
    done = subprocess.run(
        [PYTHON, "-c", OTHER_APPS], cwd=tmp_path, env=network.environment, timeout=400,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + network.said("North")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["outcome"] == {"changed": [], "by another": [], "ours": ["north"]}
    assert sum("could not be verified" in line for line in found["said"]) == 2, found["said"]
    assert not (tmp_path / "ran").exists()
    refused = [line for line in SiteFolder(tmp_path / "north").journal.lines if "refused" in line]
    assert len(refused) == 1  # only the message of the app that ran reached the guard


def outward(pid: int) -> set[str]:
    """Addresses other than loopback at which a process or its descendants listen."""
    parents = {
        int(path.name): int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        for path in Path("/proc").glob("[0-9]*")
        if path.joinpath("stat").exists()
    }
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    inodes = set()
    for member in family:
        for descriptor in Path(f"/proc/{member}/fd").glob("*"):
            with contextlib.suppress(OSError):
                inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(descriptor)))
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[9] in inodes:
                listening.add(cells[1].partition(":")[0])
    assert listening, "the SuperNode listens for its executor"
    return listening - {"0100007F"}
