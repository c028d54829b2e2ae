"""Pictures as vectors, as in 004: gradient histograms and a bag of visual words.

Everything that is learnt here (the vocabulary) is learnt from the data user's own pictures. Owners'
classes are enlarged by small shifts and rotations, as the paper does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import MiniBatchKMeans

from dpfda._validate import FloatArray, IntArray

Images = npt.NDArray[np.float32]

_BINS, _CELL, _STRIDE = 8, 4, 2
_SOFT_NORM = 0.3  # keeps descriptors of empty patches near 0
_CHUNK = 1000
_DEGREES, _PIXELS = 12.0, 1.5


def enlarged(
    images: Images, labels: IntArray, *, per_class: int, rng: np.random.Generator
) -> tuple[Images, IntArray]:
    """Originals and randomly moved copies, `per_class` of each class, in random order."""
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        copies = rng.choice(own, max(per_class - len(own), 0))
        chosen.append(np.concatenate([own[:per_class], -1 - copies]))  # a minus marks a copy
    index = rng.permutation(np.concatenate(chosen))
    copy = index < 0
    source = np.where(copy, -1 - index, index)
    result = images[source]
    result[copy] = moved(result[copy], rng)
    return result, labels[source]


def moved(images: Images, rng: np.random.Generator) -> Images:
    """Each picture rotated by up to 12 degrees and shifted by up to 1.5 pixels, bilinearly.

    Examples:
        >>> moved(np.ones((2, 28, 28), dtype=np.float32), np.random.default_rng(0)).shape
        (2, 28, 28)
    """
    n, size, _ = images.shape
    angle = np.deg2rad(rng.uniform(-_DEGREES, _DEGREES, n)).astype(np.float32)
    shift = rng.uniform(-_PIXELS, _PIXELS, (n, 2)).astype(np.float32)
    center = (size - 1) / 2
    row, column = (axis.astype(np.float32) - center for axis in np.mgrid[:size, :size])
    result = np.empty_like(images)
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        cos, sin = (f(angle[part])[:, None, None] for f in (np.cos, np.sin))
        y = cos * row - sin * column + center + shift[part, 0, None, None]
        x = sin * row + cos * column + center + shift[part, 1, None, None]
        result[part] = _bilinear(images[part], y, x)
    return result


def _bilinear(images: Images, y: Images, x: Images) -> Images:
    """Values between pixels; 0 outside."""
    size = images.shape[1]
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2)))
    y, x = (np.clip(axis, -1, size) + 1 for axis in (y, x))
    top, left = y.astype(np.int64), x.astype(np.int64)
    down, right = y - top, x - left
    which = np.arange(len(images))[:, None, None]
    upper = padded[which, top, left] * (1 - right) + padded[which, top, left + 1] * right
    lower = padded[which, top + 1, left] * (1 - right) + padded[which, top + 1, left + 1] * right
    return np.asarray(upper * (1 - down) + lower * down, dtype=np.float32)


def oriented_gradients(images: Images) -> Images:
    """Gradient size split over 8 orientations of [0°, 180°), shape (n, 28, 28, 8)."""
    down, right = np.zeros_like(images), np.zeros_like(images)
    down[:, 1:-1] = images[:, 2:] - images[:, :-2]
    right[:, :, 1:-1] = images[:, :, 2:] - images[:, :, :-2]
    place = np.mod(np.arctan2(down, right), np.pi) * (_BINS / np.pi)
    low = np.floor(place)
    above = (place - low)[..., None]  # shared between the two nearest orientations
    lower = (low.astype(np.int64) % _BINS)[..., None] == np.arange(_BINS)
    upper = np.roll(lower, 1, axis=-1)
    shares: Images = np.hypot(down, right)[..., None] * (lower * (1 - above) + upper * above)
    return shares.astype(np.float32)


def root_histograms(images: Images) -> FloatArray:
    """Square roots of the normalized gradient histograms of 7 × 7 cells, shape (n, 392)."""

    def describe(part: Images) -> FloatArray:
        cells = oriented_gradients(part).reshape(len(part), 7, _CELL, 7, _CELL, _BINS)
        flat = cells.sum(axis=(2, 4)).reshape(len(part), -1)
        return np.asarray(np.sqrt(flat / (flat.sum(axis=1, keepdims=True) + 1e-6)))

    return _in_chunks(images, describe)


def patches(images: Images) -> Images:
    """Descriptors of 8 × 8 patches, 2 × 2 cells of 4 × 4 pixels, every 2 pixels: (n, P, 32)."""
    gradients = oriented_gradients(images)
    total = np.cumsum(np.cumsum(gradients, axis=1), axis=2)
    total = np.pad(total, ((0, 0), (1, 0), (1, 0), (0, 0)))
    cells = (
        total[:, _CELL:, _CELL:] - total[:, :-_CELL, _CELL:]
        - total[:, _CELL:, :-_CELL] + total[:, :-_CELL, :-_CELL]
    )  # fmt: skip
    first = np.arange(0, images.shape[1] - 2 * _CELL + 1, _STRIDE)
    corners = [cells[:, first + dy][:, :, first + dx] for dy in (0, _CELL) for dx in (0, _CELL)]
    joined = np.concatenate(corners, axis=-1).reshape(len(images), -1, 4 * _BINS)
    norms = np.linalg.norm(joined, axis=2, keepdims=True)
    return np.asarray(joined / (norms + _SOFT_NORM), dtype=np.float32)


class Vocabulary:
    """Visual words: centers of clusters of patch descriptors of the data user's pictures.

    Args:
        images: the data user's own pictures.
        words: how many words.
        seed: of the clustering.
    """

    def __init__(self, images: Images, *, words: int, seed: int = 0, sample: int = 60_000) -> None:
        rng = np.random.default_rng(seed)
        parts = [patches(images[i : i + _CHUNK]) for i in range(0, len(images), _CHUNK)]
        descriptors = np.concatenate(parts).reshape(-1, 4 * _BINS)
        chosen = descriptors[rng.integers(0, len(descriptors), sample)]
        clusters: Any = MiniBatchKMeans(words, random_state=seed, n_init=3, batch_size=4096)
        self.centers: Images = clusters.fit(chosen).cluster_centers_.astype(np.float32)

    def histograms(self, images: Images) -> FloatArray:
        """How often each word occurs in each picture, shape (n, words)."""
        return _in_chunks(images, self._count)

    def _count(self, images: Images) -> FloatArray:
        described = patches(images)
        flat = described.reshape(-1, described.shape[2])
        # Nearest center: |d|² is the same for all words.
        distance = (self.centers**2).sum(axis=1) - 2 * flat @ self.centers.T
        word = distance.argmin(axis=1).reshape(len(images), -1)
        words = len(self.centers)
        place = word + words * np.arange(len(images))[:, None]
        counts = np.bincount(place.ravel(), minlength=words * len(images))
        return np.asarray(counts.reshape(len(images), words), dtype=np.float64)


def _in_chunks(images: Images, describe: Callable[[Images], FloatArray]) -> FloatArray:
    parts = [describe(images[i : i + _CHUNK]) for i in range(0, len(images), _CHUNK)]
    return np.concatenate(parts)
