"""Ledgers under real processes: several at once, and killed at random moments."""

import os
import random
import signal
import subprocess
import sys

import pytest

from dpfda.privacy.ledger_file import FileLedger

ROUNDS = int(os.environ.get("DPFDA_KILL_ROUNDS", "2"))

# Spends until refused; a label printed is a spend acknowledged.
WORKER = """
import sys
from dpfda.errors import BudgetExceeded
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger_file import FileLedger

directory, limit, worker = sys.argv[1:]
ledger = FileLedger(directory + "/ledger", limit_epsilon=float(limit))
sys.stdin.readline()  # wait for the start
try:
    for number in range(100_000):
        label = f"{worker}-{number}"
        ledger.spend(PureEvent(epsilon=0.01), label=label, key=label)
        print(label, flush=True)
except BudgetExceeded:
    pass
"""


def start(directory, *, limit: float, worker: str) -> subprocess.Popen[str]:
    arguments = [str(directory), str(limit), worker]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_together_spend_the_limit_exactly(tmp_path):
    workers = [start(tmp_path, limit=1.0, worker=str(number)) for number in range(2)]
    for worker in workers:  # all have the ledger open before the first spends
        worker.stdin.write("go\n")
        worker.stdin.flush()
    acknowledged = [label for worker in workers for label in worker.communicate()[0].split()]
    assert [worker.returncode for worker in workers] == [0, 0]
    ledger = FileLedger(tmp_path / "ledger", limit_epsilon=1.0)
    assert len(acknowledged) == 100  # 100 × 0.01 = 1.0
    assert sorted(acknowledged) == sorted(entry.label for entry in ledger.entries)
    assert [entry.sequence for entry in ledger.entries] == list(range(1, 101))
    assert ledger.remaining.epsilon == 0


@pytest.mark.parametrize("new", [True, False])
def test_processes_that_use_two_names_of_a_ledger_do_not_overdraw_it(tmp_path, new):
    """Hard links: each name has a mark, hence a lock, of its own."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    if new:
        (folders[0] / "ledger").touch()
    else:
        FileLedger(folders[0] / "ledger", limit_epsilon=0.2)
    os.link(folders[0] / "ledger", folders[1] / "ledger")
    workers = [start(folder, limit=0.2, worker=folder.name) for folder in folders * 2]
    said = [worker.communicate("go\n") for worker in workers]
    assert not any(out for out, _ in said)
    # One process may see the other's mark vanish, which was made for nothing.
    assert all("LedgerDamaged" in error for _, error in said)
    assert any("2 names" in error for _, error in said)
    (folders[1] / "ledger").unlink()
    assert FileLedger(folders[0] / "ledger", limit_epsilon=0.2).spent.epsilon == 0


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_no_acknowledged_spend_is_lost_when_processes_are_killed(tmp_path):
    moments, acknowledged, kills = random.Random(7), set(), 0
    for round_number in range(ROUNDS):
        workers = [
            start(tmp_path, limit=1000.0, worker=f"{round_number}.{number}") for number in range(2)
        ]
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            for _ in range(moments.randrange(1, 40)):
                acknowledged.add(worker.stdout.readline().strip())
            worker.send_signal(signal.SIGKILL)  # while it, or the other one, is in mid-spend
            kills += 1
        for worker in workers:
            with worker:  # closes its pipes
                # Not `communicate`, which would miss what `readline` has buffered.
                acknowledged |= set(worker.stdout.read().split("\n")[:-1])  # complete lines only
            assert worker.returncode == -signal.SIGKILL
        kept = [
            entry.label for entry in FileLedger(tmp_path / "ledger", limit_epsilon=1000.0).entries
        ]
        assert acknowledged <= set(kept)
        # Each kill may leave one spend that was stored but not yet acknowledged.
        assert len(kept) <= len(acknowledged) + kills
        assert len(set(kept)) == len(kept)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_spends_from_the_same_ledger(tmp_path):
    code = """
import os, sys
from dpfda.errors import BudgetExceeded
from dpfda.privacy.events import PureEvent
from dpfda.privacy.ledger_file import FileLedger

ledger = FileLedger(sys.argv[1] + "/ledger", limit_epsilon=1.0)
ledger.spend(PureEvent(epsilon=0.4), label="parent")
ledger._lock.acquire()  # as if another thread were spending during the fork
child = os.fork()
if child == 0:
    ledger.spend(PureEvent(epsilon=0.4), label="child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ledger._lock.release()
try:
    ledger.spend(PureEvent(epsilon=0.4), label="parent again")
except BudgetExceeded:
    print([entry.label for entry in ledger.entries])
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.stdout.strip() == "['parent', 'child']"
