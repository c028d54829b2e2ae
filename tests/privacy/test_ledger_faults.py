"""Ledgers that are interrupted, forked, or written by others: what is synced, and read again."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from dpfda.errors import BudgetExceeded, LedgerDamaged
from dpfda.privacy import ledger_file
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger import Entry, Ledger
from dpfda.privacy.ledger_file import FileLedger
from dpfda.privacy.price import Price

HALF, TENTH = PureEvent(epsilon=0.5), PureEvent(epsilon=0.1)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was forced to the disk, in order."""
    seen: list[str] = []
    really = os.fsync

    def fsync(descriptor: int) -> None:
        seen.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs names of open files")
def test_a_record_is_on_the_disk_before_its_mark_and_both_before_it_counts(
    synced: list[str], tmp_path: Path
) -> None:
    folder = tmp_path.name
    path = tmp_path / "ledger"
    ledger = FileLedger(path, limit_epsilon=1.0)
    assert synced == ["ledger", folder, "ledger.mark", folder]  # new names too
    synced.clear()
    ledger.spend(TENTH, label="one")
    assert synced == ["ledger", "ledger.mark"]
    synced.clear()
    assert ledger.spent.epsilon == 0.1
    assert synced == []
    mark = path.with_name("ledger.mark").read_bytes()
    ledger.spend(TENTH, label="two")
    # A process died after its record, before the line's end and the mark.
    path.write_bytes(path.read_bytes()[:-1])
    path.with_name("ledger.mark").write_bytes(mark)
    synced.clear()
    assert FileLedger(path).spent.epsilon == 0.2
    assert synced == ["ledger", "ledger.mark"]


def test_after_an_interrupt_everything_is_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = FileLedger(tmp_path / "ledger", limit_epsilon=1.0)

    def interrupted(entry: Entry) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_note", interrupted)  # stored, and not yet in the picture
        with pytest.raises(KeyboardInterrupt):
            ledger.spend(HALF, label="half")
    assert ledger.spent.epsilon == 0.5
    with pytest.raises(BudgetExceeded):
        ledger.spend(PureEvent(epsilon=0.6), label="more")


def test_a_fork_reads_everything_again(tmp_path: Path) -> None:
    """The picture may be copied while a thread of the parent is changing it."""
    ledger = FileLedger(tmp_path / "ledger", limit_epsilon=1.0)
    ledger.spend(HALF, label="half")
    ledger._process, ledger._charged = os.getpid() + 1, Price(epsilon=Fraction(1, 10))
    assert ledger.spent.epsilon == 0.5
    assert ledger._process == os.getpid()


def test_a_fork_of_a_ledger_in_memory_is_no_ledger() -> None:
    ledger = Ledger(1.0)
    ledger.spend(HALF, label="half")
    ledger._process = os.getpid() + 1
    for use in (lambda: ledger.spend(TENTH, label="x"), lambda: ledger.spent):
        with pytest.raises(BudgetExceeded, match="known to one process only"):
            use()


def test_a_turn_is_one_lock_for_all_threads_of_a_process() -> None:
    ledger = Ledger(1.0)
    turn = ledger.turn
    assert ledger.turn is turn
    ledger._turn = os.getpid() + 1, turn  # type: ignore[assignment]
    assert ledger.turn is not turn  # a fork's copy may be held by a thread that is not there
    assert ledger.turn is ledger.turn


@pytest.mark.parametrize(
    "header",
    [
        {"format": "dpfda-ledger-1", "limit_epsilon": 1.0, "limit_delta": 0.0},
        {"limit_epsilon": 1.0, "limit_delta": 0.0},
        ["dpfda-ledger-3"],
        "dpfda-ledger-3",
    ],
)
def test_another_format_is_no_ledger(
    header: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "_header", lambda rule: header)
        FileLedger(tmp_path / "ledger", limit_epsilon=1.0)
    with pytest.raises(LedgerDamaged, match="a record that is not a ledger's"):
        FileLedger(tmp_path / "ledger", limit_epsilon=1.0)
