"""Small files are on the disk before anybody acts on them: what is synced, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpfda.privacy import durable


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, bytes | None]]:
    """What was forced to the disk, in order: a name, and what the target held by then."""
    seen: list[tuple[str, bytes | None]] = []
    target = tmp_path / "kept"
    really = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        name = "folder" if path == tmp_path else "draft"
        if name == "draft":
            assert path.read_bytes() == b"two"  # written out before it is synced
        seen.append((name, target.read_bytes() if target.exists() else None))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs names of open files")
def test_content_is_synced_before_it_gets_its_name_and_the_name_after(
    synced: list[tuple[str, bytes | None]], tmp_path: Path
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"one")
    durable.keep(path, b"two")
    assert synced == [("draft", b"one"), ("folder", b"two")]
    synced.clear()
    durable.forget(path)
    assert synced == [("folder", None)]
    synced.clear()
    assert durable.claim(path, b"two")
    assert synced == [("draft", None), ("folder", b"two")]
    assert sorted(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_is_claimed_once(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    assert durable.claim(path, b"one")
    assert not durable.claim(path, b"two")
    assert path.read_bytes() == b"one"
    assert sorted(tmp_path.iterdir()) == [path]
