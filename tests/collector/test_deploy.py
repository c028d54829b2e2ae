"""What is in deploy/ and on its pages works: scripts, units, images as far as they can be tried."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import tomllib
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from stored_studies import FINISHED, begun, model, record, reply, token

from dpfda.cli._group import dpfda as command_line
from dpfda.cli.serve import command as serve
from dpfda.collector.storage import open_storage, tables
from dpfda.collector.storage.base import Ended

yaml = pytest.importorskip("yaml", reason="no reader of YAML")
ROOT = Path(__file__).resolve().parents[2]
DEPLOY, BACKUP = ROOT / "deploy", ROOT / "deploy" / "backup.py"
GUIDES = ROOT / "docs" / "guides"
PAGES = [GUIDES / "deploy.md", GUIDES / "what-the-collector-keeps.md"]
posix = pytest.mark.skipif(os.name != "posix", reason="shell, rights and units of files")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@posix
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_the_pages_run(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 2
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dpfda").write_text(f'#!/bin/sh\nexec {sys.executable} -m dpfda.cli "$@"\n')
    (programs / "dpfda").chmod(0o755)
    place = tmp_path / "here"
    place.mkdir()
    (place / "deploy").symlink_to(DEPLOY)
    port = str(free_port())
    script = "\n".join(blocks).replace("8000", port)
    script = script.replace("dpfda serve", f"dpfda serve --port {port}")
    script = re.sub(
        r"dpfda studies (?!verify)(\w+)", rf"dpfda studies \1 --url http://127.0.0.1:{port}", script
    )
    script = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + script
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    ran = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=place, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = ran.communicate(timeout=280)
    finally:
        if ran.poll() is None:
            os.killpg(ran.pid, signal.SIGKILL)
    assert ran.returncode == 0, output
    if page.stem != "deploy":
        assert output.rstrip().endswith("there is no study")
        assert "\ncounted\n" in output
        (exported,) = (place / "exported").glob("replies-*.ndjson")
        (kept,) = exported.read_text().splitlines()
        assert json.loads(kept)["ticket"] == 0


def test_the_page_names_every_column() -> None:
    """A column that somebody adds is kept: the page must say so."""
    text = PAGES[1].read_text()
    rows = {}
    for line in re.findall(r"^\| (`\w+`.*) \| (`.*`) \|$", text, re.MULTILINE):
        names = re.findall(r"`(\w+)`", line[0])
        columns = [re.findall(r"`(\w+)`", part) for part in line[1].split(";")]
        rows |= dict(zip(names, columns, strict=True))
    assert rows.pop("alembic_version") == ["version_num"]
    known = {
        name: [column.name for column in table.columns]
        for name, table in tables.metadata.tables.items()
    }
    assert {name: sorted(columns) for name, columns in rows.items()} == {
        name: sorted(columns) for name, columns in known.items()
    }


def options_of(command: list[str]) -> dict[str, Any]:
    """What `dpfda serve` understands of a command line; it must understand all of it."""
    assert command[0] == "serve"
    with click.Context(serve) as context:
        parser = serve.make_parser(context)
        found, rest, _ = parser.parse_args(args=command[1:])
    assert rest == []
    return found


def container() -> tuple[list[str], list[str]]:
    """CMD and health check of the image."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    commands = [json.loads(found) for found in re.findall(r"^.*?CMD (\[.*\])$", text, re.MULTILINE)]
    assert len(commands) == 2
    return commands[1], commands[0]


def test_commands_are_those_that_dpfda_serve_has() -> None:
    unit = (DEPLOY / "dpfda.service").read_text()
    (started,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, *arguments = shlex.split(started)
    assert program == "/opt/dpfda/bin/dpfda"
    assert options_of(arguments) == {"config": "/etc/dpfda.toml"}
    chosen = tomllib.loads((DEPLOY / "dpfda.toml").read_text())
    assert chosen["database"] == "sqlite:////var/lib/dpfda/study.db"
    assert chosen["proxy"] == ["127.0.0.1"]
    known = {option.opts[0].removeprefix("--") for option in serve.params}
    assert set(chosen) <= known
    image = options_of(container()[0])
    assert image["host"] == "0.0.0.0"
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    two = options_of(composed["services"]["collector"]["command"])
    assert two["workers"] == "2"
    for name in ("database", "admin-key-file", "workers"):
        assert image[name.replace("-", "_")] == str(chosen[name]), "as without a container"
    ports = {one.rpartition(":")[2] for one in (image["admin_listen"], two["admin_listen"])}
    assert ports == {chosen["admin-listen"].rpartition(":")[2]}


def test_all_examples_mean_the_same_listener() -> None:
    (port,) = [option.default for option in serve.params if option.name == "port"]
    place = f"127.0.0.1:{port}"
    assert f"ListenStream={place}\n" in (DEPLOY / "dpfda.socket").read_text()
    assert f"proxy_pass http://{place};" in (DEPLOY / "nginx.conf").read_text()
    assert f"reverse_proxy {place} " in (DEPLOY / "Caddyfile").read_text()
    assert options_of(container()[0])["port"] == str(port)
    page = PAGES[0].read_text()
    admin = tomllib.loads((DEPLOY / "dpfda.toml").read_text())["admin-listen"]
    assert f"`--admin-listen {admin}`" in page
    assert f"--url http://{admin}" in page


def test_containers_believe_their_own_small_network_and_nobody_else() -> None:
    """The image believed nobody, so all people had one address; the other all of 172.16/12."""
    page = PAGES[0].read_text()
    (created,) = re.findall(r"^podman network create (.*)$", page, re.MULTILINE)
    (run,) = re.findall(r"^podman run (.*)$", page, re.MULTILINE)
    _, subnet, name = created.split()
    assert options_of(container()[0])["proxies"] == [subnet]
    assert f"--network {name} -p 127.0.0.1:8000:8000 " in run
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    (network,) = composed["networks"]["default"]["ipam"]["config"]
    assert options_of(composed["services"]["collector"]["command"])["proxies"] == [
        network["subnet"]
    ]
    assert not any("networks" in service for service in composed["services"].values())
    both = [ipaddress.ip_network(one) for one in (subnet, network["subnet"])]
    assert all(one.is_private and one.num_addresses == 16 for one in both)
    assert not both[0].overlaps(both[1])
    assert all(f"`{one}`" in page for one in both)


def test_the_compose_file_holds_no_secret() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    page = PAGES[0].read_text()
    for service in composed["services"].values():
        assert service["env_file"] == ["collector.env"]
    assert set(composed["services"]["database"]["environment"]) == {"POSTGRES_USER", "POSTGRES_DB"}
    for name in ("POSTGRES_PASSWORD", "DPFDA_DATABASE", "DPFDA_ADMIN_KEY"):
        assert f"\n{name}=" in page
    assert composed["services"]["collector"]["build"]["dockerfile"] == "deploy/Containerfile"
    for service in composed["services"].values():
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}
    ports = composed["services"]["collector"]["ports"]
    assert ports == ["127.0.0.1:8000:8000", "127.0.0.1:9000:9000"]
    assert set(composed["volumes"]) == {"database"}


def test_the_image_is_made_of_what_the_page_says() -> None:
    text, page = (DEPLOY / "Containerfile").read_text(), PAGES[0].read_text()
    extras = re.findall(r'"/src\[(.*)\]"', text)
    assert extras == re.findall(r'pip install "dpfda\[(.*)\]"', page)
    build = re.findall(r"^#\s+(podman build .*)$", text, re.MULTILINE)
    assert build
    assert build[0] in page
    assert (ROOT / "constraints.txt").exists()
    assert text.index("USER dpfda") < text.index("ENTRYPOINT")


def asked_by(proxy: str, port: int, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """What somebody behind a proxy is told."""
    wire = HTTPConnection("127.0.0.1", port, source_address=(proxy, 0), timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    wire.request("POST", path, None if body is None else json.dumps(body), named)
    answer = wire.getresponse()
    found = answer.status, json.loads(answer.read())
    wire.close()
    return found


@posix
def test_the_image_starts_and_is_healthy(tmp_path: Path, make_plan: Any) -> None:
    """Its command and its health check, outside of a container."""
    command, health = container()
    port, admin_port = str(free_port()), free_port()
    here = [
        part.replace("/var/lib/dpfda", str(tmp_path)).replace("0.0.0.0", "127.0.0.1")
        for part in command
    ]
    here[here.index("--admin-listen") + 1] = f"127.0.0.1:{admin_port}"
    here[here.index("--port") + 1] = port
    here[here.index("--proxy") + 1] = "127.0.0.2"
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "dpfda.cli", *here], stdout=subprocess.PIPE, stderr=log
    )
    try:
        assert process.stdout is not None
        for one in (port, admin_port):
            assert process.stdout.readline().decode().strip() == f"http://127.0.0.1:{one}"
        assert health[0] == "python"
        asked = [sys.executable, *(part.replace("8000", port) for part in health[1:])]
        deadline = time.monotonic() + 60  # the image has 30 s to start
        while subprocess.run(asked, timeout=60, check=False, capture_output=True).returncode:
            assert time.monotonic() < deadline
        assert stat.S_IMODE((tmp_path / "admin.key").stat().st_mode) == 0o600
        key = (tmp_path / "admin.key").read_text().strip()
        study = {"plan": make_plan(5).to_dict(), "settings": {"open": True}}
        ask = partial(asked_by, "127.0.0.2", int(port))
        right = {"Authorization": f"Bearer {key}"}
        assert ask("/api/studies", study, **right)[0] == 404, "not for participants"
        status, made = asked_by("127.0.0.1", admin_port, "/api/studies", study, **right)
        assert status == 201
        told = [
            ask(f"/api/studies/{made['id']}/enrol", X_Forwarded_For=address)[0]
            for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2")
        ]
        assert told == [201, 429, 201], "people behind the proxy have limits of their own"
    finally:
        process.terminate()  # as STOPSIGNAL says
        assert process.wait(30) in (0, -signal.SIGTERM)
        process.stdout.close()  # type: ignore[union-attr]
        log.close()
    assert subprocess.run(asked, timeout=60, check=False, capture_output=True).returncode != 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_one(tmp_path: Path) -> None:
    text = (DEPLOY / "dpfda.service").read_text()
    unit = tmp_path / "dpfda.service"
    shutil.copy(DEPLOY / "dpfda.socket", tmp_path)
    unit.write_text(text.replace("/opt/dpfda/bin/dpfda", "/bin/true"))
    verify = ["systemd-analyze", "verify", "--man=no", str(unit), str(tmp_path / "dpfda.socket")]
    checked = subprocess.run(verify, capture_output=True, text=True, check=False)
    if "Failed to" in checked.stderr and "dpfda" not in checked.stderr:
        pytest.skip(f"systemd-analyze does not work here: {checked.stderr.strip()}")
    assert "dpfda." not in checked.stderr, checked.stderr
    unit.write_text(text.replace("DynamicUser=yes", "DynamicUser=perhaps"))
    told = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert "dpfda.service has a bad unit file setting" in told.stderr, "a wrong unit is noticed"


def backup(*arguments: str, url: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, str(BACKUP), *arguments],
        env=os.environ | {"DPFDA_DATABASE": url}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def verify(copy: str, original: str, *, code: int = 0) -> str:
    done = CliRunner().invoke(command_line, ["studies", "verify", copy, original])
    assert done.exit_code == code, done.output
    return done.output


def test_a_copy_is_compared_with_the_original(tmp_path: Path) -> None:
    one, other = (str(tmp_path / name) for name in ("original.db", "copy.db"))
    storage = open_storage(f"sqlite:///{one}")
    begun(storage, people=3)
    storage.add_replies([reply(0), reply(1)])
    assert storage.create(record("left"), model("left"))
    backup("save", other, url=f"sqlite:///{one}")
    assert verify(other, one).splitlines() == [
        "left: same, 0 of 0 replies, 1 of 1 models",
        "study: same, 2 of 2 replies, 1 of 1 models",
        "2 studies; the copy is behind in 0",
    ]
    storage.add_replies([reply(2)])
    assert storage.create(record("newer"), model("newer"))
    assert "study: behind, 2 of 3 replies" in verify(other, one)
    assert "newer: behind, 0 of 0 replies, 0 of 1 models" in verify(other, one)
    storage.begin_closing("study", 0)
    ended = Ended(following=FINISHED, model=model("study", 0))
    assert storage.advance("study", 0, ended)
    storage.purge("study")
    while storage.forget():
        pass
    storage.delete("left")
    said = verify(other, one)
    assert "study: behind" in said, "purged in the original, which is no mistake"
    assert "left: behind" in said
    assert "study: different" in verify(one, other, code=1), "the other way round it is"
    storage.close()
    for change in (
        "UPDATE reply SET digest = x'00' WHERE number = 1",
        "DELETE FROM model",
        "UPDATE study SET seal = 'another' WHERE id = 'study'",
    ):
        changed = tmp_path / "changed.db"
        shutil.copy(other, changed)
        with sqlite3.connect(changed) as connection:
            connection.execute(change)
        connection.close()
        told = verify(str(changed), other, code=0 if "DELETE" in change else 1)
        assert ("study: behind" if "DELETE" in change else "study: different") in told
    assert "COPY must be a file that exists" in verify("nowhere.db", one, code=2)
    (tmp_path / "text").write_text("no database" * 1000)
    assert "ORIGINAL must be a collector's database" in verify(one, str(tmp_path / "text"), code=2)


@posix
def test_sqlite_is_copied_while_people_answer(tmp_path: Path) -> None:
    """Whatever was acknowledged before the copy was begun is in it, and nobody is refused."""
    url, other = (f"sqlite:///{tmp_path / name}" for name in ("study.db", "again.db"))
    storage = open_storage(url)
    storage.create(record(quota=400), model())
    crowd = [("study", token(i)) for i in range(400)]
    storage.enrol(crowd)
    storage.issue(crowd, now=1.0)
    acknowledged: list[int] = []
    over = threading.Event()

    def answer() -> None:
        own = open_storage(url)
        for i in range(400):
            assert own.add_replies([reply(i)]) == ["stored"]
            acknowledged.append(i)
            if over.is_set():
                break
        own.close()

    thread = threading.Thread(target=answer)
    thread.start()
    while len(acknowledged) < 5:
        over.wait(0.001)
    before = list(acknowledged)
    copy = tmp_path / "copy"
    assert backup("save", str(copy), url=url) == f"saved to {copy}\n"
    over.set()
    thread.join()
    storage.close()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert "is there: stop the collector" in backup("restore", str(copy), url=url, code=1)
    backup("restore", str(copy), url=other)
    said = verify(str(copy), f"{tmp_path / 'again.db'}")
    assert said.startswith("study: same")
    assert verify(str(copy), url).startswith(
        "study: behind" if len(acknowledged) > len(before) else "study: "
    )
    restored = open_storage(other)
    assert {number for number, _ in restored.replies("study", 0)} >= set(before)
    assert restored.add_replies([reply(i) for i in before]) == ["same"] * len(before)
    restored.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.db", "copy", "study.db"]


def test_a_damaged_copy_is_not_restored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    (tmp_path / "text").write_text("no database" * 1000)
    sqlite3.connect(tmp_path / "empty").close()
    (tmp_path / "empty").touch()
    for name in ("text", "empty"):
        said = backup("restore", str(tmp_path / name), url=url, code=1)
        assert "not a sound copy" in said
    assert "is not there" in backup("restore", str(tmp_path / "missing"), url=url, code=1)
    assert "is not there" in backup("save", str(tmp_path / "copy"), url=url, code=1)
    assert "must be given" in backup("save", str(tmp_path / "copy"), url="", code=1)
    assert not (tmp_path / "new.db").exists()
    assert not (tmp_path / "copy").exists()


@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is not installed")
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_postgresql_is_copied_and_restored(database: str, postgresql: str, tmp_path: Path) -> None:
    import psycopg

    storage = open_storage(database)
    begun(storage)
    assert storage.add_replies([reply(0)]) == ["stored"]
    copy = tmp_path / "copy"
    if "server version mismatch" in (said := backup("save", str(copy), url=database)):
        pytest.skip(said)
    assert storage.add_replies([reply(1)]) == ["stored"]
    storage.close()
    password = database.partition("://")[2].partition(":")[2].partition("@")[0]
    assert password.encode() not in copy.read_bytes()
    name = "restored_" + database.rpartition("/")[2]
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        other = postgresql.rpartition("/")[0] + f"/{name}"
        backup("restore", str(copy), url=other)
        restored = open_storage(other)
        assert restored.replies("study", 0) == [(0, b"x")]
        assert restored.add_replies([reply(0), reply(1)]) == ["same", "stored"]
        assert restored.create(record("other"), model("other"))
        assert restored.issue([("study", token(0))], now=9.0) == ["answered"]
        restored.close()
        assert "did not succeed" in backup("restore", str(copy), url=other, code=1), "not empty"
    finally:
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
