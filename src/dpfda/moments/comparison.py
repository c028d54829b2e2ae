"""`PrivateGroupComparison`: do groups of curves differ, and where?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.estimator import HeldRecords
from dpfda.moments import anova, bands
from dpfda.moments.bands import Band
from dpfda.moments.estimator import PrivateMoments
from dpfda.protocol.plan import Label

_SURE = 0.05  # p-value below which groups are said to differ


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateGroupComparison(PrivateMoments):
    """Compare the mean curves of groups: a p-value, and differences with bands.

    Privacy:
        That of `PrivateMoments`: (ε, δ)-DP for replacing one person, curve and group.

    Args:
        epsilon, delta, value_range, domain_range, bound, center: as for `PrivateMoments`.
        groups: public names of the groups, two at least; a simulation takes those that occur.
        unit, ledger, random_state: as for `PrivateMoments`.

    Attributes:
        pvalue_: of the hypothesis that all groups have one mean curve.
        sizes_: released sizes.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> t, group = np.linspace(0, 24, 49), rng.integers(2, size=4000)
        >>> evening = 0.2 * np.exp(-((t - 18) ** 2) / 8)
        >>> load = rng.normal(1.0, 0.3, size=(4000, 1)) + np.outer(group, evening)
        >>> found = PrivateGroupComparison(
        ...     epsilon=1.0, value_range=(0, 3), groups=(0, 1), random_state=0
        ... ).fit(load, group, grid_points=t)
        >>> print(found.in_words())
        The groups differ (p = 0.0005). 1 minus 0: above 0 from t = 14 to 21; largest 0.2 at \
t = 18.
    """

    widened: ClassVar[float] = 1.0  # clipping is the same for all groups under the hypothesis

    @property
    def _grouped(self) -> bool:
        return True

    def _keep(self, asked: Any, read: HeldRecords, found: Any) -> Self:
        super()._keep(asked, read, found)
        self.pvalue_: float = anova.pvalue(self.moments_)
        return self

    def difference(
        self, one: Label, other: Label, level: float = 0.95, *, simultaneous: bool = True
    ) -> Band:
        """Mean curve of group `one` minus that of group `other`, with a band."""
        return bands.difference(self.moments_, one, other, level, simultaneous=simultaneous)

    def in_words(self, level: float = 0.95) -> str:
        """What was found, in a sentence or two; also when it is nothing."""
        if self.pvalue_ > _SURE:
            return (
                f"No difference between the groups was found (p = {self.pvalue_:.2g}): they may be "
                "alike, or too few people or too small an ε hide it."
            )
        names, t = self.moments_.groups, self.moments_.grid_points
        told = [f"The groups differ (p = {self.pvalue_:.2g})."]
        for one, other in combinations(reversed(names), 2):
            found = self.difference(one, other, level)
            places = "; ".join(_where(t, found)) or "nowhere beyond its band"
            told.append(f"{one} minus {other}: {places}.")
        return " ".join(told)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw every difference with its band; returns the axes."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        t = self.moments_.grid_points
        ax.axhline(0.0, color="0.5", linewidth=0.8)
        for one, other in combinations(reversed(self.moments_.groups), 2):
            found = self.difference(one, other, level)
            (line,) = ax.plot(t, found.middle, label=f"{one} minus {other}")
            ax.fill_between(
                t, found.low, found.high, color=line.get_color(), alpha=0.15, linewidth=0
            )
        ax.set_xlabel("t")
        ax.set_ylabel("difference of means")
        ax.legend(
            title=f"{100 * level:g} % bands, whole curve: noise and sampling", fontsize="small"
        )
        ax.set_title(f"p = {self.pvalue_:.2g}; {self.guarantee_}", fontsize="small")
        return ax


def _where(t: FloatArray, found: Band) -> list[str]:
    """The stretches of t where a band excludes 0, and the largest effect there."""
    told = []
    for word, outside in (("above", found.low > 0), ("below", found.high < 0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], outside.astype(np.int64), [0]])))
        told += [
            f"{word} 0 from t = {t[start]:g} to {t[stop - 1]:g}"
            for start, stop in edges.reshape(-1, 2)
        ]
    if told:
        most = int(np.argmax(np.where((found.low > 0) | (found.high < 0), abs(found.middle), 0.0)))
        told.append(f"largest {found.middle[most]:.2g} at t = {t[most]:g}")
    return told
