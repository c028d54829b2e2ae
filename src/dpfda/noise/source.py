"""Sources of random bits: the operating system for real data, a seed for simulations.

Every sampler in this package turns uniform 64-bit words into noise with integer arithmetic only.
The words come from a `Source`, and the source decides what a guarantee states:

* `SecureSource`: a ChaCha20 keystream keyed by the operating system; guarantees say ``exact``.
* `SimulationSource`: a seeded numpy generator; guarantees say ``simulation``.

The samplers are the same for both, so a simulation runs the code that protects real data.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from dpfda import _validate

Words = npt.NDArray[np.uint64]
Sampler = Literal["exact", "simulation"]

_OWN_STREAM = (0x64706664,)
_CHUNK = 1 << 20  # bytes encrypted at once; bounds the buffer of zeros
_REKEY_AFTER = 1 << 34  # bytes; far below the 2^38 bytes of ChaCha20's 32-bit block counter


class Source(Protocol):
    """A stream of independent uniform 64-bit words."""

    @property
    def sampler(self) -> Sampler:
        """The sampler that a guarantee states for numbers from this source."""

    def words(self, count: int) -> Words:
        """The next `count` words of the stream."""


class SecureSource:
    """Cryptographically strong words: a ChaCha20 keystream keyed from OS entropy.

    Thread-safe. A forked child draws a new key before its first word, so that parent and child
    never share a stream. Key and position cannot be printed or pickled.

    Examples:
        >>> SecureSource().words(3).dtype
        dtype('uint64')
    """

    sampler: Sampler = "exact"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zeros = bytes(_CHUNK)
        self._rekey()
        _live_sources.add(self)

    def _rekey(self) -> None:
        self._stream: CipherContext = Cipher(
            ChaCha20(os.urandom(32), os.urandom(12).rjust(16, b"\0")), mode=None
        ).encryptor()
        self._left = _REKEY_AFTER

    def words(self, count: int) -> Words:
        """The next `count` words of the keystream."""
        size = 8 * count
        with self._lock:
            if size <= _CHUNK:  # the common, small request: one call, no copy
                data = self._keystream(size)
            else:
                sizes = [_CHUNK] * (size // _CHUNK) + [size % _CHUNK]
                data = b"".join(self._keystream(part) for part in sizes)
        return np.frombuffer(data, dtype="<u8")

    def _keystream(self, size: int) -> bytes:
        if self._left < size:
            self._rekey()
        self._left -= size
        return self._stream.update(memoryview(self._zeros)[:size])

    def __reduce__(self) -> tuple[type[SecureSource], tuple[()]]:
        """A copy in another process is a new source with its own key."""
        return SecureSource, ()

    def __repr__(self) -> str:
        return "SecureSource()"


class SimulationSource:
    """Reproducible words from a seeded numpy generator: for simulations and tests only.

    Results are marked ``sampler="simulation"``: anyone who knows the seed can subtract the noise. A
    deep copy, such as scikit-learn makes of an estimator's parameters, draws different words. With
    the same noise, two answers would reveal their exact difference.

    Examples:
        >>> a, b = SimulationSource(7), SimulationSource(7)
        >>> bool((a.words(4) == b.words(4)).all())
        True
    """

    sampler: Sampler = "simulation"

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        if not isinstance(seed, np.random.SeedSequence):
            # A separate key: data made with `default_rng(seed)` must not share words with the
            # noise.
            number = _validate.whole("seed", seed, least=0)
            seed = np.random.SeedSequence(number, spawn_key=_OWN_STREAM)
        self._seed = seed
        self.generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, count: int) -> Words:
        """The next `count` words of the generator."""
        words: Words = self.generator.bit_generator.random_raw(count)
        return words

    def spawn(self, count: int) -> list[SimulationSource]:
        """Independent sources for `count` parallel pieces of work."""
        return [SimulationSource(seed) for seed in self._seed.spawn(count)]

    def __deepcopy__(self, memo: object) -> SimulationSource:
        return self.spawn(1)[0]

    def __repr__(self) -> str:
        return "SimulationSource(seeded)"


RandomState = int | np.random.SeedSequence | np.random.RandomState | Source | None
"""The source of an estimator's noise; see `source_for`."""


def source_for(random_state: RandomState, *, stream: int | None = None) -> Source:
    """The source of an estimator's random bits.

    Args:
        random_state: None draws from the operating system, for real data. An integer or a seed
            sequence gives a reproducible simulation, and guarantees say so. A source is returned.
        stream: a number that separates this use of a seed from its other uses.

    Examples:
        >>> source_for(None), source_for(7)
        (SecureSource(), SimulationSource(seeded))
    """
    if random_state is None:
        return SecureSource()
    if isinstance(random_state, (SecureSource, SimulationSource)):
        return random_state
    if isinstance(random_state, np.random.SeedSequence):
        # A child of the seed: data are drawn from the seed itself or from its other children.
        place = (*random_state.spawn_key, *_OWN_STREAM, *([] if stream is None else [stream]))
        return SimulationSource(np.random.SeedSequence(random_state.entropy, spawn_key=place))
    if isinstance(random_state, np.random.RandomState):  # as scikit-learn may pass it on
        return SimulationSource(int(random_state.randint(0, 2**31)))
    seed = _validate.whole("random_state", random_state, least=0)
    return SimulationSource(seed if stream is None else np.random.SeedSequence([seed, stream]))


_live_sources: weakref.WeakSet[SecureSource] = weakref.WeakSet()


def _rekey_after_fork() -> None:
    for source in list(_live_sources):
        source._lock = threading.Lock()  # the parent's lock may have been held during the fork
        source._rekey()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_after_fork)
