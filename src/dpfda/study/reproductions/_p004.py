"""What the reproductions and benchmarks of 004 share: data, the printed scheme, error by round."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.datasets import make_classification

from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.requests.local_classifier import ClassifierRequest
from dpfda.boosting.requests.sample import SampleRequest
from dpfda.boosting.requests.share import ShareRequest
from dpfda.boosting.requests.statistic import StatisticRequest
from dpfda.boosting.roles import Crowd, DataUser
from dpfda.boosting.samme_user import SammeUser
from dpfda.noise import SimulationSource, Source
from dpfda.study.images import ImageStudy, image_study

EPSILONS = (1.0, 3.0, 5.0, 7.0, 9.0)
MECHANISMS = ("laplace", "duchi", "piecewise")
Name = Literal["synthetic", "mnist", "fashion"]
_SYNTHETIC_ROWS = 250_000  # another number gives other classes, whatever the seed
SYNTHETIC_SEED = 2
"""Of seeds 0 to 15, the one nearest to the facts that 004 prints about its synthetic data: nearest
centroids err on 13 % and are 0.5 apart. Nothing else about the seed was looked at."""


@dataclass(frozen=True, eq=False)
class Data:
    """One data set: rows in [-1, 1]^d by the public range, split three ways."""

    user: FloatArray
    user_labels: IntArray
    owners: FloatArray
    owner_labels: IntArray
    test: FloatArray
    test_labels: IntArray

    def grouped(self, owners: int, rows: int, *, seed: int) -> OwnerRows:
        """`owners` owners with `rows` random rows each; rows repeat if there are too few."""
        rng = np.random.default_rng(seed)
        wanted, there = owners * rows, len(self.owners)
        passes = [rng.permutation(there) for _ in range(-(-wanted // there))]
        chosen = np.concatenate(passes)[:wanted]
        shape = (owners, rows)
        return OwnerRows(
            self.owners[chosen].reshape(*shape, -1),
            self.owner_labels[chosen].reshape(shape),
            np.ones(shape, dtype=bool),
        )


@lru_cache(maxsize=1)
def synthetic(seed: int = SYNTHETIC_SEED) -> Data:
    """make_classification with 20 features, 10 of them informative, as in 004 §V."""
    X, y = make_classification(
        _SYNTHETIC_ROWS, n_features=20, n_informative=10, n_redundant=10, random_state=seed
    )
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X - low) / (high - low) - 1
    parts = np.split(np.arange(len(X)), [2000, 230_000])
    return Data(*(part for where in parts for part in (X[where], y[where])))


@lru_cache(maxsize=1)
def _cache() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="dpfda-images-")


def images(name: Literal["mnist", "fashion"], kind: Literal["bovw", "hog"], words: int) -> Data:
    """Vectors of pictures, kept in a temporary folder while the process runs."""
    study: ImageStudy = image_study(name, kind, words=words, cache=Path(_cache().name))
    low, high = study.user.min(axis=0), study.user.max(axis=0)
    width = np.where(high > low, high - low, 1.0)

    def scale(rows: FloatArray) -> FloatArray:
        return np.asarray(np.clip(2 * (rows - low) / width - 1, -1, 1))

    return Data(
        scale(study.user), study.user_labels,
        scale(study.owners), study.owner_labels,
        scale(study.test), study.test_labels,
    )  # fmt: skip


def load(name: Name) -> Data:
    """The data sets as 004 uses them; Brazil's census is not public."""
    if name == "synthetic":
        return synthetic()
    return images(name, "bovw", 50 if name == "mnist" else 100)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedSample(SampleRequest):
    """Nearest centroid as printed: labels in clear, weights multiplied after perturbation (C16).

    Not registered, so that no carrier can ask for it. Its true guarantee covers features only.
    """

    def answer(self, rows: OwnerRows, *, epsilon: float, rng: Source) -> FloatArray:
        """w x' by class, and the class weights, in clear."""
        inside, weights = self.weighted(rows)
        h, n, d = inside.shape
        noisy = self._randomizer(epsilon / n, d).randomize(inside.reshape(-1, d), rng)
        told = np.concatenate([noisy.reshape(h, n, d), np.ones((h, n, 1))], axis=2)
        own = rows.labels[..., None] == np.arange(self.classes)
        sums = np.einsum("hnd,hnk->hkd", told * weights[..., None], own) / n
        return np.concatenate([sums.reshape(h, -1), np.zeros((h, self.width - sums[0].size))], 1)

    def _kept(self, centroids: FloatArray) -> FloatArray:
        return centroids


def first_request(kind: str, data: Data, *, mechanism: str) -> ShareRequest:
    """The question of the first round: ``published``, ``sample``, ``statistic``, ``classifier``."""
    vote = Ensemble.empty([(-1.0, 1.0)] * data.user.shape[1], classes=2)
    if kind == "statistic":
        cuts = np.median(data.user, axis=0)[:, None]
        return StatisticRequest(ensemble=vote, mechanism=mechanism, thresholds=cuts)
    if kind == "classifier":
        return ClassifierRequest(ensemble=vote, mechanism=mechanism)
    return (PublishedSample if kind == "published" else SampleRequest)(
        ensemble=vote, mechanism=mechanism
    )


def boosted(
    kind: str, data: Data, rows: OwnerRows, *, epsilon: float, owners: int, rounds: int, seed: int
) -> tuple[list[float], list[dict[str, Any]]]:
    """Test error after each kept round, and the history with err and α."""
    user = SammeUser(
        "reproduction",
        request=first_request(kind, data, mechanism="piecewise"),
        owners_per_round=owners,
        rounds=rounds,
        retries=1,
        validation=(data.user, data.user_labels),
    )
    crowd = Crowd(rows, epsilon=epsilon, rng=SimulationSource(seed))
    return errors_by_round(user, crowd, data), user.history


def errors_by_round(user: DataUser, crowd: Crowd, data: Data) -> list[float]:
    """Run a study and look at the test error after each round (as an onlooker)."""
    errors, position = [], 0
    while (wanted := user.wanted) and position + wanted <= len(crowd.spent):
        rounds = len(user.history)
        user.absorb(crowd.answer(user.request, np.arange(position, position + wanted)))
        position += wanted
        if len(user.history) > rounds and user.history[-1].get("kept", True):
            errors.append(error(user, data))
    return errors


def error(user: DataUser, data: Data) -> float:
    """Share of test rows that the present model gets wrong."""
    return float(np.mean(user.model.decide(data.test) != data.test_labels))
