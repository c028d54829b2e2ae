"""A forecast as a table, a picture, JSON, and a folder with all files of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.estimators.study_report import settings
from dpfda.planning import words
from dpfda.planning.forecast import Forecast
from dpfda.planning.trials import Expected
from dpfda.report import Report
from dpfda.report.contents import Outcome
from dpfda.report.report import guarantee_in_words
from dpfda.report.terminal import to_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "Expected error and where nine of ten studies lie, for other ε and other numbers of people, "
    "between guessing, or the private mean (dashed), and no privacy (dotted)."
)


_BEFORE = "Nobody has been asked yet, and nothing is spent. Whoever takes part is promised:"


def outcome(found: Forecast) -> Outcome:
    """The rows, the notes and the picture."""
    named = [("this study", found.expected)]
    named += [(f"a second one, {whom}", second) for whom, second in found.second]
    shown = [one for _, one in named]
    named += [("other ε", one) for one in found.by_epsilon if one not in shown]
    named += [("other numbers", one) for one in found.by_people if one not in shown]
    return Outcome(
        rows=[_row(name, one, than=words.guess(found)) for name, one in named],
        notes=words.notes(found),
        plot=partial(draw, found) if found.by_epsilon and found.by_people else None,
    )


def document(found: Forecast) -> dict[str, Any]:
    """All fields of a forecast as JSON values."""
    plain = {name: value for name, value in vars(found).items() if name != "plan"}
    for name in ("by_epsilon", "by_people"):
        plain[name] = [asdict(one) for one in plain[name]]
    plain["second"] = {whom: asdict(one) for whom, one in found.second}
    plain["expected"] = asdict(found.expected)
    return plain | {"notes": words.notes(found), "plan": found.plan.to_dict()}


def write_folder(
    found: Forecast,
    folder: Path,
    facts: Mapping[str, Any],
    asked: Mapping[str, Any],
    read: Mapping[str, str],
) -> None:
    """Write plan, program, commands, consent, forecast and page to separate files.

    The last three arguments are those of `words.script`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "plan.json": to_json(found.plan.to_dict()) + "\n",
        "forecast.json": to_json(document(found)) + "\n",
        "consent.txt": words.consent(found.plan),
        "organizer.sh": words.organizer(found.plan),
        "take-part.sh": words.take_part(found.plan),
        "study.py": words.script(found, facts, asked, read),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    report(found).write(folder / "forecast.html")


def report(found: Forecast) -> Report:
    """The forecast on one page."""
    verdict, *notes = words.notes(found)
    bad = words.prospect(found) == "cannot work"
    shown = outcome(found).contents(
        caption=CAPTION,
        verdict=() if bad else (verdict,),
        doubts=(verdict,) if bad else (),
        settings=settings(found.plan),
        notes=tuple(notes),
    )
    promised = (_BEFORE, *guarantee_in_words(found.plan.guarantee))
    title = found.plan.title or "Can this study work?"
    return Report.measured(shown, title=title, method=words.method(found), promised=promised)


def _row(name: str, one: Expected, *, than: str) -> dict[str, Any]:
    return {
        "study": name,
        "people": one.people,
        "ε": one.epsilon,
        "error, %": round(100 * one.error, 1),
        "nine of ten, %": f"{100 * one.low:.1f} to {100 * one.high:.1f}",
        f"better than {than}": f"{one.better:.0%}",
    }


def draw(found: Forecast) -> Figure:
    """Error against ε and against the number of people, as a matplotlib figure."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    people = f"{found.plan.n_people:,} people"
    panels = [
        (found.by_epsilon, "epsilon", "ε", people),
        (found.by_people, "people", "people", f"ε = {found.plan.epsilon:g}"),
    ]
    for ax, (points, name, label, title) in zip(axes, panels, strict=True):
        x = [getattr(one, name) for one in points]
        low, high, mean = ([100 * getattr(one, part) for one in points] for part in _BAND)
        ax.fill_between(x, low, high, alpha=0.25, linewidth=0, label="nine of ten studies")
        ax.plot(x, mean, marker="o", markersize=4, label="expected")
        ax.axhline(100 * found.guessing, color="0.5", linestyle="--", label=words.guess(found))
        ax.axhline(100 * found.non_private, color="0.5", linestyle=":", label="no privacy")
        ax.axvline(getattr(found.expected, name), color="0.5", linewidth=0.8)
        ax.set(xscale="log", xlabel=label, title=title)
        ax.set_xticks(x, [f"{value:,g}" for value in x], fontsize="small")
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    numbers = found.plan.target_range is not None
    axes[0].set(ylabel="% of the variance left" if numbers else "error, %", ylim=(0, None))
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=4, fontsize="small", frameon=False
    )
    return figure


_BAND = ("low", "high", "error")
