"""`PrivateMoments`: means, sizes and covariances of groups of curves of a curator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.functions import norm_bound, spline_basis
from dpfda.central.moments import inference
from dpfda.central.moments.curve_moments import CurveMoments, SyntheticCurves
from dpfda.central.moments.inference import about_small
from dpfda.central.moments.moments_release import (
    FOR_CLASSES,
    FOR_MOMENTS,
    FOR_TESTS,
    MomentsRelease,
    too_few,
)
from dpfda.curves.band import Band, Of
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.curve_reader import CurveReader, bound_in_norm
from dpfda.protocol.person import label_numbers, one_by_one
from dpfda.protocol.plan import Label
from dpfda.protocol.query import Records

Emphasis = Literal["means", "differences", "covariances"]
_CLIPPING = {"means": FOR_MOMENTS, "differences": FOR_TESTS, "covariances": FOR_CLASSES}


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateMoments(CentralEstimator):
    """Release means, sizes and covariances of groups of curves, with the sensitivity of one mean.

    Privacy:
        (ε, δ)-DP for replacing one person, including curve and group; pure ε with ``delta=0``.
        Curves are clipped to the ball whose radius, in root mean square, is the half-width of
        `value_range`. n, the grid, the range and the *names* of groups are public; the group of a
        person is private. Bands, tests and synthetic curves are computed from the release.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        value_range: public range (low, high) of X(t), or None to find it privately, as for
            `PrivateMean`.
        groups: public names of the groups, if `y` contains the group of each person.
        separate: whether each group has its own covariance, instead of one for all groups.
        emphasis: the most accurate part: ``means`` with their bands; ``differences`` of the group
            means; or ``covariances`` of 16 smooth functions, for synthetic curves and
            classification.
        domain_range: public range of t, if the data do not contain it.
        bound, center: for experts, an alternative to a range: as for `PrivateMean`.
        unit: the protected unit to which one row belongs.
        ledger: budget of the data over all releases; every query spends before noise is drawn.
        random_state: None for exact noise, or a seed for simulations.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> t, group = np.linspace(0, 1, 40), rng.integers(2, size=3000)
        >>> level = rng.normal(size=(3000, 1)) + group[:, None]
        >>> found = PrivateMoments(
        ...     epsilon=1.0, value_range=(-6, 6), groups=(0, 1), random_state=0
        ... ).fit(level + np.sin(t), group)
        >>> found.means_.shape, bool(np.abs(found.sizes_ - np.bincount(group)).max() < 100)
        ((2, 40), True)
    """

    _fills_gaps = True

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    bound: float | None = None
    center: Any = None
    groups: Sequence[Label] | None = None
    separate: bool = True
    emphasis: Emphasis = "means"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._grouped
        return tags

    @property
    def _grouped(self) -> bool:
        """Whether people have groups."""
        return self.groups is not None

    @property
    def _curves(self) -> CurveReader:
        return CurveReader.of(self, finds_range=True)

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        """Curves, and their group numbers."""
        read = self._curves.read(self, X, grid_points, reset=reset, least=least)
        if not self._grouped:
            return read
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None")
        labels = one_by_one(y)
        if labels.shape != (len(read.rows[0]),):
            raise InvalidData("y", "the group of each curve", f"shape {labels.shape}")
        if reset:
            self.groups_: tuple[Label, ...] = self._names(labels)
        if self._is_simulation and not np.all(np.isin(labels, self.groups_)):
            raise InvalidData("y", "among the given groups")
        return read._replace(rows=(*read.rows, label_numbers(labels, self.groups_)))

    def _names_of_y(self) -> Sequence[Label] | None:
        if self._grouped and self.groups is None:
            raise InvalidParameter("groups", "given, because no process sees all rows", None)
        return self.groups

    def _names(self, labels: Any) -> tuple[Label, ...]:
        """The groups in their given order; a simulation may read them from the data."""
        if self.groups is None and not self._is_simulation:
            rule = "given where random_state is None: names read off private labels are not private"
            raise InvalidParameter("groups", rule, None)
        names = tuple(np.unique(labels).tolist() if self.groups is None else self.groups)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InvalidParameter("groups", "at least two names, all different", names)
        return names

    def _conversation(self, read: HeldRecords, n: int) -> MomentsRelease:
        names = self.groups_ if self._grouped else ()
        emphasis = _validate.one_of("emphasis", self.emphasis, get_args(Emphasis))
        return MomentsRelease(
            **self._budget,
            n=n,
            bound=bound_in_norm(self, read.bounds[0], read.grid, n=n),
            basis=spline_basis(read.grid, size=read.grid[0].size),
            groups=names,
            separate=self.separate and self._grouped,
            emphasis=emphasis,
            clipping=_CLIPPING[emphasis],
            either=True,
        )

    def _records(self, asked: MomentsRelease, read: HeldRecords) -> Records:
        return (np.column_stack([asked.layout.rows(read.rows[0]), *read.rows[1:]]),)

    def _keep(self, asked: Any, read: HeldRecords, found: Any) -> Self:
        unit = norm_bound(1.0, read.grid)  # the norm of bounds
        public = {"radius": found.query.radius, **found.parameters}
        few = () if asked.emphasis == "means" else too_few(asked)
        public_facts = {
            "parameters": {name: value / unit for name, value in public.items()},
            "center": read.center,
            "warnings": (*found.warnings, *few, *about_small(found)),
        }
        self.moments_: CurveMoments = self._stamped(asked, read, replace(found, **public_facts))
        return self

    @property
    def means_(self) -> FloatArray:
        """Released mean curves on the grid, one row per group."""
        return self.moments_.means

    @property
    def sizes_(self) -> FloatArray:
        """Released sizes of the groups; for one group, the number of all rows."""
        return self.moments_.sizes

    def interval(
        self,
        level: float = 0.95,
        *,
        group: Label | None = None,
        of: Of = "population",
        simultaneous: bool = True,
    ) -> Band:
        """The mean curve of a group, with a band.

        Args:
            level: coverage probability of the band.
            group: the group; not needed if there is only one.
            of: ``population``: the band covers the mean of the population, with privacy noise and
                sampling error; ``sample``: the mean of the people in the data, with noise only.
            simultaneous: whether the band covers the whole curve at once or each point separately.
        """
        return inference.interval(
            self.moments_, level, group=group, of=of, simultaneous=simultaneous
        )

    def sample(
        self, size: int, *, group: Label | None = None, seed: int | None = None
    ) -> SyntheticCurves:
        """Draw synthetic curves; any number of them is post-processing of the release.

        Args:
            size: number of curves.
            group: a single group; by default all groups, in proportion to their sizes.
            seed: seed of the draws, which does not affect privacy.
        """
        return self.moments_.sample(size, group=group, seed=seed)
