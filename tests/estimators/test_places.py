"""Rows in folders, object stores and frames of other libraries: the same bits as one array."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from summed_cases import TABLE, TARGET

import dpfda
from dpfda.cli._group import dpfda as main
from dpfda.cli._reading import Passes
from dpfda.curves.files import tables_at
from dpfda.curves.files.file import Place
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.estimators import file_block
from dpfda.estimators.blocks import InTurn
from dpfda.privacy.ledger import Ledger

pandas = pytest.importorskip("pandas")
arrow = pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")
datasets = pytest.importorskip("pyarrow.dataset")

FEW = 500
LINE: dict[str, Any] = {"feature_ranges": {"c": (-1, 1), "a": (-1, 1)}, "target_range": (-1, 1)}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def line(**more: Any) -> Any:
    return dpfda.PrivateLinearRegression(1.0, **LINE | {"random_state": 0} | more)


@pytest.fixture(scope="module")
def table() -> Any:
    found = pandas.DataFrame(TABLE[:FEW], columns=["a", "b", "c"]).assign(y=TARGET[:FEW])
    return found.assign(ward=np.arange(FEW) % 3, note="a word")


@pytest.fixture(scope="module")
def whole() -> Any:
    return line().fit(TABLE[:FEW, [2, 0]], TARGET[:FEW]).coef_


@pytest.fixture(scope="module")
def lake(table: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in every form: a folder for each."""
    folder = tmp_path_factory.mktemp("lake")
    for name in ("parquet", "csv", "packed", "feather", "mixed"):
        (folder / name).mkdir()
    parts = [table[:200], table[200:350], table[350:]]
    for number, part in enumerate(parts):
        part.to_parquet(folder / "parquet" / f"{number}.parquet")
        part.to_csv(folder / "csv" / f"{number}.csv", index=False)
        part.to_csv(folder / "packed" / f"{number}.csv.gz", index=False)
        part.to_feather(folder / "feather" / f"{number}.feather")
    (folder / "parquet" / "_SUCCESS").touch()
    (folder / "csv" / ".hidden").mkdir()
    (folder / "csv" / ".hidden" / "0.csv").write_text("of another table\n")
    (folder / "csv" / "notes.md").write_text("no table\n")
    parts[0].to_csv(folder / "mixed" / "0.csv", index=False)
    with arrow.ipc.new_stream(folder / "mixed" / "1.arrow", arrow.Schema.from_pandas(table)) as out:
        out.write_table(arrow.Table.from_pandas(parts[1]))
    parts[2].to_parquet(folder / "mixed" / "2.parquet")
    table.to_parquet(folder / "wards", partition_cols=["ward"])
    return folder


def in_memory(lake: Path) -> str:
    """An object store with the files, at its address."""
    store = fsspec.filesystem("memory")
    if store.exists("/lake"):  # of an earlier folder in this process: pandas draws names of files
        store.rm("/lake", recursive=True)
    for path in lake.rglob("*"):
        if path.is_file():
            store.pipe_file(f"/lake/{path.relative_to(lake).as_posix()}", path.read_bytes())
    return "memory://lake"


FOLDERS = ("parquet", "csv", "packed", "feather", "mixed", "wards")


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_patterns_and_addresses(name: str, lake: Path, whole: Any) -> None:
    remote = in_memory(lake)
    pattern = "**/*.parquet" if name == "wards" else "[0-9]*"
    each = sorted((lake / name).glob("[0-9]*.*")) or [lake / name]
    places = (lake / name, f"{lake}/{name}/{pattern}", each, f"{remote}/{name}")
    for place in (*places, f"{remote}/{name}/{pattern}"):
        assert np.array_equal(line().fit_stream(place, target="y").coef_, whole), place


def test_folders_that_say_what_holds_of_their_rows(lake: Path, table: Any) -> None:
    ranges = {"ward": (0, 2), "a": (-1, 1)}
    whole = line(feature_ranges=ranges).fit(table[["ward", "a"]], table["y"]).coef_
    dataset = datasets.dataset(lake / "wards", partitioning="hive")
    for place in (lake / "wards", f"{in_memory(lake)}/wards", f"{lake}/wards/*/*", dataset):
        found = line(feature_ranges=ranges).fit_stream(place, target="y").coef_
        assert np.array_equal(found, whole), place
    kinds = {"ward": ["0", "1", "2"], "a": (-1, 1)}
    words = line(feature_ranges=kinds)
    whole = words.fit(table.assign(ward=table["ward"].astype(str))[["ward", "a"]], table["y"]).coef_
    assert np.array_equal(words.fit_stream(lake / "wards", target="y").coef_, whole)
    assert Place("x/0.csv", (("ward", ""),)).open  # a missing value is an empty cell
    (empty,) = tables_at(str(_nobody(lake)))
    assert empty.columns == (("ward", ""), ("day", "a/b"))  # type: ignore[union-attr]


def _nobody(lake: Path) -> Path:
    folder = lake / "nobody"
    inner = folder / "ward=__HIVE_DEFAULT_PARTITION__" / "day=a%2Fb"
    inner.mkdir(parents=True, exist_ok=True)
    (inner / "0.csv").write_text("a\n1\n2\n")
    return folder


def frames(lake: Path, table: Any) -> Iterator[tuple[str, Any]]:
    """What other libraries have, if they are installed."""
    yield "pandas", table
    yield "pyarrow", arrow.Table.from_pandas(table)
    yield "dataset", datasets.dataset(lake / "parquet")
    yield "function", lambda: iter([table[:120], arrow.Table.from_pandas(table[120:])])
    yield "functions", [lambda: [table[:120]], lambda: [table[120:]]]
    polars = pytest.importorskip("polars")
    yield "polars", polars.from_pandas(table)
    yield "lazy", polars.scan_parquet(lake / "parquet" / "*.parquet").filter(polars.col("a") > -9)
    duckdb = pytest.importorskip("duckdb")
    yield "duckdb", duckdb.sql(f"SELECT * FROM '{lake}/parquet/*.parquet'")


def test_frames_of_other_libraries(
    lake: Path, table: Any, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_block, "CHUNK", 64)
    for name, frame in frames(lake, table):
        assert np.array_equal(line().fit_stream(frame, target="y").coef_, whole), name


def test_a_dask_dataframe(lake: Path, table: Any, whole: Any) -> None:
    """Also where dask reads one column in larger partitions than several."""
    dask, daskframes = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    read = daskframes.read_parquet(lake / "parquet" / "*.parquet")
    held = daskframes.from_pandas(table, npartitions=4)
    with dask.config.set(scheduler="threads", num_workers=2):
        for frame in (read, held, read.repartition(npartitions=2)):
            assert np.array_equal(line().fit(frame[["c", "a"]], frame["y"]).coef_, whole)
            assert np.array_equal(line().fit_stream(frame, target="y").coef_, whole)
        with pytest.raises(InvalidData, match="y must be in as many partitions as X: 3, got 4"):
            line().fit(read[["c", "a"]], held["y"])
        with pytest.raises(InvalidData, match="y must be a collection of dask"):
            line().fit(read[["c", "a"]], TARGET[:FEW])


class Threads:
    """The least that an engine has to have."""

    rows = None

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks = blocks

    def first(self) -> tuple[Any, Any]:
        return np.zeros((2, 2)), np.zeros(2)

    def gather(self, work: Any) -> Any:
        work = pickle.loads(pickle.dumps(work))
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(work, self.blocks))


def test_an_engine_of_ones_own(whole: Any) -> None:
    X, y = TABLE[:FEW, [2, 0]], TARGET[:FEW]
    blocks = [lambda k=k: [(X[k::3], y[k::3])] for k in range(3)]
    assert np.array_equal(line(feature_ranges=(-1, 1)).fit_stream(Threads(blocks)).coef_, whole)


def test_footers_count_rows_before_anything_is_read(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that cannot pay refuses without a pass, and columns not needed are not read."""
    model, seen = line(), set()
    blocks = file_block.blocks_of(lake / "parquet", model._file("y"))
    assert InTurn.of(blocks).rows == FEW
    assert InTurn.of([*blocks, lambda: []]).rows is None
    (part, *_) = file_block.blocks_of(datasets.dataset(lake / "parquet"), model._file("y"))
    assert part.rows == 200  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(part))  # a worker may be sent it
    assert sum(len(y) for _, y in again()) == 200
    genuine = file_block.FileBlock.chunk

    def chunk(block: Any, opened: Any, table: Any) -> Any:
        seen.update(table.batch.schema.names)
        return genuine(block, opened, table)

    monkeypatch.setattr(file_block.FileBlock, "chunk", chunk)
    ledger = Ledger(0.5, limit_delta=1e-5)
    model = line(ledger=ledger, random_state=dpfda.SimulationSource(0))
    with pytest.raises(BudgetExceeded):
        model.fit_stream([lake / "parquet" / "0.parquet"] * 3, target="y")
    line().fit_stream(lake / "parquet", target="y")
    assert seen == {"a", "c", "y"}


def test_a_row_that_is_refused_costs_nothing(table: Any, tmp_path: Path) -> None:
    spoiled = table.copy()
    spoiled.loc[400, "a"] = np.nan
    spoiled[:300].to_parquet(tmp_path / "0.parquet")
    spoiled[300:].to_parquet(tmp_path / "1.parquet")
    ledger = Ledger(1.0, limit_delta=1e-5)
    model = line(ledger=ledger, random_state=dpfda.SimulationSource(0))
    with pytest.raises(InvalidData, match="row 101, column 'a' must be given"):
        model.fit_stream(tmp_path, target="y")
    assert ledger.entries == ()


def test_what_is_no_place_is_refused(tmp_path: Path, table: Any) -> None:
    for place, rule in (
        (tmp_path, "a folder with data files"),
        (f"{tmp_path}/*.csv", "a pattern that matches a file"),
        ("nowhere://a", "an address that fsspec opens"),
    ):
        with pytest.raises(InvalidParameter, match=rule):
            line().fit_stream(place, target="y")
    once = arrow.Table.from_pandas(table).to_reader()
    for chunks in (once, 3.5):
        with pytest.raises(InvalidParameter, match="a table that can be read in every pass"):
            line().fit_stream(chunks, target="y")
    with pytest.raises(InvalidData, match=r"absent\.csv must be a readable"):
        line().fit_stream("memory://lake/absent.csv", target="y")


def printed(*words: Any) -> str:
    done = CliRunner().invoke(main, [*map(str, words), "--epsilon", "1", "--seed", "1", "--json"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_take_places(
    lake: Path, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_block, "CHUNK", 64)
    one = tmp_path / "one.csv"
    table.to_csv(one, index=False)
    mean = ("--columns", "a,b,c", "--range", -1, 1, "--delta", 1e-5)
    fit = ("--target", "y", "--target-range", -1, 1, "--feature-ranges", "c=-1:1,a=-1:1")
    curve, slopes = printed("release", "mean", one, *mean), printed("regress", one, *fit)
    remote = in_memory(lake)
    for place in (lake / "parquet", f"{lake}/csv/*.csv", f"{remote}/mixed", lake / "wards"):
        assert printed("release", "mean", place, *mean) == curve
        assert printed("regress", place, *fit) == slopes
    done = CliRunner().invoke(main, ["release", "mean", f"{lake}/*.csv", "--epsilon", "1"])
    assert "FILE must be a pattern that matches a file" in done.output
    done = CliRunner().invoke(main, ["release", "mean", "absent.csv", "--epsilon", "1"])
    assert "File 'absent.csv' does not exist" in done.output


def test_progress_counts_passes_files_and_bytes(lake: Path, whole: Any) -> None:
    model, said = line(), []
    blocks = file_block.blocks_of(lake / "parquet", model._file("y"))
    passes = Passes(blocks, said.append)
    assert np.array_equal(model.fit_stream(passes.blocks).coef_, whole)
    size = sum(path.stat().st_size for path in (lake / "parquet").glob("*.parquet"))
    ends = [text for text in said if text.endswith("\n")]
    known = f"{size / 1e6:,.0f} of {size / 1e6:,.0f} MB"
    assert ends == [f"\rpass {k}: 3 of 3 files, {known}\n" for k in range(1, len(ends) + 1)]
    assert len(said) == 3 * len(ends) >= 6


@pytest.mark.parametrize("kind", ["file", "dataset"])
def test_a_pass_keeps_one_row_group_in_memory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's own default would keep all that was read of a file until its end."""
    rows = arrow.table(dict.fromkeys("abcy", np.random.default_rng(0).random(400_000)))
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(rows, tmp_path / "a.parquet", row_group_size=20_000)
    place = tmp_path / "a.parquet" if kind == "file" else datasets.dataset(tmp_path)
    (block,) = file_block.blocks_of(place, line()._file("y"))
    monkeypatch.setattr(file_block, "CHUNK", 20_000)

    def used() -> int:  # by Arrow, and by Python: bytes that a file object hands out
        return int(arrow.total_allocated_bytes()) + tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = used()
        held = [used() - before for _, y in block() if len(y)]
    finally:
        tracemalloc.stop()
    assert max(held) < 0.5 * rows.nbytes


@pytest.mark.parametrize("engine", ["pyarrow", "polars", "duckdb"])
def test_engines_quote_no_cell(engine: str, tmp_path: Path) -> None:
    rows = pandas.DataFrame({"a": ["0.5"] * FEW, "c": 0.1, "y": 0.2})
    rows.loc[FEW - 1, "a"] = "a diagnosis"
    rows.to_csv(path := tmp_path / "x.csv", index=False)
    library = pytest.importorskip(engine)
    if engine == "pyarrow":
        schema = arrow.schema([(name, arrow.float64()) for name in ("a", "c", "y")])
        source = datasets.dataset(path, format="csv", schema=schema)
    elif engine == "polars":
        source = library.scan_csv(path, infer_schema=False).cast(library.Float64)
    else:
        source = library.sql(f"select cast(a as double) a, c, y from read_csv('{path}')")
    ledger = Ledger(3.0)
    with pytest.raises(InvalidData, match="can read to its end") as refused:
        line(ledger=ledger, random_state=dpfda.SimulationSource(0)).fit_stream(source, target="y")
    assert "diagnosis" not in str(refused.value)
    assert ledger.entries == ()


def test_no_password_of_an_address_is_quoted() -> None:
    with pytest.raises(InvalidParameter, match="an address that fsspec opens") as refused:
        line().fit_stream("nowhere://user:hunter2@host/x.csv", target="y")
    assert "hunter2" not in str(refused.value)
    assert "x.csv" in str(refused.value)
