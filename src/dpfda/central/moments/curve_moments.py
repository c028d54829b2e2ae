"""The result of the joint release: means, sizes and covariances of groups, and synthetic curves.

Everything here is post-processing of the noisy answer and the public query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import plain
from dpfda._validate import AnyArray, FloatArray
from dpfda.central.functions import FunctionBasis, as_grid, norm_bound
from dpfda.central.moments.joint_answer import BELIEVED, GroupMeans, JointAnswer, posterior_means
from dpfda.central.moments.moment_query import JointMoments
from dpfda.central.release import DOMAIN
from dpfda.central.release_report import public_span
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.plan import Label
from dpfda.report import Contents, Verdict
from dpfda.report.documents import Body, Documented
from dpfda.report.panels import axes_or_new, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame
    from skfda import FDataGrid

_BELIEVED = (
    4.0  # eigenvalue floor for synthetic curves, in noise deviations: less misled classifiers
)
_DRAWN = 40  # number of curves in a picture


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticCurves:
    """Synthetic curves that may be shared freely.

    Attributes:
        curves: values on the grid, (n, T).
        groups: the group of each curve; empty if there is only one group.
        grid_points: the grid of the curves.
    """

    curves: FloatArray
    groups: AnyArray
    grid_points: FloatArray

    def __len__(self) -> int:
        return len(self.curves)

    def __repr__(self) -> str:
        return f"SyntheticCurves({len(self)} curves at {len(self.grid_points)} points)"

    def to_frame(self) -> DataFrame:
        """A pandas data frame: one row per curve, one column per point, and first any ``group``."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "files") from None
        frame = pd.DataFrame(self.curves, columns=[f"{t:.10g}" for t in self.grid_points])
        if len(self.groups):
            frame.insert(0, "group", self.groups)
        return frame

    def to_skfda(self) -> FDataGrid:
        """A scikit-fda ``FDataGrid``, without groups."""
        try:
            from skfda import FDataGrid
        except ImportError:
            raise MissingExtra("scikit-fda", "fda") from None
        return FDataGrid(self.curves, grid_points=[self.grid_points])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first curves, with one color for each group, and return the axes."""
        ax = axes_or_new(ax)
        names = list(dict.fromkeys(self.groups.tolist()))
        for number, row in enumerate(self.curves[:_DRAWN]):
            color = names.index(self.groups[number]) if names else 0
            ax.plot(self.grid_points, row, color=f"C{color}", alpha=0.4, linewidth=0.8)
        for number, name in enumerate(names):
            ax.plot([], [], color=f"C{number}", label=str(name))
        if names:
            legend_below(ax)
        ax.set_xlabel("t")
        ax.set_title(f"{min(_DRAWN, len(self))} synthetic curves", fontsize="small")
        return ax


class MomentsBody(Body):
    """The document of `CurveMoments`."""

    query: dict[str, Any]
    noisy: list[float]
    grid_points: list[list[float]]
    functions: list[list[float]]
    groups: tuple[Label, ...]
    center: list[float]
    parameters: dict[str, Any]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CurveMoments(JointAnswer, Documented):
    """Means of groups of curves, group sizes and covariances, from one private release.

    Attributes:
        query: the public query.
        noisy: the noisy answer.
        basis: the functions of the coefficients.
        groups: names of the groups; empty if there is only one group.
        center: public function that is added, on the grid of the basis.
        guarantee: the privacy guarantee.
        parameters: all public parameters.
        warnings: warnings for the reader, computed from released numbers only.
    """

    kind: ClassVar[str] = "moments"
    body: ClassVar[type[Body]] = MomentsBody

    basis: FunctionBasis
    groups: tuple[Label, ...]
    center: FloatArray
    guarantee: Guarantee
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def grid_points(self) -> FloatArray:
        """The grid of the curves."""
        return self.basis.grid[0]

    @property
    def means(self) -> FloatArray:
        """Posterior mean curves of the groups on the grid, (groups, T)."""
        return np.asarray(self.shrunk @ self.basis.functions + self.center)

    @cached_property
    def coefficients(self) -> FloatArray:
        """Noisy means in the basis, (groups, M), without the public center."""
        return np.asarray(self.query.center + self.shift * self.unit)[:, : self.basis.size]

    @property
    def shrunk(self) -> FloatArray:
        """Posterior means in the basis, (groups, M), without the public center."""
        return self.posterior.mean

    @cached_property
    def posterior(self) -> GroupMeans:
        """Posterior of the group means, from the overall mean and the differences of groups."""
        span = public_span(self.parameters)
        reach = self.query.radius if span is None else norm_bound(span / 2, self.basis.grid)
        most = max(self.grid_points.size, self.basis.size)
        return posterior_means(self, reach=reach, size=self.basis.size, most=most)

    @property
    def left_out(self) -> FloatArray:
        """Pointwise standard deviation of the bias of each group from omission and clipping."""
        further = np.sqrt(self.posterior.most) / norm_bound(1.0, self.basis.grid)
        clipped = self.parameters.get("clipped", 0.0) if self.query.emphasis == "means" else 0.0
        return np.asarray(np.hypot(further, clipped))

    def covariance(self, group: Label | None = None, *, floor: float = BELIEVED) -> FloatArray:
        """Covariance (M, M) of the coefficients of a person's curve: see `covariance_in`.

        Args:
            group: the group; not needed if all groups have one covariance.
            floor: smallest eigenvalue, in deviations of the noise.
        """
        table = 0 if self.query.blocks == 1 else self.number_of(group)
        size = self.basis.size
        return self.covariance_in(table, floor=floor)[:size, :size]

    def number_of(self, group: Label | None) -> int:
        """The index of a named group; the name may be omitted if there is one group."""
        if len(self.groups) < 2 and group is None:
            return 0
        if group not in self.groups:
            raise InvalidParameter("group", f"one of {self.groups}", group)
        return self.groups.index(group)

    def sample(
        self, size: int, *, group: Label | None = None, seed: int | None = None
    ) -> SyntheticCurves:
        """Draw synthetic curves.

        The curves are post-processing of the release, so any number of them may be drawn. They are
        normally distributed with the released means and covariances, and show no other features of
        the data.

        Args:
            size: number of curves.
            group: a single group; by default all groups, in proportion to their sizes.
            seed: seed of the draws, which does not affect privacy.
        """
        size = _validate.whole("size", size)
        generator = np.random.default_rng(seed)
        share = self.sizes / self.sizes.sum()
        if group is not None:
            share = np.eye(len(share))[self.number_of(group)]
        numbers = generator.choice(len(share), size, p=share)
        rows = self.shrunk[numbers]
        for number, name in enumerate(self.groups or (None,)):
            members = np.flatnonzero(numbers == number)
            law = NoiseLaw.normal(self.covariance(name, floor=_BELIEVED))
            rows[members] += law.draw(len(members), generator)
        return SyntheticCurves(
            curves=np.asarray(rows @ self.basis.functions + self.center),
            groups=np.array(self.groups)[numbers] if self.groups else np.array([]),
            grid_points=self.grid_points,
        )

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the mean of every group with its band, and return the axes."""
        from dpfda.central.moments.moments_report import plot_means  # imports this module

        return plot_means(self, ax, level=level)

    # -- document ------------------------------------------------------------------------------

    def _deployment(self) -> Deployment:
        known, names = self.parameters, ", ".join(map(str, self.groups))
        whose = "the mean and the covariance"
        if names:
            whose = f"sizes, means and covariances of groups ({names})"
        return Deployment(
            product=f"{whose} of curves",
            mechanism="joint_moments",
            guarantee=self.guarantee,
            records=self.n,
            domain={name: known[name] for name in DOMAIN if name in known},
            computed="Bands hold the mean curves of the population and include privacy noise and "
            "sampling error; bands, tests and synthetic curves are computed from the one release.",
        )

    def _judged(self) -> Verdict:
        from dpfda.central.moments.moments_report import verdict_of  # imports this module

        return verdict_of(self)

    def columns(self) -> dict[str, list[float]]:
        """Grid, and the means of the groups with simultaneous 95 % bands for the population."""
        from dpfda.central.moments.moments_report import columns  # imports this module

        return columns(self)

    def _contents(self) -> Contents:
        from dpfda.central.moments.moments_report import contents  # imports this module

        return contents(self)

    def _fields(self) -> dict[str, Any]:
        return {
            "query": self.query.to_dict(),
            "noisy": self.noisy,
            "grid_points": self.basis.grid,
            "functions": self.basis.functions,
            "groups": self.groups,
            "center": self.center,
            "parameters": {name: plain(value) for name, value in self.parameters.items()},
            "warnings": self.warnings,
        }

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Self:
        query = JointMoments.from_dict(body.pop("query"))
        grid = as_grid(tuple(map(np.array, body.pop("grid_points"))))
        functions, noisy, center = (
            np.array(body.pop(name), dtype=np.float64) for name in ("functions", "noisy", "center")
        )
        points = grid[0].size
        rules = {
            "functions": functions.ndim == 2
            and functions.shape[1] == points
            and query.second <= len(functions) <= len(query.axes),
            "noisy": noisy.shape == (query.size,),
            "center": center.shape == (points,),
            "groups": max(1, len(body["groups"])) == query.groups,
        }
        for name, holds in rules.items():
            if not holds:
                raise InvalidData(name, "of the length that the document's query has")
        basis = FunctionBasis(grid, functions, np.ones(len(functions)))
        return cls(**body, query=query, noisy=noisy, center=center, basis=basis)

    def __repr__(self) -> str:
        names = f", groups {', '.join(map(str, self.groups))}" if self.groups else ""
        return f"CurveMoments({len(self.query.axes)} coefficients{names}, {self.guarantee})"
