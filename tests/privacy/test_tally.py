"""What a process has spent: every door is tallied, the second release warns, budgets hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tally_data
from joblib import Parallel, delayed
from tally_data import (
    DOORS,
    SMALL,
    X,
    Y,
    _curated,
    _simulated,
)

import dpfda
from dpfda.errors import BudgetExceeded, PrivacyWarning
from dpfda.noise import SecureSource
from dpfda.privacy import tally
from dpfda.privacy.composition import Budget
from dpfda.privacy.cost import Cost
from dpfda.privacy.events import (
    ApproximateEvent,
    Event,
    PureEvent,
)
from dpfda.privacy.guarantee import NUMBER_IS_PUBLIC, Guarantee
from dpfda.privacy.ledger import Ledger
from dpfda.privacy.ledger_file import FileLedger


@pytest.mark.filterwarnings("ignore::UserWarning")  # tiny data: regressions say so
@pytest.mark.parametrize("door", DOORS)
def test_every_door_is_tallied_once_and_the_second_release_warns_once(door: str) -> None:
    DOORS[door](random_state=0)  # protects nobody: counted nowhere
    assert not dpfda.spent().releases
    DOORS[door]()
    (one,) = dpfda.spent().releases
    assert (one.promise.epsilon, one.promise.sampler, one.paid) == (1.0, "exact", False)
    with pytest.warns(PrivacyWarning, match=r"2 releases without a ledger cost ε = (2|1\.4)"):
        DOORS[door]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        DOORS[door]()
    assert len(dpfda.spent().releases) == 3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("door", DOORS)
def test_a_budget_covers_every_door(door: str) -> None:
    with dpfda.budget(1.0) as ledger:
        DOORS[door](random_state=0)
        assert not ledger.entries
        DOORS[door]()
        spent = ledger.spent.epsilon
        assert 0.999 <= spent <= 1.0
        with pytest.raises(BudgetExceeded):
            DOORS[door]()
        assert ledger.spent.epsilon == spent
    (one,) = dpfda.spent().releases  # what was refused is not in it
    assert one.paid
    assert {entry.unit for entry in ledger.entries} == {one.promise.unit}


def test_a_ledger_that_is_given_pays_alone_and_for_simulations_too() -> None:
    mine = Ledger(3.0)
    with dpfda.budget(1.0) as around:
        DOORS["mean"](ledger=mine)
        DOORS["mean"](ledger=mine, random_state=0)
    assert (mine.spent.epsilon, around.spent.epsilon) == (2.0, 0.0)
    assert len(dpfda.spent().releases) == 1


def in_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_inside_a_budget_are_covered() -> None:
    refused = []

    def work() -> None:
        try:
            DOORS["mean"]()
        except BudgetExceeded:
            refused.append(1)

    with dpfda.budget(9.0), dpfda.budget(2.0) as ledger:
        in_threads(*(partial(copy_context().run, work) for _ in range(4)))
    assert ledger.spent == Budget(epsilon=2.0)
    assert len(refused) == 2


def test_two_threads_pay_from_a_budget_each() -> None:
    both, spent = threading.Barrier(2), {}

    def work(epsilon: float) -> None:
        both.wait(10)
        with dpfda.budget(epsilon) as ledger:
            both.wait(10)
            for _ in range(int(epsilon)):
                DOORS["mean"]()
            both.wait(10)
        spent[epsilon] = ledger.spent.epsilon

    in_threads(partial(work, 1.0), partial(work, 3.0))
    assert spent == {1.0: 1.0, 3.0: 3.0}


def test_an_older_thread_pays_from_no_budget_of_others() -> None:
    begin, done = threading.Event(), threading.Event()

    def older() -> None:
        begin.wait(10)
        DOORS["mean"]()
        done.set()

    thread = threading.Thread(target=older)
    thread.start()
    with dpfda.budget(2.0) as ledger:
        begin.set()
        done.wait(10)
    thread.join()
    assert ledger.entries == ()
    assert [release.paid for release in dpfda.spent().releases] == [False]


def test_a_thread_that_may_be_inside_says_so_or_is_refused() -> None:
    found = []

    def lost() -> None:
        with pytest.raises(BudgetExceeded, match="a budget was open when this thread began"):
            DOORS["mean"]()
        dpfda.PrivateMean(1.0, delta=0, bound=1.0, ledger=Ledger(1.0)).fit(X)
        found.append(1)

    with dpfda.budget(2.0) as ledger:
        in_threads(lost)
    assert found == [1]
    assert ledger.entries == ()


def test_a_thread_that_begins_after_a_budget_is_outside() -> None:
    with dpfda.budget(1.0), dpfda.budget(0.5):
        pass
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(tally.payer, None, SecureSource()).result() is None


def test_joblib_works_inside() -> None:
    with dpfda.budget(3.0) as ledger:
        Parallel(n_jobs=2)(delayed(DOORS["mean"])() for _ in range(3))
    assert ledger.spent == Budget(epsilon=3.0)


def test_what_was_spent_prints_and_is_json() -> None:
    assert str(dpfda.spent()) == "nothing was released with real noise"
    with dpfda.budget(9.0):
        DOORS["mean"]()
    with dpfda.budget(9.0):
        dpfda.PrivateMean(0.5, delta=0, bound=1.0, unit="scan").fit(X)
    DOORS["mean"]()
    spent = dpfda.spent()
    assert spent.totals == {"person": Budget(epsilon=2.0), "scan": Budget(epsilon=0.5)}
    lines = str(spent).splitlines()
    assert lines[0].endswith("MeanRelease (central): ε = 1 a person")
    assert lines[2].endswith("MeanRelease (central): ε = 1 a person, without a ledger")
    assert lines[3:] == [
        "together, for a person who is in all of them: ε = 2",
        "together, for a scan who is in all of them: ε = 0.5",
        f"assuming {NUMBER_IS_PUBLIC}",
    ]
    plain = json.loads(spent.to_json())
    assert plain["totals"]["scan"] == {"epsilon": 0.5, "delta": 0.0}
    assert [one["promise"]["unit"] for one in plain["releases"]] == ["person", "scan", "person"]
    assert [one["paid"] for one in plain["releases"]] == [True, True, False]


def _tallied(promise: Guarantee, event: Event | None = None) -> tally.Tallied:
    return tally.Tallied(label="mean", promise=promise, time=0.0, paid=False, event=event)


def test_a_total_is_what_a_ledger_would_say() -> None:
    promise, noise = Guarantee(epsilon=1.0, delta=1e-5), Cost(epsilon=1.0, delta=1e-5).event
    ledger = Ledger(9.0, limit_delta=1e-5)
    for _ in range(3):
        ledger.spend(noise, label="mean")
    gaussian = [_tallied(promise, noise)] * 3
    total = tally.together(gaussian)
    assert total.epsilon == pytest.approx(ledger.spent.epsilon, rel=1e-8)
    assert total.delta == 1e-5
    pure = _tallied(Guarantee(epsilon=0.7))
    ledger.spend(PureEvent(epsilon=0.7), label="count")
    mixed = tally.together([*gaussian, pure])
    assert total.epsilon < mixed.epsilon < total.epsilon + 0.8
    assert mixed.epsilon == pytest.approx(ledger.spent.epsilon, rel=1e-8)
    plain = tally.together([*gaussian, pure, _tallied(Guarantee(epsilon=0.1, delta=1e-6))])
    assert mixed.epsilon < plain.epsilon < mixed.epsilon + 0.11
    assert plain.delta == pytest.approx(1.1e-5)
    loose = Guarantee(epsilon=1.0, delta=1e-3)
    other = tally.together([gaussian[0], _tallied(loose, Cost(epsilon=1.0, delta=1e-3).event)])
    assert other.delta == 1e-3


def test_a_promise_of_which_no_more_is_known_keeps_its_kind() -> None:
    both, pure = Guarantee(epsilon=0.5, delta=1e-6), Guarantee(epsilon=0.5)
    assert _tallied(both).event == ApproximateEvent(epsilon=0.5, delta=1e-6)
    assert _tallied(pure).event == PureEvent(epsilon=0.5)
    ledger = Ledger(1.0, limit_delta=1e-4)
    tally.pay(both, label="x", source=SecureSource(), ledger=ledger)
    assert ledger.entries[0].event == ApproximateEvent(epsilon=0.5, delta=1e-6)
    assert json.loads(dpfda.spent().to_json())["releases"][0]["event"]["name"] == "approximate"


@pytest.mark.filterwarnings("ignore:too few people")
def test_a_person_with_three_rows_pays_once() -> None:
    ledger = Ledger(5.0)
    groups = np.arange(90) // 3
    model = dpfda.MRMAClassifier(epsilon=1.0, **SMALL, ledger=ledger, random_state=0)
    model.fit(X, Y, groups=groups)
    assert ledger.spent.epsilon == model.guarantee_.epsilon == 1.0
    assert model.plan_.n_people == 30


def test_a_budget_in_a_file_goes_on(tmp_path: Path) -> None:
    for number in range(2):
        with dpfda.budget(2.0, path=tmp_path / "budget") as ledger:
            DOORS["mean"]()
        assert ledger.spent.epsilon == number + 1
    with pytest.raises(BudgetExceeded), dpfda.budget(2.0, path=tmp_path / "budget"):
        DOORS["mean"]()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_get_a_copy_of_a_budget() -> None:
    code = """
import os
from dpfda import Ledger
from dpfda.errors import BudgetExceeded
from dpfda.privacy.events import PureEvent
ledger = Ledger(1.0)
if os.fork() == 0:
    try:
        ledger.spend(PureEvent(epsilon=0.5), label="child")
    except BudgetExceeded as refusal:
        os._exit(7 if "FileLedger" in str(refusal) else 1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "7"


FITTING = """
import sys
import numpy as np
from dpfda import PrivateMean
from dpfda.errors import BudgetExceeded
from dpfda.privacy.ledger_file import FileLedger

ledger = FileLedger(sys.argv[1], limit_epsilon=2.0)
curves = np.zeros((50, 8))
print("ready", flush=True)
sys.stdin.readline()  # wait for the start
fits = 0
try:
    for _ in range(40):
        PrivateMean(0.1, bound=1.0, ledger=ledger).fit(curves)
        fits += 1
except BudgetExceeded:
    print(fits)
"""


def test_two_processes_that_fit_with_one_ledger_never_overspend(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    quiet = ["-W", "error", "-W", "ignore::UserWarning"]  # 50 curves are mostly noise
    command = [sys.executable, *quiet, "-c", FITTING, str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    fits = [int(worker.communicate(timeout=120)[0]) for worker in workers]
    ledger = FileLedger(path)
    assert ledger.spent.epsilon <= 2.0
    # Whole fits, and the one or two that the other process's looks left unfinished.
    assert 18 <= sum(fits) <= 20


class Broken(SecureSource):
    """Fails when noise is drawn."""

    def words(self, count: int) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize("door", [_curated, _simulated])
def test_a_release_is_written_down_before_its_noise_is_drawn(door: Callable[..., Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        door(Broken())
    assert len(dpfda.spent().releases) == 1


def test_the_warning_points_at_whoever_called() -> None:
    DOORS["mean"]()
    with pytest.warns(PrivacyWarning) as caught:
        DOORS["mean"]()
    assert caught[0].filename == tally_data.__file__
