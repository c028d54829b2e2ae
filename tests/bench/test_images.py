"""Pictures as vectors."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda_bench.images import (
    Vocabulary,
    enlarged,
    moved,
    oriented_gradients,
    patches,
    root_histograms,
)


def blobs(n, *, seed=0):
    """Smooth random pictures."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:28, :28]
    center = rng.uniform(10, 18, (n, 2))
    distance = (row - center[:, :1, None]) ** 2 + (column - center[:, 1:, None]) ** 2
    return np.exp(-distance / 20).astype(np.float32)


def test_moved_pictures_are_the_same_pictures_elsewhere():
    pictures = blobs(50)
    elsewhere = moved(pictures, np.random.default_rng(0))
    assert elsewhere.sum(axis=(1, 2)) == pytest.approx(pictures.sum(axis=(1, 2)), rel=0.02)

    def center(images):
        weights = images / images.sum(axis=(1, 2), keepdims=True)
        return np.einsum("nij,i->n", weights, np.arange(28.0))

    change = np.abs(center(elsewhere) - center(pictures))
    # At most 1.5 pixels of shift, and 12 degrees at a distance of 6 from the center.
    assert change.mean() > 0.3
    assert change.max() < 1.5 + 6 * np.sin(np.deg2rad(12)) + 0.1


def test_classes_are_enlarged_and_originals_kept():
    pictures, labels = blobs(30), np.repeat([0, 1], [10, 20])
    larger, classes = enlarged(pictures, labels, per_class=25, rng=np.random.default_rng(0))
    assert np.bincount(classes).tolist() == [25, 25]
    originals = {picture.tobytes() for picture in pictures}
    assert sum(picture.tobytes() in originals for picture in larger) == 30


def test_gradients_go_where_the_picture_goes():
    ramp = np.tile(np.linspace(0, 1, 28, dtype=np.float32), (1, 28, 1))
    across = oriented_gradients(ramp)[0, 1:-1, 1:-1]
    assert across[..., 0].min() > 0  # orientation 0: grey grows from left to right
    assert np.abs(across[..., 1:]).max() < 1e-6
    down = oriented_gradients(ramp.transpose(0, 2, 1))[0, 1:-1, 1:-1]
    assert down[..., 4].min() > 0  # 90 degrees
    total = oriented_gradients(blobs(3)).sum(axis=-1)
    assert total[:, 5, 5].min() > 0


def test_histograms_have_unit_sum_of_squares():
    described = root_histograms(blobs(5))
    assert described.shape == (5, 392)
    assert (described**2).sum(axis=1) == pytest.approx(np.ones(5), abs=1e-5)


def test_patches_by_hand():
    pictures = blobs(2)
    described = patches(pictures)
    assert described.shape == (2, 121, 32)
    cells = oriented_gradients(pictures)[1]
    # The patch in row 3, column 2 of the grid begins at pixel (6, 4).
    corners = [(6, 4), (6, 8), (10, 4), (10, 8)]
    raw = np.concatenate([cells[i : i + 4, j : j + 4].sum(axis=(0, 1)) for i, j in corners])
    assert described[1, 3 * 11 + 2] == pytest.approx(raw / (np.linalg.norm(raw) + 0.3), abs=1e-4)


def test_a_bag_of_words_counts_every_patch():
    pictures = blobs(40)
    vocabulary = Vocabulary(pictures, words=6, sample=2000)
    counts = vocabulary.histograms(pictures)
    assert counts.shape == (40, 6)
    assert (counts.sum(axis=1) == 121).all()
    nearest = ((patches(pictures[:1])[0][:, None] - vocabulary.centers) ** 2).sum(axis=2)
    assert np.bincount(nearest.argmin(axis=1), minlength=6).tolist() == counts[0].tolist()
