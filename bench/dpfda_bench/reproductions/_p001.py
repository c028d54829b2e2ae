"""What the simulations of paper 001 (and 000) have in common: people, encodings, learners.

All replications of an experiment are arrays with a leading axis R. A curve of the simulation is a
sum of 50 known functions, so whatever is linear in the curve (coefficients, integrals) is computed
from its 50 scores, by the same encoder that a study would use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.bases import CosineBasis
from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.mrma.learners import Learner, LinearModels
from dpfda.local.mrma.learners._arrays import Design, as_double, namespace
from dpfda.local.mrma.learners.linear_learners import DWD, ConjugateGradient, Logistic
from dpfda.local.mrma.learners.linear_svm import LinearSVM
from dpfda.local.mrma.members import DEFAULT_SPREAD
from dpfda.planning.sweep import Name
from dpfda_bench.baselines import Setting
from dpfda_bench.effort import Effort
from dpfda_bench.lines import named_lines

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
"""The eight budgets of Figures 2, 3 and A.1."""

LEARNERS = ("Logistic", "SVM", "DWD", "CG")

GRID = np.linspace(0, 1, 101)
FUNCTIONS = CosineBasis(n_basis=50).evaluate(GRID).T
"""What curves are sums of, shape (50, 101)."""


class UnscaledSVM(LinearSVM):
    """An SVM whose coefficients are for standardized features and are applied to raw ones.

    That is what ``t(fit$coefs) %*% fit$SV`` of R's e1071 gives by default. A slip, but one that
    keeps intercepts small under noise, and the only reading under which SVM members do as well at
    small ε as 001 reports. Not registered: it exists for reproductions only.
    """

    def fit(
        self, features: Any, labels: Any, *, weights: Any = None, gram: Any = None
    ) -> LinearModels:
        """Fit on standardized features; the model is not carried back."""
        x = as_double("features", features)
        xp = namespace(x)
        scale = xp.std(x, axis=1, correction=1, keepdims=True)
        return super().fit((x - xp.mean(x, axis=1, keepdims=True)) / scale, labels, gram=gram)


@dataclass(frozen=True, kw_only=True)
class StandardizedSVM(LinearSVM):
    """Features are divided by their standard deviation before the penalty applies.

    As R's ``e1071::svm`` does by default (divisor Σw − 1, at least Σw/2).
    """

    def _diagonal(self, data: Design) -> Any:
        # Unit variance with divisor Σw is what `data` has; Σw − 1 changes it by this factor.
        penalty, total = data.penalty(), data.total[:, None]
        xp = namespace(penalty)
        ratio = total / xp.maximum(total - 1.0, 0.5 * total)
        return xp.where(penalty > 0, ratio, penalty) / (self.C * total)


class Reading(NamedTuple):
    """What the text of 001 leaves open, as an entry settles it.

    Attributes:
        svm: ``standardized`` features (with coefficients carried back), or the ``slip`` that
            applies coefficients of standardized features to raw ones.
        dwd: ``line``, a penalty so large that the slope is a line, or ``ridge``, 0.01.
        steps: of conjugate gradients.
        agreement: what comes out so, and does not otherwise.
    """

    svm: Literal["standardized", "slip"]
    dwd: Literal["line", "ridge"]
    steps: int
    agreement: str

    def __str__(self) -> str:
        """A sentence for the entry."""
        return (
            f"SVM: squared hinge, C = 0.1, {self.svm}; DWD: {self.dwd}; conjugate gradients: "
            f"{self.steps} step{'s' * (self.steps > 1)}. {self.agreement}"
        )


READINGS = {
    "001-table-a1": Reading(
        "standardized", "line", 5,
        "DWD's numbers for every d (ridge: nearly), and CG's on actual curves (one step: five "
        "points lower).",
    ),
    "001-figure-2": Reading(
        "slip", "line", 1,
        "MRMA improves the SVM at small ε (standardized: its members are constant) and CG (five "
        "steps: hardly).",
    ),
    "001-figure-3": Reading(
        "slip", "ridge", 1,
        "Sharing improves DWD clearly (line: hardly).",
    ),
    "001-figure-4": Reading("slip", "line", 1, "As in Figure 2."),
    "001-figure-5": Reading("slip", "line", 1, "As in Figure 2."),
    "001-figure-a1": Reading(
        "standardized", "ridge", 1,
        "CG alone stays scattered (slip: the SVM as well; line: DWD as well).",
    ),
    "001-figure-a2": Reading(
        "standardized", "ridge", 1,
        "CG alone stays scattered (slip: the SVM as well).",
    ),
    "001-figure-a3": Reading("slip", "line", 1, "As in Figure 2."),
    "001-figure-a5": Reading("slip", "line", 1, "CG alone takes part."),
}  # fmt: skip
"""No one reading gives every statement of 001: they were chosen after its text was known."""


def learner(name: str, *, steps: int = 5, roughness: FloatArray | None = None) -> Learner:
    """The closest reading of a learner of 001; the text leaves its tuning open.

    SVM: squared hinge with C = 0.1 on features of unit variance. CG: five steps give the published
    15.4 % on the actual curves of Table A.1; under noise one step fits the text better. DWD: a
    penalty on the second derivative, so large that the slope function is a straight line, which is
    why d does not matter in the paper.
    """
    if name == "Logistic":
        return Logistic()
    if name == "SVM":
        return StandardizedSVM(C=0.1, loss="squared_hinge")
    if name == "CG":
        return ConjugateGradient(steps=steps)
    rows = None if roughness is None else tuple(map(tuple, roughness.tolist()))
    return DWD(smoothing=0.01, roughness=rows)


def noisy_learner(
    name: str, rule: str, code: Encoding, reading: Reading = READINGS["001-figure-2"]
) -> Learner:
    """The learner of a figure under a rule and a reading of the text."""
    if name == "SVM" and rule == "as published" and reading.svm == "slip":
        return UnscaledSVM(C=0.1, loss="squared_hinge")
    roughness = code.roughness if reading.dwd == "line" else None
    return learner(name, steps=reading.steps, roughness=roughness)


@dataclass(frozen=True, eq=False)
class Encoding:
    """d cubic B-splines on 101 points, as matrices that act on the 50 scores of a curve.

    Attributes:
        encoder: with the papers' tanh, scale 1.
        coefficients: scores -> least-squares coefficients z, shape (50, d).
        integrals: scores -> ∫ x φ_k, shape (50, d).
        gram: ∫ φ_k φ_l.
        roughness: ∫ φ_k'' φ_l''.
    """

    encoder: CurveEncoder
    coefficients: FloatArray
    integrals: FloatArray
    gram: FloatArray
    roughness: FloatArray


@lru_cache
def encoding(dimension: int) -> Encoding:
    """The encoding with `dimension` basis functions."""
    encoder = CurveEncoder("bspline", n_basis=dimension, rescale="tanh")
    return Encoding(
        encoder,
        encoder.coefficients(FUNCTIONS, GRID),
        (FUNCTIONS * quadrature()) @ encoder.basis.evaluate(GRID),
        encoder.gram(),
        roughness(encoder),
    )


def roughness(encoder: CurveEncoder, points: int = 2000) -> FloatArray:
    """∫ φ_k'' φ_l'': second differences of a cubic are exact, the midpoint rule nearly."""
    step = 1 / points
    grid = (np.arange(points) + 0.5) * step
    inside = grid[(grid > 2 * step) & (grid < 1 - 2 * step)]
    left, middle, right = (encoder.basis.evaluate(inside + shift) for shift in (-step, 0.0, step))
    second = (left - 2 * middle + right) / step**2
    return np.asarray(second.T @ second * step)


def quadrature() -> FloatArray:
    """Trapezoid weights of the grid."""
    weights = np.full(len(GRID), 1 / (len(GRID) - 1))
    weights[[0, -1]] /= 2
    return weights


def curves(scores: FloatArray) -> FloatArray:
    """Values of curves on the grid, from their scores."""
    return np.asarray(scores @ FUNCTIONS)


def max_abs(z: FloatArray) -> FloatArray:
    """Each curve's coefficients divided by its own largest one."""
    return np.asarray(z / np.abs(z).max(axis=-1, keepdims=True))


def published_features(scores: FloatArray, code: Encoding, name: str) -> FloatArray:
    """What b is multiplied with under the published rule α + ∫ x β̂ (C2), for raw curves x.

    Logistic regression draws β̂ = Σ b_k φ_k, so b meets ∫ x φ_k. CG and DWD fit a slope function,
    of which our b are the products with the φ_k, so b meets coefficients of x. For the SVM the
    printed numbers fit coefficients of x better than integrals.
    """
    matrix = code.integrals if name == "Logistic" else code.coefficients
    return np.asarray(scores @ matrix)


def decided(scores: FloatArray, *, code: Encoding, name: str, rule: str) -> FloatArray:
    """What classifiers are applied to under a rule: raw curves, or what they were trained on."""
    return seen(scores, code, seen_as(name, rule))


def seen_as(name: str, rule: str) -> str:
    """What of a person a classifier is applied to under a rule: a name for `seen`."""
    if rule != "as published":
        return "encoded"
    return "integrals" if name == "Logistic" else "coefficients"


def seen(scores: FloatArray, code: Encoding, kind: str) -> FloatArray:
    """That of people with these scores."""
    found = np.asarray(scores @ (code.integrals if kind == "integrals" else code.coefficients))
    return np.tanh(found) if kind == "encoded" else found


SIMULATED = MRMADesign(training_share=1 / 6, boundary_spread=None)
"""The studies of Figures 2 and 3: 500 of 3000 people report."""

RULES = ("as published", "corrected", "default")
"""How members become a classifier: see `under_rule`."""

GUARANTEES = dict.fromkeys(RULES, "ε-LDP for one person")
CLAIMED = "ε-LDP for one person"
EXACT = "The formula as printed; nothing is left open."


def under_rule(setting: Setting, rule: str, *, cutoff: float) -> Setting:
    """The papers' fixed cutoff and raw members; C2 and C3; or this package's default as well.

    The default shrinks intercepts that noise has moved (`intercept_shrinkage`).
    """
    if rule == "as published":
        return replace(setting, design=replace(setting.design, cutoff=cutoff), normalize=False)
    spread = DEFAULT_SPREAD if rule == "default" else None
    return replace(setting, design=replace(setting.design, boundary_spread=spread))


def collected(
    effort: Effort, work: Callable[..., dict[Any, FloatArray]], names: Iterable[Name]
) -> dict[Any, FloatArray]:
    """Errors that cells have found, joined by key."""
    found: dict[Any, list[FloatArray]] = {}
    for part in effort.sweep.run(work, names):
        for key, errors in part.items():
            found.setdefault(key, []).append(errors)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def rule_rows(means: Mapping[Any, float], columns: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each learner, rule and ε, from means by (learner, ε, rule, method)."""
    return [
        {"learner": name, "epsilon": epsilon, "rule": rule}
        | {method: means.get((name, epsilon, rule, method)) for method in columns}
        for name in LEARNERS
        for rule in RULES
        for epsilon in EPSILONS
    ]


def plot_rules(rows: list[dict[str, Any]], methods: Sequence[str]) -> Any:
    """Errors against ε, a panel for each rule and learner."""
    panels: dict[str, list[dict[str, Any]]] = {}
    for rule, row in product(RULES, rows):
        if row["rule"] == rule:
            panels.setdefault(f"{row['learner']}, {rule}", []).append(row)
    return named_lines(panels, methods, y="error, %")
