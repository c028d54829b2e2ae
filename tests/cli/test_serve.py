"""``dpfda serve``: what is wrong is said in one line, before any address; what is risky is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda as command_line

pytest.importorskip("litestar")

KEY = "0123456789abcdef012345"


def serve(*arguments: Any, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What is printed until it ends, or would begin to serve."""
    started = subprocess.Popen(
        [sys.executable, "-m", "dpfda.cli", "serve", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if not k.startswith("DPFDA")} | environment,
    )
    assert started.stdout is not None
    address = started.stdout.readline()  # or the end, if it has none
    if address:
        started.send_signal(signal.SIGTERM)
    rest, said = started.communicate(timeout=60)
    return subprocess.CompletedProcess([], started.returncode, address + rest, said)


WRONG = {
    "a folder that is missing": (["--database", "sqlite:///nowhere/x.db"], "folder that exists"),
    "no URL": (["--database", "postgresql://[::1/x"], "--database must be sqlite:///FILE or"),
    "another scheme": (["--database", "mysql://x/y"], "unknown storage 'mysql'"),
    "no database": (["--database", "sqlite:///text"], "file is not a database"),
    "nobody there": (["--database", "postgresql://u@127.0.0.1:1/x"], "got '127.0.0.1/x'"),
    "a password": (["--database", "postgresql://u:secret@h/x"], "DPFDA_DATABASE or --database-"),
    "another password": (["--database", "postgresql://h/x?password=secret"], "without a password"),
    "no host": (["--host", "nowhere.invalid"], "--host must be an address of this machine"),
    "another's host": (["--host", "192.0.2.1"], "--host must be an address of this machine"),
    "no proxy": (["--proxy", "everybody"], "--proxy must be an IP address or network"),
    "everybody a proxy": (
        ["--proxy", "0.0.0.0/0"],
        "--proxy must be a network that does not contain every",
    ),
    "no patience": (["--patience", "nan"], "nan is not a finite number"),
    "endless patience": (["--patience", "inf"], "Invalid value for '--patience'"),
    "no rate": (["--rate", "nan"], "nan is not a finite number"),
    "no certificate": (["--tls-certificate", "text", "--tls-key", "text"], "--tls-certificate"),
    "no key": (["--admin-key-file", "nowhere/key"], "--admin-key-file must be a file that can be"),
    "an open key": (["--admin-key-file", "open"], "(chmod 600 open), got 'open with mode 644'"),
    "a short key": (["--admin-key-file", "short"], "a key of 22 characters at least"),
    "an open URL": (["--database-file", "open"], "--database-file must be closed to other users"),
    "a missing URL": (["--database-file", "no"], "(No such file or directory)"),
    "two URLs": (["--database-file", "short", "--database", "memory:"], "without --database"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_one_line(tmp_path: Path, monkeypatch: Any, what: str) -> None:
    arguments, told = WRONG[what]
    for name, text, mode in (
        ("text", "text\n", 0o600),
        ("open", KEY, 0o644),
        ("short", "k", 0o600),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command_line, ["serve", "--port", "0", *arguments])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("Error: ")
    assert told in done.stderr
    assert "secret" not in done.stderr


def test_a_password_in_the_environment_is_not_told() -> None:
    place = {"DPFDA_DATABASE": "postgresql://u:secret@127.0.0.1:1/x"}
    done = CliRunner().invoke(command_line, ["serve", "--port", "0"], env=place)
    assert done.stderr.startswith("Error: --database must be one that can be opened (")
    assert "secret" not in done.stderr
    short = {"DPFDA_ADMIN_KEY": "k" * 21, "DPFDA_DATABASE": "memory:"}
    done = CliRunner().invoke(command_line, ["serve", "--port", "0"], env=short)
    assert done.stderr.startswith("Error: DPFDA_ADMIN_KEY must be a key of 22 characters")
    assert "k" * 21 not in done.stderr


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o620])
def test_a_key_is_for_its_owner(tmp_path: Path, mode: int) -> None:
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(mode)
    asked = ["serve", "--database", "memory:", "--port", "0"]
    done = CliRunner().invoke(command_line, [*asked, "--admin-key-file", str(tmp_path / "key")])
    assert f"with mode {mode:o}" in done.stderr


def test_files_of_secrets_are_used_and_made(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("sqlite:///named.db\n")
    (tmp_path / "url").chmod(0o640)
    done = serve("--database-file", "url", "--admin-key-file", "key", cwd=tmp_path)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert "warning" not in done.stderr
    assert (tmp_path / "named.db").exists()
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "key").read_text().strip()) == 43


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        (["--host", "0.0.0.0"], True),
        (["--host", "::"], True),
        (["--host", "127.0.0.1"], False),
        (["--host", "0.0.0.0", "--proxy", "10.0.0.0/8"], False),
    ],
)
def test_an_open_address_without_encryption_is_said(
    monkeypatch: Any, options: list[str], warned: bool
) -> None:
    from dpfda.collector import run

    monkeypatch.setattr(run, "serve", lambda settings, **how: None)
    place = {"DPFDA_ADMIN_KEY": KEY, "DPFDA_DATABASE": "memory:"}
    done = CliRunner().invoke(command_line, ["serve", "--port", "0", *options], env=place)
    assert done.exit_code == 0
    assert ("without encryption" in done.stderr) == warned
