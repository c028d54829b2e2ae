"""Simulated people with a number instead of a label, from a family or resampled from a sample.

Errors are mean squared errors in units of the number's variance, so the error of the mean is 1. The
encoded row of a person contains the number, as the first column, and the features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.mechanisms.randomized_response import QuestionResponse, best_questions
from dpfda.noise import SimulationSource
from dpfda.planning.families import Curves, Features, Generator, Known, Population, Seed
from dpfda.planning.world import Rows, Sample, Source, World, family_for, is_loose
from dpfda.protocol.estimate import non_private_regression
from dpfda.protocol.model import CurveRegression, StudyModel
from dpfda.protocol.person import encode_people, one_by_one
from dpfda.protocol.plan import StudyPlan

_ROWS = 3000
_FOLDS = 6
_FEWEST = 4 * _FOLDS  # rows of a sample
_MEAN_QUESTIONS = 4
_AT, _WIDTH = 0.25, (0.12, 0.5)  # deviation of the center and limits of the spread, in half-ranges
_MOST = 1 - 1e-6  # largest explained share of the variance


def private_mean(places: FloatArray, epsilon: float, seed: int) -> float:
    """Private estimate of a mean by answers to "is your number above t?", with uniform t.

    Args:
        places: the numbers, scaled from their public range to [-1, 1].
        epsilon: ε of each person.
        seed: seed of the questions and of the noise.
    """
    k = best_questions(epsilon, most=_MEAN_QUESTIONS)
    dithers = np.random.default_rng(seed).uniform(-1, 1, (len(places), k))
    bits = np.where(places[:, None] > dithers, 1.0, -1.0)
    response = QuestionResponse(epsilon=epsilon, questions=k)
    estimate = response.randomize(bits, SimulationSource(seed)).mean() / response.truth_probability
    return float(np.clip(estimate, -1, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberWorld(World):
    """Populations of people with numbers, in which the error of the mean is 1."""

    numbers = True
    most = math.inf

    @property
    def guessing(self) -> float:
        """The error of the mean."""
        return 1.0

    def guess(self, rows: Rows, others: Rows, *, epsilon: float, seed: int) -> float:
        """The error of a private estimate of the mean."""
        return _relative(np.array(private_mean(rows[0][:, 0], epsilon, seed)), others)

    def judged(self, model: StudyModel, others: Rows) -> float:
        """The error of a finished study on test people."""
        assert isinstance(model, CurveRegression)
        low, high = model.target_range
        places = (model.values(others[0][:, 1:]) - (low + high) / 2) / ((high - low) / 2)
        return _relative(places, others)

    def distance(self, error: float) -> float:
        """The correlation between number and prediction that corresponds to this error."""
        return math.sqrt(1 - error)


def _relative(places: FloatArray, others: Rows) -> float:
    truth = others[0][:, 0]
    return float(np.mean((places - truth) ** 2)) / max(float(np.var(truth)), 1e-12)


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberPopulation:
    """A population with latent variables and a target that depends linearly on them.

    Attributes:
        mean: mean of the latent variables, (m,).
        root: matrix that maps standard normal numbers to latent noise, (m, r).
        features: the map from latent variables to encoded features.
        along: unit vector of the target's coefficients on the normal numbers, (r,).
        at: mean of the target in its range, from -1 to 1.
        width: standard deviation of the target.
        explained: share of the variance of the target that the latent variables explain.
    """

    mean: FloatArray
    root: FloatArray
    features: Features
    along: FloatArray
    at: float
    width: float
    explained: float = 1.0

    def people(self, n: int, seed: Seed) -> Rows:
        """Encoded numbers and features; fewer people are the first rows of more people."""
        first, second = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
        latent = first.standard_normal((n, self.root.shape[1]))
        own = math.sqrt(1 - self.explained) * second.standard_normal(n)
        number = math.sqrt(self.explained) * latent @ self.along + own
        places = np.clip(self.at + self.width * number, -1, 1)
        seen = self.features(self.mean + latent @ self.root.T)
        return np.column_stack([places, seen]), np.zeros(n, dtype=np.int64)

    def others(self, n: int, seed: Seed) -> Rows:
        """Test people, who do not take part."""
        return self.people(n, seed)

    def leaving(self, error: float, seed: Seed) -> NumberPopulation:
        """The population for which a linear rule leaves this error, or the smallest possible one.

        The smallest error may be above 0, because features may not contain all latent variables.
        """
        rows, _ = replace(self, explained=1.0).people(_ROWS, seed)
        design = np.column_stack([np.ones(_ROWS), rows[:, 1:]])
        left = rows[:, 0] - design @ np.linalg.lstsq(design, rows[:, 0], rcond=None)[0]
        shown = 1 - float(np.var(left) / np.var(rows[:, 0]))
        return replace(self, explained=min((1 - error) / max(shown, 1e-9), _MOST))


def with_number(
    population: Population,
    rng: Generator,
    *,
    known: Known,
    tilt: tuple[float, float] | None,
) -> NumberPopulation:
    """Add a target to the latent variables of a population of one class."""
    width = population.root.shape[1]
    if tilt is None:  # in tables, few columns have large coefficients
        along = rng.standard_normal(width) * rng.standard_gamma(0.5, width) ** 0.5
    else:
        own = (1.0 + np.arange(width // known.encoder.channels)) ** -rng.uniform(*tilt)
        along = rng.standard_normal(width) * np.tile(own, known.encoder.channels)
    at, spread = rng.normal(0, _AT), np.exp(rng.uniform(*np.log(_WIDTH)))
    if known.anywhere:
        at, spread = rng.uniform(-0.8, 0.8), spread * np.exp(rng.uniform(np.log(0.1), 0))
    return NumberPopulation(
        mean=population.means[0],
        root=population.root,
        features=population.features,
        along=along / np.linalg.norm(along),
        at=float(at),
        width=float(spread),
    )


def numbers_made_up(
    plan: StudyPlan, family: str | None, *, non_private_error: float | None
) -> World:
    """People of a family whose numbers can be predicted with the error that the user expects."""
    kind, generator = family_for(plan, family)
    if non_private_error is None:
        rule = "given: the part of the variance that you expect a regression without privacy to "
        raise InvalidParameter("non_private_error", rule + "leave (or pass a sample)", None)
    known = Known(
        encoder=plan.encoder,
        shares=np.ones(1),
        center_known=bool(plan.design.get("center_known")),
        anywhere=is_loose(plan, None),
    )
    tilt = generator.tilt if isinstance(generator, Curves) else None

    def populations(count: int, error: float) -> Sequence[Source]:
        found = []
        for number in range(count):
            rng = np.random.default_rng([number, 2])
            made = with_number(generator.population(known, rng), rng, known=known, tilt=tilt)
            found.append(made.leaving(error, [number, 3]))
        return found

    return NumberWorld(
        shares=known.shares,
        limit=_validate.fraction("non_private_error", non_private_error),
        basis="a family of tables" if kind == "table" else f"the family of curves {kind!r}",
        populations=populations,
    )


@dataclass(frozen=True, eq=False)
class NumberPart:
    """Rows of a sample, divided between participants and test people.

    Attributes:
        rows: encoded numbers and features of the sample.
        seen: indices of the rows of participants.
        tested: indices of the rows of test people.
        blurred: share of people whose features are replaced by those of a random row.
    """

    rows: FloatArray
    seen: IntArray
    tested: IntArray
    blurred: float = 0.0

    def people(self, n: int, seed: Seed) -> Rows:
        """Participants, resampled from their rows."""
        return self._redrawn(self.seen, n, seed)

    def others(self, n: int, seed: Seed) -> Rows:
        """Test people, who do not take part."""
        return self._redrawn(self.tested, n, seed)

    def _redrawn(self, rows: IntArray, n: int, seed: Seed) -> Rows:
        place, mixed = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
        whose = rows[(place.random(n) * len(rows)).astype(np.int64)]
        anybody = rows[(mixed.random(n) * len(rows)).astype(np.int64)]
        found = self.rows[whose].copy()
        found[:, 1:] = self.rows[np.where(mixed.random(n) < self.blurred, anybody, whose), 1:]
        return found, np.zeros(n, dtype=np.int64)


def parts(rows: FloatArray, count: int, *, blurred: float = 0.0) -> list[NumberPart]:
    """One population for each study: in turns with common rows and with separate test rows."""
    rank = np.random.default_rng(0).permutation(len(rows))
    everybody = np.arange(len(rows))
    found = []
    for number in range(count):
        apart = rank % _FOLDS == (number // 2) % _FOLDS
        both = number % 2
        seen, tested = (everybody, everybody) if both else (everybody[~apart], everybody[apart])
        found.append(NumberPart(rows, seen, tested, blurred))
    return found


def numbers_redrawn(plan: StudyPlan, sample: Sample, *, non_private_error: float | None) -> World:
    """People of a public sample, with errors rescaled to `non_private_error` if it is given.

    As for labels, studies are evaluated in turns on all rows and on separate test rows.
    """
    X, y, *grid = sample
    points = grid[0] if grid else None
    plan.encoder.check_grid(X, points)
    values = one_by_one(y)
    if values.dtype.kind not in "fiub" or not np.isfinite(values.astype(np.float64)).all():
        raise InvalidData("sample", "rows with a number each", "something else")
    if len(values) < _FEWEST or len(values) != len(X):
        rule = f"{_FEWEST} rows or more, with a number each"
        raise InvalidData("sample", rule, f"{len(X)} rows and {len(values)} numbers")
    rows, _ = encode_people(plan, X, y, grid_points=points)
    if not np.ptp(rows[:, 0]):
        raise InvalidData("sample", "of numbers that differ", "one number only")
    found = min(_non_private(rows), 0.99)
    limit = found
    if non_private_error is not None:
        limit = _validate.fraction("non_private_error", non_private_error)
    gain = (1 - limit) / (1 - found)

    def told(errors: FloatArray) -> FloatArray:
        return np.where(errors < 1, 1 - gain * (1 - errors), errors)

    def populations(count: int, error: float) -> Sequence[Source]:
        # If a share b of the people has random features, the error is 1 - (1 - b)² R².
        kept = math.sqrt(min((1 - error) / gain / (1 - found), 1.0))
        return parts(rows, count, blurred=1 - kept)

    return NumberWorld(
        shares=np.ones(1),
        limit=limit,
        basis=f"a public sample of {len(rows)} rows",
        populations=populations,
        told=told,
        doubt=2 * limit / math.sqrt(len(rows)),
    )


def _non_private(rows: FloatArray) -> float:
    """Error of a ridge regression, averaged over both kinds of parts to reduce its bias."""
    errors = []
    for part in parts(rows, 2 * _FOLDS):
        seen, tested = rows[part.seen], rows[part.tested]
        rule = non_private_regression(seen[:, 1:], seen[:, 0])
        errors.append(np.mean((rule.predict(tested[:, 1:]) - tested[:, 0]) ** 2))
    return float(np.mean(errors) / np.var(rows[:, 0]))
