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


def test_drafts_are_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: two processes wrote into one draft, and either could take the other's half."""
    path, drafts = tmp_path / "kept", []
    really = os.replace

    def replace(draft: Path, name: Path) -> None:
        drafts.append(draft)
        if len(drafts) == 1:
            durable.keep(path, b"second")  # another process, in between
        really(draft, name)

    monkeypatch.setattr(os, "replace", replace)
    durable.keep(path, b"first")
    assert path.read_bytes() == b"first"
    assert drafts[0] != drafts[1]
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_draft_that_failed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "kept"
    durable.keep(path, b"one")
    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space"):
        durable.keep(path, b"two")
    assert sorted(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"one"
