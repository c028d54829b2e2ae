"""`PrivateGroupComparison`: do groups of curves differ, and where?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpfda.central.moments import inference, moments_report
from dpfda.curves.band import Band
from dpfda.estimators.private_moments import Emphasis, PrivateMoments
from dpfda.protocol.plan import Label


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateGroupComparison(PrivateMoments):
    """Compare the mean curves of groups: a p-value, and differences with bands.

    Privacy:
        That of `PrivateMoments`: (ε, δ)-DP for replacing one person, curve and group.

    Args:
        epsilon, delta, value_range, domain_range, bound, center: as for `PrivateMoments`.
        groups: public names of the groups, two at least; a simulation takes those that occur.
        separate, emphasis: as for `PrivateMoments`.
        unit, ledger, random_state: as for `PrivateMoments`.

    Attributes:
        pvalue_: of the hypothesis that all groups have one mean curve. Groups too small to tell
            anything of them are left out, with a warning.
        sizes_: released sizes.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> t, group = np.linspace(0, 24, 49), rng.integers(2, size=4000)
        >>> evening = 0.2 * np.exp(-((t - 18) ** 2) / 8)
        >>> load = rng.normal(1.0, 0.3, size=(4000, 1)) + np.outer(group, evening)
        >>> found = PrivateGroupComparison(
        ...     epsilon=1.0, value_range=(0, 3), groups=(0, 1), random_state=0
        ... ).fit(load, group, grid_points=t)
        >>> print(found.in_words())
        The groups differ (p = 0.0005). 1 minus 0: above 0 from t = 14 to 21.5; largest 0.2 at \
t = 18.
    """

    emphasis: Emphasis = "differences"

    @property
    def _grouped(self) -> bool:
        return True

    @property
    def pvalue_(self) -> float:
        """p-value of the hypothesis of one mean curve for all groups, from the release."""
        return inference.pvalue(self.moments_)

    def difference(
        self, one: Label, other: Label, level: float = 0.95, *, simultaneous: bool = True
    ) -> Band:
        """Mean curve of group `one` minus that of group `other`, with a band."""
        return inference.difference(self.moments_, one, other, level, simultaneous=simultaneous)

    def in_words(self, level: float = 0.95) -> str:
        """The result in a sentence or two, also if no difference was found."""
        return moments_report.differences_in_words(self.moments_, level)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw every difference with its band; returns the axes."""
        return moments_report.plot_differences(self.moments_, ax, level=level)
