"""003 Theorem 7 and Corollary 1: how fast the errors of ICLP-QR and FRL fall with n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpfda._validate import FloatArray
from dpfda.report.contents import Outcome
from dpfda_bench.effort import FULL, Effort
from dpfda_bench.verdict import Verdict, agrees_if

TITLE = "Rates of the noise and of the bias in n (003 Theorem 7 and Corollary 1)"
NEEDS = ()
SECONDS = 5
CLAIMED = "ε-DP"
READING = (
    "λ_j = j^-β, τ = ε = 1; the mean has coefficients of squares λ_j^η/(j log²(j + 1)) for QR and "
    "j^-(β + 1) for FRL, the roughest that the theorem's class allows up to logarithms. No curve "
    "is clipped, so every error is known exactly."
)
GUARANTEES = {
    "published": "ε-DP, with the sensitivities printed in Theorem 6",
    "tight": "ε-DP, with the sensitivities of this package",
}
DECAYS = (2.0, 4.0, 6.0)
SIZES = np.logspace(4, 8, 9)
_TERMS = 200_000
_J = np.arange(1, _TERMS + 1, dtype=np.float64)
_SLACK = 0.06
"""Of a slope over four powers of ten: what is left of lower-order terms and of rounded M."""


def run(effort: Effort = FULL) -> Outcome:
    """Errors in closed form; nothing is drawn."""
    rows: list[dict[str, Any]] = []
    for decay in DECAYS:
        rows += _quadratic(decay, 1 + 2 / decay, "1 + 2/β, ψ = 1/n")
        rows += _quadratic(decay, 1 + 1 / decay, "1 + 1/β, ψ = 1/n")
        rows += _finite(decay, 1 / 3, "M = n^(1/3)")
        rows += _finite(decay, 1 / 4, "M = n^(1/4)")
    gap = max(abs(row["slope of noise"] - row["expected"]) for row in rows)
    notes = [
        "Slopes of log error over log n, n = 10⁴ to 10⁸; ± is the standard error of a line through "
        "nine points: the errors are exact, so it says how straight the line is.",
        "Sampling has slope -1. Privacy is free in the sense of Corollary 1 where the noise falls "
        "at least as fast.",
        "η = 1 + 1/β is what the experiments of 003 use and Theorem 7 excludes (C24). With the "
        "tight sensitivity even its noise falls like 1/n.",
    ]
    return Outcome(rows=rows, figures={"largest_gap_to_expected_slope": gap}, notes=notes)


def _quadratic(decay: float, eta: float, choice: str) -> list[dict[str, Any]]:
    """ICLP-QR: factors λ^η/(λ^η + ψ), axes √λ."""
    eigenvalues = _J**-decay
    mean = eigenvalues**eta / (_J * np.log(_J + 1) ** 2)

    def factors(n: float) -> FloatArray:
        return np.asarray(eigenvalues**eta / (eigenvalues**eta + 1 / n))

    def noise(n: float, norm: Callable[..., Any]) -> float:
        return (
            8
            / n**2
            * float(norm(factors(n) / np.sqrt(eigenvalues))) ** 2
            * float(eigenvalues.sum())
        )

    # The ratios s_j/√λ_j grow like j^(β/2) up to j = n^(1/(ηβ)).
    tight = (decay + 1) / (eta * decay) - 2
    published = (decay + 2) / (eta * decay) - 2
    bias = [float(((1 - factors(n)) ** 2 * mean).sum()) for n in SIZES]
    known = {"mechanism": "ICLP-QR", "β": decay, "choice": f"η = {choice}"}
    return [
        known | _slopes("published", [noise(n, np.sum) for n in SIZES], published, bias),
        known | _slopes("tight", [noise(n, np.linalg.norm) for n in SIZES], tight, bias),
    ]


def _finite(decay: float, power: float, choice: str) -> list[dict[str, Any]]:
    """FRL: the first M coefficients with equal noise."""
    sizes = np.maximum(1, np.floor(SIZES**power + 1e-9))
    mean = _J ** -(decay + 1)
    bias = [float(mean[int(size) :].sum()) for size in sizes]
    known = {"mechanism": "FRL", "β": decay, "choice": choice}
    published, tight = 8 * sizes**3 / SIZES**2, 8 * sizes**2 / SIZES**2
    return [
        known | _slopes("published", published.tolist(), 3 * power - 2, bias),
        known | _slopes("tight", tight.tolist(), 2 * power - 2, bias),
    ]


def _slopes(form: str, noise: list[float], expected: float, bias: list[float]) -> dict[str, Any]:
    slope, error = _line(noise)
    fall, doubt = _line(bias)
    return {
        "sensitivity": form,
        "slope of noise": slope,
        "± noise": error,
        "expected": expected,
        "slope of bias": fall,
        "± bias": doubt,
        "free": slope <= -1 + _SLACK,
    }


def _line(errors: list[float]) -> tuple[float, float]:
    """Slope and standard error of log error over log n."""
    x, y = np.log(SIZES), np.log(errors)
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    return float(slope), float(np.sqrt(covariance[0, 0]))


def verdict(outcome: Outcome) -> Verdict:
    """With parameters that the theorem allows noise falls like 1/n or faster, and so does bias."""
    allowed = [row for row in outcome.rows if "1 + 1/β" not in row["choice"]]
    excluded = [
        row["slope of noise"]
        for row in outcome.rows
        if "1 + 1/β" in row["choice"] and row["sensitivity"] == "published"
    ]
    gap = outcome.figures["largest_gap_to_expected_slope"]
    smooth = [row["slope of bias"] for row in allowed if row["mechanism"] == "ICLP-QR"]
    holds = all(row["free"] for row in allowed) and gap < _SLACK and max(smooth) <= -1 + _SLACK
    return agrees_if(
        holds,
        f"Noise falls like 1/n or faster in {sum(row['free'] for row in allowed)} of "
        f"{len(allowed)} settings that Theorem 7 and Corollary 1 allow, within {gap:.2f} of the "
        f"expected slope; the bias of ICLP-QR has slopes up to {max(smooth):.2f}. With "
        f"η = 1 + 1/β the printed sensitivity gives {min(excluded):.2f} to {max(excluded):.2f}: "
        "slower than sampling.",
    )
