"""What a batch fit returns: B classifiers in a few arrays, ready to be reversed, averaged and sent.

A model's *score* is a real number; its sign is the class, and a score of 0 counts as +1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from dpfda._registry import Registered
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.learners._arrays import Array, as_double, device, namespace, to_numpy

_FLAT = 1e-9
"""A slope below this fraction of the intercept is rounding and changes no class near the data."""


class Models(Registered, ABC, family="models"):
    """B classifiers fitted together; the first axis of every array field is the member."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features d that `scores` expects."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of members B."""

    @abstractmethod
    def scores(self, features: Any) -> Array:
        """Every member's scores, (B, n).

        Args:
            features: (n, d), the same rows for every member, or (B, n, d), each its own.
        """

    @abstractmethod
    def _scaled(self, factors: Array) -> Self:
        """Member b with its scores multiplied by factors[b]."""

    @abstractmethod
    def _size(self) -> Array:
        """(B,), by what `normalised` divides; 0 for a member whose every score is 0."""

    @abstractmethod
    def select(self, indices: Any) -> Self:
        """The members at `indices`, in that order, repeats allowed."""

    @abstractmethod
    def average(self, weights: Any) -> Self:
        """The weighted mean of the members: one model whose scores are the mean of theirs.

        Args:
            weights: (B,) for one mean of all members, or (G, B/G) for G means, each of the next
                B/G members (a group per replication, say). At least 0, and a group's weights
                must not all be 0; they are divided by their sum.
        """

    def predict(self, features: Any) -> Array:
        """Every member's classes, (B, n), as -1.0 or +1.0; a score of 0 is +1."""
        scores = self.scores(features)
        xp = namespace(scores)
        return xp.where(scores >= 0, xp.ones_like(scores), -xp.ones_like(scores))

    def reversed_where(self, mask: Any) -> Self:
        """The same members, those where `mask` (B,) is true with the opposite sign."""
        flipped = as_double("mask", mask, like=self._size())
        if tuple(flipped.shape) != (len(self),):
            raise InvalidParameter("mask", f"of shape ({len(self)},)", tuple(flipped.shape))
        xp = namespace(flipped)
        one = xp.ones_like(flipped)
        return self._scaled(xp.where(flipped != 0, -one, one))

    def normalised(self) -> Self:
        """The same classes on a common scale, so that an average is not ruled by one member.

        Linear members get coefficients of norm 1, constant ones an intercept of ±1; histograms
        a largest cell of size 1.
        """
        size = self._size()
        xp = namespace(size)
        return self._scaled(1.0 / xp.where(size > 0, size, xp.ones_like(size)))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, ready for JSON; `from_dict` rebuilds the same models."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name} | {
            key: value if isinstance(value, int) else to_numpy(value).tolist()
            for key, value in values.items()
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModels(Models, name="linear"):
    """B linear classifiers: score = intercept + coefficients · features.

    Example:
        >>> models = LinearModels(intercept=[0.0, 1.0], coefficients=[[3.0, 4.0], [0.0, 2.0]])
        >>> models.scores([[1.0, 1.0]])
        array([[7.],
               [3.]])
        >>> models.normalised().average([1.0, 1.0]).coefficients
        array([[0.3, 0.9]])
        >>> LinearModels.from_dict(models.reversed_where([False, True]).to_dict()).intercept
        array([ 0., -1.])
    """

    intercept: Array
    coefficients: Array

    def __post_init__(self) -> None:
        coefficients = as_double("coefficients", self.coefficients)
        intercept = as_double("intercept", self.intercept, like=coefficients)
        if coefficients.ndim != 2 or tuple(intercept.shape) != (coefficients.shape[0],):
            raise InvalidData(
                "coefficients",
                "an array (B, d) beside an intercept (B,)",
                f"shapes {tuple(coefficients.shape)} and {tuple(intercept.shape)}",
            )
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "coefficients", coefficients)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.coefficients.shape[1])

    def __len__(self) -> int:
        return int(self.coefficients.shape[0])

    def scores(self, features: Any) -> Array:
        """Every member's scores, (B, n), for features (n, d) or (B, n, d)."""
        rows = checked_rows(features, self, like=self.coefficients)
        xp = namespace(rows)
        if rows.ndim == 2:
            return self.intercept[:, None] + self.coefficients @ xp.matrix_transpose(rows)
        return self.intercept[:, None] + (rows @ self.coefficients[:, :, None])[:, :, 0]

    def select(self, indices: Any) -> LinearModels:
        """The members at `indices`, in that order."""
        intercept, coefficients = taken((self.intercept, self.coefficients), indices)
        return LinearModels(intercept=intercept, coefficients=coefficients)

    def average(self, weights: Any) -> LinearModels:
        """Mean parameters of all members, or of each group of `weights`' rows."""
        shares = group_shares(weights, len(self), like=self.coefficients)
        return LinearModels(
            intercept=group_means(self.intercept[:, None], shares)[:, 0],
            coefficients=group_means(self.coefficients, shares),
        )

    def _scaled(self, factors: Array) -> LinearModels:
        return LinearModels(
            intercept=self.intercept * factors, coefficients=self.coefficients * factors[:, None]
        )

    def _size(self) -> Array:
        xp = namespace(self.coefficients)
        largest = xp.max(xp.abs(self.coefficients), axis=1)
        safe = xp.where(largest > 0, largest, xp.ones_like(largest))
        scaled = self.coefficients / safe[:, None]  # squares of 1e200 would overflow
        norm = largest * xp.sqrt(xp.sum(scaled * scaled, axis=1))
        # A classifier without a slope is a constant, and its intercept is what there is to scale.
        # Dividing by a slope of 1e-17 instead would let this one member rule every average.
        constant = xp.abs(self.intercept)
        return xp.where(norm > _FLAT * constant, norm, constant)


def checked_rows(features: Any, models: Models, *, like: Array) -> Array:
    """Features as (n, d) or (B, n, d) in the library of `like`."""
    rows = as_double("features", features, like=like)
    shape = tuple(rows.shape)
    fits = len(shape) in (2, 3) and shape[-1] == models.n_features
    if not fits or (len(shape) == 3 and shape[0] != len(models)):
        wanted = f"(n, {models.n_features}) or ({len(models)}, n, {models.n_features})"
        raise InvalidData("features", f"an array {wanted}", f"shape {shape}")
    return rows


def group_shares(weights: Any, members: int, *, like: Array) -> Array:
    """Weights as (G, B/G) with every row adding up to 1."""
    array = as_double("weights", weights, like=like)
    xp = namespace(array)
    shares = array[None, :] if array.ndim == 1 else array
    if shares.ndim != 2 or shares.shape[0] * shares.shape[1] != members:
        raise InvalidParameter(
            "weights", f"({members},) or (groups, {members} / groups)", tuple(array.shape)
        )
    totals = xp.sum(shares, axis=1, keepdims=True)
    if not bool(xp.all(shares >= 0)) or not bool(xp.all(totals > 0)):
        raise InvalidData("weights", "at least 0 and not all 0 in a group")
    return shares / totals


def group_means(values: Array, shares: Array) -> Array:
    """Σ_b shares[g, b] values[g·B/G + b, :], shape (G, d)."""
    xp = namespace(values)
    groups, size = shares.shape
    grouped = xp.reshape(values, (groups, size, values.shape[1]))
    return (shares[:, None, :] @ grouped)[:, 0, :]


def taken(arrays: Sequence[Array], indices: Any) -> list[Array]:
    """The members at `indices` of every array."""
    xp = namespace(arrays[0])
    index = xp.astype(xp.asarray(indices, device=device(arrays[0])), xp.int64)
    return [xp.take(array, index, axis=0) for array in arrays]
