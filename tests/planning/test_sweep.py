"""Grids: every cell once, the same wherever it is computed, and again after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import counted_work
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda.errors import InvalidParameter
from dpfda.planning import sweep
from dpfda.planning.sweep import ALONE, Sweep


def computed(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def lines(store: Path) -> list[Any]:
    return [json.loads(line) for line in store.read_bytes().split(b"\n")[:-1]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def kept(tmp_path: Path) -> Sweep:
    return Sweep(store=tmp_path / "folder" / "sweep.jsonl")


def test_order_and_processes_do_not_matter(log: Path, tmp_path: Path) -> None:
    work = partial(counted_work.draw, str(log))
    alone = ALONE.run(work, counted_work.NAMES)
    shares: list[float] = []
    many = Sweep(jobs=2, store=tmp_path / "many", tell=shares.append)
    backwards = many.run(work, counted_work.NAMES[::-1])
    assert alone == backwards[::-1]
    assert alone[:4] == Sweep(jobs=2, backend="threading").run(work, counted_work.NAMES[:4])
    assert shares == [k / len(alone) for k in range(1, len(alone) + 1)]
    assert len(computed(log)) == 2 * len(alone) + 4
    assert len({value for _, value in alone}) == len(alone)  # seeds of their own


def test_nothing_is_computed_twice(log: Path, kept: Sweep) -> None:
    work = partial(counted_work.draw, str(log))
    few = kept.run(work, [("a", 1.0, 0), ("b", 1.0, 0), ("a", 1.0, 0)])
    assert few[0] == few[2] != few[1]
    assert len(computed(log)) == 2
    shares: list[float] = []
    more = Sweep(store=kept.store, tell=shares.append)
    assert more.run(work, [("b", 1.0, 0), ("b", 1.0, 1)])[0] == few[1]
    assert len(computed(log)) == 3
    assert shares == [1.0]  # one of two was there


def scaled(by: Any, x: int) -> Any:
    return by * x


def test_what_work_is_bound_to_is_part_of_a_name(kept: Sweep) -> None:
    assert kept.run(partial(scaled, 2), [(3,)]) == [6]
    assert kept.run(partial(scaled, 3), [(3,)]) == [9]
    assert kept.run(partial(scaled, x=5), [(2,)]) == [10]
    found = [kept.run(partial(scaled, np.full(2, by)), [(3,)])[0].tolist() for by in (2, 3, 2)]
    assert found == [[6, 6], [9, 9], [6, 6]]
    assert kept.run(_itself, [(2, 3)]) == [3]
    assert kept.run(scaled, [(2, 3)]) == [6]


@pytest.mark.parametrize(
    "torn", [b'{"cell": "ab', b'{"cell": "ab", "found": 1}', b"\0\0\n", b"7\n"]
)
def test_a_torn_line_is_cut_off(torn: bytes, log: Path, kept: Sweep) -> None:
    work = partial(counted_work.draw, str(log))
    assert kept.store is not None
    first = kept.run(work, [("a", 1.0, 0)])
    with kept.store.open("ab") as file:
        file.write(torn)
    assert kept.run(work, [("a", 1.0, 0), ("a", 1.0, 1)])[:1] == first
    assert len(computed(log)) == 2
    assert len(lines(kept.store)) == 3


def test_cells_of_other_code_are_never_used(
    log: Path, kept: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = partial(counted_work.draw, str(log))
    kept.run(work, [("a", 1.0, 0)])
    monkeypatch.setattr(sweep, "__version__", "0.0.0")
    sweep._hashed.cache_clear()
    kept.run(work, [("a", 1.0, 0)])
    monkeypatch.undo()
    sweep._hashed.cache_clear()
    assert len(computed(log)) == 2
    kept.run(work, [("a", 1.0, 0)])
    assert len(computed(log)) == 3  # nor kept beside newer ones


def test_the_hash_is_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "hashed_package"
    (package / "deep").mkdir(parents=True)
    for name in ("__init__.py", "deep/data.toml", "notes.txt"):
        (package / name).write_text("")
    (package / "deep" / "work.py").write_text("def one(): return 1\n")
    from hashed_package.deep.work import one  # type: ignore[import-not-found]

    def hashed() -> str:
        sweep._hashed.cache_clear()
        return sweep.code_hash(one)

    before = hashed()
    assert before != sweep.code_hash(Sweep.run)
    (package / "notes.txt").write_text("x")
    assert hashed() == before
    (package / "deep" / "data.toml").write_text("x = 1")
    assert hashed() != before


def test_work_without_a_file_is_not_kept(kept: Sweep) -> None:
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec("def one(x): return x", space)
    sys.modules["nowhere"] = type(sys)("nowhere")
    with pytest.raises(InvalidParameter, match="defined in a file"):
        kept.run(space["one"], [(1,)])
    del sys.modules["nowhere"]


def test_a_failure_keeps_what_was_found(kept: Sweep) -> None:
    with pytest.raises(ZeroDivisionError):
        kept.run(_inverse, [(1,), (2,), (0,), (4,)])
    assert kept.store is not None
    assert [line["found"] for line in lines(kept.store)[1:]] == [1.0, 0.5]


def _inverse(x: int) -> float:
    return 1 / x


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.tuples(st.integers(), st.text()), inner)
    ),
    max_leaves=8,
)


@given(plain)
def test_results_come_back_as_they_were(value: Any) -> None:
    back = sweep.from_plain(json.loads(json.dumps(sweep.to_plain(value))))
    assert repr(back) == repr(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?"])
def test_arrays_come_back_to_the_last_bit(dtype: str) -> None:
    array = np.random.default_rng(0).normal(size=(2, 0, 3) if dtype == "u1" else (2, 3))
    array = np.asfortranarray(array.astype(dtype))
    back = sweep.from_plain(json.loads(json.dumps(sweep.to_plain([array]))))[0]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array([object()]), b"x"])
def test_results_that_cannot_be_kept_are_refused(value: Any, kept: Sweep) -> None:
    with pytest.raises(InvalidParameter, match="must be made of numbers"):
        kept.run(partial(_itself, 1), [(value,)])


def _itself(bound: int, value: Any) -> Any:
    return value


def test_a_full_disk_is_one_line(kept: Sweep) -> None:
    limits = pytest.importorskip("resource")
    program = (
        "import resource, signal, sys; from pathlib import Path; import counted_work;"
        "from functools import partial; from dpfda.errors import DpfdaError;"
        # A file that may not grow: as on a full disk.
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600));"
        "work = partial(counted_work.draw, '/dev/null');\n"
        "try: counted_work.Sweep(store=Path(sys.argv[1])).run(work, counted_work.NAMES)\n"
        "except DpfdaError as refusal: print(refusal)"
    )
    assert limits is not None
    command = [sys.executable, "-c", program, str(kept.store)]
    known = {"PYTHONPATH": os.pathsep.join([str(Path(counted_work.__file__).parent), *sys.path])}
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | known, check=True
    )
    assert done.stdout.startswith(f"cells cannot be kept in {kept.store}: ")
    work = partial(counted_work.draw, "/dev/null")
    expected = [counted_work.draw(os.devnull, *name) for name in counted_work.NAMES]
    assert kept.run(work, counted_work.NAMES) == expected  # what fitted was kept, the rest cut off


def test_a_second_process_waits_and_finds_everything(log: Path, kept: Sweep) -> None:
    work = partial(counted_work.draw, str(log))
    names = counted_work.NAMES[:8]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(kept.run(work, names))) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert len(computed(log)) == 8


@pytest.mark.timed
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_sweep_goes_on(jobs: int, log: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    helpers = Path(counted_work.__file__)
    command = [sys.executable, str(helpers), str(store), str(log), str(jobs)]
    whole = len(counted_work.NAMES)
    kills = 0
    for wanted in (5, 15):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and (not store.exists() or len(lines(store)) <= wanted):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        time.sleep(0.2)  # orphaned workers end what they were at
        kept = [tuple(line["name"]["tuple"]) for line in lines(store)[1:]]
        assert len(kept) == len(set(kept)) >= wanted
        before = computed(log)
        finished = {" ".join(map(str, name)) for name in kept}
        assert finished <= set(before)
    assert kills == 2
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    again = computed(log)[len(before) :]
    assert not finished & set(again)  # what was kept is not computed again
    assert len(again) == whole - len(finished)  # and nothing twice
    names = [line["cell"] for line in lines(store)[1:]]
    assert len(names) == len(set(names)) == whole
    expected = [counted_work.draw(os.devnull, *name) for name in counted_work.NAMES]
    assert done.stdout == f"{expected}\n"
