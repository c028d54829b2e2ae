"""`PrivateFPCA`: principal components of curves of a curator, as a transformer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.functions import trapezoid
from dpfda.central.release import Release
from dpfda.central.release_report import NO_COMPONENT
from dpfda.curves.matrices import Triangle
from dpfda.errors import DoubtfulResult, InvalidData, warn
from dpfda.estimators.central_base import HeldRecords
from dpfda.estimators.curve_reader import array_of
from dpfda.estimators.private_covariance import PrivateCovariance
from dpfda.estimators.scikit import TransformerMixin
from dpfda.report import Contents, Picture, Table
from dpfda.report.panels import axes_or_new, headed, legend_below

_ROWS = 10  # rows of the table of a curve
_DRAWS = 200  # number of noise simulations to estimate how much noise rotates components
_LEVEL = 0.99  # quantile of the largest eigenvalue of noise alone, which clear components exceed
_ALIKE = 0.9  # smallest mean |cosine| of a clear component: noise rotates it by at most about 26°


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateFPCA(TransformerMixin, PrivateCovariance):
    """Scores of curves on privately released principal components.

    `PrivateCovariance` releases the covariance surface. The eigenfunctions, the number of them
    that stand out of the known noise, and the mean are computed from that release.

    Privacy:
        (ε, δ)-DP for replacing one curve; this covers the components, their number and the mean.
        *Scores are not private*: the scores of a curve describe this curve and need the same
        protection. In a pipeline a private estimator may follow; the two budgets add up.

    Args:
        epsilon, delta, value_range, domain_range, bound, center, unit, ledger, random_state: as
            for `PrivateCovariance`.
        n_components: number of components; by default the number of clear ones, at least one.

    Attributes:
        components_: released eigenfunctions on the grid, (n_components, T).
        explained_variance_: variance along each component.
        mean_: the released coarse mean curve.
        n_components_: number of components.
        n_clear_: number of clear components: their variance is larger than that of noise alone, and
            simulated noise hardly changes their direction.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> t = np.linspace(0, 1, 40)
        >>> two = np.stack([np.ones(40), np.cos(np.pi * t)])
        >>> curves = rng.normal(size=(3000, 2)) @ two + 2 * t
        >>> found = PrivateFPCA(epsilon=1.0, value_range=(-4, 6), random_state=0).fit(curves)
        >>> found.n_components_, found.transform(curves[:5]).shape
        (2, (5, 2))
    """

    n_components: int | None = None

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        super()._keep(asked, read, found)
        triangle = Triangle(asked.axes)
        generator = np.random.default_rng(0)
        noise = triangle.matrix(found.noise[0].draw(_DRAWS, generator))
        # The noise of the subtracted mean adds a component of its own.
        away = np.array(found.parameters["mean_noise"]) * generator.normal(size=noise.shape[:2])
        noise += away[:, :, None] * away[:, None, :]
        self.noise_level_ = float(np.quantile(np.linalg.eigvalsh(noise)[:, -1], _LEVEL))
        alike = agreement(triangle.matrix(found.coefficients), triangle.matrix(found.noisy) - noise)
        shown = (alike >= _ALIKE) & (self.explained_variance_ > self.noise_level_)
        self.n_clear_ = int(np.argmin(np.append(shown, False)))
        wanted = max(1, self.n_clear_)
        if self.n_clear_ == 0 and not self.release_.verdict.doubted:
            warn(NO_COMPONENT, DoubtfulResult)
            warnings = (*self.release_.warnings, NO_COMPONENT)  # makes its verdict "noise"
            self.release_ = replace(self.release_, warnings=warnings)
        if self.n_components is not None:
            most = len(self.explained_variance_)
            wanted = _validate.whole("n_components", self.n_components, most=most)
        self.n_components_ = wanted
        self._total = float(self.explained_variance_.sum())
        self.explained_variance_ = self.explained_variance_[:wanted]
        self.components_ = self.components_[:wanted]
        self._weights = trapezoid(read.grid)
        return self

    def transform(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Scores ∫ (x - mean) φ_k of curves, (n, n_components), which are as private as curves."""
        check_is_fitted(self, "components_")
        curves = array_of(self, X, reset=False, least=1)
        read = self._curves.read_curves(curves, grid_points, least=1)
        rows = read.rows[0] + read.center
        if rows.shape[1] != self.components_.shape[1]:
            rule = f"curves at {self.components_.shape[1]} points, as in fit"
            raise InvalidData("X", rule, f"{rows.shape[1]} points")
        return np.asarray(((rows - self.mean_) * self._weights) @ self.components_.T)

    def inverse_transform(self, scores: Any) -> FloatArray:
        """The curves with these scores, on the grid of the fit."""
        check_is_fitted(self, "components_")
        return np.asarray(np.asarray(scores) @ self.components_ + self.mean_)

    def _contents(self) -> Contents:
        own = self.release_._contents()
        caption = "The released components, each as long as its deviation."
        return replace(
            own,
            verdict=(self.in_words(),),
            tables=(self.table(), *own.tables),
            pictures=(Picture.of(self.plot, caption), *own.pictures),
        )

    def table(self) -> Table:
        """Mean and components at some points."""
        t = self.release_.basis.grid[0]
        places = np.unique(np.linspace(0, len(t) - 1, _ROWS).round().astype(np.int64))
        found = np.column_stack([t, self.mean_, self.components_.T])[places]
        rows = tuple(tuple(f"{number:.4g}" for number in row) for row in found)
        headings = ("t", "mean", *map(str, self.get_feature_names_out()))
        title = "mean and components (ten points of the domain)"
        return Table(headings=headings, rows=rows, title=title)

    def in_words(self) -> str:
        """Sentences on the number of components, their variance and the privacy of scores."""
        scores = "Scores of private curves are as private as the curves."
        if self.release_.verdict.doubted or self.n_clear_ == 0:
            kept = f"{self.n_components_} component(s) were kept, which may be noise alone"
            return f"No component stands out of the noise: {kept}. {scores}"
        shares = 100 * self.explained_variance_ / max(self._total, 1e-300)
        each = ", ".join(f"{share:.0f} %" for share in shares)
        kept = "stand out of the noise"
        if self.n_components is not None:
            clear = min(self.n_clear_, self.n_components_)
            kept = f"were asked for, of which {clear} stand out of the noise"
        return (
            f"{self.n_components_} component(s) {kept}, with {each} of the released variance. "
            f"{scores}"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the components, scaled by their standard deviations, and return the axes."""
        ax = headed(axes_or_new(ax), str(self.guarantee_))
        t = self.release_.basis.grid[0]
        for name, values, variance in zip(
            self.get_feature_names_out(), self.components_, self.explained_variance_, strict=True
        ):
            share = 100 * variance / max(self._total, 1e-300)
            ax.plot(t, np.sqrt(variance) * values, label=f"{name}: {share:.0f} % of variance")
        ax.axhline(0.0, color="0.5", linewidth=0.8)
        ax.set_xlabel("t")
        ax.set_ylabel("one standard deviation along it")
        legend_below(ax)
        return ax

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names component 1, component 2, ..."""
        return np.array([f"component {k + 1}" for k in range(self.n_components_)], dtype=object)


def agreement(released: FloatArray, plausible: FloatArray) -> FloatArray:
    """Mean |cosine| between each released component and those of plausible covariances, (J,).

    Args:
        released: the released covariance of coefficients, (J, J).
        plausible: noisy covariances minus simulated noise, (draws, J, J).
    """
    own, others = (np.linalg.eigh(one)[1][..., ::-1] for one in (released, plausible))
    return np.asarray(np.abs(np.einsum("jk,djk->dk", own, others)).mean(axis=0))
