"""The one interface of all requests."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.owners import OwnerRows
from dpfda.errors import ProtocolError
from dpfda.noise import Source
from dpfda.privacy.guarantee import Guarantee

_LARGEST = 1e100


@dataclass(frozen=True, kw_only=True, eq=False)
class Request(Registered, family="request"):
    """One public question to all owners of a round; `answer` is all that happens to their data.

    A request depends on the data user's own rows and on other owners' replies, never on the data of
    an owner who gets it. Arrays are public; `to_dict` gives plain values for any carrier.
    """

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers one reply holds."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """d, how many features a row has."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """K."""

    @abstractmethod
    def answer(self, rows: OwnerRows, *, epsilon: float, rng: Source) -> FloatArray:
        """Compute and randomize the replies of H owners, shape (H, width), in one batch.

        Args:
            rows: private rows; each owner's device has one owner only.
            epsilon: what each of these owners spends.
            rng: where randomness comes from.
        """

    @abstractmethod
    def decode(self, replies: FloatArray, *, epsilon: float, sizes: IntArray) -> FloatArray:
        """Unbiased estimates of what the owners computed; refuses impossible replies."""

    @abstractmethod
    def guarantee(self, epsilon: float) -> Guarantee:
        """What answering promises the owner."""

    def fitting(self, rows: OwnerRows) -> OwnerRows:
        """Rows that `answer` can take: refused before anything is spent, or made so.

        An unknown label becomes number 0, and features are cut where sums could overflow: refusing
        to report would itself reveal something.
        """
        if rows.features.shape[2] != self.columns:
            raise ProtocolError(f"the request is about rows of {self.columns} features")
        known = (rows.labels >= 0) & (rows.labels < self.classes)
        features = rows.features.astype(np.float64, copy=False)  # the bound is no float32
        return replace(
            rows,
            features=np.clip(features, -_LARGEST, _LARGEST),
            labels=np.where(known, rows.labels, 0),
        )

    def check(self, replies: Any) -> FloatArray:
        """Replies as a finite matrix of the right width, or a `ProtocolError`."""
        try:
            values = np.asarray(replies, dtype=np.float64)
        except (TypeError, ValueError):
            raise ProtocolError("replies must be an array of numbers") from None
        if values.ndim != 2 or values.shape[1] != self.width or not np.isfinite(values).all():
            raise ProtocolError(f"replies must be finite, with {self.width} columns")
        return values

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain: dict[str, Any] = {"name": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            plain[field.name] = _plain(value)
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value


def owner_guarantee(epsilon: float) -> Guarantee:
    """ε for everything an owner holds."""
    return Guarantee(epsilon=epsilon, model="local", unit="owner")
