"""What ledgers on disk share: one stored limit, several processes, crashes at any moment."""

from __future__ import annotations

import json
import os
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.privacy.ledger import BaseLedger, Budget, checked_limit


class StoredLedger(BaseLedger):
    """A ledger on disk. Each operation opens the storage, locks it, and reads what others appended.

    Opening anew each time is what makes forks, threads and restarts safe: no descriptor or
    database handle outlives an operation.

    Args:
        path: where the ledger is, or will be, stored.
        limit_epsilon: ε that may be spent in all. May be left out for an existing ledger, whose
            stored limit rules; a different one is refused.
        limit_delta: likewise for δ; 0 for a new ledger.
    """

    _stored_limit: Budget | None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limit_epsilon: float | None = None,
        limit_delta: float | None = None,
    ) -> None:
        self.path = Path(path)
        if limit_epsilon is None and not self.path.exists():
            raise InvalidParameter("limit_epsilon", "given for a new ledger", limit_epsilon)
        asked = checked_limit(1.0 if limit_epsilon is None else limit_epsilon, limit_delta or 0)
        self._process, self._lock = os.getpid(), threading.Lock()
        self._forget()
        with self._locked(create=True):
            self._read()
            stored = self._stored_limit
            if stored is None and limit_epsilon is not None:
                self._store_limit(asked)
                stored = self._stored_limit = asked
        if stored is None:
            raise InvalidParameter("limit_epsilon", "given for a new ledger", limit_epsilon)
        for name, value, kept in (
            ("limit_epsilon", limit_epsilon, stored.epsilon),
            ("limit_delta", limit_delta, stored.delta),
        ):
            if value is not None and value != kept:
                raise InvalidParameter(name, f"{kept!r}, as stored in the ledger", value)
        self.limit = stored

    def _forget(self) -> None:
        super()._forget()
        self._stored_limit = None

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if self._process != os.getpid():  # the lock may be held by a thread the fork left behind
            self._process, self._lock = os.getpid(), threading.Lock()
            self._forget()
        with self._lock:
            try:
                with self._locked():
                    self._read()
                    yield
            except DpfdaError:
                raise  # refused: what is known stays true
            except BaseException:
                self._forget()  # unclear how far it went: read everything again next time
                raise

    @abstractmethod
    def _locked(self, *, create: bool = False) -> AbstractContextManager[None]:
        """Open the storage for one operation, shutting out every other process."""

    @abstractmethod
    def _store_limit(self, limit: Budget) -> None:
        """Store the limit of a new ledger."""

    @abstractmethod
    def _read(self) -> None:
        """Note the limit, if there is one, and the entries appended since the last time."""

    @classmethod
    def example(cls, directory: Path, *, limit_epsilon: float, limit_delta: float = 0.0) -> Self:
        """The ledger in `directory`, created if need be."""
        return cls(directory / "ledger", limit_epsilon=limit_epsilon, limit_delta=limit_delta)


def canonical_json(data: dict[str, Any]) -> str:
    """The one way in which ledgers write a record."""
    # Numbers may be numpy scalars, which know themselves as Python numbers.
    return json.dumps(data, sort_keys=True, separators=(",", ":"), default=lambda x: x.item())
