"""Ledgers on disk: read again, shared, and damaged in every way we could think of."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from releases import tenth

from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    InvalidParameter,
    LedgerDamaged,
)
from dpfda.privacy.composition import Budget
from dpfda.privacy.cost import Cost, limit
from dpfda.privacy.events import (
    GaussianEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpfda.privacy.ledger_file import FileLedger, locked_mark


def test_survives_reopening(tmp_path):
    path = tmp_path / "budget"
    first = FileLedger(path, limit_epsilon=1.0, limit_delta=1e-6)
    response = RandomizedResponseEvent(epsilon=np.float32(0.03125), categories=3)
    first.spend(response, label="a", key="k", assumptions=["n is public"])
    first.spend(GaussianEvent(multiplier=np.float64(20.0)), label="b")
    second = FileLedger(path)
    assert second.limit == first.limit
    assert second.rule == first.rule
    assert second.spent == first.spent
    assert second.entries == first.entries
    with pytest.raises(AlreadySpent):
        second.spend(tenth(), label="a", key="k")


def test_two_handles_see_each_other(tmp_path):
    path = tmp_path / "budget"
    one, two = FileLedger(path, limit_epsilon=1.0), FileLedger(path, limit_epsilon=1)
    one.spend(PureEvent(epsilon=0.6), label="one")
    with pytest.raises(BudgetExceeded):
        two.spend(PureEvent(epsilon=0.6), label="two")
    two.spend(PureEvent(epsilon=0.4), label="two")
    assert one.remaining.epsilon == 0
    assert [entry.label for entry in one.entries] == ["one", "two"]


def test_limit_is_stored_once(tmp_path):
    path = tmp_path / "budget"
    FileLedger(path, limit_epsilon=1.0)
    with pytest.raises(InvalidParameter, match=r"limit_epsilon must be 1\.0, as stored"):
        FileLedger(path, limit_epsilon=2.0)
    with pytest.raises(InvalidParameter, match=r"limit_delta must be 0\.0, as stored"):
        FileLedger(path, limit_epsilon=1.0, limit_delta=1e-6)
    other = FileLedger(tmp_path / "other", limit_epsilon=1.0, limit_delta=1e-6)
    assert FileLedger(tmp_path / "other").rule == other.rule


@pytest.mark.parametrize("share", [1, 0.5])
def test_what_delta_is_for_is_stored_with_the_first_entry(tmp_path, share):
    path, whole = tmp_path / "budget", Cost(epsilon=1.0, delta=1e-5)
    half, announced = whole.part(0.5).event, limit(epsilon=1.0, delta=1e-5)
    ledger = FileLedger(path, limit_epsilon=1.0, limit_delta=1e-5)
    ledger.spend(half, label="half", whole=announced if share == 1 else None)
    again = FileLedger(path)
    assert again.remaining == ledger.remaining
    assert bool(again.refusal(half)) == (share != 1)
    assert again.entries[0].way == {1: "gaussian", 0.5: "shared"}[share]


def test_every_name_of_a_ledger_means_the_same_budget(tmp_path, monkeypatch):
    """With a mark and a lock of its own, a link would let two processes spend the same ε."""
    (tmp_path / "elsewhere").mkdir()
    ledger = FileLedger(tmp_path / "budget", limit_epsilon=1.0)
    (tmp_path / "elsewhere" / "link").symlink_to(ledger.path)
    linked = FileLedger(tmp_path / "elsewhere" / "link")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link"]
    monkeypatch.chdir(tmp_path)
    near = FileLedger("budget")
    monkeypatch.chdir("/")
    for one in (linked, near):
        one.spend(PureEvent(epsilon=0.4), label="through another name")
    assert ledger.remaining.epsilon == 0.2


def test_a_second_name_of_a_ledger_is_refused(tmp_path):
    """It would have a mark and a lock of its own."""
    path, second = tmp_path / "budget", tmp_path / "second"
    ledger = FileLedger(path, limit_epsilon=1.0)
    ledger.spend(PureEvent(epsilon=0.1), label="one name")
    os.link(path, second)
    for use in (
        lambda: FileLedger(second, limit_epsilon=1.0),
        lambda: FileLedger(path),
        lambda: ledger.spend(PureEvent(epsilon=0.1), label="two names"),
    ):
        with pytest.raises(LedgerDamaged, match=r"has 2 names \(hard links\): remove all but one"):
            use()
    second.unlink()
    ledger.spend(PureEvent(epsilon=0.1), label="one name again")
    assert FileLedger(path).spent.epsilon == 0.2


def test_a_new_ledger_needs_a_limit(tmp_path):
    with pytest.raises(InvalidParameter, match="limit_epsilon must be given for a new ledger"):
        FileLedger(tmp_path / "budget")
    assert not (tmp_path / "budget").exists()


def test_a_vanished_ledger_is_not_a_new_budget(tmp_path):
    path = tmp_path / "budget"
    ledger = FileLedger(path, limit_epsilon=1.0)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(FileNotFoundError):
        ledger.spend(tenth(), label="x")
    assert not path.exists()


@pytest.mark.parametrize("ending", ["", "\n", "and good night"])
def test_a_foreign_file_is_left_alone(tmp_path, ending):
    path = tmp_path / "notes.txt"
    text = 100 * "dear diary, nothing happened today; " + ending
    path.write_text(text)
    with pytest.raises(LedgerDamaged):
        FileLedger(path, limit_epsilon=1.0)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_only_the_owner_can_read_it(tmp_path):
    FileLedger(tmp_path / "budget", limit_epsilon=1.0)
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())


# The mark beside it


def spent_thrice(path):
    ledger = FileLedger(path, limit_epsilon=1.0)
    for number in range(3):
        ledger.spend(tenth(), label=f"release {number}")
    return ledger


def test_an_emptied_ledger_is_damage(tmp_path):
    path = tmp_path / "budget"
    ledger = spent_thrice(path)
    path.write_bytes(b"")
    with pytest.raises(LedgerDamaged, match="lost records"):
        FileLedger(path, limit_epsilon=1.0)
    with pytest.raises(LedgerDamaged):
        ledger.spend(tenth(), label="x")
    assert path.read_bytes() == b""


def test_a_removed_ledger_is_damage_while_its_mark_is_there(tmp_path):
    path = tmp_path / "budget"
    spent_thrice(path)
    for file in tmp_path.iterdir():
        if file.suffix != ".mark":
            file.unlink()
    with pytest.raises(LedgerDamaged, match="lost records"):
        FileLedger(path, limit_epsilon=1.0)


def test_a_ledger_put_back_is_damage(tmp_path):
    path = tmp_path / "budget"
    ledger = FileLedger(path, limit_epsilon=1.0)
    ledger.spend(tenth(), label="kept")
    backup = path.read_bytes()
    ledger.spend(tenth(), label="lost")
    path.write_bytes(backup)
    with pytest.raises(LedgerDamaged, match="lost records"):
        FileLedger(path)


def test_another_ledger_in_its_place_is_damage(tmp_path):
    path, other = tmp_path / "budget", tmp_path / "other"
    spent_thrice(path)
    spent_thrice(other)
    path.write_bytes(other.read_bytes())
    with pytest.raises(LedgerDamaged, match="lost records"):
        FileLedger(path)


@pytest.mark.parametrize("content", [None, b"", b"nonsense", 2 * b"nonsense" + 130 * b"x"])
def test_a_lost_or_spoiled_mark_is_damage(tmp_path, content):
    path = tmp_path / "budget"
    ledger, mark = spent_thrice(path), tmp_path / "budget.mark"
    mark.unlink() if content is None else mark.write_bytes(content)
    for attempt in (lambda: ledger.spend(tenth(), label="x"), lambda: FileLedger(path)):
        with pytest.raises(LedgerDamaged):
            attempt()


def test_an_older_mark_is_damage(tmp_path):
    path, mark = tmp_path / "budget", tmp_path / "budget.mark"
    ledger = FileLedger(path, limit_epsilon=1.0)
    old = mark.read_bytes()
    for _ in range(2):
        ledger.spend(tenth(), label="x")
    mark.write_bytes(old)
    with pytest.raises(LedgerDamaged, match="older than its ledger"):
        FileLedger(path)


def test_a_crash_between_record_and_mark_counts_the_record(tmp_path):
    path, mark = tmp_path / "budget", tmp_path / "budget.mark"
    ledger = FileLedger(path, limit_epsilon=1.0)
    for number in range(4):
        before = mark.read_bytes()
        ledger.spend(tenth(), label="x")
        after = mark.read_bytes()
        pairs = enumerate(zip(before, after, strict=False))
        torn = bytes(new if k % 3 else old for k, (old, new) in pairs)
        # The first time that a slot is used, it may be there in part.
        for left in (before, torn if number else after[:100]):
            mark.write_bytes(left)
            assert len(FileLedger(path).entries) == number + 1
            assert FileLedger(path).remaining == ledger.remaining


def test_a_torn_mark_hides_no_missing_record(lines):
    path, content = lines
    mark = path.with_name(path.name + ".mark")
    states = mark.read_bytes()
    mark.write_bytes(states[:64] + b"x" * 64)  # says 3; the state of 4 is torn
    FileLedger(path)
    mark.write_bytes(states[:64] + b"x" * 64)
    path.write_bytes(b"".join(content[:-1]))
    with pytest.raises(LedgerDamaged, match="lost records"):
        FileLedger(path)


# The file


@pytest.fixture
def lines(tmp_path) -> tuple[Path, list[bytes]]:
    path = tmp_path / "budget.jsonl"
    ledger = FileLedger(path, limit_epsilon=1.0)
    for number in range(3):
        ledger.spend(tenth(), label=f"release {number}", key=str(number))
    return path, path.read_bytes().splitlines(keepends=True)


def test_file_is_json_lines_without_anything_private(lines):
    header, *records = [json.loads(line) for line in lines[1]]
    assert header["record"]["limit_epsilon"] == 1.0
    assert {key for record in records for key in record["record"]} == {
        "sequence",
        "label",
        "event",
        "time",
        "assumptions",
        "key",
        "unit",
        "way",
    }


def unacknowledge(path: Path, count: int) -> None:
    """Put the mark back to `count` records, as if a crash had come before it was moved."""
    checksums = [json.loads(line)["checksum"] for line in path.read_bytes().splitlines()]
    with locked_mark(path) as mark:
        os.truncate(mark._path, 0)
        mark.count = 0
        mark.move(count, checksums[count - 1])


def test_a_torn_last_line_was_never_acknowledged(lines):
    path, content = lines
    unacknowledge(path, 3)
    marked = path.with_name(path.name + ".mark").read_bytes()
    whole, last = b"".join(content[:-1]), content[-1]
    for cut in range(len(last)):
        path.write_bytes(whole + last[:cut])
        path.with_name(path.name + ".mark").write_bytes(marked)
        ledger = FileLedger(path)
        # Complete but for its line end: counted, to be on the safe side. Otherwise cut off.
        counted = 3 if cut == len(last) - 1 else 2
        assert len(ledger.entries) == counted
        ledger.spend(tenth(), label="after the crash", key="new")
        assert len(FileLedger(path).entries) == counted + 1


def test_a_cut_acknowledged_line_is_damage(lines):
    path, content = lines
    for cut in range(len(content[-1]) - 1):
        kept = b"".join(content[:-1]) + content[-1][:cut]
        path.write_bytes(kept)
        with pytest.raises(LedgerDamaged, match="lost records that were acknowledged"):
            FileLedger(path)
        assert path.read_bytes() == kept  # evidence is left alone


def test_a_torn_first_line_is_written_again(lines):
    path, content = lines
    path.write_bytes(content[0][:20])
    os.truncate(path.with_name(path.name + ".mark"), 0)
    with pytest.raises(InvalidParameter, match="limit_epsilon must be given"):
        FileLedger(path)
    assert FileLedger(path, limit_epsilon=0.5).remaining == Budget(epsilon=0.5)


@pytest.mark.parametrize("number", range(4))
def test_a_changed_line_is_damage(lines, number):
    path, content = lines
    content[number] = content[number].replace(b"0.1", b"0.0").replace(b":1.0", b":9.0")
    path.write_bytes(b"".join(content))
    with pytest.raises(LedgerDamaged, match="does not match its checksum"):
        FileLedger(path)


def test_a_missing_line_is_damage(lines):
    path, content = lines
    path.write_bytes(b"".join(content[:2] + content[3:]))
    with pytest.raises(LedgerDamaged):
        FileLedger(path)


def test_a_file_that_shrank_is_damage(lines):
    path, content = lines
    ledger = FileLedger(path)
    path.write_bytes(b"".join(content[:2]))
    with pytest.raises(LedgerDamaged, match="shorter than it was"):
        ledger.spend(tenth(), label="x")


def test_a_full_disk_spends_nothing(lines, monkeypatch):
    path, content = lines
    ledger, write = FileLedger(path), os.write

    def full(descriptor, data):
        if len(data) < 50:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:-40])  # a short write, then none

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.spend(tenth(), label="x")
    monkeypatch.undo()
    assert path.read_bytes() == b"".join(content)
    assert ledger.spend(tenth(), label="x").sequence == 4


@pytest.mark.parametrize("kept", range(4))
def test_removed_last_lines_are_damage(lines, kept):
    """Down to an emptied file."""
    path, content = lines
    path.write_bytes(b"".join(content[:kept]))
    with pytest.raises(LedgerDamaged, match="lost records that were acknowledged"):
        FileLedger(path, limit_epsilon=1.0)


def test_a_failed_sync_is_not_acknowledged_but_counted(lines, monkeypatch):
    path, _ = lines
    ledger = FileLedger(path)

    def broken(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        ledger.spend(tenth(), label="x")
    monkeypatch.undo()
    assert len(ledger.entries) == len(FileLedger(path).entries) == 4


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"sequence": 4},
        {"event": {"name": "pure", "epsilon": math.nan}},
        {"event": {"name": "pure", "epsilon": -1}},
        {"event": {"name": "gaussian", "multiplier": 9.0}},  # no place in this ledger
        {"event": None},
        {"sequence": 9},
        {"sequence": "4"},
        {"time": math.inf},
        {"label": ""},
        {"key": 7},
        {"assumptions": "none"},
        {"assumptions": [None]},
        {"more": 1},
    ],
)
def test_a_record_that_is_no_entry_is_damage_whatever_its_checksum_says(lines, record):
    path, content = lines
    if isinstance(record, dict) and record:
        entry = json.loads(content[-1])["record"] | {"sequence": 4, "key": "new"}
        record = entry | record if record != {"sequence": 4} else record
    ledger = FileLedger(path)
    with ledger._exclusive():
        ledger._append_record(record)
    with pytest.raises(LedgerDamaged, match="a record that is not a ledger's"):
        FileLedger(path)
