"""A client in another language, written from the wire format: the same draws, and a device."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litestar", reason="the service extra is not installed")

from forked_collector import ForkedCollector

from dpfda import plan_study
from dpfda.collector.collector_process import CollectorProcess
from dpfda.protocol.wire import nonce_of

CLIENTS = Path(__file__).resolve().parents[2] / "clients"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed")
    out = tmp_path_factory.mktemp("java")
    sources = sorted(map(str, (CLIENTS / "java").glob("*.java")))
    run("javac", "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d", str(out), *sources)
    return out


def run(*command: str, code: int = 0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_it_replays_the_vectors(built: Path, tmp_path: Path) -> None:
    said = run("java", "-cp", str(built), "Replay", str(CLIENTS / "vectors"))
    counts = {
        what: int(number) for what, number in (line.rsplit(" ", 1) for line in said.splitlines())
    }

    def vectors(name: str) -> Any:
        return json.loads((CLIENTS / "vectors" / f"{name}.json").read_text(encoding="utf-8"))

    assert counts == {
        "numbers": len(vectors("numbers")),
        "plans": len(vectors("plans")),
        "refused plans": len(vectors("refused_plans")),
        "mechanisms": sum(len(one["draws"]) for one in vectors("mechanisms")),
        "tasks": len(vectors("tasks")),
        "curves": sum(len(one["curves"]) for one in vectors("encoder")["cases"]),
        "refused tasks, and tasks that are not": sum(
            len(one["others"]) for one in vectors("refused")["cases"]
        ),
    }, "every vector of every file"
    files = {one.stem for one in (CLIENTS / "vectors").iterdir()}
    assert files == {
        "numbers",
        "plans",
        "refused_plans",
        "mechanisms",
        "tasks",
        "encoder",
        "refused",
    }
    shutil.copytree(CLIENTS / "vectors", tmp_path / "vectors")  # and the replay can fail
    spoiled = tmp_path / "vectors" / "mechanisms.json"
    spoiled.write_text(spoiled.read_text().replace('"report":[-1.0]', '"report":[1.0]', 1))
    assert spoiled.read_text() != (CLIENTS / "vectors" / "mechanisms.json").read_text()
    run("java", "-cp", str(built), "Replay", str(spoiled.parent), code=1)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with ForkedCollector(f"sqlite:///{tmp_path_factory.mktemp('java')}/x.db") as found:
        yield found


def test_its_device_takes_part(built: Path, collector: CollectorProcess, tmp_path: Path) -> None:
    facts: dict[str, Any] = {"classes": ("well", "ill"), "feature_ranges": [(0, 10), (-1, 1)]}
    plans = [plan_study(400, epsilon, **facts) for epsilon in (1.0, 1.5)]
    for plan in plans:
        collector.create(plan, open=True, deadline=3600)
    hashes = [plan.hash for plan in plans]

    def device(what: str, study: str, *more: str, code: int = 0) -> str:
        program = ("java", "-cp", str(built), "Device", what, str(tmp_path / "me"))
        return run(*program, collector.url, study, *more, code=code).strip()

    mine = ("2.0", "ill", "7.5", "0.25")
    body = device("prepare", hashes[0], *mine)
    ledger = json.loads((tmp_path / "me" / "ledger.json").read_text())
    assert ledger == {"limit": 2, "spent": {hashes[0]: 1}}
    status = collector.request("GET", f"/api/studies/{hashes[0][:16]}")
    assert (status["issued"], status["answered"]) == (1, 0), "drawn and stored, not sent"
    assert device("prepare", hashes[0], "2.0", "well", "1", "1") == body, "never drawn again"
    receipt = device("send", hashes[0])
    assert device("send", hashes[0]) == receipt
    replies = f"/api/studies/{hashes[0][:16]}/phases/0/replies"
    assert json.loads(collector.read("GET", replies))["values"] == json.loads(body)["values"]
    assert device("counted", hashes[0]) == "false"
    letter = json.loads((tmp_path / "me" / f"{hashes[0]}.json").read_text())
    assert json.loads(body)["nonce"] == nonce_of(letter["secret"])
    device("withdraw", hashes[0])
    assert collector.read("GET", replies) == b""
    assert device("send", hashes[0], code=3) == "terms: the reply was withdrawn"
    refused = device("prepare", hashes[1], *mine, code=3)
    assert refused == "budget: more than is left of the limit"
    assert collector.request("GET", f"/api/studies/{hashes[1][:16]}")["issued"] == 0


@pytest.mark.parametrize(
    ("facts", "mine"),
    [
        ({"classes": ("a", "b", "c"), "value_range": (0, 2)}, ("b", "1", "1.5", "0.5", "0.2")),
        ({"target_range": (0, 50), "feature_ranges": [(0, 10), (-1, 1)]}, ("31", "7.5", "0.25")),
    ],
)
def test_its_device_reports_vectors(
    built: Path, collector: CollectorProcess, tmp_path: Path, facts: dict[str, Any], mine: Any
) -> None:
    """Curves of three classes, and a number that is predicted: the collector takes the replies."""
    plan = plan_study(3000, 1.0, **facts)
    assert plan.design["name"] in ("vectors", "vector_numbers")
    collector.create(plan, open=True, deadline=3600)
    for k in range(6):  # of the first phase's kinds of tasks
        program = ("java", "-cp", str(built), "Device")
        me = (str(tmp_path / str(k)), collector.url, plan.hash)
        body = run(*program, "prepare", *me, "1.0", *mine)
        assert json.loads(body)["values"]
        assert len(run(*program, "send", *me).strip()) == 48
    status = collector.request("GET", f"/api/studies/{plan.hash[:16]}")
    assert status["answered"] == 6
