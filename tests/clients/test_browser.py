"""The browser client: its bundle is that of its source, and it computes what this package does."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import dpfda

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "browser"
STATIC = ROOT / "src" / "dpfda" / "collector" / "pages" / "static"
BUNDLES = {
    "client.js": 40_000,
    "take-part.js": 34_000,
    "worker.js": 2_000,
}  # and the most bytes, compressed


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed")
    if not (CLIENT / "node_modules" / "esbuild").is_dir():
        pytest.skip("the client's tools are not installed (npm ci in clients/browser)")
    return found


def run(*command: str) -> str:
    done = subprocess.run(
        command, cwd=CLIENT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", BUNDLES)
def test_bundles_are_small_and_load_nothing_from_elsewhere(name: str) -> None:
    bundle = (STATIC / name).read_bytes()
    assert len(gzip.compress(bundle, mtime=0)) < BUNDLES[name]
    assert b"import(" not in bundle
    assert b"https://" not in bundle.replace(b"an https:// address", b"")


def test_bundles_are_those_of_their_source(node: str, tmp_path: Path) -> None:
    run(node, "build.mjs", str(tmp_path))
    for name in BUNDLES:
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), "npm run build"


def test_the_client_replays_every_vector_and_refuses_what_it_must(node: str) -> None:
    run(node, "build.mjs", "test")
    said = run(node, "--test", "out/")
    assert "# fail 0" in said
    for name in ("numbers", "plans", "refused plans", "mechanisms", "tasks", "encoder", "refusals"):
        assert f" - {name}\n" in said


def test_nothing_is_needed_to_run_it_and_no_registry_is_named() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    assert package["version"] == dpfda.__version__
    lock = (CLIENT / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock
    parts = json.loads(lock)["packages"].values()
    assert "http" not in json.dumps([part | {"funding": ""} for part in parts])


def test_it_runs_in_deno(node: str) -> None:
    deno = shutil.which("deno")
    if deno is None:
        pytest.skip("Deno is not installed")
    run(node, "build.mjs", "test")
    for name in ("vectors", "client", "odd"):  # the tests of files measure seconds
        assert "| 0 failed" in run(deno, "test", "-A", "--no-check", f"out/{name}.test.mjs")
