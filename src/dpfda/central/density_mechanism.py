"""The one interface of mechanisms that release a density."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray, IntArray
from dpfda.central.basis import FunctionBasis
from dpfda.central.function_mechanism import Task, additive, noise_law
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.noise import Source

Box = tuple[tuple[float, float], ...]
_MOST_WORK = 1 << 24  # numbers held at once while pairs of cells are compared


@dataclass(frozen=True, kw_only=True)
class DensityMechanism(Registered, family="density mechanism"):
    """Releases the density of points in a public box; a new one fills in `release`."""

    @abstractmethod
    def release(self, points: FloatArray, box: Box, task: Task, source: Source) -> Release:
        """Noisy density of points (n, d), already clipped to the box."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""


def cells(points: FloatArray, box: Box, *, size: int) -> IntArray:
    """The cell of each point among size^d equal cells, numbered row-major."""
    low = np.array([side[0] for side in box])
    width = np.array([side[1] - side[0] for side in box])
    index = np.clip(((points - low) / width * size).astype(np.int64), 0, size - 1)
    return np.asarray(np.ravel_multi_index(tuple(index.T), (size,) * len(box)))


def nearest(points: FloatArray, box: Box, *, size: int) -> IntArray:
    """The nearest of size^d grid points, ends of the box included, numbered row-major."""
    low = np.array([side[0] for side in box])
    width = np.array([side[1] - side[0] for side in box])
    index = np.clip(np.rint((points - low) / width * (size - 1)).astype(np.int64), 0, size - 1)
    return np.asarray(np.ravel_multi_index(tuple(index.T), (size,) * len(box)))


def midpoints(side: tuple[float, float], *, size: int) -> FloatArray:
    """Midpoints of `size` equal cells."""
    low, high = side
    return low + (high - low) * (np.arange(size) + 0.5) / size


def cell_sensitivity(features: FloatArray, axes: FloatArray, *, gaussian: bool = False) -> float:
    """max over pairs of cells of Σ_j |k_j(x) - k_j(x')|/a_j, exactly (C13); ℓ2 for Gaussian noise.

    Example:
        >>> cell_sensitivity(np.eye(3), np.ones(3))
        2.0
    """
    scaled = features / axes
    step = max(1, _MOST_WORK // scaled.size)
    largest = 0.0
    for start in range(0, len(scaled), step):
        gaps = np.abs(scaled[start : start + step, None, :] - scaled[None, :, :])
        size = np.sqrt((gaps**2).sum(axis=2)) if gaussian else gaps.sum(axis=2)
        largest = max(largest, float(size.max()))
    return largest


def release_features(
    features: FloatArray,
    counts: IntArray,
    *,
    axes: FloatArray,
    basis: FunctionBasis,
    task: Task,
    source: Source,
    parameters: dict[str, Any],
) -> Release:
    """Mean feature of the points, with noise for the exact sensitivity over cells.

    Args:
        features: k_j at every cell, (cells, J): what one point in that cell adds.
        counts: points in every cell.
        axes: shape of the noise.
        basis: functions of which the features are coefficients.
        task: n and the budget.
        source: where randomness comes from.
        parameters: public choices, for the record.
    """
    widest = cell_sensitivity(features, axes, gaussian=bool(task.delta))
    if widest == 0:
        raise InvalidParameter("features", "different for some two cells", "equal ones")
    sensitivity = widest / task.n * (1 + 1e-12)
    mechanism = additive(task, sensitivity=sensitivity, axes=axes)
    # n is below 2^53 and each product is rounded once: the error is far below a lattice step.
    mean = (counts @ features) / task.n
    noisy = mechanism.randomize(mean[None, :], source)[0]
    return Release(
        summary="density",
        coefficients=noisy,
        noisy=noisy,
        noise=(noise_law(mechanism),),
        basis=basis,
        centre=np.zeros(basis.weights.size),
        guarantee=task.guarantee.drawn_from(source),
        sensitivity=sensitivity,
        parameters=parameters,
    )
