"""Kinds of releases other than means, as `dpfda bench honesty` measures them."""

from __future__ import annotations

from functools import cache
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.density import HistogramDensity
from dpfda.errors import InvalidParameter
from dpfda.estimators.private_covariance import PrivateCovariance
from dpfda.estimators.private_curve_regression import PrivateCurveRegression
from dpfda.estimators.private_density import PrivateDensity
from dpfda.estimators.private_function_on_scalar import PrivateFunctionOnScalar
from dpfda.estimators.private_linear_regression import PrivateLinearRegression
from dpfda.estimators.private_moments import PrivateMoments
from dpfda_bench import random_tables
from dpfda_bench.benchmarks._honesty_task import LEVEL, Judged, Kind, Task, held, lost
from dpfda_bench.published_fm import FunctionalMechanism
from dpfda_bench.random_curves import Shape, Slack, problem

_BINS = 32  # of a density's public range
_EXACT = 1e4  # ε of a histogram that shows what the noisy one estimates
_SEEN = 500  # rows whose predictions are compared
_OTHERS = ("output_perturbation", FunctionalMechanism.name)  # regressions that are pure
_OTHERS_WITH_DELTA = ("gaussian_fm", "adassp", "objective_perturbation", "noisy_gradient")


def _groups(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
    """Means of three groups; the band of one of them holds the population's mean."""
    one = random_tables.grouped(seed, shape=shape, slack=slack, n=n)
    curves, names = one.curves, tuple(range(len(one.means)))
    chosen = seed % len(names)
    there = [group for group in names if np.any(one.labels == group)]

    samples = np.stack([curves.curves[one.labels == group].mean(axis=0) for group in there])
    sizes = np.array([np.sum(one.labels == group) for group in there])

    def errors(means: FloatArray) -> FloatArray:
        found = [curves.error(means[g], of=mean) for g, mean in zip(there, samples, strict=True)]
        return np.array(found)

    def others(model: PrivateMoments) -> tuple[float, ...]:
        """Errors of means, sizes and differences between groups."""
        means, known = model.means_[there], model.moments_.sizes[there]
        apart = lost(means - means.mean(axis=0), samples - samples.mean(axis=0))
        wrong = ((known - sizes) / sizes) ** 2
        return (*(errors(model.means_) / public), *wrong, apart)

    def release(epsilon: float, delta: float) -> Judged:
        model = PrivateMoments(
            epsilon,
            delta=delta,
            value_range=curves.value_range,
            groups=names,
            random_state=seed,
        ).fit(curves.curves, one.labels)
        _, low, high = model.interval(LEVEL, group=chosen)
        return Judged(
            float(errors(model.means_).mean()),
            held(one.means[chosen], low, high),
            float(np.mean(high - low)) / (2 * curves.half_width),
            model.moments_.warnings,
            others(model),
            vague=bool(np.median(high - low) >= 2 * curves.half_width),
        )

    public = errors(np.stack([curves.center] * len(names)))
    return Task(release=release, public=float(public.mean()))


def _function_on_scalar(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
    """Coefficient functions; bands hold those of least squares on the sample, all together."""
    one = random_tables.with_covariates(seed, shape=shape, slack=slack, n=n)
    curves = one.curves
    design = np.column_stack([one.rows, np.ones(n)])
    truth = np.asarray(np.linalg.lstsq(design, curves.curves, rcond=None)[0])
    fitted = (design @ truth)[:_SEEN]

    def error(predicted: FloatArray) -> float:
        return float(np.mean((predicted - fitted) ** 2)) / curves.half_width**2

    def release(epsilon: float, delta: float) -> Judged:
        model = PrivateFunctionOnScalar(
            epsilon,
            delta=delta,
            value_range=curves.value_range,
            feature_ranges=one.ranges,
            random_state=seed,
        ).fit(one.rows, curves.curves)
        low, high = model.release_.interval(LEVEL, simultaneous=True)
        predicted = model.predict(one.rows[:_SEEN])
        width = (high - low)[-1] / (2 * curves.half_width)  # of the intercept
        effects = lost(predicted - predicted.mean(0), fitted - fitted.mean(0))
        return Judged(
            error(predicted),
            held(truth, low, high),
            float(np.mean(width)),
            model.release_.warnings,
            (effects,),
            vague=bool(np.median(width) >= 1),
        )

    return Task(release=release, public=error(curves.center))


def _slope(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
    """Regression on curves; the band holds the population's slope function."""
    one = random_tables.with_targets(seed, shape=shape, slack=slack, n=n)
    curves, t = one.curves, one.curves.grid_points
    low, high = one.target_range
    unseen, expected = curves.reference[:_SEEN], one.expected[:_SEEN]
    # A slope that moves the target through its range while the curve goes through its own.
    steepest = (high - low) / (2 * curves.half_width)

    def error(predicted: Any) -> float:
        return float(np.mean((predicted - expected) ** 2)) / ((high - low) / 2) ** 2

    def release(epsilon: float, delta: float) -> Judged:
        model = PrivateCurveRegression(
            epsilon,
            delta=delta,
            value_range=curves.value_range,
            target_range=one.target_range,
            random_state=seed,
        ).fit(curves.curves, one.targets, grid_points=t)
        predicted = model.predict(unseen, grid_points=t)
        missed, warnings = error(predicted), model.model_.fit.warnings
        # Beside one number for everybody.
        others: tuple[float, ...] = (missed / error(expected.mean()),)
        if not model.model_.has_band:
            return Judged(missed, warnings=warnings, others=others)
        slope, bottom, top = model.slope(LEVEL, points=t)
        width = (top - bottom) / steepest
        holds, others = held(one.slope, bottom, top), (*others, lost(slope, one.slope))
        vague = bool(np.median(width) >= 2)  # from the steepest fall to the steepest rise
        return Judged(missed, holds, float(np.mean(width)), warnings, others, vague)

    return Task(release=release, public=error((low + high) / 2))


def _density(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
    """Masses of bins beside the population's; the band holds the histogram without noise."""
    one = random_tables.points(seed, shape=shape, slack=slack, n=n)
    low, high = one.value_range
    edges = np.linspace(low, high, _BINS + 1)
    masses = np.histogram(np.clip(one.reference, low, high), edges)[0] / len(one.reference)
    known: dict[str, Any] = {"feature_ranges": one.value_range, "random_state": seed}

    def error(density: FloatArray, places: Any) -> float:
        own = np.histogram(places, edges, weights=np.maximum(density, 0.0))[0]
        return float(np.sum((own / max(own.sum(), 1e-300) - masses) ** 2))

    def release(epsilon: float, delta: float) -> Judged:
        found = PrivateDensity(epsilon, delta=delta, **known).fit(one.points).release_
        band = found.interval(LEVEL, simultaneous=True)
        width = float(np.mean(band[1] - band[0])) * (high - low)
        holds = held(noiseless(int(found.parameters["cells"])), *band)
        return Judged(error(found.values(), found.grid_points), holds, width, found.warnings)

    @cache
    def noiseless(cells: int) -> FloatArray:
        """What the noisy curve estimates: the same histogram, smoothed alike, of no noise."""
        exact = PrivateDensity(_EXACT, mechanism=HistogramDensity(size=cells), **known)
        with catch_warnings():
            simplefilter("ignore")  # of this fit, which nobody sees
            found = exact.fit(one.points).release_
        # A band of a density is cut at 0.
        return np.maximum(found.noisy @ found.basis.functions, 0.0)

    def offered(epsilon: float, delta: float) -> dict[str, float]:
        return {"kernel": kernel(epsilon)}  # which has pure noise only

    @cache
    def kernel(epsilon: float) -> float:
        found = PrivateDensity(epsilon, mechanism="kernel", **known).fit(one.points).release_
        return error(found.values(), found.grid_points)

    center = (edges[:-1] + edges[1:]) / 2
    return Task(release=release, public=error(np.ones(_BINS), center), offered=offered)


def _regression(mechanism: str | None) -> Kind:
    """Least squares of a table; errors of coefficients, where stated, are about the sample's."""

    def task(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
        one = random_tables.table(seed, shape=shape, slack=slack, n=n)
        low, high = one.target_range
        design = np.column_stack([one.rows, np.ones(n)])
        truth = np.asarray(np.linalg.lstsq(design, one.targets, rcond=None)[0][:-1])
        largest = np.maximum(np.abs(design).max(axis=0), 1e-300)
        identified = np.linalg.matrix_rank(design / largest) == design.shape[1]
        widths = np.array([end - start for start, end in one.feature_ranges])
        unseen, expected = one.reference[:_SEEN], one.expected[:_SEEN]
        known: dict[str, Any] = {
            "feature_ranges": one.feature_ranges,
            "target_range": one.target_range,
            "random_state": seed,
        }

        def error(predicted: Any) -> float:
            return float(np.mean((predicted - expected) ** 2)) / ((high - low) / 2) ** 2

        def release(epsilon: float, delta: float) -> Judged | None:
            chosen: dict[str, Any] = {} if mechanism is None else {"mechanism": mechanism}
            try:
                model = PrivateLinearRegression(epsilon, delta=delta, **known, **chosen)
                model.fit(one.rows, one.targets)
            except InvalidParameter:
                return None  # the mechanism needs a δ
            missed, fitted = error(model.predict(unseen)), model.model_
            # Beside one number for everybody.
            others: tuple[float, ...] = (missed / error(expected.mean()),)
            if not (fitted.has_interval and identified):
                return Judged(missed, warnings=fitted.warnings, others=others)
            if mechanism is not None:  # coefficients are the question
                others = (*others, lost(model.coef_ * widths, truth * widths))
            ends = fitted.interval(LEVEL, simultaneous=True)
            # In units of a slope that moves the target through its range over that of a feature.
            width = (ends[1] - ends[0]) * widths / (high - low)
            vague = bool(np.max(width) >= 2)  # from minus one of these to one
            holds = held(truth, *ends)
            return Judged(missed, holds, float(np.mean(width)), fitted.warnings, others, vague)

        def offered(epsilon: float, delta: float) -> dict[str, float]:
            if mechanism is not None:
                return {}
            found = {name: other(name, epsilon, 0.0) for name in _OTHERS}
            if delta:
                found |= {name: other(name, epsilon, delta) for name in _OTHERS_WITH_DELTA}
            return found

        @cache
        def other(name: str, epsilon: float, delta: float) -> float:
            model = PrivateLinearRegression(epsilon, delta=delta, mechanism=name, **known)
            return error(model.fit(one.rows, one.targets).predict(unseen))

        return Task(
            release=release,
            public=error((low + high) / 2),
            offered=offered,
            default=mechanism is None,
        )

    return task


def _covariance(seed: int, shape: Shape, slack: Slack, n: int) -> Task:
    """A covariance surface, without a band; a surface of zeros is known without data."""
    one = problem(seed, shape=shape, slack=slack, n=n)
    truth = np.cov(one.curves.T, bias=True)

    def error(surface: FloatArray) -> float:
        return float(np.mean((surface - truth) ** 2)) / one.half_width**4

    def release(epsilon: float, delta: float) -> Judged:
        model = PrivateCovariance(
            epsilon, delta=delta, value_range=one.value_range, random_state=seed
        ).fit(one.curves)
        return Judged(error(model.covariance_), warnings=model.release_.warnings)

    return Task(release=release, public=error(np.zeros_like(truth)))


OTHERS: dict[str, Kind] = {
    "groups": _groups,
    "function-on-scalar": _function_on_scalar,
    "curve regression": _slope,
    "density": _density,
    "regression": _regression(None),
    "coefficients (gaussian_fm)": _regression("gaussian_fm"),
    "covariance": _covariance,
}
