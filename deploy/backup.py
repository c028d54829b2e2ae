#!/usr/bin/env python3
"""Back up a collector's database while it runs, and restore it: SQLite and PostgreSQL.

    backup.py save FILE       a copy of one moment; whoever answers meanwhile is not held up
    backup.py restore FILE    into a database that is empty or not there; the collector is stopped

Which database: --database-file, or DPFDA_DATABASE, or --database where the URL tells no password.
A copy holds what the database held: it is its owner's only, and what is forgotten later is still in
it. PostgreSQL needs pg_dump and pg_restore.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["save", "restore"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--database", help="URL without a password")
    parser.add_argument("--database-file", type=Path, help="file that holds the URL")
    given = parser.parse_args()
    os.umask(0o077)
    url = given.database or os.environ.get("DPFDA_DATABASE", "")
    if given.database_file is not None:
        url = given.database_file.read_text(encoding="utf-8").strip()
    save = given.what == "save"
    if url.startswith("sqlite:///"):
        database = Path(url.removeprefix("sqlite:///"))
        if save:
            save_sqlite(database, given.file)
        else:
            restore_sqlite(given.file, database)
    elif url.startswith("postgresql"):
        if save:
            save_postgresql(url, given.file)
        else:
            restore_postgresql(given.file, url)
    else:
        raise SystemExit("a database must be given: sqlite:///FILE or postgresql://...")
    print(f"saved to {given.file}" if save else f"restored from {given.file}")


def save_sqlite(database: Path, file: Path) -> None:
    """One moment of the database in one file, without its free pages."""
    draft = _draft(file)
    try:
        with closing(_open(database)) as source:
            source.execute("VACUUM INTO ?", (str(draft),))
        _check(draft)
        _keep(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def restore_sqlite(file: Path, database: Path) -> None:
    """Put a copy where a collector will look for it."""
    for name in (database, Path(f"{database}-wal")):
        if name.exists():
            raise SystemExit(f"{name} is there: stop the collector and move its files away first")
    _check(file)
    draft = _draft(database)
    try:
        shutil.copyfile(file, draft)
        _keep(draft, database)
    finally:
        draft.unlink(missing_ok=True)


def save_postgresql(url: str, file: Path) -> None:
    """What pg_dump says, in its own format."""
    draft = _draft(file)
    try:
        _run(url, "pg_dump", "--format=custom", "--no-owner", f"--file={draft}")
        _keep(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def restore_postgresql(file: Path, url: str) -> None:
    """All of it or nothing, into an empty database."""
    options = ["--no-owner", "--single-transaction", "--exit-on-error"]
    _run(url, "pg_restore", *options, str(file))


def _run(url: str, program: str, *options: str) -> None:
    """The password travels in the environment: arguments are for everybody to see."""
    parts = urlsplit(url.replace("postgresql+psycopg:", "postgresql:", 1))
    place = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    shown = urlunsplit(parts._replace(netloc=user + place))
    environment = dict(os.environ)
    if parts.password is not None:
        environment["PGPASSWORD"] = unquote(parts.password)
    if shutil.which(program) is None:
        raise SystemExit(f"{program} is not installed")
    # Of pg_dump and pg_restore alike: the first argument is the database.
    done = subprocess.run([program, f"--dbname={shown}", *options], env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{program} did not succeed")


def _open(database: Path) -> sqlite3.Connection:
    if not database.is_file():
        raise SystemExit(f"{database} is not there")
    return sqlite3.connect(database, timeout=30, isolation_level=None)


def _check(file: Path) -> None:
    """Refuse a file that is damaged, or no collector's."""
    try:
        with closing(_open(file)) as copy:
            sound = copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            copy.execute("SELECT id FROM study LIMIT 1")
    except sqlite3.DatabaseError:
        sound = False
    if not sound:
        raise SystemExit(f"{file} is not a sound copy of a collector's database")


def _draft(file: Path) -> Path:
    """An empty file beside the one that is meant, its owner's only."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return draft


def _keep(draft: Path, file: Path) -> None:
    """On the disk, whole, before it has its name."""
    with draft.open("rb+") as stream:
        os.fsync(stream.fileno())
    os.replace(draft, file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


if __name__ == "__main__":
    sys.exit(main())
