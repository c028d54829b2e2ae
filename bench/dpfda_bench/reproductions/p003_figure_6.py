"""003 Figures 6 to 9: Figures 1 and 2 again with other errors around the mean or another kernel."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from dpfda._validate import FloatArray
from dpfda.central.adaptive import Adaptive
from dpfda.central.functions import Kernel, Matern, as_grid, eigenpairs, norms, trapezoid
from dpfda.central.kernel_density import Bernstein
from dpfda.central.linear import (
    AbsoluteRegularization,
    FiniteLaplace,
    GaussianProcess,
    LinearMechanism,
    QuadraticRegularization,
)
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.datasets import simulate_003
from dpfda.noise import SimulationSource
from dpfda.report.contents import Outcome
from dpfda_bench.benchmarks.iclp import distances
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.lines import lines
from dpfda_bench.reproductions import _p003 as common
from dpfda_bench.selection import cross_validated
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "Total error with other errors around the mean and another kernel (003 Figures 6 to 9)"
COVERS = ("003-figure-7", "003-figure-8", "003-figure-9")
NEEDS = ()
SECONDS = 45
GUARANTEES = {
    "as published": "none: τ is the data's own largest norm (C11); FRL's M is the best in "
    "hindsight",
    "as published, PCV": "none: ψ and M are chosen by looking at the curves",
    "corrected": "ε = 1 for one curve, public bound; GP: (1, 0.01)",
    "default": "ε = 1 for one curve, public bound",
    "sample mean": "none",
}
FIGURES = {
    "1 and 2": ("smooth", 1.5),
    "6": ("rough", 1.5),
    "7": ("heavy tails", 1.5),
    "8": ("smooth", 2.5),
    "9": ("heavy tails", 2.5),
}
"""Errors around the mean, and ν of the kernel of mechanisms; the first is what others are like."""
PURE = ("FRL", "ICLP-AR", "ICLP-QR", "Bernstein")
_MEANS = ("S-1", "S-2", "S-3", "S-4")
_SIZES = (100, 1000, 3000)
_GRID = as_grid(np.linspace(0, 1, 101))
_TERMS = 100


def run(effort: Effort = FULL) -> Outcome:
    """Noise is exact where it is added; the rest is averaged over replications."""
    times = effort.repeats(5, quick=2)
    means, sizes = (_MEANS[1:3], _SIZES[:1]) if effort.quick else (_MEANS, _SIZES)
    settings = list(product(FIGURES, means, sizes))
    found = effort.sweep.run(_errors, [(*setting, times) for setting in settings])
    rows: list[dict[str, Any]] = [
        {"figure": figure, "mean": mean, "n": n, "version": version} | errors
        for (figure, mean, n), versions in zip(settings, found, strict=True)
        for version, errors in versions.items()
    ]
    shown = [
        {"figure": f"{figure}, {mean}", "n": n}
        | {name: versions["as published"][name] for name in PURE}
        | {"ICLP-QR corrected": versions["corrected"]["ICLP-QR"]}
        | {"adaptive (default)": versions["default"]["adaptive"]}
        | {"sample mean": versions["sample mean"]["not private"]}
        for (figure, mean, n), versions in zip(settings, found, strict=True)
        if figure != "1 and 2"
    ]
    notes = [
        "S-1 to S-4, ε = 1, GP δ = 0.01. The length of the errors' kernels is not printed: 0.2. "
        "Heavy tails: 100 coefficients of t₅ on the kernel's own functions, all of one variance, "
        "as printed; curves are then nearly white noise of norm 13.",
        "Public bounds: the 99.9 % quantile of ‖X‖ and of |X| in 4000 curves of another "
        "simulation. PCV and PSS differ in ψ or M alone; FRL's M under PSS is its best.",
    ]
    return Outcome(
        rows=rows,
        figures=_claims(rows),
        notes=notes,
        plot=partial(lines, shown, "n", panel="figure", y="total error"),
    )


def verdict(outcome: Outcome) -> Verdict:
    """The text's sentences on the four figures."""
    found = outcome.figures
    holds = (
        found["rank_correlation_6_with_2"] >= 0.9
        and found["alignment_gain_7"] >= 1.0
        and found["largest_factor_kernel"] <= 1.25
        and found["share_qr_best"] >= 0.9
    )
    return agrees_if(
        holds,
        f"No numbers are printed. Figure 6 is like Figure 2 (rank correlation "
        f"{found['rank_correlation_6_with_2']:.2f}); PSS is nearer to PCV in Figure 7 than in "
        f"Figure 1, on S-2 and S-3, by a factor of {found['alignment_gain_7']:.2f}; the other "
        f"kernel changes errors by a factor of up to {found['largest_factor_kernel']:.2f} (text: "
        f"almost none); ICLP-QR is the best of four in {found['share_qr_best']:.0%} of settings "
        "(text: in all).",
    )


def sample(errors: str, kernel: Kernel, mean: str, n: int, seed: list[int]) -> FloatArray:
    """Curves around one of the means."""
    if errors == "smooth":
        return simulate_003(mean, n, np.random.default_rng(seed)).X
    rng, truth = np.random.default_rng(seed), simulate_003(mean, 1).truth["mean"]
    if errors == "heavy tails":
        functions = eigenpairs(kernel, _GRID).functions[:_TERMS]
        return np.asarray(truth + rng.standard_t(5, (n, len(functions))) @ functions)
    distance = np.abs(np.subtract.outer(_GRID[0], _GRID[0])) / 0.2
    root = np.linalg.cholesky(np.exp(-distance))
    return np.asarray(truth + rng.standard_normal((n, len(root))) @ root.T)


@lru_cache
def public_bounds(errors: str, nu: float, mean: str) -> tuple[float, float]:
    """Of ‖X‖ and of |X(t)|: known to whoever knows the simulation."""
    curves = sample(errors, Matern(nu=nu), mean, 4000, [99])
    sizes = norms(curves, trapezoid(_GRID)), np.abs(curves)
    return float(np.quantile(sizes[0], 0.999)), float(np.quantile(sizes[1], 0.999))


def _errors(figure: str, mean: str, n: int, times: int) -> dict[str, dict[str, float]]:
    """‖μ̃ - μ0‖² by version and mechanism, averaged over samples."""
    errors, nu = FIGURES[figure]
    kernel, truth = Matern(nu=nu), simulate_003(mean, 1).truth["mean"]
    weights, public = trapezoid(_GRID), public_bounds(errors, nu, mean)
    total: dict[str, dict[str, float]] = {}

    def add(version: str, name: str, error: float) -> None:
        own = total.setdefault(version, {})
        own[name] = own.get(name, 0.0) + error / times

    for seed in range(times):
        curves = sample(errors, kernel, mean, n, [3, n, seed])
        own = float(norms(curves, weights).max()), float(np.abs(curves).max())

        def error(release: MeanRelease, held: FloatArray = curves) -> float:
            curve, noise = common.without_noise(release, held)
            return float((curve - truth) ** 2 @ weights) + noise

        for version, bounds in (("as published", own), ("corrected", public)):
            published = version == "as published"
            for name, mechanism in _mechanisms(kernel, published=published).items():
                release = _release(mechanism, n, bounds)
                tried = _best(release, n) if published and name == "FRL" else [release]
                add(version, name, min(map(error, tried)))
                if published and name in PURE[:3]:
                    chosen = cross_validated(release, curves, not_private=True)
                    add("as published, PCV", name, error(chosen))
        release = _release(Adaptive(), n, public)
        drawn = distances(release, [curves], truth, source=SimulationSource(seed))
        add("default", "adaptive", float(drawn[0]))
        add("sample mean", "not private", float((curves.mean(axis=0) - truth) ** 2 @ weights))
        add("zero curve", "trivial", float(truth**2 @ weights))
    return total


def _mechanisms(kernel: Kernel, *, published: bool) -> dict[str, LinearMechanism | Bernstein]:
    return {
        "FRL": FiniteLaplace(kernel=kernel, published=published),
        "ICLP-AR": AbsoluteRegularization(kernel=kernel, published=published),
        "ICLP-QR": QuadraticRegularization(kernel=kernel, published=published),
        "Bernstein": Bernstein(order=20),
        "GP": GaussianProcess(kernel=kernel, published=published),
    }


def _release(mechanism: FunctionMechanism, n: int, bounds: tuple[float, float]) -> MeanRelease:
    bound = bounds[isinstance(mechanism, Bernstein)]
    delta = 0.01 if mechanism.needs_delta else 0.0
    return MeanRelease(epsilon=1.0, delta=delta, n=n, bound=bound, grid=_GRID, mechanism=mechanism)


def _best(release: MeanRelease, n: int) -> list[MeanRelease]:
    """FRL with every M of Corollary 1: from n^{1/(ηβ)}, with ηβ = β + 2, to n^{1/3}."""
    assert isinstance(release.mechanism, FiniteLaplace)
    first = math.ceil(n ** (1 / (release.mechanism.kernel.decay + 2)))
    last = math.floor(n ** (1 / 3) + 1e-9)
    kernel, bounds = release.mechanism.kernel, (release.bound, release.bound)
    return [
        _release(FiniteLaplace(kernel=kernel, components=m, published=True), n, bounds)
        for m in range(first, max(first, last) + 1)
    ]


def _claims(rows: list[dict[str, Any]]) -> dict[str, float]:
    by: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by.setdefault((row["figure"], row["version"]), []).append(row)

    def values(figure: str) -> list[float]:
        return [row[name] for row in by[figure, "as published"] for name in PURE]

    def misalignment(figure: str) -> float:
        pairs = zip(by[figure, "as published"], by[figure, "as published, PCV"], strict=True)
        logs = [
            abs(math.log(one[name] / other[name]))
            for one, other in pairs
            if one["mean"] in ("S-2", "S-3")
            for name in ("FRL", "ICLP-QR")
        ]
        return float(np.mean(logs))

    kernels = [
        max(one["ICLP-QR"] / other["ICLP-QR"], other["ICLP-QR"] / one["ICLP-QR"])
        for pair in (("1 and 2", "8"), ("7", "9"))
        for one, other in zip(*(by[figure, "as published"] for figure in pair), strict=True)
    ]
    published = [row for row in rows if row["version"] == "as published"]
    best = [min(PURE, key=row.__getitem__) == "ICLP-QR" for row in published]
    ahead = [
        row["adaptive"] <= min(other[name] for name in PURE)
        for figure in FIGURES
        for row, other in zip(by[figure, "default"], by[figure, "corrected"], strict=True)
    ]
    return {
        "rank_correlation_6_with_2": float(spearmanr(values("1 and 2"), values("6")).statistic),
        "alignment_gain_7": misalignment("1 and 2") / max(misalignment("7"), 1e-12),
        "largest_factor_kernel": max(kernels),
        "share_qr_best": float(np.mean(best)),
        "share_default_best": float(np.mean(ahead)),
    }
