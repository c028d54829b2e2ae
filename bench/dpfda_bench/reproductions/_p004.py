"""What the reproductions and benchmarks of 004 share: data, the printed scheme, error by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sklearn.datasets import make_classification

from dpfda._validate import FloatArray, IntArray
from dpfda.datasets.loaders import load_fashion, load_mnist_4_9
from dpfda.local.boosting.design import BoostingFindings
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.request import OwnerRows
from dpfda.local.boosting.samme_study import SammeDesign, samme
from dpfda.local.boosting.shares import SampleRequest, box_mechanism
from dpfda.noise import SimulationSource, Source
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.query import Answer, Records
from dpfda.protocol.study import Run
from dpfda_bench.effort import Effort
from dpfda_bench.images import Images, Vocabulary, enlarged, root_histograms
from dpfda_bench.prepared_data import prepare
from dpfda_bench.printed import printed
from dpfda_bench.verdict import Verdict, agrees_if

EPSILONS = (1.0, 3.0, 5.0, 7.0, 9.0)
MECHANISMS = ("laplace", "duchi", "piecewise")
Name = Literal["synthetic", "mnist", "fashion", "adult"]
_USER, _PER_CLASS = 2000, 20_000
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
def images(name: Literal["mnist", "fashion"], kind: Literal["bovw", "hog"], words: int) -> Data:
    """Vectors of MNIST 4/9 or Fashion-MNIST T-shirt/shirt: 2000 of the data user, 40 000 of owners.

    Args:
        name: which data set.
        kind: ``bovw``, a histogram of visual words; ``hog``, all gradient histograms.
        words: size of the vocabulary.
    """
    loaded = load_mnist_4_9() if name == "mnist" else load_fashion()
    pictures = np.asarray(loaded.X, dtype=np.float32).reshape(-1, 28, 28)
    assert loaded.y is not None
    assert loaded.train is not None
    labels, rng = (loaded.y > 0).astype(np.int64), np.random.default_rng(0)
    order = rng.permutation(np.flatnonzero(loaded.train))
    user, rest, test = order[:_USER], order[_USER:], np.flatnonzero(~loaded.train)
    owned, classes = enlarged(pictures[rest], labels[rest], per_class=_PER_CLASS, rng=rng)
    describe: Callable[[Images], FloatArray] = root_histograms
    if kind == "bovw":
        describe = Vocabulary(pictures[user], words=words).histograms
    own = describe(pictures[user])
    low, high = own.min(axis=0), own.max(axis=0)
    width = np.where(high > low, high - low, 1.0)

    def scale(rows: FloatArray) -> FloatArray:
        return np.asarray(np.clip(2 * (rows - low) / width - 1, -1, 1))

    return Data(
        scale(own), labels[user],
        scale(describe(owned)), classes,
        scale(describe(pictures[test])), labels[test],
    )  # fmt: skip


@lru_cache(maxsize=1)
def adult() -> Data:
    """Adult in place of Brazil's census: 13 columns in [-1, 1], income above 50K."""
    rows = prepare("adult")
    order = np.random.default_rng(0).permutation(len(rows.X))
    X, y = rows.X[order] * math.sqrt(rows.X.shape[1]), rows.y[order].astype(np.int64)
    user, owned, test = slice(_USER), slice(_USER, 36_000), slice(36_000, None)
    return Data(X[user], y[user], X[owned], y[owned], X[test], y[test])


def load(name: Name) -> Data:
    """The data sets as 004 uses them; Brazil's census is not public: `adult` stands in."""
    if name in ("synthetic", "adult"):
        return synthetic() if name == "synthetic" else adult()
    return images(name, "bovw", 50 if name == "mnist" else 100)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedSample(SampleRequest):
    """Nearest centroid as printed: labels in clear, weights multiplied after perturbation (C16).

    Not registered, so that no carrier can ask for it. Its true guarantee covers features only.
    """

    @property
    def sent(self) -> int:
        """Sums and weights of each class."""
        return self.n_classes * (self.dimension + 1)

    def answer(self, records: Records, source: Source) -> Answer:
        """w x' by class, and the class weights, in clear."""
        rows = self.fitting(records)
        inside, weights = self.weighted(rows)
        h, n, d = inside.shape
        row = box_mechanism(self.mechanism_name, epsilon=self.epsilon / n, dimension=d)
        noisy = row.randomize(inside.reshape(-1, d), source)
        told = np.concatenate([noisy.reshape(h, n, d), np.ones((h, n, 1))], axis=2)
        own = rows.labels[..., None] == np.arange(self.n_classes)
        sums = np.einsum("hnd,hnk->hkd", told * weights[..., None], own) / n
        return Answer(values=sums.reshape(h, -1), n=h)

    def decode(self, sent: FloatArray) -> FloatArray:
        """As sent."""
        return sent

    def _kept(self, centroids: FloatArray) -> FloatArray:
        return centroids


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedDesign(SammeDesign):
    """SAMME with the printed request; not registered either."""

    def shares(self, plan: StudyPlan, start: int, people: int, **free: Any) -> PublishedSample:
        """The printed request in place of `SampleRequest`."""
        asked = super().shares(plan, start, people, **free)
        return PublishedSample(
            **{field.name: getattr(asked, field.name) for field in fields(asked)}
        )


def shares(
    kind: str,
    data: Data,
    rows: OwnerRows,
    *,
    mechanism: str = "piecewise",
    epsilon: float,
    owners: int | None = None,
    rounds: int = 1,
) -> Run:
    """A study of ``published``, ``sample``, ``statistic`` or ``classifier`` before its first round.

    `owners` are asked in each round, all of them by default.
    """
    make = PublishedDesign if kind == "published" else SammeDesign
    design = make(
        rule="sample" if kind == "published" else kind,
        mechanism=mechanism,
        feature_ranges=np.tile([-1.0, 1.0], (data.user.shape[1], 1)),
        thresholds=np.median(data.user, axis=0)[:, None],
        owners_per_round=owners or rows.owners,
        n_rounds=rounds,
        n_rows=rows.features.shape[1],
        retries=1,
        labeled=data.user,
        labels=data.user_labels,
    )
    plan = design.plan(epsilon=epsilon, owners=rows.owners, classes=(0, 1))
    return Run(plan, lambda _, plan: samme(design, plan))


def boosted(
    kind: str,
    data: Data,
    rows: OwnerRows,
    *,
    epsilon: float,
    owners: int,
    rounds: int,
    seed: int,
    noisy: bool = True,
) -> tuple[list[float], list[dict[str, Any]]]:
    """Test error after each kept round, and the history with err and α."""
    study = shares(kind, data, rows, epsilon=epsilon, owners=owners, rounds=rounds)
    errors = errors_by_round(study, rows, data, SimulationSource(seed), noisy=noisy)
    return errors, history(study)


def gradients(data: Data, rows: OwnerRows, *, epsilon: float, owners: int, seed: int) -> Run:
    """Gradient reports, this package's default, of `owners` before the first one is asked."""
    features, size = FeatureMap.learnt(data.user), rows.features.shape[1]
    design = GradientDesign(features=features, reference=data.user[:1000], n_rows=size)
    plan = design.plan(epsilon=epsilon, owners=owners, classes=(0, 1), seed=seed)
    return Run(plan)


def asked(study: Run, rows: OwnerRows, source: Source, *, noisy: bool = True) -> Iterator[None]:
    """Ask owners in their order until the study is finished; pauses after each phase."""
    start = 0
    while not study.finished:
        task, stop = study.tasks(0, study.quota), start + study.quota
        held = rows.take(slice(start, stop))
        sent = task.answer(held, source).values if noisy else task.exact(task.fitting(held), source)
        study.absorb(task, sent)
        study.close()
        start = stop
        yield


def errors_by_round(
    study: Run, rows: OwnerRows, data: Data, source: Source, *, noisy: bool = True
) -> list[float]:
    """Run a study and look at the test error after each round (as an onlooker)."""
    errors, rounds = [], 0
    for _ in asked(study, rows, source, noisy=noisy):
        told = history(study)
        if len(told) > rounds and told[-1].get("kept", True):
            errors.append(error(study, data))
        rounds = len(told)
    return errors


def history(study: Run) -> list[dict[str, Any]]:
    """What is known of the rounds so far."""
    findings = study.result.findings
    assert isinstance(findings, BoostingFindings)
    return list(findings.history)


def error(study: Run, data: Data) -> float:
    """Share of test rows that the present model gets wrong."""
    return float(np.mean(study.result.model.boosted.decide(data.test) != data.test_labels))


def majority(data: Data) -> float:
    """Percent of test rows that whoever always says the larger class gets right."""
    return 100 * float(np.bincount(data.test_labels).max() / len(data.test_labels))


Cell = Callable[[Name, str, float, int], dict[str, float]]
"""``cell(data, mechanism, epsilon, runs)``: what was measured for one number of a table."""


def table(name: str, cell: Cell, effort: Effort, *, runs: int) -> list[dict[str, Any]]:
    """What 004 prints beside what `cell` measures; the first data set only for a quick look."""
    lines = printed(name)
    if effort.quick:
        lines = [line for line in lines if line["data"] == lines[0]["data"]]
    rows = [
        {key: line[key] for key in ("data", "mechanism")}
        | {"epsilon": epsilon, "printed": line[f"{epsilon:g}"]}
        for line in lines
        for epsilon in EPSILONS
    ]
    names = [(row["data"], row["mechanism"], row["epsilon"], runs) for row in rows]
    found = effort.sweep.run(cell, names)
    return [row | measured for row, measured in zip(rows, found, strict=True)]


def in_order(rows: list[dict[str, Any]], column: str) -> dict[str, float]:
    """For each data set, the share of ε at which piecewise < Duchi < Laplace."""
    holds: dict[str, list[bool]] = {}
    found = {(row["data"], row["epsilon"], row["mechanism"]): row[column] for row in rows}
    for name, epsilon in dict.fromkeys((name, epsilon) for name, epsilon, _ in found):
        laplace, duchi, piecewise = (found[name, epsilon, other] for other in MECHANISMS)
        holds.setdefault(f"{name}_in_order", []).append(piecewise < duchi < laplace)
    return {key: float(np.mean(held)) for key, held in holds.items()}


def off_print(
    rows: list[dict[str, Any]], column: str, why: str = "how features were scaled is not said"
) -> Verdict:
    """How far a column is from the printed one, by mechanism, and perhaps `why`."""
    factors: dict[str, list[float]] = {}
    for row in rows:
        if row["printed"] is not None:
            ratio = row["printed"] / row[column]
            factors.setdefault(row["mechanism"], []).append(max(ratio, 1 / ratio))
    told = ", ".join(f"{name} {max(found):.3g}" for name, found in factors.items())
    return agrees_if(
        max(max(found) for found in factors.values()) <= 1.25,
        f"Largest factor between printed and recomputed numbers: {told}; {why}.",
    )


def first_below(rows: list[dict[str, Any]], name: str, column: str, limit: str) -> float:
    """The smallest ε at which the piecewise mechanism's error is below `limit`; NaN if none is."""
    own = [row for row in rows if (row["data"], row["mechanism"]) == (name, "piecewise")]
    return min((row["epsilon"] for row in own if row[column] < row[limit]), default=math.nan)


def plot_table(rows: list[dict[str, Any]], column: str, gap: str, of: str) -> Any:
    """A panel a data set: measured (lines) and printed (crosses) errors, and the gap `of` what."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(4.2 * len(names), 3.6), layout="constrained")
    for axes, name in zip(np.ravel(figure.subplots(1, len(names))), names, strict=True):
        for color, mechanism in enumerate(MECHANISMS):
            chosen = [r for r in rows if r["data"] == name and r["mechanism"] == mechanism]
            x = [row["epsilon"] for row in chosen]
            axes.plot(x, [r[column] for r in chosen], "o-", color=f"C{color}", label=mechanism)
            axes.plot(x, [r["printed"] for r in chosen], "x", color=f"C{color}")
        axes.axhline(chosen[0][gap], color="0.5", linestyle=":", label=f"gap of the {of}")
        axes.set(title=f"{name} (× printed)", xlabel="ε", yscale="log")
        axes.legend(fontsize=7)
    return figure
