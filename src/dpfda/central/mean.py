"""A mean function under differential privacy: mechanisms, their questions, an estimator."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.central.conversation import CurveConversation, reaches, too_small
from dpfda.central.estimator import CurveEstimator, Reading
from dpfda.central.quadrature import Grid, as_grid, norm_bound
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.face.groups import averages
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import Declared
from dpfda.protocol.query import Records

CHOSEN_BY_DATA = "parameters were chosen by looking at the data: not private"


@dataclass(frozen=True, kw_only=True)
class FunctionMechanism(Registered, Declared, family="function mechanism"):
    """Releases the mean of curves; a new one is one file that fills in what is asked of it.

    It is public and sees no curve: `rows` says what becomes of one curve at a time, `questions`
    what is asked about all of them.
    """

    needs_delta: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = False
    bounds_largest: ClassVar[bool] = False  # its bound is on the largest |X(t)|, not on the norm

    @abstractmethod
    def rows(self, records: FloatArray, grid: Grid) -> FloatArray:
        """Each curve (n, points) as the numbers that are asked about (n, J)."""

    @abstractmethod
    def questions(self, mean: MeanRelease) -> Questions[Release]:
        """What is asked about n such rows, for the budget of `mean`."""

    @abstractmethod
    def neighbors(self, mean: MeanRelease) -> tuple[Records, Records]:
        """Rows of n curves, one of them replaced, that are told apart well."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few instances for checks and audits."""

    @classmethod
    def allows(cls, delta: float) -> bool:
        """Whether a δ, or 0, is neither missing nor in vain."""
        return bool(delta) if cls.needs_delta else cls.takes_delta or not delta

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a release by it rests on, beyond a public n."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanRelease(CurveConversation, name="mean"):
    """The questions behind the mean of n curves on a public grid.

    Attributes:
        bound: public: on √∫X² (`quadrature.norm_bound`), or on the largest |X(t)| for a mechanism
            that says so.
        grid: where curves are known.
        mechanism: which questions are asked.
    """

    summary: ClassVar[str] = "mean"

    grid: Grid
    mechanism: FunctionMechanism

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mechanism.allows(self.delta):
            rule = "above 0" if self.mechanism.needs_delta else "0"
            rule += f" for the {self.mechanism.name} mechanism"
            raise InvalidParameter("delta", rule, self.delta)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """A public n, and what the mechanism adds."""
        return (*super().assumptions, *self.mechanism.assumptions)

    def doubts(self, release: Release) -> tuple[str, ...]:
        """A mean as long as the bound."""
        weights = release.basis.weights
        limit = self.bound * math.sqrt(weights.sum() if self.mechanism.bounds_largest else 1.0)
        values = release.noisy @ release.basis.functions * np.sqrt(weights)
        variance = release.variance_along(release.basis.functions) * weights
        return (too_small("their public bound"),) if reaches(values, variance, limit) else ()

    def questions(self) -> Questions[Release]:
        """The mechanism's."""
        return self.mechanism.questions(self)

    def records(self, curves: FloatArray) -> Records:
        """Curves on the grid, one at a time, as the questions need them."""
        return (self.mechanism.rows(curves, self.grid),)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """The mechanism's."""
        return self.mechanism.neighbors(self)

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """Every mechanism, on nine points."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(epsilon=epsilon, delta=delta, n=n, bound=1.0, grid=grid, mechanism=mechanism)
            for member in FunctionMechanism.members().values()
            for mechanism in member.examples()
            if member.allows(delta)
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateMean(CurveEstimator):
    """Release the mean of curves (or surfaces) held by a trusted curator.

    Privacy:
        (ε, δ)-DP for replacing one person's curves (pure ε with ``delta=0``). Values are clipped to
        `value_range`; n, the grid and the range are public. With ``random_state=None`` noise is
        exact and from the operating system; anything else seeds a simulation, and the guarantee
        says so.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        value_range: public range (low, high) of X(t).
        domain_range: public range of t, where the data do not bring it.
        bound: instead of a range, for experts: public bound τ on the norm √(average of X(t)²) of a
            curve minus the center, for ``mechanism="bernstein"`` on its largest absolute value.
            Curves are pulled into it.
        center: with `bound`: public curve (or number) to subtract first.
        mechanism: ``"adaptive"`` (default), ``"allocation"``, ``"iclp_qr"``, ``"iclp_ar"``,
            ``"frl"``, ``"bernstein"``, ``"gaussian_process"``, or an instance with parameters.
        unit: whose data one row (or group) is.
        ledger: budget of the data over all releases: spent look by look, before noise is drawn.
        random_state: None, or a seed for simulations.

    Several curves of one person (`groups` in `fit`) are averaged first.

    Example:
        >>> curves = np.linspace(0, 1, 40) + np.random.default_rng(0).normal(0, 0.1, (500, 1))
        >>> mean = PrivateMean(epsilon=1.0, value_range=(-0.5, 1.5), random_state=0).fit(curves)
        >>> bool(np.abs(mean.mean_ - np.linspace(0, 1, 40)).max() < 0.1)
        True
        >>> print(mean.guarantee_)
        ε = 1, central, unit = person, sampler = simulation (seeded), \
assuming the number of records is public
    """

    surfaces: ClassVar[bool] = True

    mechanism: str | FunctionMechanism = "adaptive"

    def _one_each(self, rows: Records, groups: Any) -> Records:
        return (averages(rows[0], groups),)

    def _conversation(self, read: Reading, n: int) -> MeanRelease:
        chosen = self.mechanism
        mechanism = FunctionMechanism.named(chosen)() if isinstance(chosen, str) else chosen
        bound = read.bound if mechanism.bounds_largest else norm_bound(read.bound, read.grid)
        return MeanRelease(**self._budget, n=n, bound=bound, grid=read.grid, mechanism=mechanism)

    def _records(self, asked: MeanRelease, read: Reading) -> Records:
        return asked.records(read.rows[0])

    def _keep(self, asked: Any, read: Reading, found: Release) -> Self:
        return super()._keep(asked, read, replace(found, center=read.center))

    @property
    def mean_(self) -> FloatArray:
        """The released mean on the grid of the data."""
        return self.release_.values()
