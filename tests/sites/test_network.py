"""Real processes on loopback: one SuperLink, five sites, TLS, a key for every node, and kill -9.

One study of a few questions, so that one network sees all faults, one after the other. Whatever
happens, `dpfda consortium run` is started again until it ends; every sum that was opened is then
compared with the tables of the sites that are in it.
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
from hospitals import site_folder, typed, write_owners, write_table

from dpfda.cli._group import dpfda as command_line
from dpfda.curves.files import Reading
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger_file import FileLedger
from dpfda.report import documents
from dpfda.sites.messages import SiteAnswer
from dpfda.sites.site_folder import SiteFolder
from dpfda.sites.study_folder import StudyFolder
from dpfda.sites.sum_questions import answer_of, next_question

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-federation" / "bin" / "python"
pytestmark = [
    pytest.mark.timed,
    pytest.mark.skipif(
        not PYTHON.exists(), reason="Flower has an environment of its own: make setup"
    ),
]
FEATURES = "age=18:100,weight=30:150"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Network:
    """Commands in a folder, and the processes that they leave running."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.running: dict[str, subprocess.Popen[bytes]] = {}
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
        for path in self.place.glob("*/private/superlink.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


@pytest.fixture
def network(tmp_path):
    found = Network(tmp_path)
    yield found
    found.close()


def until(happened, *, seconds: float = 240) -> None:
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
    while (one := folder.told(len(told), SiteAnswer)) is not None:
        query = next_question(plan, plan.inquiry.conversation, len(told), told)
        answer = answer_of(plan, query, one)
        held = tuple(np.concatenate(part) for part in zip(*map(records.get, one.survivors)))  # type: ignore[arg-type]  # noqa: B905
        exact = query.exact(query.fitting(held), SimulationSource(0))
        assert np.all(np.abs(answer.values - exact) < 8 * np.sqrt(answer.noise.variance))
        told.append(one)


@pytest.mark.timeout(600)
def test_everything_dies_once(network, tmp_path):
    names = [f"h{k}" for k in range(5)]
    sites = {name: site_folder(tmp_path / name, name, k) for k, name in enumerate(names)}
    cards = " ".join(f"--site {name}/card.json" for name in names)
    network.run(f"dpfda consortium plan study --name registry --study doses {cards} "
        f"--address 127.0.0.1:{free_port()} --ask linear --target dose --feature-ranges {FEATURES} "
        "--target-range 0 100 --epsilon 1 --dropouts 1")  # fmt: skip
    folder = StudyFolder(tmp_path / "study")
    trust = " ".join(f"--trust {name}/card.json" for name in [*names, "study"])
    lead = "dpfda consortium run study --wait 4 --gather 20"

    def serve(name):
        network.start(name, f"dpfda site serve {name} --plan study/plan.json {trust} --every 0.3",
            says="y\n")  # fmt: skip

    for name in names:
        serve(name)
    network.start("lead", lead)

    def led(happened):
        """As a person would: a run that failed says why, and is started again."""
        if network.running["lead"].poll() not in (None, 0):
            assert re.search("was not answered|did not begin", network.said("lead"))
            network.start("lead", lead)
        return happened

    def reached(name, words, before=0):
        lines = sites[name].journal.lines[before:]
        return led(any(re.search(words, line) for line in lines))

    until(lambda: reached("h1", r"asked +question 0:"))
    network.kill("h1")  # before its shares, or about then
    until(lambda: led(folder.told(0, SiteAnswer) is not None))
    os.kill(int((folder.private / "superlink.pid").read_text()), signal.SIGKILL)
    serve("h1")
    until(lambda: reached("h3", r"asked +question 1:"))
    network.kill("lead")
    kept, before = folder.told(0, SiteAnswer), len(sites["h2"].journal.lines)
    network.start("lead", lead)
    until(lambda: reached("h2", "mask: ", before))
    network.kill("h2")  # after its masked numbers, or about then
    until(lambda: led(folder.result_path.exists()), seconds=150)
    assert documents.load(folder.result_path).rows > 0, network.said("lead")
    assert folder.told(0, SiteAnswer) == kept
    check_sums(folder, sites)
    for site in sites.values():
        keys = [entry.key for entry in FileLedger(site.ledger_path).entries]
        assert len(keys) == len(set(keys)) <= len(folder.attempts)
    assert "the SuperLink stopped" in network.said("lead")


def run_page(network, title):
    """What a section of the page says is typed, by everybody in turn."""
    port = free_port()
    for who, written in typed(title):
        command = re.sub(r":84\d\d", f":{port}", written)
        if "site serve" in command:
            network.start(who, command, says="y\n")
        elif "consortium run" in command:
            assert network.start(who, command).wait(150) == 0, network.said(who)
        else:
            network.run(command)


def test_owners_take_part_over_three_nodes(network, tmp_path):
    names = ("north", "south", "east")
    for number, name in enumerate(names):
        write_owners(tmp_path / f"{name}-clients.csv", number, owners=40)
    columns = {"age": [18, 100], "weight": [30, 150], "sick": ["no", "yes"]}
    (tmp_path / "columns.json").write_text(json.dumps(columns), encoding="utf-8")
    run_page(network, "Owners behind sites")
    for name in ("North", "South", "East"):
        assert network.running[name].wait(60) == 0
        assert "the coordinator has its result" in network.said(name)
    model = documents.load(tmp_path / "clients" / "result.json")
    assert (model.guarantee.epsilon, model.guarantee.unit) == (2.0, "owner")
    plan = StudyFolder(tmp_path / "clients").plan()
    for name in names:
        folder = SiteFolder(tmp_path / f"{name}-clients")
        entries = folder.ledger.entries
        assert [entry.event.epsilon for entry in entries] == [2.0, 0.0, 0.0]  # paid for once
        assert [entry.key for entry in entries] == [f"{plan.digest} {n}" for n in (40, 80, 120)]
        assert folder.progress(plan) == ["answered"] * 3
    assert "question 2: answered by 3 sites, 1 attempts" in network.run(
        "dpfda consortium status clients"
    )


def test_the_page_runs_as_it_is_written(network, tmp_path):
    for number, name in enumerate(("north", "south")):
        write_table(tmp_path / f"{name}.csv", number, rows=400)
    run_page(network, "Three terminals")
    model = documents.load(tmp_path / "study" / "result.json")
    assert model.rows == 800
    assert model.guarantee.model == "decentralized"
    check_sums(
        StudyFolder(tmp_path / "study"),
        {name: SiteFolder(tmp_path / name) for name in ("north", "south")},
    )
    assert "in an opened sum" in network.run("dpfda site status north")
    assert "finished" in network.run("dpfda consortium status study")
