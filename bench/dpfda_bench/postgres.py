"""A PostgreSQL server of one's own, on loopback, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpfda.errors import DpfdaError


class NoPostgreSQL(DpfdaError):
    """It is not installed here, or there is nobody to run it as."""


@contextmanager
def temporary_postgresql(*, network: str = "") -> Iterator[str]:
    """The URL of a fresh server that is gone when the block ends.

    Args:
        network: addresses other than loopback that may connect, such as 10.0.0.0/30.

    Raises:
        NoPostgreSQL: there is none, with the reason.
    """
    initdb, control = _find("initdb"), [_find("pg_ctl"), "-D", "data", "-s"]
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
        if network:
            with (folder / "data" / "pg_hba.conf").open("a", encoding="utf-8") as rules:
                rules.write(f"host all all {network} scram-sha-256\n")
        addresses = "*" if network else "127.0.0.1"
        options = f"-p {port} -c listen_addresses={addresses} -c unix_socket_directories="
        options += " -c shared_buffers=32MB"
        # Both wait until it is done; without a log the server would hold our pipes open.
        start = [*control, "-l", "log", "-o", options, "start"]
        subprocess.run(start, check=True, user=user, cwd=folder)
        try:
            yield f"postgresql://dpfda:{password}@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "stop"], check=True, user=user, cwd=folder)


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
