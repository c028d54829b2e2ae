"""What a curator is asked for function-on-scalar regression, and what becomes of the answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.conversation import CurveConversation, checked_bound, reaches, too_small
from dpfda.central.effects import (
    CovariateProducts,
    CrossProducts,
    Moments,
    PairRadiusCount,
    believed,
)
from dpfda.central.functions import FunctionBasis, as_grid, spline_basis
from dpfda.central.outside import price_of_a_count
from dpfda.central.release import Release
from dpfda.central.scouting import bound_of_a_count, counted
from dpfda.central.solved import Solved
from dpfda.curves.matrices import floored
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.query import Records

_END = 0.99  # of a range: fewer than one in two hundred are at its other end
_BLUR = 0.02  # noise above which nothing can be told
_UNBOUNDED = (
    "noise hides how these covariates vary apart from each other and from the intercept: {names}. "
    "The bands of their coefficients are as wide as coefficients may be. Leave out covariates that "
    "move together or hardly vary, allow a larger epsilon or ask more people"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionOnScalarRelease(CurveConversation[Release], name="function_on_scalar"):
    """T1 = mean of x xᵀ with a share γ of the budget, T2 = mean of x Yᵀ with the rest; solved.

    First a small part of the budget counts curves beyond their bound: whether it is too small.

    Attributes:
        covariate_bound: of the vectors, as they are asked about.
        covariates: how many numbers in a vector.
        basis: functions that curves are written in.
        gamma: γ.
        intercept: whether there is a constant covariate.
        limit: public bound on the values of curves about their center; None: on norms alone.
        shift, unit_of: a covariate x is asked about as (x - shift)/unit_of; β is told for x.
        names: of the covariates.
        either: whether noise may be pure although a δ is given, where that is smaller: for one
            curator; sites that add up their noise need Gaussian noise.
    """

    summary: ClassVar[str] = "function-on-scalar coefficients"

    covariate_bound: float
    covariates: int
    basis: FunctionBasis
    gamma: float = 0.3
    intercept: bool = True
    limit: float | None = None
    shift: FloatArray | None = None
    unit_of: FloatArray | None = None
    names: tuple[str, ...] = ()
    either: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("covariate_bound", checked_bound(self.covariate_bound))
        _validate.fraction("gamma", self.gamma)

    @property
    def whole(self) -> Cost:
        """The budget: Gaussian, or pure ε where T2 has less noise with it."""
        given = super().whole
        if given.pure or not self.either:
            return given
        left, size = 1 - self.gamma, (self.covariates + self.intercept) * self.basis.size
        # Squared deviations on each number of T2, in units of how far one person moves it.
        pure, gaussian = (size + 1) / (left * self.epsilon) ** 2, 1 / (left * given.mu**2)
        return Cost(epsilon=self.epsilon) if pure < gaussian else given

    def among_sites(self) -> Self:
        """With Gaussian noise where a δ is given."""
        return replace(self, either=False)

    def questions(self) -> Questions[Release]:
        """A count of the curves beyond their bound, and two looks."""
        check = price_of_a_count(self.whole, self.n)
        size = self.basis.size
        within = yield PairRadiusCount(
            cost=check,
            **self.place(np.zeros(size), np.ones(size)),
            radius=bound_of_a_count(self.bound),
            covariates=self.covariates,
        )
        left = self.whole.rest(check)
        first = left.part(self.gamma)
        shared: Any = {
            "unit": self.unit,
            "n": self.n,
            "covariates": self.covariates,
            "coefficients": self.basis.size,
            "covariate_bound": self.covariate_bound,
            "bound": self.bound,
            "intercept": self.intercept,
        }
        products = CovariateProducts(cost=first, **shared)
        pairs = CrossProducts(cost=left.rest(first), **shared)
        one = yield products
        spread = math.sqrt(float(one.noise.variance.max()))
        # C9's floor, with c = 2.
        gram = floored(products.triangle.matrix(one.values), 2 * spread * math.sqrt(products.width))
        two = yield pairs
        shape = pairs.width, self.basis.size
        scale = np.ones(pairs.width)
        scale[: self.covariates] /= self.covariate_bound
        solve = scale[:, None] * np.linalg.inv(gram)
        scaled = solve @ two.values.reshape(shape)
        noise = two.noise.variance.reshape(shape)
        told = self._own_units(pairs.width)
        matrix = products.triangle.matrix(one.values)
        matrix_variance = products.triangle.variance(one.noise.variance)
        if self.intercept:  # the square of the constant, which is public
            matrix[-1, -1], matrix_variance[-1, -1] = 1.0, 0.0
        moments = Moments(
            matrix,
            matrix_variance,
            two.values.reshape(shape),
            noise,
            self.intercept,
        )
        effects = believed(moments, reach=self.bound)
        solved = Solved(
            matrix=matrix,
            vectors=two.values.reshape(shape),
            combinations=told * scale,
            matrix_noise=one.noise,
            vector_noise=two.noise,
            bound=self.bound,
            limit=self.limit,
            steepest=self._steepest(told, told * scale),
            constant=self.intercept,
        )
        release = self.conclude(
            self.basis,
            told @ scaled,
            # To first order, with T1 taken as known; bands come from `solved`, which takes neither.
            NoiseLaw(law="gaussian", scales=np.sqrt((told @ solve) ** 2 @ noise)),
            shrunk=told @ (scale[:, None] * effects.mean),
            sensitivity=pairs.sensitivity,
            warnings=(
                *(counted(within, self.n) or self._crowded(two.values, two.noise.variance)),
                *(self._at_ends(solved.matrix, spread) or self._unbounded(solved)),
            ),
            covariate_bound=self.covariate_bound,
            gamma=self.gamma,
            components=self.basis.size,
            doubt=effects.doubt,
        )
        return replace(release, names=self._rows, solved=solved)

    @property
    def _rows(self) -> tuple[str, ...]:
        """Names of the coefficients: of the covariates, and the intercept."""
        numbered = tuple(f"covariate {place + 1}" for place in range(self.covariates))
        return (*(self.names or numbered), *("intercept",) * self.intercept)

    def _unbounded(self, solved: Solved) -> tuple[str, ...]:
        """What is to be said where noise hides how covariates vary."""
        taking = solved.hidden(self._rows)
        return (_UNBOUNDED.format(names=", ".join(taking)),) * bool(taking)

    def _own_units(self, width: int) -> FloatArray:
        """From coefficients of (x - shift)/unit_of to those of x; the constant is the last."""
        told = np.eye(width)
        if self.unit_of is not None and self.shift is not None:
            told[: self.covariates, : self.covariates] /= self.unit_of[:, None]
            if self.intercept:
                told[-1, : self.covariates] = -self.shift / self.unit_of
        return told

    def _steepest(self, told: FloatArray, combinations: FloatArray) -> FloatArray:
        """Largest values of the told functions, over those of lines in the covariates' bounds.

        Of a line in covariates in [-1, 1], Σ|β| is bounded; of one in a ball, the length of β.
        """
        lengths = np.linalg.norm(combinations[:, : self.covariates], axis=1)
        return np.asarray(np.maximum(lengths, np.abs(told).max(axis=1)))

    def _crowded(self, values: FloatArray, variance: FloatArray) -> tuple[str, ...]:
        """What is to be said where the mean of Y, last of T2's rows, is as long as the bound."""
        last = slice(-self.basis.size, None)
        seen = self.intercept and reaches(values[last], variance[last], self.bound)
        return (too_small("their public bound"),) * seen

    def _at_ends(self, products: FloatArray, noise: float) -> tuple[str, ...]:
        """What is to be said where the mean of a covariate, in T1's last row, is an end.

        Lengths tell nothing: two groups coded -1 and 1 all reach their bound, and rightly.
        """
        if not self.intercept or self.unit_of is None or noise * self.covariate_bound > _BLUR:
            return ()
        means = products[-1, : self.covariates] * self.covariate_bound
        ends = ", ".join(self._rows[place] for place in np.flatnonzero(np.abs(means) >= _END))
        return (too_small(f"an end of the range of {ends}", "people"),) * bool(ends)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """One pair with both turned round."""
        x = np.full((n, self.covariates), self.covariate_bound / math.sqrt(self.covariates))
        y = np.full((n, self.basis.size), 0.05 * self.bound / math.sqrt(self.basis.size))
        y[0] *= 20
        there = x.copy(), y.copy()
        there[0][0], there[1][0] = -x[0], -y[0]
        return (x, y), there

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One covariate and one function, with a constant; several without."""
        grid = as_grid(np.linspace(0.0, 1.0, 9))
        return [
            cls(
                epsilon=epsilon,
                delta=delta,
                n=n,
                bound=1.0,
                covariate_bound=2.0,
                covariates=size,
                basis=spline_basis(grid, size=size),
                intercept=size == 1,
                either=True,
            )
            for size in (1, 3)
        ]
