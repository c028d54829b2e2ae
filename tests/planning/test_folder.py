"""What `dpfda plan --folder` writes is run as it is: program, collector, people who take part."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda as main
from dpfda.client.http import Connection

BESIDE = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plan") / "gait"
    ran = CliRunner().invoke(main, [
        "plan", "--range", "-2", "2", "--classes", "healthy,ill", "--title", "Gait",
        "--people", "2", "--epsilon", "1.0986122886681098", "--protects", "features",
        "--non-private-error", "0.1", "--studies", "2", "--folder", str(place),
    ])  # fmt: skip
    assert ran.exit_code == 0, ran.output
    return place


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The organizer's script, as it was written."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    known = BESIDE | {"PORT": str(port)}
    with (folder / "log").open("w") as log:
        script = subprocess.Popen(
            ["sh", "organizer.sh"], cwd=folder, env=known, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while "people can join" not in (folder / "log").read_text(encoding="utf-8"):
            assert script.poll() is None, (folder / "log").read_text(encoding="utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(script.pid, signal.SIGTERM)
        script.wait(30)


def test_the_program_forecasts_as_the_command_did(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "study.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    said = json.loads((folder / "forecast.json").read_text(encoding="utf-8"))
    assert ran.stdout.splitlines() == said["notes"]


def test_people_take_part_by_the_script(folder: Path, address: str) -> None:
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert study["plan"] == plan
    invitations = (folder / "invitations.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(invitations)) == 2
    for person, label in enumerate(("healthy", "ill")):
        home = folder / f"person-{person}"
        home.mkdir()
        curve = np.sin(np.linspace(0, 3, 20) + person)
        np.savetxt(home / "my-data.csv", curve, header="x", comments="")
        (home / "invitation.txt").write_text(invitations[person])
        ran = subprocess.run(
            ["sh", "../take-part.sh", address, "my-data.csv", label], cwd=home,
            env=BESIDE | {"HOME": str(home)}, input="y\ny\n", capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert "sent; receipt" in ran.stdout
    with Connection(address) as connection:
        for _ in range(300):  # what the last reply taught is learnt in a moment
            shown = json.loads(connection.ask("GET", f"/api/studies/{study['id']}").body)
            if shown["status"] == "finished":
                break
            time.sleep(0.2)
    assert shown["status"] == "finished"
    assert str(study["hash"]) in (folder / "consent.txt").read_text(encoding="utf-8")
