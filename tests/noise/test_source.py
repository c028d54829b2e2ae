"""Sources of random words: forks, threads, pickles, seeds."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from dpfda.errors import InvalidParameter
from dpfda.noise import SecureSource, SimulationSource, source

FORK = """
import os, sys
from dpfda.noise import SecureSource
source = SecureSource()
source.words(3)
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, source.words(512).tobytes())
    os._exit(0)
mine = source.words(512).tobytes()
os.waitpid(child, 0)
theirs = os.read(read, 4096)
assert len(theirs) == len(mine) == 4096
shared = {mine[i:i+8] for i in range(0, 4096, 8)} & {theirs[i:i+8] for i in range(0, 4096, 8)}
sys.exit(len(shared) > 0)
"""


def test_parent_and_forked_child_share_no_word() -> None:
    # Two honest streams of 512 words share one with probability 2^18/2^64 < 2e-14.
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_a_child_forked_while_the_lock_is_held_can_draw() -> None:
    code = FORK.replace("child = os.fork()", "source._lock.acquire(); child = os.fork()").replace(
        "mine =", "source._lock.release(); mine ="
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_the_new_key_the_fork_test_fails() -> None:
    """The test above can fail: a twin that keeps its key is caught."""
    code = FORK.replace("source = SecureSource()", "source = SecureSource()\nkeep = source._stream")
    code = code.replace("if child == 0:", "if child == 0:\n    source._stream = keep")
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 1


def test_every_living_source_gets_a_new_key_and_a_free_lock_after_a_fork() -> None:
    secure = SecureSource()
    stream, lock = secure._stream, secure._lock
    lock.acquire()
    source._rekey_after_fork()  # what the child does first
    assert secure._stream is not stream
    assert not secure._lock.locked()


def test_threads_share_no_word() -> None:
    secure, found = SecureSource(), []

    def draw() -> None:
        found.extend(secure.words(7).tolist() for _ in range(300))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [word for chunk in found for word in chunk]
    # 16,800 words collide by chance with probability 16800²/2^65 < 1e-11.
    assert len(set(words)) == len(words) == 8 * 300 * 7


def test_a_pickled_source_has_its_own_key() -> None:
    secure = SecureSource()
    copy = pickle.loads(pickle.dumps(secure))
    assert not np.array_equal(copy.words(8), secure.words(8))


def test_nothing_secret_is_pickled_or_printed() -> None:
    secure = SecureSource()
    assert len(pickle.dumps(secure)) < 100
    assert repr(secure) == "SecureSource()"
    assert "42" not in repr(SimulationSource(42))


def test_long_requests_are_one_stream() -> None:
    """Requests beyond one chunk, and a new key in their middle, give words that all differ."""
    secure = SecureSource()
    words = secure.words(300_000)  # 2.4 MB: three chunks
    assert words.size == np.unique(words).size == 300_000


def test_a_used_up_key_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    secure = SecureSource()
    stream = secure._stream
    secure._left = 16
    secure.words(2)
    assert secure._stream is stream
    secure.words(1)
    assert secure._stream is not stream
    assert secure._left == source._REKEY_AFTER - 8


def test_bits_are_fair() -> None:
    words = SecureSource().words(50_000)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=int)
    # Each of 64 counts is Binomial(50000, ½) with deviation 112; six deviations: 1.3e-7 a run.
    assert np.abs(ones - 25_000).max() < 6 * 112


def test_the_same_seed_gives_the_same_words() -> None:
    assert np.array_equal(SimulationSource(3).words(9), SimulationSource(3).words(9))
    assert not np.array_equal(SimulationSource(3).words(9), SimulationSource(4).words(9))


def test_spawned_sources_differ_and_repeat() -> None:
    first = [child.words(4).tolist() for child in SimulationSource(1).spawn(3)]
    again = [child.words(4).tolist() for child in SimulationSource(1).spawn(3)]
    assert first == again
    assert len({tuple(words) for words in first}) == 3


@pytest.mark.parametrize("seed", [-1, 1.0, None, "1"])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(InvalidParameter, match="seed must be an integer, 0 or above"):
        SimulationSource(seed)  # type: ignore[arg-type]


def test_a_source_for_every_random_state() -> None:
    assert isinstance(source.source_for(None), SecureSource)
    own = SimulationSource(5)
    assert source.source_for(own) is own
    seeds = np.random.SeedSequence(11)
    state = np.random.RandomState(3)
    number = int(np.random.RandomState(3).randint(0, 2**31))
    assert number > 2**20
    for given, same in (
        (np.int64(4), SimulationSource(4)),
        (seeds, SimulationSource(np.random.SeedSequence(11, spawn_key=(0x64706664,)))),
        (state, SimulationSource(number)),
    ):
        assert np.array_equal(source.source_for(given).words(5), same.words(5))
    first, plain = source.source_for(4, stream=1), source.source_for(4)
    streams = [first.words(5).tolist(), plain.words(5).tolist()]
    streams.append(source.source_for(4, stream=2).words(5).tolist())
    assert len({tuple(words) for words in streams}) == 3


@pytest.mark.parametrize("state", [True, 1.0, "1", -1, [1]])
def test_other_random_states_are_refused(state: object) -> None:
    with pytest.raises(InvalidParameter, match="random_state"):
        source.source_for(state)


def test_samplers_are_named() -> None:
    assert SecureSource().sampler == "exact"
    assert SimulationSource(0).sampler == "simulation"


def test_simulated_noise_shares_no_words_with_data_of_the_same_seed():
    data = np.random.default_rng(3).integers(0, 2**64, size=1000, dtype=np.uint64)
    assert not np.isin(SimulationSource(3).words(1000), data).any()
