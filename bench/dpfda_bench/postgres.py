"""A PostgreSQL server of one's own, on loopback, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpfda.errors import DpfdaError


class NoPostgreSQL(DpfdaError):
    """It is not installed here, or there is nobody to run it as."""


@contextmanager
def temporary_postgresql() -> Iterator[str]:
    """The URL of a fresh server that is gone when the block ends.

    Raises:
        NoPostgreSQL: there is none, with the reason.
    """
    server, initdb = _find("postgres"), _find("initdb")
    user = _unprivileged()
    password, port = secrets.token_hex(16), _free_port()
    with tempfile.TemporaryDirectory(prefix="dpfda-pg-") as name:
        folder = Path(name)
        (folder / "password").write_text(password, encoding="utf-8")
        if user is not None:
            for path in (folder, folder / "password"):
                shutil.chown(path, user)
        making = (
            f"{initdb} -D {folder}/data -U dpfda -A scram-sha-256 "
            f"--pwfile {folder}/password -E UTF8 --no-locale --no-sync"
        )
        subprocess.run(making.split(), check=True, capture_output=True, user=user, cwd=folder)
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


def _find(program: str) -> str:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    found = str(installed[-1]) if installed else shutil.which(program)
    if found is None:
        raise NoPostgreSQL("PostgreSQL is not installed")
    return found


def _unprivileged() -> str | None:
    """Whom to run it as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise NoPostgreSQL("there is no user to run PostgreSQL as") from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise DpfdaError("PostgreSQL did not start")
