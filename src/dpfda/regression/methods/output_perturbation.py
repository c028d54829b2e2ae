"""Output perturbation: noise on the minimiser of a strongly convex objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfda._validate import FloatArray
from dpfda.noise import Source
from dpfda.regression.empirical_risk import LIPSCHITZ, TOLERANCE, minimise_risk
from dpfda.regression.fixed_point import ONE
from dpfda.regression.methods.base import Conversation, Method
from dpfda.regression.methods.gaussian_fm import in_units
from dpfda.regression.problem import Problem
from dpfda.regression.rows import unit_rows
from dpfda.regression.stage import WholeStage


@dataclass(frozen=True, kw_only=True)
class MinimiserStage(WholeStage):
    """nλθ*, the ridge minimiser scaled so that one person moves it by at most 2.

    Privacy:
        |θ*(D) - θ*(D')| ≤ 2L/(nλ) for a λ-strongly convex mean objective (Chaudhuri et al. 2011);
        the solver adds `TOLERANCE` of gradient on either side.
    """

    problem: Problem

    @property
    def weights(self) -> FloatArray:
        """All coordinates alike."""
        return np.ones(self.problem.dimension + self.problem.fit_intercept)

    @property
    def sensitivity(self) -> float:
        """In ℓ2; in ℓ1 at most √D times that."""
        length = 2 * LIPSCHITZ + 2 * TOLERANCE
        return length if self.noise == "gaussian" else length * math.sqrt(self.size)

    def ridge(self, n: int) -> float:
        """nλ, from public numbers only: balances the ridge's bias against the noise."""
        noise = self.sigma**2 * self.size
        return float((noise * n) ** (1 / 3))

    def evaluate(self, rows: FloatArray, targets: FloatArray, source: Source) -> FloatArray:
        """Minimise on the rows."""
        x, v = unit_rows(self.problem, rows, targets)
        ridge = self.ridge(len(rows))
        return ridge * minimise_risk(x / ONE, v / ONE, task=self.problem.task, ridge=ridge)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(Method, name="output_perturbation"):
    """Minimise with a ridge, then add noise to the coefficients.

    Privacy:
        (ε, δ) with Gaussian noise, pure ε with Laplace noise for δ = 0. The ridge is public.

    Example:
        >>> OutputPerturbation().name
        'output_perturbation'
    """

    def converse(self, problem: Problem) -> Conversation:
        """One question, asked of all rows at once."""
        noise: Literal["gaussian", "laplace"] = "laplace" if problem.pure else "gaussian"
        budget = problem.epsilon if problem.pure else problem.mu
        stage = MinimiserStage(problem=problem, budget=budget, noise=noise)
        answer = yield stage
        theta = answer.values / stage.ridge(answer.n)
        unit = problem.target_radius if problem.task == "linear" else 1.0
        sigma = answer.sigma / stage.ridge(answer.n)
        covariance = sigma**2 * np.eye(stage.size)
        return in_units(problem, theta, unit=unit, covariance=covariance)
