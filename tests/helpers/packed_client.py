"""The browser client as other web applications install it: packed by npm, unpacked elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "browser"


def packed_client(folder: Path) -> Path:
    """The package in ``folder/node_modules``; a test is skipped where its tools are missing."""
    if shutil.which("npm") is None or not (CLIENT / "node_modules" / "esbuild").is_dir():
        pytest.skip("the client's tools are not installed (npm ci in clients/browser)")
    made = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(folder)],
        cwd=CLIENT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    (archive,) = folder.glob("*.tgz")
    home = folder / "node_modules" / "@dpfda" / "client"
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    home.parent.mkdir(parents=True)
    (folder / "unpacked" / "package").rename(home)
    return home
