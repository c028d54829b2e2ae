"""The result of an MRMA study: the published classifier, its table and plots, and its exchange.

In an exchange, servers share their classifiers, and the people of all servers evaluate all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.errors import InvalidParameter, MissingExtra
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS, weights
from dpfda.local.mrma.designs import ExchangeDesign, public_halves, signs
from dpfda.local.mrma.members import Candidates, Judgement, RuleCandidates
from dpfda.protocol.estimate import HELD_OUT, Estimate, in_words, majority_error, wilson
from dpfda.protocol.findings import Findings
from dpfda.protocol.model import ClassModel, CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.report.panels import legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(eq=False)
class MRMAResult:
    """Members, their evaluation, and errors on held-out people.

    Attributes:
        candidates: the members and the sums of their evaluations.
        judgement: accuracies with standard errors, reversals and weights.
        error_estimate: error of the finished classifier, from private evaluations by people who
            answered nothing else; None without such people. It is never computed from the members'
            r̃*.
        errors: errors on held-out people by method, filled by `evaluate`.
        held_out: the number of held-out people.
        notes: sentences that a reader must know.
    """

    candidates: Candidates | RuleCandidates
    judgement: Judgement
    error_estimate: Estimate | None = None
    errors: dict[str, float] = field(default_factory=dict)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.judgement.weight.survived:
            self.notes.append(
                "no member passed the cutoff: the classifier is the single strongest one"
            )

    def evaluate(self, model: ClassModel, features: FloatArray, numbers: IntArray) -> None:
        """Errors of MRMA and of its parts on held-out people (encoded curves and label numbers).

        With several classes, only of MRMA, because members separate halves of the classes.
        """
        parts = self._parts(features, numbers) if len(model.classes) == 2 else {}
        errors = parts | {"MRMA": float(np.mean(model.decide(features) != np.asarray(numbers)))}
        guessing = majority_error(numbers)
        self.errors, self.held_out = errors | {"majority class": guessing}, len(features)
        self.notes.append(in_words(errors["MRMA"], guessing, len(features)))

    def _parts(self, features: FloatArray, numbers: IntArray) -> dict[str, float]:
        truth = (np.asarray(numbers) == 1)[:, None]
        scores = self.candidates.scores(features)
        weight = weights(self.judgement.accuracy.value, cutoff=self.judgement.cutoff).value
        unreversed = self.candidates.averaged_scores(features, weight)
        decided = {
            "Weak": scores >= 0,
            "MR only": scores * self.judgement.direction >= 0,
            "MA only": (unreversed >= 0)[:, None],
        }
        return {name: float(np.mean(guess != truth)) for name, guess in decided.items()}

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per method: error and interval, from held-out people or private evaluations.

        The interval is Wilson's interval of a proportion. For the methods "Weak" and "MR only",
        which are means over members, it is conservative.
        """
        rows = [
            {"method": name, "error": error, "low": low, "high": high}
            | {"people": self.held_out, "source": HELD_OUT}
            for name, error in self.errors.items()
            for low, high in [wilson(error, self.held_out, level)]
        ]
        if self.error_estimate is not None:
            error, low, high = self.error_estimate.shown(level, share=True)
            rows.append(
                {"method": "MRMA", "error": error, "low": low, "high": high}
                | {"people": self.error_estimate.people, "source": "private verdicts"}
            )
        return rows

    def members(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per member: accuracy before reversal with interval, reversal, and weight."""
        return self.judgement.table(level)


def classifier(
    candidates: Candidates,
    judgement: Judgement,
    *,
    plan: StudyPlan,
    sides: FloatArray | None = None,
) -> CurveModel:
    """Σ w_b f*_b over unit-norm candidates, a linear rule because members are linear.

    Args:
        candidates: the members.
        judgement: their evaluation.
        plan: the plan of the study.
        sides: for several classes, +1 if a class is in the half of a member and -1 otherwise, shape
            (B, K); the score of a class is the sum with these signs.
    """
    weight = judgement.signed_weight
    intercept, slopes = candidates.averaged(weight if sides is None else weight * sides.T)
    return CurveModel.linear(
        intercept=np.atleast_1d(intercept), coefficients=np.atleast_2d(slopes), **plan.stamp
    )


def unknown_model(plan: StudyPlan) -> CurveModel:
    """The classifier without any evaluation: ``classes[1]`` of two, else ``classes[0]``."""
    nothing = np.zeros((plan.n_scores, plan.encoder.n_features))
    return CurveModel.linear(intercept=nothing[:, 0], coefficients=nothing, **plan.stamp)


@dataclass(frozen=True, kw_only=True)
class MRMAFindings(Findings):
    """The findings about members.

    Attributes:
        candidates: the members and the sums of their evaluations; None before there are any.
        judgement: their accuracies, reversals and weights.
    """

    candidates: Candidates | RuleCandidates | None = None
    judgement: Judgement | None = None

    def members(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per member: accuracy before reversal with interval, reversal, and weight."""
        return [] if self.judgement is None else self.judgement.table(level)

    @property
    def judged(self) -> tuple[Candidates | RuleCandidates, Judgement]:
        """Members and their judgement; refused before there are any."""
        assert self.candidates is not None
        assert self.judgement is not None
        return self.candidates, self.judgement


def draw(result: MRMAResult, model: ClassModel, *, level: float = 0.95) -> Figure:
    """A matplotlib figure of slope function (if there is one), accuracies and weights."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    panels = 3 if isinstance(model, CurveModel) else 2
    figure, axes = pyplot.subplots(1, panels, figsize=(4.4 * panels, 3.8), layout="constrained")
    if isinstance(model, CurveModel):
        draw_slope(axes[0], model)
    draw_members(axes[-2], result, level=level)
    draw_weights(axes[-1], result)
    return figure


def draw_slope(axis: Axes, model: CurveModel) -> None:
    """Plot the slope function β(t) of the averaged members (C2), or the weight of each feature.

    With several classes: one line for each, or the weights of the first class.
    """
    encoder, coefficients = model.encoder, model.coefficients
    axis.axhline(0, color="0.7", linewidth=0.8)
    try:
        slope = encoder.slope(coefficients)
    except InvalidParameter:  # max_abs removes the scale of curves, so there is no slope function
        slope = None
    if slope is None or not encoder.basis.functional:
        heights = coefficients[0] if slope is None else slope[0]
        axis.bar(np.arange(len(heights)), heights)
        axis.set(title="weight of each feature", xlabel="feature")
        return
    points = np.linspace(*encoder.basis.domain_range, slope.shape[-1])
    axis.plot(points, slope.reshape(-1, slope.shape[-1]).T)  # one line for each class and channel
    axis.set(title="slope function", xlabel="t", ylabel="β(t)")


def draw_members(axis: Axes, result: MRMAResult, *, level: float) -> None:
    """Plot the sorted accuracies of members before reversal; reversed members are marked."""
    found = result.judgement.accuracy
    order = np.argsort(found.value)
    places = np.arange(len(order))
    low, high = found.interval(level)
    answered = np.isfinite(found.standard_error[order])
    spread = np.vstack([found.value - low, high - found.value])[:, order]
    turned = result.judgement.reversed[order]
    for chosen, marker, label in ((~turned, "o", "kept"), (turned, "v", "reversed")):
        shown = chosen & answered
        if shown.any():
            axis.errorbar(
                places[shown], found.value[order][shown], yerr=spread[:, shown],
                fmt=marker, markersize=4, linewidth=0.8, label=label,
            )  # fmt: skip
    axis.axhline(0.5, color="0.7", linewidth=0.8)
    axis.set(title=f"accuracy of members, {level:.0%} intervals", xlabel="member, sorted")
    if answered.any():
        legend_below(axis)


def draw_weights(axis: Axes, result: MRMAResult) -> None:
    """Plot the weight of each member, negative if it is reversed."""
    weight = result.judgement.signed_weight
    order = np.argsort(result.judgement.accuracy.value)
    axis.bar(np.arange(len(weight)), weight[order])
    axis.axhline(0, color="0.7", linewidth=0.8)
    axis.set(title="weights (below 0: reversed)", xlabel="member, sorted")


def same_recipe(model: CurveModel, other: CurveModel) -> bool:
    """Whether two classifiers have the same encoder and the same labels."""
    mine, others = (model.encoder, model.classes), (other.encoder, other.classes)
    return mine[0].to_dict() == others[0].to_dict() and mine[1] == others[1]


def plain_linear(model: CurveModel) -> bool:
    """Whether the scores are hyperplanes of all features, as reversal and averaging require."""
    plain = not len(model.folds) and not model.clipped
    whole = model.coefficients.shape[1] == model.encoder.n_features
    return bool(plain and whole and not model.centers.any())


def exchange_plan(
    models: Sequence[CurveModel],
    *,
    epsilon: float,
    people: int,
    cutoff: float | None = None,
    strictness: float = DEFAULT_STRICTNESS,
    evaluation_share: float = 0.0,
    **more: Any,
) -> StudyPlan:
    """The plan of the study in which one server's people evaluate all models.

    Args:
        models: plain linear models with the same encoder and classes, in an order that all servers
            know. With several classes, each model is split into rules for halves of the classes,
            which are evaluated separately.
        epsilon: ε of an evaluation.
        people: the number of this server's people who evaluate.
        cutoff: r0; None means the public default (C3).
        strictness: constant c of the default.
        evaluation_share: share of people who only evaluate the finished classifier.
        more: seed, title and unit of the plan.
    """
    first = models[0]
    known: dict[str, Any] = {"encoder": first.encoder, "classes": first.classes, **more}
    with np.errstate(over="ignore"):  # refused by the design
        intercepts = np.array([model.intercept for model in models])  # (models, scores)
        slopes = np.array([model.coefficients / model.scales for model in models])
    halves = None
    if len(first.classes) > 2:  # scores of the classes in a half minus those of the others
        public = public_halves(len(first.classes), seed=known.get("seed", 0))
        sides = signs(public, len(first.classes))
        intercepts, slopes = intercepts @ sides.T, np.einsum("gk,mkd->mgd", sides, slopes)
        halves = tuple(map(tuple, np.tile(public, (len(models), 1)).tolist()))
    design = ExchangeDesign(
        intercepts=tuple(intercepts.ravel().tolist()),
        coefficients=tuple(map(tuple, slopes.reshape(-1, slopes.shape[-1]).tolist())),
        halves=halves,
        cutoff=cutoff,
        strictness=strictness,
        evaluation_share=evaluation_share,
    )
    return StudyPlan(epsilon=epsilon, n_people=people, design=design.to_dict(), **known)


def verdict_sums(findings: Findings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sums of randomized evaluations (±1) of each model, and their numbers."""
    assert isinstance(findings, MRMAFindings)
    found, _ = findings.judged
    return tuple(map(int, found.totals)), tuple(map(int, found.people))


def concluded(plan: StudyPlan, totals: Sequence[int], people: Sequence[int]) -> CurveModel:
    """A server's own classifier: the models, reversed and averaged by its people's evaluations.

    Examples:
        >>> from dpfda.curves import CurveEncoder
        >>> design = ExchangeDesign(intercepts=(0.0, 0.0), coefficients=((1.0,), (-1.0,)))
        >>> plan = StudyPlan(
        ...     epsilon=2.0, n_people=100, classes=("no", "yes"), design=design.to_dict(),
        ...     encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)]),
        ... )
        >>> concluded(plan, [35, -35], [50, 50]).coefficients.tolist()  # the second one, reversed
        [[1.0]]
    """
    design = plan.built_design
    assert isinstance(design, ExchangeDesign)
    slopes = np.array(design.coefficients)
    judged = Candidates(np.array(design.intercepts), slopes, np.array(totals), np.array(people))
    judgement = judged.judged(
        epsilon=plan.epsilon, cutoff=design.cutoff, strictness=design.strictness
    )
    sides = signs(design.halves_of(plan), plan.n_classes) if plan.n_classes > 2 else None
    return classifier(judged, judgement, plan=plan, sides=sides)
