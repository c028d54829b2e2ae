"""Function-on-scalar regression: queries of moments, and the least-squares solution from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.ball_search import bound_of_a_count, bound_warnings
from dpfda.central.coefficient_functions import NoisySystem, Solved, posterior_effects
from dpfda.central.conversation import (
    CurveConversation,
    checked_bound,
    price_of_a_count,
    reaches,
    too_small,
)
from dpfda.central.functions import FunctionBasis, as_grid, spline_basis
from dpfda.central.queries import MOST_RECORDS, Residuals, coefficients, radius_count, vector_mean
from dpfda.central.records import clip_rows
from dpfda.central.release import Release
from dpfda.curves.matrices import Triangle, floored
from dpfda.mechanisms.additive import Additive
from dpfda.mechanisms.ellipsoid_laplace import l2_noise
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.cost import Cost
from dpfda.protocol.conversation import Questions
from dpfda.protocol.fields import flag, number, part, vector, whole
from dpfda.protocol.query import AdditiveQuery, Records, Sums


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateProducts(AdditiveQuery, name="covariate_products"):
    """T1: mean of x xᵀ (the triangle j ≤ k as a vector) with x clipped to a public ball.

    Privacy:
        ‖xxᵀ - x'x'ᵀ‖_F ≤ √2 r² for ‖x‖ ≤ r. With a constant, r² = 2; x' = -x attains the bound.

    Attributes:
        covariates: length of the vector x.
        coefficients: number of coefficients of a curve.
        covariate_bound: B; the query uses x/B, clipped to the unit ball.
        bound: bound τ on the norm of the coefficients.
        intercept: whether a constant 1 is appended to x/B.
    """

    block_rows: ClassVar[int] = 1 << 12  # all products of a block's records are in memory at once

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    covariates: int = whole(most=1 << 12)
    coefficients: int = whole(most=1 << 12)
    covariate_bound: float = number(least=1e-40, most=1e40)
    bound: float = number(least=1e-40, most=1e40)
    intercept: bool = flag(default=True)

    @property
    def width(self) -> int:
        """Length of x, including the constant."""
        return self.covariates + self.intercept

    @cached_property
    def triangle(self) -> Triangle:
        """The order of the entries."""
        return Triangle(np.ones(self.width))

    @property
    def apart(self) -> float:
        """√2 r², the largest distance between two products."""
        return math.sqrt(2) * longest(self.intercept) ** 2

    @cached_property
    def mechanism(self) -> Additive:
        """Noise of equal scale on each entry; the sensitivity is this distance over n."""
        return l2_noise(self.cost, sensitivity=self.apart / self.n, axes=self.triangle.axes)

    @property
    def summed(self) -> Sums:
        """Sums of the products x xᵀ."""

        def products(records: Records) -> FloatArray:
            return self.triangle.squares(covariates_of(self, records[0]))

        columns = self.covariates, self.coefficients
        return vector_mean(columns, products, n=self.n, reach=self.apart, axes=self.triangle.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Queries with and without a constant, with pure and Gaussian noise."""
        return [cls(**fields) for fields in _pair_examples()]


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossProducts(AdditiveQuery, name="cross_products"):
    """T2: mean of x Yᵀ, row by row; x and the coefficients Y are clipped to public balls.

    Privacy:
        ‖x Yᵀ‖_F ≤ rτ, so two products differ by at most 2rτ; Y' = -Y attains the bound.

    Attributes:
        covariates: length of the vector x.
        coefficients: number of coefficients of a curve.
        covariate_bound: B; the query uses x/B, clipped to the unit ball.
        bound: bound τ on the norm of the coefficients.
        intercept: whether a constant 1 is appended to x/B.
    """

    block_rows: ClassVar[int] = 1 << 12  # all products of a block's records are in memory at once

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    covariates: int = whole(most=1 << 12)
    coefficients: int = whole(most=1 << 12)
    covariate_bound: float = number(least=1e-40, most=1e40)
    bound: float = number(least=1e-40, most=1e40)
    intercept: bool = flag(default=True)

    @property
    def width(self) -> int:
        """Length of x, including the constant."""
        return self.covariates + self.intercept

    @property
    def reach(self) -> float:
        """rτ, the largest norm of a product."""
        return longest(self.intercept) * self.bound

    @cached_property
    def mechanism(self) -> Additive:
        """Noise of equal scale on each entry; the sensitivity is 2rτ/n."""
        axes = np.ones(self.width * self.coefficients)
        return l2_noise(self.cost, sensitivity=2 * self.reach / self.n, axes=axes)

    @property
    def summed(self) -> Sums:
        """Sums of the products x Yᵀ."""

        def products(records: Records) -> FloatArray:
            x = covariates_of(self, records[0])
            y = clip_rows(records[1][:, : self.coefficients], self.bound)
            return np.asarray((x[:, :, None] * y[:, None, :]).reshape(len(x), -1))

        axes = np.ones(self.width * self.coefficients)
        columns = self.covariates, self.coefficients
        return vector_mean(columns, products, n=self.n, reach=self.reach, axes=axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Queries with and without a constant, with pure and Gaussian noise."""
        return [cls(**fields) for fields in _pair_examples()]


def longest(intercept: bool) -> float:
    """r, the largest norm of x, including the constant."""
    return math.sqrt(2) if intercept else 1.0


def covariates_of(query: CovariateProducts | CrossProducts, x: FloatArray) -> FloatArray:
    """x/B, clipped to the unit ball, followed by the constant (if there is one)."""
    reach = query.covariate_bound
    inside = clip_rows(x[:, : query.covariates], reach) / reach
    return np.hstack([inside, np.ones((len(x), int(query.intercept)))])


def _pair_examples() -> list[dict[str, Any]]:
    public = {"n": 5, "covariates": 2, "coefficients": 2, "covariate_bound": 1.5, "bound": 2.0}
    costs = Cost(epsilon=1.0).part(0.3), Cost(epsilon=1.0, delta=0.05).part(0.7)
    return [
        {**public, "cost": cost, "intercept": constant}
        for cost in costs
        for constant in (True, False)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRadiusCount(AdditiveQuery, name="pair_radius_count"):
    """The number of curves within a public radius; covariates are ignored.

    Privacy:
        Replacing a record changes the count by at most 1.

    Attributes:
        covariates: length of the covariate vector, which is not used.
    """

    cost: Cost = part(lambda: Cost)
    n: int = whole(least=2, most=MOST_RECORDS)
    center: FloatArray = vector("coefficients")
    axes: FloatArray = vector("coefficients", least=1e-12, most=1.0)
    radius: float = number(least=1e-100)
    covariates: int = whole(most=1 << 12)

    @cached_property
    def mechanism(self) -> Additive:
        """Noise on one count."""
        return l2_noise(self.cost, sensitivity=1.0, axes=np.ones(1))

    @property
    def summed(self) -> Sums:
        """The number of curves within the radius."""
        own = coefficients(self.center)
        columns = (self.covariates, *own.columns)
        residuals = Residuals(columns, lambda records: own.of(records[1:]))
        return radius_count(residuals, radius=self.radius, axes=self.axes)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two covariates, pure noise."""
        cost, center = Cost(epsilon=1.0), np.zeros(2)
        return [cls(cost=cost, n=5, center=center, axes=np.ones(2), radius=1.0, covariates=2)]


_END = 0.99  # a mean covariate beyond this share of its range causes a warning
_BLUR = 0.02  # no warning is given if the noise is larger
_UNBOUNDED = (
    "noise hides how these covariates vary apart from each other and from the intercept: {names}. "
    "The bands of their coefficients are as wide as coefficients may be. Leave out covariates that "
    "move together or hardly vary, allow a larger epsilon or ask more people"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionOnScalarRelease(CurveConversation[Release], name="function_on_scalar"):
    """Release β with T1 β = T2, where T1 is the mean of x xᵀ and T2 the mean of x Yᵀ.

    A small share of the budget counts the curves beyond their bound, to detect a bound that is too
    small. T1 uses a share γ of the remaining budget and T2 the rest.

    Attributes:
        covariate_bound: bound on the norm of the covariate vectors in the queries.
        covariates: length of a covariate vector.
        basis: basis in which the curves are expanded.
        gamma: γ.
        intercept: whether there is a constant covariate.
        limit: public bound on the absolute values of curves about their center; None if there is
            only a bound on norms.
        shift, unit_of: the queries use (x - shift)/unit_of in place of a covariate x; the released
            β refers to x.
        names: names of the covariates.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive("covariate_bound", checked_bound(self.covariate_bound))
        _validate.fraction("gamma", self.gamma)

    def better(self, pure: Cost, gaussian: Cost) -> Cost:
        """The budget with which T2 has less noise."""
        left, size = 1 - self.gamma, (self.covariates + self.intercept) * self.basis.size
        # Noise variance of each entry of T2, in units of its squared sensitivity.
        spherical = (size + 1) / (left * pure.epsilon_spent) ** 2
        return pure if spherical < 1 / (left * gaussian.mu**2) else gaussian

    def questions(self) -> Questions[Release]:
        """A count of the curves within their bound, and the queries of T1 and T2."""
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
        # Eigenvalue floor of C9, with c = 2.
        gram = floored(products.triangle.matrix(one.values), 2 * spread * math.sqrt(products.width))
        two = yield pairs
        shape = pairs.width, self.basis.size
        scale = np.ones(pairs.width)
        scale[: self.covariates] /= self.covariate_bound
        solve = scale[:, None] * np.linalg.inv(gram)
        scaled = solve @ two.values.reshape(shape)
        noise = two.noise.variance.reshape(shape)
        unit_change = self._own_units(pairs.width)
        matrix = products.triangle.matrix(one.values)
        matrix_variance = products.triangle.variance(one.noise.variance)
        if self.intercept:  # the square of the constant is known
            matrix[-1, -1], matrix_variance[-1, -1] = 1.0, 0.0
        moments = NoisySystem(
            matrix,
            matrix_variance,
            two.values.reshape(shape),
            noise,
            self.intercept,
        )
        effects = posterior_effects(moments, reach=self.bound)
        solved = Solved(
            matrix=matrix,
            vectors=two.values.reshape(shape),
            combinations=unit_change * scale,
            matrix_noise=one.noise,
            vector_noise=two.noise,
            bound=self.bound,
            limit=self.limit,
            steepest=self._steepest(unit_change, unit_change * scale),
            constant=self.intercept,
        )
        release = self.conclude(
            self.basis,
            unit_change @ scaled,
            # A first-order approximation that treats T1 as known. Bands use `solved` instead.
            NoiseLaw(law="gaussian", scales=np.sqrt((unit_change @ solve) ** 2 @ noise)),
            shrunk=unit_change @ (scale[:, None] * effects.mean),
            sensitivity=pairs.mechanism.sensitivity,
            warnings=(
                *(bound_warnings(within, self.n) or self._crowded(two.values, two.noise.variance)),
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
        """Names of the coefficients: the covariates, then the intercept."""
        numbered = tuple(f"covariate {place + 1}" for place in range(self.covariates))
        return (*(self.names or numbered), *("intercept",) * self.intercept)

    def _unbounded(self, solved: Solved) -> tuple[str, ...]:
        """A warning if noise hides how covariates vary."""
        hidden = solved.hidden(self._rows)
        return (_UNBOUNDED.format(names=", ".join(hidden)),) * bool(hidden)

    def _own_units(self, width: int) -> FloatArray:
        """Matrix that maps coefficients of (x - shift)/unit_of to those of x; last the constant."""
        unit_change = np.eye(width)
        if self.unit_of is not None and self.shift is not None:
            unit_change[: self.covariates, : self.covariates] /= self.unit_of[:, None]
            if self.intercept:
                unit_change[-1, : self.covariates] = -self.shift / self.unit_of
        return unit_change

    def _steepest(self, unit_change: FloatArray, combinations: FloatArray) -> FloatArray:
        """Bounds on the released functions, as multiples of the bound on predictions.

        If predictions are bounded for all covariates in [-1, 1], Σ|β| has the same bound. If they
        are bounded for all covariates in a ball, the norm of β is bounded.
        """
        lengths = np.linalg.norm(combinations[:, : self.covariates], axis=1)
        return np.asarray(np.maximum(lengths, np.abs(unit_change).max(axis=1)))

    def _crowded(self, values: FloatArray, variance: FloatArray) -> tuple[str, ...]:
        """A warning if the mean of Y, the last row of T2, is as long as the bound."""
        last = slice(-self.basis.size, None)
        seen = self.intercept and reaches(values[last], variance[last], self.bound)
        return (too_small("their public bound"),) * seen

    def _at_ends(self, products: FloatArray, noise: float) -> tuple[str, ...]:
        """A warning if the mean of a covariate, in the last row of T1, is at an end of its range.

        The norms of covariates are not a sign of a bound that is too small: all members of two
        groups coded -1 and 1 have the largest norm.
        """
        if not self.intercept or self.unit_of is None or noise * self.covariate_bound > _BLUR:
            return ()
        means = products[-1, : self.covariates] * self.covariate_bound
        ends = ", ".join(self._rows[place] for place in np.flatnonzero(np.abs(means) >= _END))
        return (too_small(f"an end of the range of {ends}", "people"),) * bool(ends)

    def neighbors(self, n: int) -> tuple[Records, Records]:
        """Data sets that differ in one pair (x, Y), which has the opposite sign."""
        x = np.full((n, self.covariates), self.covariate_bound / math.sqrt(self.covariates))
        y = np.full((n, self.basis.size), 0.05 * self.bound / math.sqrt(self.basis.size))
        y[0] *= 20
        there = x.copy(), y.copy()
        there[0][0], there[1][0] = -x[0], -y[0]
        return (x, y), there

    @classmethod
    def examples(cls, *, n: int, epsilon: float, delta: float) -> list[Self]:
        """One covariate and one function with a constant; three of each without."""
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
