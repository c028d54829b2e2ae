"""Real parts: a PostgreSQL server, collectors on loopback, small studies."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("litestar", reason="the service extra is not installed")
pytest.importorskip("sqlalchemy", reason="the service extra is not installed")

from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Storage
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _find(program: str) -> str | None:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(installed[-1]) if installed else shutil.which(program)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of a fresh PostgreSQL server on loopback, run by a user of its own."""
    server, initdb = _find("postgres"), _find("initdb")
    if server is None or initdb is None:
        pytest.skip("PostgreSQL is not installed")
    user: str | None = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            pytest.skip("there is no user to run PostgreSQL as")
    password, port = secrets.token_hex(16), free_port()
    with tempfile.TemporaryDirectory(prefix="dpfda-pg-") as name:
        folder = Path(name)
        (folder / "password").write_text(password)
        if user is not None:
            for path in (folder, folder / "password"):
                shutil.chown(path, user)
        subprocess.run(
            (
                f"{initdb} -D {folder}/data -U dpfda -A scram-sha-256 "
                f"--pwfile {folder}/password -E UTF8 --no-locale --no-sync"
            ).split(),
            check=True,
            capture_output=True,
            user=user,
            cwd=folder,
        )
        options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1"]
        options += ["-c", "unix_socket_directories=", "-c", "shared_buffers=32MB"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [server, "-D", folder / "data", *options],
                stdout=log,
                stderr=log,
                user=user,
                cwd=folder,
            )
        try:
            _wait_for(port, process)
            yield f"postgresql://dpfda:{password}@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            assert process.poll() is None, "PostgreSQL did not start"
            time.sleep(0.05)
    raise AssertionError("PostgreSQL does not listen")


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database; parametrize indirectly with the backend's name."""
    backend = getattr(request, "param", "sqlite")
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
    elif backend == "postgresql":
        yield from _fresh_database(request.getfixturevalue("postgresql"))
    else:
        yield "memory:"


def _fresh_database(server: str) -> Iterator[str]:
    import psycopg

    name = f"t{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def storage(database: str) -> Iterator[Storage]:
    opened = open_storage(database)
    yield opened
    opened.close()


@pytest.fixture
def make_plan() -> Callable[..., StudyPlan]:
    """Plans for vectors in [-1, 1]^2 whose first coordinate decides the label."""

    def make(
        n_people: int = 60, *, epsilon: float = 4.0, seed: int = 0, **design: object
    ) -> StudyPlan:
        return StudyPlan(
            epsilon=epsilon,
            n_people=n_people,
            encoder=CurveEncoder("identity", bounds=[(-1, 1)] * 2),
            classes=("no", "yes"),
            design={"name": "moments", **design},
            seed=seed,
            title="a small study",
        )

    return make
