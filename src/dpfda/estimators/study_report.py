"""Results of a simulated study: a table of estimates and errors, a picture, report contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from dpfda.errors import MissingExtra
from dpfda.privacy.guarantee import as_table
from dpfda.protocol.estimate import HELD_OUT, Estimate, wilson
from dpfda.protocol.findings import ERROR, Findings, beside_guessing, found_of
from dpfda.protocol.model import RuleModel
from dpfda.protocol.plan import StudyPlan
from dpfda.report import Contents, Picture, Table
from dpfda.report.contents import show
from dpfda.report.panels import headed, legend_below

if TYPE_CHECKING:
    from dpfda.estimators.local_curve_classifier import LocalCurveClassifier
    from dpfda.estimators.local_curve_regressor import LocalCurveRegressor
    from dpfda.estimators.moment_classifier import MomentClassifier

LEFT_OUT = (
    "Errors on held-out people are left out: they were computed from these people's data without "
    "noise, and are not covered by the guarantee."
)
_BETTER, _NO_BETTER = "Better than", ("No better than", "Worse than")  # than guessing, or the mean


class Result(Protocol):
    """Numbers of a study with their intervals, and what they mean."""

    held_out: int
    notes: list[str]

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per number."""


def study_contents(
    estimator: LocalCurveClassifier | MomentClassifier | LocalCurveRegressor,
) -> Contents:
    """The contents of the report of a fitted estimator that simulated a study."""
    findings = estimator.server_.findings
    return of_study(
        estimator.model_._contents(),
        estimator.plan_,
        estimator.result_,
        simulated=estimator._is_simulation,
        verdict=beside_guessing(estimator.plan_, found_of(findings)),
        draw=estimator.plot,
        replies=findings.notes,
    )


def of_study(
    own: Contents,
    plan: StudyPlan,
    result: Result,
    *,
    simulated: bool,
    verdict: Mapping[str, Any],
    draw: Callable[[], Any],
    replies: Sequence[str] = (),
) -> Contents:
    """The contents of a model's report, extended by the results of its study.

    Args:
        own: the contents of the model alone.
        plan: the plan of the study.
        result: the result of the study.
        simulated: whether the study is a simulation; only then errors on held-out people are shown.
        verdict: the comparison with guessing (`protocol.beside_guessing`).
        draw: a function that draws a figure.
        replies: notes of the result that depend on replies only.
    """
    rows, notes = result.table(), tuple(result.notes)
    hidden = bool(result.held_out) and not simulated
    if hidden:
        rows = [row for row in rows if HELD_OUT not in row.values()]
        notes = (*replies, LEFT_OUT)
    title = "Estimates and errors; low and high are 1.96 standard errors of the noise away"
    tables = [Table.of(rows, title=title)] if rows else []
    if verdict["rows"]:
        tables.append(errors(plan, verdict["rows"]))
    good = not verdict["nothing"]
    elsewhere = not verdict["rows"] and result.held_out and not hidden
    sentences = () if elsewhere or not verdict["told"] else (verdict["told"],)
    better = tuple(note for note in notes if note.startswith(_BETTER))
    no_better = tuple(note for note in notes if note.startswith(_NO_BETTER))
    notes = tuple(note for note in notes if note not in better + no_better)
    return replace(
        own,
        doubts=(() if good else sentences) + no_better,
        verdict=(sentences if good else ()) + better,
        tables=(*tables, *own.tables),
        pictures=(Picture(caption="What was asked, and what was learnt.", draw=draw),),
        settings=settings(plan),
        notes=(*(note for note in notes if note not in " ".join(sentences)), *own.notes),
    )


def errors(plan: StudyPlan, rows: Sequence[Sequence[Any]], note: str = "") -> Table:
    """A table of errors: shares of wrong labels in percent, errors of numbers in their unit.

    Examples:
        >>> from dpfda.local.recipe import plan_study
        >>> plan = plan_study(100, 1.0, value_range=(0, 1), classes=("no", "yes"))
        >>> errors(plan, [("this model", 0.125, -0.1, 0.3)]).rows
        (('this model', '12.5 %', '0.0 %', '30.0 %'),)
    """

    def shown(error: float | None) -> Any:
        if error is None or plan.target_range is not None:
            return error
        return f"{100 * min(max(error, 0.0), 1.0):.1f} %"  # noise may lead outside [0, 1]

    cells = tuple((name, *map(shown, numbers)) for name, *numbers in rows)
    headings = ("error of", "error", "low", "high")
    return Table(headings=headings, rows=cells, title="Errors compared", note=note)


def settings(plan: StudyPlan) -> dict[str, Any]:
    """The public facts of a study."""
    basis = plan.encoder.basis
    known = {
        "people": plan.n_people,
        "ε of each": plan.epsilon,
        "what is learnt": plan.what_is_learnt,
        "what is protected": plan.protects,
        "range of t": basis.domain_range if basis.functional else None,
        "features": f"{plan.encoder.n_features} ({basis.name})",
        "design": plan.design,
        "hash of the plan": plan.hash,
    }
    return {name: value for name, value in known.items() if value is not None}


@dataclass(repr=False)
class StudyResult:
    """Estimates and errors of a study, each with its interval.

    Attributes:
        estimates: estimates from replies only, by name.
        errors: errors on held-out people, by method: the share of wrong labels, or an estimate of
            the root mean squared error of a number; set by `evaluate` of the estimator.
        held_out: number of held-out people.
        notes: notes on reading the numbers.
        shares: names of the estimates that are shares.
    """

    estimates: dict[str, Estimate] = field(default_factory=dict)
    errors: dict[str, float | Estimate] = field(default_factory=dict)
    held_out: int = 0
    notes: list[str] = field(default_factory=list)
    shares: frozenset[str] = frozenset()

    @classmethod
    def of(cls, findings: Findings) -> Self:
        """The estimates of a finished study."""
        shares = frozenset([ERROR] if findings.classes else [])
        return cls(estimates=findings.estimates(), notes=findings.said, shares=shares)

    def __repr__(self) -> str:
        return f"StudyResult({len(self.estimates)} estimates, {len(self.errors)} errors)"

    def __str__(self) -> str:
        """The notes on reading the numbers."""
        return "\n".join(self.notes) or repr(self)

    def _repr_html_(self) -> str:
        """HTML for notebooks: the estimates with their intervals."""
        rows = self.table()
        shown = [[show(cell) for cell in row.values()] for row in rows]
        return as_table(shown, headings=tuple(rows[0]) if rows else (), note=" ".join(self.notes))

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """One row per number: value, interval, and number of people."""
        rows = [
            (name, found.shown(level, share=name in self.shares), found.people, "private replies")
            for name, found in self.estimates.items()
        ]
        people = self.held_out
        for name, error in self.errors.items():
            numbers = (
                error.shown(level)
                if isinstance(error, Estimate)
                else (error, *wilson(error, people, level))
            )
            rows.append((f"error, {name}", numbers, people, HELD_OUT))
        names = ("quantity", "value", "low", "high", "people", "from")
        return [
            dict(zip(names, (quantity, *numbers, count, source), strict=True))
            for quantity, numbers, count, source in rows
        ]


def draw_study(model: RuleModel, findings: Findings) -> Any:
    """Draw the slope function (or weights), the estimates with intervals, the people by phase."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    asked = [phase for phase in findings.phases if phase.people]
    figure = Figure(figsize=(11, max(3.4, 0.2 * len(asked) + 0.8)), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    model.plot(left)
    names = list(findings.classes) if len(model.coefficients) > 1 else [None]
    for score, row in enumerate(findings.features):
        place = np.arange(1, len(row) + 1) + 0.1 * score
        values = [estimate.value for estimate in row]
        errors = [min(1.96 * estimate.standard_error, 10.0) for estimate in row]
        middle.errorbar(place, values, yerr=errors, fmt="o", capsize=3, label=names[score])
    middle.axhline(0, color="0.6", linewidth=0.8)
    headed(middle, f"{findings.title} (± 1.96 SE of the noise)")
    middle.set_xlabel("feature")
    places = range(max((len(row) for row in findings.features), default=1))
    middle.set_xticks([place + 1 for place in places])
    if findings.folded:
        middle.set_xticklabels(
            [findings.called(place).replace("distance ", "±") for place in places]
        )
        middle.set_xlabel("feature (±: its distance from the middle)")
    steps = [f"{number + 1}. {phase.kind}" for number, phase in enumerate(asked)]
    right.barh(steps, [phase.people for phase in asked], height=0.6)
    right.set_ylim(-0.9, max(len(asked), 3) - 0.1)
    if names[0] is not None:
        for line, name in zip(left.lines, names, strict=False):
            line.set_label(name)
        legend_below(left, title="class")
    right.invert_yaxis()
    right.set_title("people by phase", fontsize="small")
    right.set_xlabel("people")
    left.title.set_fontsize("small")
    return figure
