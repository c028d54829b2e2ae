"""Rows on workers: the same bits, sums alone come back, and a worker may die."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import counted_work
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from summed_cases import CURVES, PRICE, TABLE, TARGET, WORDS, T, cases

import dpfda
from dpfda.cli._group import dpfda as main
from dpfda.errors import BudgetExceeded, DpfdaError, InvalidData, InvalidParameter, ProtocolError
from dpfda.planning.sweep import ALONE, Sweep
from dpfda.privacy.ledger import Ledger

dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
cluster = pytest.importorskip("dpfda.estimators.cluster")

FEW = 500
pytestmark = pytest.mark.filterwarnings("ignore")  # of dask and of few rows
LINE: dict[str, Any] = {"feature_ranges": (-1, 1), "target_range": (-1, 1), "random_state": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two worker processes."""
    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.logging.distributed": "critical"}),
        distributed.LocalCluster(processes=True, silence_logs=50, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as connected,
    ):
        yield connected


def line(**more: Any) -> Any:
    return dpfda.PrivateLinearRegression(1.0, **LINE | more)


@cases
def test_dask_arrays_of_any_chunks(case: Any) -> None:
    name, parameters, X, y, points, left = case
    model = getattr(dpfda, name)(**PRICE | parameters, random_state=3)
    known = None if y is None else y[:FEW]
    whole = getattr(model.fit(X[:FEW], known, grid_points=points), left)
    rows = array.from_array(X[:FEW], chunks=(90, 2))
    targets = None if y is None else array.from_array(known, chunks=130)
    with dask.config.set(scheduler="synchronous"):
        model.fit(rows, targets, grid_points=points)
    assert np.array_equal(getattr(model, left), whole)


def test_a_dask_dataframe_with_words() -> None:
    frames = pytest.importorskip("dask.dataframe")
    table = pd.DataFrame(TABLE[:FEW, :1], columns=["age"])
    table["sex"] = np.where(TABLE[:FEW, 1] > 0, "f", "m")
    ranges = {"age": (-1, 1), "sex": ["f", "m"]}
    y = pd.Series(TARGET[:FEW])
    model = line(feature_ranges=ranges)
    whole = model.fit(table, y).coef_
    with dask.config.set(scheduler="synchronous"):
        model.fit(frames.from_pandas(table, npartitions=4), frames.from_pandas(y, npartitions=4))
    assert np.array_equal(model.coef_, whole)


def test_what_cannot_be_asked_of_blocks_is_refused() -> None:
    X, y = array.from_array(TABLE[:FEW], chunks=100), array.from_array(TARGET[:FEW], chunks=100)
    ledger = Ledger(9.0, limit_delta=0.1)
    with pytest.raises(InvalidParameter, match="groups must be left out for dask"):
        line(ledger=ledger).fit(X, y, groups=np.arange(FEW))
    with pytest.raises(InvalidParameter, match="classes must be given, because no process sees"):
        dpfda.PrivateLogisticRegression(1.0, feature_ranges=(-1, 1), random_state=0,
                                        ledger=ledger).fit(X, y)  # fmt: skip
    with pytest.raises(InvalidData, match="cannot be computed from sums"):
        line(mechanism="output_perturbation", ledger=ledger).fit(X, y)
    assert ledger.entries == ()


def written(folder: Path) -> list[Path]:
    """The same table in files of three kinds."""
    table = pd.DataFrame(TABLE[:FEW], columns=["a", "b", "c"])
    table["y"] = TARGET[:FEW]
    paths = [folder / "one.csv", folder / "two.parquet", folder / "three.npz"]
    table[:200].to_csv(paths[0], index=False)
    table[200:350].to_parquet(paths[1])
    np.savez(paths[2], **{name: table[name][350:].to_numpy() for name in table})
    return paths


def test_files_here_and_on_workers(tmp_path: Path, client: Any) -> None:
    paths = written(tmp_path)
    whole = line().fit(TABLE[:FEW], TARGET[:FEW]).coef_
    assert np.array_equal(line().fit_stream(paths, target="y").coef_, whole)
    ranges = {"c": (-1, 1), "a": (-1, 1)}
    address = client.scheduler.address
    named = line(feature_ranges=ranges).fit_stream(paths, target="y", scheduler=address)
    picked = line().fit(TABLE[:FEW, [2, 0]], TARGET[:FEW])
    assert np.array_equal(named.coef_, picked.coef_)


def printed(*words: Any) -> str:
    done = CliRunner().invoke(main, [*map(str, words), "--epsilon", "1", "--seed", "1", "--json"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_read_several_files_as_one(tmp_path: Path, client: Any) -> None:
    paths = written(tmp_path)
    table = pd.DataFrame(TABLE[:FEW], columns=["a", "b", "c"]).assign(y=TARGET[:FEW])
    table.to_csv(tmp_path / "all.csv", index=False)
    line = ("--target", "y", "--target-range", -1, 1, "--feature-ranges", "-1:1")
    whole = printed("regress", tmp_path / "all.csv", *line)
    assert printed("regress", *paths, *line) == whole
    address = client.scheduler.address
    assert printed("regress", *paths, *line, "--scheduler", address) == whole
    mean = ("--columns", "a,b,c", "--range", -1, 1, "--delta", 1e-5)
    assert printed("release", "mean", *paths, *mean) == printed(
        "release", "mean", tmp_path / "all.csv", *mean
    )
    refused = CliRunner().invoke(
        main, ["release", "mean", *map(str, paths), "--groups", "y", "--epsilon", "1"]
    )
    assert "--groups must be left out for several files" in refused.output


def test_commands_read_labels_of_several_files(tmp_path: Path) -> None:
    table = pd.DataFrame(CURVES[:FEW], columns=[f"{t:.3f}" for t in T])
    table["who"] = WORDS[:FEW]
    table.to_csv(tmp_path / "all.csv", index=False)
    for number, part in enumerate(np.array_split(np.arange(FEW), 2)):
        table.iloc[part].to_csv(tmp_path / f"{number}.csv", index=False)
    parts = tmp_path / "0.csv", tmp_path / "1.csv"
    known = ("--label", "who", "--classes", "no,yes,maybe", "--range", -3, 3)
    for command in (("classify",), ("release", "groups")):
        whole = printed(*command, tmp_path / "all.csv", *known)
        assert printed(*command, *parts, *known) == whole
    table.rename(columns={"0.000": "0.001"}).to_csv(tmp_path / "1.csv", index=False)
    refused = CliRunner().invoke(main, ["classify", *map(str, (*parts, *known)), "--epsilon", "1"])
    assert "1.csv must be a file with the grid points of the first one" in refused.output


def test_labels_in_files(tmp_path: Path) -> None:
    labels = TARGET[:FEW] > 0
    table = pd.DataFrame(TABLE[:FEW], columns=["a", "b", "c"])
    table["y"] = np.where(labels, "yes", "no")
    table.to_csv(tmp_path / "all.csv", index=False)
    model = dpfda.PrivateLogisticRegression(1.0, feature_ranges=(-1, 1), classes=("no", "yes"),
                                            random_state=0)  # fmt: skip
    whole = model.fit(TABLE[:FEW], table["y"]).coef_
    assert np.array_equal(model.fit_stream(tmp_path / "all.csv", target="y").coef_, whole)
    wrong = dpfda.PrivateLogisticRegression(1.0, feature_ranges=(-1, 1), classes=("no", "si"),
                                            random_state=0)  # fmt: skip
    with pytest.raises(InvalidData, match="y must be among the given classes"):
        wrong.fit_stream(tmp_path / "all.csv", target="y")


@pytest.mark.parametrize("rows", [200, 2000])
def test_workers_send_sums_and_nothing_else(
    rows: int, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[Any] = []
    sent: list[Any] = []
    ledger, gather = Ledger(1.0, limit_delta=1e-5), cluster.OnWorkers.gather

    def seen(blocks: Any, work: Any) -> Any:
        assert len(ledger.entries) == len(sent)  # every question is paid for first
        sent.append(pickle.loads(pickle.dumps(work)))
        for part in gather(blocks, work):
            came.append(part)
            yield part

    monkeypatch.setattr(cluster.OnWorkers, "gather", seen)
    halves = [(TABLE[k:rows:2], TARGET[k:rows:2]) for k in (0, 1)]

    def block(number: int) -> Any:
        pair = halves[number]
        return lambda: [pair]

    model = line(ledger=ledger, random_state=dpfda.SimulationSource(0))
    model.fit_stream([block(0), block(1)], scheduler=client)
    counted, asked = came[:2], came[2:]
    assert [len(sums) for _, sums in counted] == [0, 0]
    assert [n for n, _ in came] == [rows // 2] * len(came)
    assert {type(n) for n, _ in came} == {int}
    assert {sums.dtype for _, sums in came} == {np.dtype(np.int64)}
    assert [len(sums) for _, sums in asked] == [1, 1, 6, 6, 9, 9]  # whatever the rows
    for work in sent:  # what a worker is sent can neither spend nor draw
        assert work.reader.ledger is None
        assert work.reader.random_state == 0


def test_a_ledger_refuses_before_anything_is_computed() -> None:
    def read(block: Any) -> Any:
        raise AssertionError

    rows = array.from_array(TABLE[:FEW], chunks=100).map_blocks(read, dtype=float)
    with pytest.raises(BudgetExceeded):
        line(ledger=Ledger(0.5, limit_delta=1e-5)).fit(rows, rows[:, 0])


@pytest.mark.parametrize("what", ["X", "y", "curve"])
def test_one_row_that_is_refused_costs_nothing(what: str) -> None:
    """Whether there is a release may depend on a row; then nothing may have been paid for it."""
    X, y = (CURVES if what == "curve" else TABLE)[:FEW].copy(), TARGET[:FEW].copy()
    (y if what == "y" else X)[FEW - 1] = np.nan
    ledger = Ledger(1.0, limit_delta=1e-5)
    rows, targets = array.from_array(X, chunks=(90, -1)), array.from_array(y, chunks=90)
    model: Any = line(ledger=ledger)
    if what == "curve":
        model = dpfda.PrivateMean(1.0, delta=1e-5, value_range=(-3, 3), ledger=ledger)
    with dask.config.set(scheduler="synchronous"), pytest.raises(InvalidData):
        model.fit(rows, None if what == "curve" else targets)
    assert ledger.entries == ()


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    for address in ("tcp://127.0.0.1:1", "nowhere", 3.5):
        with pytest.raises(InvalidParameter, match="scheduler must be the address of a dask"):
            line().fit_stream([lambda: [(TABLE, TARGET)]], scheduler=address)


@pytest.mark.parametrize("way", ["array", "blocks"])
def test_a_worker_that_dies_is_named(way: str) -> None:
    def die(*_: Any) -> Any:
        os._exit(1)

    ledger = Ledger(1.0, limit_delta=1e-5)
    X = array.from_array(TABLE[:FEW], chunks=(90, -1))
    dies = X.map_blocks(die, dtype=float, meta=TABLE[:0])
    fits: dict[str, Any] = {
        "array": lambda _: line(ledger=ledger).fit(dies, X[:, 0]),
        "blocks": lambda client: line(ledger=ledger).fit_stream([die], scheduler=client),
    }
    once = {"distributed.scheduler.allowed-failures": 0}
    options: Any = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.logging.distributed": "critical", **once}),
        distributed.LocalCluster(processes=True, silence_logs=50, **options) as small,
        distributed.Client(small, set_as_default=way == "array") as connected,
        pytest.raises(DpfdaError, match=r"a worker of the cluster died .* \(attempts: 1\)"),
    ):
        fits[way](connected)
    assert ledger.entries == ()


def test_a_worker_that_fails_quotes_nobody(client: Any) -> None:
    def block() -> Any:
        raise ValueError("could not read 'private'")

    ledger = Ledger(1.0, limit_delta=1e-5)
    with pytest.raises(ProtocolError, match=r"a worker raised ValueError in a block") as told:
        line(ledger=ledger).fit_stream([block], scheduler=client)
    assert "private" not in str(told.value)
    assert "private" not in str(client.get_worker_logs())
    with pytest.raises(InvalidData, match="X must be"):  # its own words are kept
        line(ledger=ledger).fit_stream(
            [lambda: [(np.zeros((5, 3)), np.zeros(5))], lambda: [(np.zeros((5, 4)), np.zeros(5))]],
            scheduler=client,
        )
    assert ledger.entries == ()


@pytest.mark.timed
def test_a_killed_worker_changes_no_bit(client: Any) -> None:
    whole = line().fit(TABLE, TARGET).coef_
    parts = np.array_split(np.arange(len(TABLE)), 8)

    def block(part: Any) -> Any:
        X, y = TABLE[part], TARGET[part]

        def slowly() -> Any:
            time.sleep(0.15)
            return [(X, y)]

        return slowly

    pids = list(client.run(os.getpid).values())
    killed: list[int] = []

    def kill() -> None:
        time.sleep(0.9)  # in the middle of a question
        os.kill(pids[0], signal.SIGKILL)
        killed.append(pids[0])

    thread = threading.Thread(target=kill)
    thread.start()
    again = line().fit_stream([block(part) for part in parts], scheduler=client)
    thread.join()
    assert killed
    assert np.array_equal(again.coef_, whole)


@pytest.mark.usefixtures("client")
def test_cells_of_a_sweep_on_workers(tmp_path: Path, client: Any) -> None:
    work, names = partial(counted_work.draw, str(tmp_path / "log")), counted_work.NAMES[:6]
    sweep = Sweep(jobs=2, backend="dask", store=tmp_path / "store")
    with client.as_current():
        assert sweep.run(work, names) == ALONE.run(work, names)
        assert sweep.run(work, names) == ALONE.run(work, names)
    written = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert len(written) == 3 * len(names)  # once by workers, and not again
