"""Forecasts of the error of central releases, from simulated releases of synthetic people.

The estimators are run with seeded noise on synthetic people that follow from public facts. The
results are compared with the same summary without privacy and with the truth.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.density import DensityRelease, HistogramDensity
from dpfda.errors import InvalidParameter
from dpfda.estimators.private_density import PrivateDensity
from dpfda.estimators.private_fpca import PrivateFPCA
from dpfda.estimators.private_group_comparison import PrivateGroupComparison
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_mean import PrivateMean
from dpfda.privacy.calibration import gaussian_epsilon, gaussian_mu
from dpfda.privacy.cost import DELTA
from dpfda.report.contents import Contents, Table, show
from dpfda.report.report import Report, fragment

Summary = Literal["mean", "groups", "components", "regression", "density"]
SUMMARIES = get_args(Summary)

_MEASURED = {
    "mean": "root mean squared error of the mean curve, in units of the values",
    "groups": "root mean squared error of the difference of two equal groups, in units of the "
    "values",
    "components": "distance of the first component from the true one, both of length 1 (0 to 1.41)",
    "regression": "root mean squared error of the fitted line, in units of the target",
    "density": "total variation distance of the density (0 to 1)",
}
_SIMULATED = {"regression": 200_000, "density": 200_000}  # largest number of simulated people
_SIMULATED_CURVES = 5000  # the same for curves; larger n are simulated by less noise
_REFERENCE = 50_000  # number of synthetic people whose summary is used as the truth
_CELLS = 1000  # number of cells of the range in which points are counted
_STEPS = 9  # number of bisection steps on a log scale in the search for n or ε
_MOST_PEOPLE, _MOST_EPSILON = 10_000_000, 100.0
_LEAST_PEOPLE, _LEAST_EPSILON = 100, 0.001
_SHAPES = (0.8, 0.5, 0.33)  # relative scales of the three components of synthetic curves
_LEVEL, _APART = 0.2, 0.1  # amplitude of the mean curve and of group differences, over the range
_EXPLAINED = 0.5  # explained share of the variance of a regression's target


@dataclass(frozen=True, kw_only=True)
class ReleaseForecast:
    """The expected error of a release.

    Attributes:
        summary: the released summary.
        n, epsilon, delta: parameters of the release; n or ε may have been computed.
        error: root mean squared distance from the truth.
        interval: 90 % interval of the error.
        privacy: the error caused by privacy: the distance from the summary without privacy.
        sampling: the error without privacy. The squares of the two need not add up to that of
            `error`: what smooths noise away also smooths sampling errors away.
        sought: the quantity that was computed: ``error``, ``n`` or ``epsilon``.
        assumed: assumptions about the synthetic people, in words.
    """

    summary: Summary
    n: int
    epsilon: float
    delta: float
    error: float
    interval: tuple[float, float]
    privacy: float
    sampling: float
    sought: str
    assumed: str

    @property
    def worth(self) -> float:
        """The number of people that would give the same error without privacy."""
        return self.n * (self.sampling / self.error) ** 2 if self.error else float(self.n)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The forecast in words."""
        low, high = self.interval
        found = {"n": f"{self.n:,} people are needed.", "epsilon": f"ε = {self.epsilon:.3g} is "
                 "needed."}  # fmt: skip
        said = [found[self.sought]] if self.sought in found else []
        said.append(
            f"Expect an error of {show(self.error)} (nine of ten releases: {show(low)} to "
            f"{show(high)}); without privacy it would be {show(self.sampling)}."
        )
        kept = min(self.worth / self.n, 1.0)
        said.append(f"The release is worth {kept:.0%} of the people.")
        return (*said, f"The error is the {_MEASURED[self.summary]}. {self.assumed}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return vars(self) | {"worth": self.worth, "sentences": self.sentences}

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def table(self) -> Table:
        """The numbers."""
        rows = [("all", self.error), ("of privacy", self.privacy), ("of sampling", self.sampling)]
        title = f"{self.summary}: n = {self.n:,}, ε = {self.epsilon:.4g}"
        return Table(headings=("error", "value"), rows=tuple(rows), title=title)

    def _repr_html_(self) -> str:
        contents = Contents(tables=(self.table(),), verdict=self.sentences)
        return fragment(Report.measured(contents, title="Forecast of a release", method=""))


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """Public facts and assumptions of a simulation."""

    delta: float
    value_range: tuple[float, float]
    spread: float
    points: int
    features: int

    @property
    def center(self) -> float:
        return self.value_range[0] / 2 + self.value_range[1] / 2

    @property
    def width(self) -> float:
        return self.value_range[1] - self.value_range[0]

    def curves(self, n: int, rng: np.random.Generator, *, shift: float = 0.0) -> FloatArray:
        """Smooth curves inside the range."""
        return smooth_curves(
            n,
            rng,
            points=self.points,
            value_range=self.value_range,
            spread=self.spread,
            shift=shift,
        )


def smooth_curves(
    n: int,
    rng: np.random.Generator,
    *,
    points: int,
    value_range: tuple[float, float],
    spread: float,
    shift: float = 0.0,
) -> FloatArray:
    """Synthetic curves inside a public range, shape (n, points).

    Args:
        n: number of people.
        rng: random generator.
        points: number of grid points.
        value_range: low and high.
        spread: standard deviation of people about their mean, as a share of the range.
        shift: amplitude of an additional cosine in the mean, as a share of the range.
    """
    low, high = value_range
    t = np.linspace(0, 1, points)
    waves = np.sqrt([1, 2, 2])[:, None] * np.cos(np.pi * np.arange(3)[:, None] * t)
    sizes = np.array(_SHAPES) / np.linalg.norm(_SHAPES)
    mean = _LEVEL * np.sin(np.pi * t) + shift * np.cos(np.pi * t)
    made = mean + spread * (rng.normal(size=(n, 3)) * sizes) @ waves
    return np.asarray(np.clip(low / 2 + high / 2 + (high - low) * made, low, high))


_Trial = Callable[[int, float, _Facts, np.random.Generator], tuple[float, float, float]]


def forecast_release(
    summary: Summary,
    n: int | None = None,
    epsilon: float | None = None,
    *,
    error: float | None = None,
    delta: float = DELTA,
    value_range: tuple[float, float] = (0.0, 1.0),
    spread: float = 0.15,
    points: int = 50,
    features: int = 3,
    repeats: int = 20,
    seed: int = 0,
) -> ReleaseForecast:
    """Forecast the error of a release from public facts, or the n or ε that reach a given error.

    Two of n, ε and error are given; the third is computed.

    Args:
        summary: ``mean``, ``groups``, ``components``, ``regression`` or ``density``.
        n: number of people.
        epsilon: ε of the release.
        error: the error to reach, in the units that `ReleaseForecast.sentences` states.
        delta: δ; 0 for pure ε.
        value_range: public range of the values, of the points, or of the target of a regression.
        spread: assumed standard deviation of people about their mean, as a share of the range.
        points: number of grid points of a curve.
        features: number of columns of a regression.
        repeats: number of simulated releases.
        seed: seed of the synthetic people and the noise.

    Privacy:
        No private data are read and no budget is spent.

    Examples:
        >>> found = forecast_release("mean", 2000, 1.0, value_range=(0, 1000), repeats=4)
        >>> found.sampling < found.error < 10
        True
        >>> print(found.sentences[1])
        The release is worth 58% of the people.
    """
    _validate.one_of("summary", summary, SUMMARIES)
    given = {"n": n, "epsilon": epsilon, "error": error}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        named = [name for name in given if name not in missing]
        rule = "two of the three, and the third is found"
        raise InvalidParameter("n, epsilon and error", rule, named)
    _validate.whole("repeats", repeats, least=2, most=1000)
    _validate.whole("seed", seed, least=0)
    low, high = _validate.interval("value_range", value_range)
    facts = _Facts(
        delta=_validate.delta("delta", delta),
        value_range=(low, high),
        spread=_validate.fraction("spread", spread),
        points=_validate.whole("points", points, least=4, most=1000),
        features=_validate.whole("features", features, least=1, most=50),
    )

    def at(people: int, price: float) -> ReleaseForecast:
        return _simulated(summary, people, price, facts, repeats=repeats, seed=seed)

    if n is not None:
        _validate.whole("n", n, least=_LEAST_PEOPLE, most=_MOST_PEOPLE)
    if epsilon is not None:
        _validate.positive("epsilon", epsilon)
    if error is None:
        assert n is not None
        assert epsilon is not None
        return at(n, epsilon)
    _validate.positive("error", error)
    if n is None:
        assert epsilon is not None
        price = epsilon
        people = _least(lambda x: at(round(x), price), error, _LEAST_PEOPLE, _MOST_PEOPLE)
        return replace(at(round(people), price), sought="n")
    size = n
    return replace(
        at(size, _least(lambda x: at(size, x), error, _LEAST_EPSILON, _MOST_EPSILON)),
        sought="epsilon",
    )


def _least(at: Callable[[float], ReleaseForecast], error: float, low: float, high: float) -> float:
    """The smallest n or ε with an error of at most `error`."""
    best = at(high)
    if best.error > error:
        rule = f"at least {show(best.error)}, which the largest n or ε that is tried reaches"
        raise InvalidParameter("error", rule, error)
    if at(low).error <= error:
        return low
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle).error <= error else (middle, high)
    return high


def _simulated(
    summary: Summary, n: int, epsilon: float, facts: _Facts, *, repeats: int, seed: int
) -> ReleaseForecast:
    """Simulate releases; for large n with fewer people and correspondingly less noise."""
    people = min(n, _SIMULATED.get(summary, _SIMULATED_CURVES))
    more = n / people
    price = epsilon * more
    pure = not facts.delta
    if summary == "density":  # it chooses the smaller noise by the actual n
        own: dict[str, Any] = {
            "box": (facts.value_range,),
            "mechanism": HistogramDensity(),
            "either": True,
        }
        pure = DensityRelease(n=n, epsilon=epsilon, delta=facts.delta, **own).pure
    if more > 1 and not pure:
        mu = gaussian_mu(epsilon=epsilon, delta=facts.delta)
        price = gaussian_epsilon(delta=facts.delta, multiplier=1 / (more * mu))
    trial = _TRIALS[summary]
    found = []
    for number in range(repeats):
        rng = np.random.default_rng([seed, number])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the forecast has its own sentences
            found.append(trial(people, price, facts, rng))
    total, privacy, sampling = np.array(found).T
    if more > 1:
        sampling = sampling / math.sqrt(more)
        total = np.hypot(privacy, sampling)
    low, high = np.quantile(total, (0.05, 0.95))
    return ReleaseForecast(
        summary=summary,
        n=n,
        epsilon=epsilon,
        delta=facts.delta,
        error=_root(total),
        interval=(float(low), float(high)),
        privacy=_root(privacy),
        sampling=_root(sampling),
        sought="error",
        assumed=_assumed(summary, facts),
    )


def _assumed(summary: Summary, facts: _Facts) -> str:
    if summary == "regression":
        return (
            f"Assumed: {facts.features} columns that are spread evenly over their ranges and "
            f"explain {_EXPLAINED:.0%} of the target. Nothing was spent."
        )
    what = "points" if summary == "density" else "smooth curves"
    return (
        f"Assumed: {what} that differ from their mean by {facts.spread:.0%} of the range (one "
        "standard deviation). Nothing was spent."
    )


def _root(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _three(private: FloatArray, plain: FloatArray, truth: FloatArray) -> tuple[float, float, float]:
    """Root mean squared errors: total, of privacy, of sampling."""
    return _root(private - truth), _root(private - plain), _root(plain - truth)


def _mean(
    n: int, epsilon: float, facts: _Facts, rng: np.random.Generator
) -> tuple[float, float, float]:
    curves = facts.curves(n, rng)
    model = PrivateMean(
        epsilon, delta=facts.delta, value_range=facts.value_range, random_state=_seed(rng)
    )
    return _three(model.fit(curves).release_.values(), curves.mean(axis=0), _truth(facts, 0.0))


@lru_cache(maxsize=8)
def _truth(facts: _Facts, shift: float) -> FloatArray:
    """The mean curve of the population."""
    rng = np.random.default_rng(0)
    return np.asarray(facts.curves(_REFERENCE, rng, shift=shift).mean(axis=0))


def _groups(
    n: int, epsilon: float, facts: _Facts, rng: np.random.Generator
) -> tuple[float, float, float]:
    group, ends = np.arange(n) % 2, (-_APART / 2, _APART / 2)
    both = [facts.curves(n, rng, shift=shift) for shift in ends]
    curves = np.where(group[:, None] == 0, *both)
    many = [_truth(facts, shift) for shift in ends]
    model = PrivateGroupComparison(
        epsilon,
        delta=facts.delta,
        value_range=facts.value_range,
        groups=(0, 1),
        random_state=_seed(rng),
    ).fit(curves, group)
    first, second = model.means_
    plain = curves[group == 1].mean(axis=0) - curves[group == 0].mean(axis=0)
    return _three(np.asarray(second - first), plain, many[1] - many[0])


def _components(
    n: int, epsilon: float, facts: _Facts, rng: np.random.Generator
) -> tuple[float, float, float]:
    curves = facts.curves(n, rng)
    model = PrivateFPCA(
        epsilon,
        delta=facts.delta,
        value_range=facts.value_range,
        n_components=1,
        random_state=_seed(rng),
    ).fit(curves)
    private, plain, truth = np.asarray(model.components_[0]), _first(curves), _true_component(facts)
    return _apart(private, truth), _apart(private, plain), _apart(plain, truth)


@lru_cache(maxsize=8)
def _true_component(facts: _Facts) -> FloatArray:
    return _first(facts.curves(_REFERENCE, np.random.default_rng(0)))


def _first(curves: FloatArray) -> FloatArray:
    """The first principal component of the curves."""
    vectors: FloatArray = np.linalg.eigh(np.cov(curves.T))[1]
    return vectors[:, -1]


def _apart(one: FloatArray, other: FloatArray) -> float:
    """Distance between two unit vectors, up to sign."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    same = abs(float(one @ other)) / max(lengths, 1e-300)
    return math.sqrt(2 * max(1 - same, 0.0))


def _regression(
    n: int, epsilon: float, facts: _Facts, rng: np.random.Generator
) -> tuple[float, float, float]:
    rows, new = rng.uniform(size=(n, facts.features)), rng.uniform(size=(1000, facts.features))
    slopes = np.ones(facts.features) * facts.width / (2 * facts.features)
    spread = facts.width / (2 * facts.features) * math.sqrt(facts.features / 12)
    noise = spread * math.sqrt(1 / _EXPLAINED - 1)

    def line(table: FloatArray) -> FloatArray:
        return np.asarray(facts.center + (table - 0.5) @ slopes)

    target = np.clip(line(rows) + noise * rng.normal(size=n), *facts.value_range)
    model = PrivateLinearRegression(
        epsilon,
        delta=facts.delta,
        feature_ranges=(0, 1),
        target_range=facts.value_range,
        random_state=_seed(rng),
    ).fit(rows, target)
    design = np.column_stack([np.ones(n), rows])
    fitted = np.linalg.lstsq(design, target, rcond=None)[0]
    plain = np.column_stack([np.ones(len(new)), new]) @ fitted
    return _three(np.asarray(model.predict(new)), plain, line(new))


def _density(
    n: int, epsilon: float, facts: _Facts, rng: np.random.Generator
) -> tuple[float, float, float]:
    low, high = facts.value_range
    centers = facts.center + facts.width * np.array([-0.2, 0.2])
    deviation = facts.width * facts.spread / 2
    points = np.clip(centers[rng.integers(2, size=n)] + deviation * rng.normal(size=n), low, high)
    model = PrivateDensity(
        epsilon, delta=facts.delta, feature_ranges=[(low, high)], random_state=_seed(rng)
    ).fit(points[:, None])
    grid = np.linspace(low, high, 200)

    def normals(places: FloatArray, shares: FloatArray, width: float) -> FloatArray:
        heaps = np.exp(-(((grid - places[:, None]) / width) ** 2) / 2)
        return np.asarray(shares @ heaps / (width * math.sqrt(2 * math.pi)))

    cells, edges = np.histogram(points, bins=_CELLS, range=(low, high))
    # Silverman's rule for the spread of one of the two clusters.
    width = 1.06 * deviation * n ** (-1 / 5)
    plain = normals(edges[:-1] / 2 + edges[1:] / 2, cells / n, width)
    truth = normals(centers, np.array([0.5, 0.5]), deviation)
    private = np.asarray(model.release_.values(grid))
    step = (grid[1] - grid[0]) / 2
    return tuple(float(np.abs(a - b).sum() * step) for a, b in  # type: ignore[return-value]
                 ((private, truth), (private, plain), (plain, truth)))  # fmt: skip


_TRIALS: dict[str, _Trial] = {
    "mean": _mean,
    "groups": _groups,
    "components": _components,
    "regression": _regression,
    "density": _density,
}
