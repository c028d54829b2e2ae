"""Public generators of synthetic people, for forecasts of studies.

A family is a prior over populations. Latent variables (coefficients of a curve, or variables that
determine the columns of a table) are normal around a mean of each class. Their spread within the
public range, their center, their correlations and the differences between classes are drawn anew
for every population, because they are not known in advance. The distance between the classes is
then set such that a classifier without privacy has the error that the user expects. If a typical
curve of each class is public, the class means are given by these curves, and the spread is set
instead.

The parameters of the families were chosen on a few tasks (`dpfda bench plan` names them). No
private data are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.curves.bases import CosineBasis
from dpfda.errors import InvalidParameter

Generator = np.random.Generator
Seed = int | Sequence[int]
Features = Callable[[FloatArray], FloatArray]
"""A map from latent variables (n, m) to encoded features (n, d) in [-1, 1]."""

_TERMS = 16  # number of cosine functions of a simulated curve
_GRID = 65  # number of grid points of a simulated curve


@dataclass(frozen=True, kw_only=True)
class Known:
    """The facts about the people that the plan and the user state.

    Attributes:
        encoder: the encoder, which contains the public ranges.
        shares: shares of the classes.
        center_known: whether the center of the range is that of the people.
        anywhere: whether people may be anywhere in their range, with a much smaller spread.
        spread_differs: whether classes may differ in spread.
        typical: coefficients of a typical curve of each class, (K, d).
    """

    encoder: CurveEncoder
    shares: FloatArray
    center_known: bool = False
    anywhere: bool = False
    spread_differs: bool = False
    typical: FloatArray | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """A population: latent variables around class means, and their encoded features.

    Attributes:
        means: latent mean of each class, (K, m).
        root: matrix that maps standard normal numbers to latent noise, (m, r).
        shares: shares of the classes.
        features: the map from latent variables to encoded features.
        stretch: logarithm of a factor on the noise of each class, (K, m), or one number.
    """

    means: FloatArray
    root: FloatArray
    shares: FloatArray
    features: Features
    stretch: FloatArray | float = 0.0

    def people(self, n: int, seed: Seed) -> tuple[FloatArray, IntArray]:
        """Encoded features and label numbers; fewer people are the first rows of more people."""
        labels, noise = self.parts(n, seed)
        return self.seen(labels, noise), labels

    def seen(self, labels: IntArray, noise: FloatArray) -> FloatArray:
        """Encoded features of people with these labels and latent noise."""
        wider = np.broadcast_to(np.exp(self.stretch), self.means.shape)
        return self.features(self.means[labels] + wider[labels] * noise)

    @property
    def spread_differs(self) -> bool:
        """Whether the classes differ in spread."""
        return bool(np.any(np.ptp(np.broadcast_to(self.stretch, self.means.shape), axis=0)))

    def others(self, n: int, seed: Seed) -> tuple[FloatArray, IntArray]:
        """Test people, who do not take part."""
        return self.people(n, seed)

    def parts(self, n: int, seed: Seed) -> tuple[IntArray, FloatArray]:
        """Labels and latent noise."""
        first, second = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
        noise = second.standard_normal((n, self.root.shape[1])) @ self.root.T
        return draw_labels(n, self.shares, first), noise


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Curves inside a public range, as sums of waves with decreasing amplitudes.

    Attributes:
        decay: smallest and largest p: the j-th amplitude is about j^{-p}.
        width: smallest and largest standard deviation of the level, as a share of the half-range.
        tilt: smallest and largest q: differences between classes, in standard deviations, decrease
            like (j + 1)^{-q}.
        off: typical distance between the center of a coefficient and that of its range.
    """

    decay: tuple[float, float]
    width: tuple[float, float] = (0.05, 0.12)
    tilt: tuple[float, float] = (0.0, 2.0)
    off: float = 0.4

    def population(self, known: Known, rng: Generator) -> Population:
        """Draw a population of the family."""
        channels = known.encoder.channels
        speed = np.maximum(np.arange(_TERMS), 1)
        spread = np.exp(rng.uniform(*np.log(self.width))) * speed ** -rng.uniform(*self.decay)
        if rng.random() < 0.2:  # curves that are standardized individually have no level
            spread[0] *= 0.1
        middle = rng.normal(0, self.off / 3, (channels, _TERMS)) / speed
        size = channels * _TERMS
        root = np.tile(spread, channels)[:, None] * _factors(size, rng, most=0.6)
        tilt = np.tile((1.0 + np.arange(_TERMS)) ** -rng.uniform(*self.tilt), channels)
        apart = _differences(len(known.shares), size, rng) * tilt * np.tile(spread, channels)
        if known.center_known:
            middle *= 0
        if known.anywhere:
            narrower = np.exp(rng.uniform(np.log(0.1), 0))
            root, apart, middle = root * narrower, apart * narrower, middle * narrower
            middle[:, 0] = rng.uniform(-0.8, 0.8, channels)
        stretch: FloatArray | float = 0.0
        if known.spread_differs:
            turns = np.arange(known.encoder.n_features) // channels
            falls = (1.0 + turns) ** -rng.uniform(*self.tilt)
            stretch = falls * _wider(len(known.shares), len(turns), rng)
            apart *= _sometimes(rng)
        center, waves = _in_coefficients(known.encoder)
        means = center + (middle.ravel() + apart) @ waves
        return Population(
            means=means if known.typical is None else known.typical,
            root=waves.T @ root,
            shares=known.shares,
            features=known.encoder.rescaler.rescale,
            stretch=stretch,
        )


def _in_coefficients(encoder: CurveEncoder) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the center of the range, and of each wave with half its width, by channel."""
    channels, (start, end) = encoder.channels, encoder.basis.domain_range
    waves = CosineBasis(n_basis=_TERMS).evaluate(np.linspace(0, 1, _GRID))
    middle, half = public_range(encoder)
    curves = np.zeros((1 + channels * _TERMS, _GRID, channels))
    curves[0] = middle
    for channel in range(channels):
        own = slice(1 + channel * _TERMS, 1 + (channel + 1) * _TERMS)
        curves[own, :, channel] = half[channel] * waves.T
    seen = curves[..., 0] if channels == 1 else curves
    z = encoder.coefficients(seen, np.linspace(start, end, _GRID))
    return z[0], z[1:]


def public_range(encoder: CurveEncoder) -> tuple[FloatArray, FloatArray]:
    """Middle and half-width of the range of an encoder, one of each per channel.

    The range contains the constant curves whose coefficients are not clipped.

    Examples:
        >>> cubic = CurveEncoder("bspline", n_basis=5, rescale="clip", center=10.0, scale=4.0)
        >>> [part.round(6).tolist() for part in public_range(cubic)]
        [[10.0], [4.0]]
    """
    channels, (start, end) = encoder.channels, encoder.basis.domain_range
    scales = encoder.rescaler.scales(encoder.n_features)
    if scales is None:
        rule = "left out: this plan's encoder names no range (pass a sample)"
        raise InvalidParameter("family", rule, encoder.rescaler.name)
    reach = scales * (3.0 if encoder.rescaler.name == "tanh" else 1.0)  # tanh 3 is 0.995
    ones = np.repeat(np.eye(channels)[:, None], _GRID, axis=1)
    level = encoder.coefficients(
        ones[..., 0] if channels == 1 else ones, np.linspace(start, end, _GRID)
    )
    middle = (level @ encoder.rescaler.centers(encoder.n_features)) / (level**2).sum(axis=1)
    used = np.abs(level) > 1e-9
    half = np.min(np.where(used, reach / np.where(used, np.abs(level), 1), np.inf), axis=1)
    return middle, half


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Tables with numeric, binary and skewed columns inside public ranges."""

    def population(self, known: Known, rng: Generator) -> Population:
        """Draw a population of the family."""
        d, classes = known.encoder.n_features, len(known.shares)
        kind = rng.choice(3, d, p=[0.45, 0.3, 0.25])
        at, width = rng.normal(-0.2, 0.25, d), np.exp(rng.uniform(np.log(0.25), np.log(0.6), d))
        at = np.zeros(d) if known.center_known else at
        narrower, moved = np.ones(d), np.zeros(d)

        def features(latent: FloatArray) -> FloatArray:
            numbers = at + width * latent
            marks = np.sign(latent - 3 * at)
            amounts = 0.3 * width * np.exp(latent) - 1
            shown = np.where(kind == 0, numbers, np.where(kind == 1, marks, amounts))
            return np.clip(shown, -1, 1) * narrower + moved

        root = _factors(d, rng, most=0.8)
        apart = _differences(classes, d, rng) * rng.standard_gamma(0.5, d) ** 0.5
        together = rng.uniform(0, 1) * _differences(classes, d, rng) @ root.T
        if known.anywhere:
            narrower = np.exp(rng.uniform(np.log(0.1), 0, d))
            moved = rng.uniform(-1, 1, d) * (1 - narrower)
        stretch: FloatArray | float = 0.0
        if known.spread_differs:
            stretch = _wider(classes, d, rng) * rng.standard_gamma(0.5, d) ** 0.5
            apart, together = (_sometimes(rng) * part for part in (apart, together))
        return Population(
            means=apart + together,
            root=root,
            shares=known.shares,
            features=features,
            stretch=stretch,
        )


def draw_labels(n: int, shares: FloatArray, rng: Generator) -> IntArray:
    """Draw label numbers with probabilities `shares`."""
    found = np.searchsorted(np.cumsum(shares)[:-1], rng.random(n), side="right")
    return found.astype(np.int64)


def _factors(size: int, rng: Generator, *, most: float) -> FloatArray:
    """A root of a correlation matrix with two common factors and independent parts."""
    loading = rng.normal(size=(size, 2)) * rng.uniform(0, most)
    covariance = np.eye(size) + loading @ loading.T
    scale = np.sqrt(np.diag(covariance))
    return np.linalg.cholesky(covariance / np.outer(scale, scale))


def _wider(classes: int, size: int, rng: Generator) -> FloatArray:
    """Log factors on the spread of classes: one part for all features and one for each."""
    return _differences(classes, 1, rng) + _differences(classes, size, rng)


def _sometimes(rng: Generator) -> float:
    """A factor on the difference of means if spreads differ; it is often 0."""
    return max(0.0, float(rng.uniform(-1, 1)))


def _differences(classes: int, size: int, rng: Generator) -> FloatArray:
    """Class centers, with mean 0."""
    if classes == 2:
        half = rng.standard_normal(size) / 2
        return np.stack([-half, half])
    means = rng.standard_normal((classes, size))
    return np.asarray(means - means.mean(axis=0))


FAMILIES: dict[str, Curves | Tables] = {
    "smooth": Curves(decay=(0.7, 1.3)),
    "rough": Curves(decay=(0.2, 0.6), tilt=(0.5, 1.5)),
    "spectra": Curves(decay=(0.4, 0.7), width=(0.07, 0.12)),
    "table": Tables(),
}
