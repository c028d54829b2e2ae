"""`PrivateGroupComparison`: a test and bands for differences between groups of curves."""

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
        As for `PrivateMoments`: (ε, δ)-DP for replacing one person, including curve and group.

    Args:
        epsilon, delta, value_range, domain_range, bound, center: as for `PrivateMoments`.
        groups: public names of at least two groups; the default of a simulation is those in the
            data.
        separate, emphasis: as for `PrivateMoments`.
        unit, ledger, random_state: as for `PrivateMoments`.

    Attributes:
        pvalue_: p-value of the hypothesis that all groups have the same mean curve. Groups that are
            too small are excluded, with a warning.
        sizes_: released sizes of the groups.

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
        """p-value of the hypothesis that all groups have the same mean curve, from the release."""
        return inference.pvalue(self.moments_)

    def difference(
        self, one: Label, other: Label, level: float = 0.95, *, simultaneous: bool = True
    ) -> Band:
        """Mean curve of group `one` minus that of group `other`, with a band."""
        return inference.difference(self.moments_, one, other, level, simultaneous=simultaneous)

    def in_words(self, level: float = 0.95) -> str:
        """The result in a few sentences."""
        return moments_report.differences_in_words(self.moments_, level)

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw every difference with its band, and return the axes."""
        return moments_report.plot_differences(self.moments_, ax, level=level)
