"""``dpfda demo``: two studies on a real collector with thousands of simulated people.

`run` returns an `Outcome`, which the command prints and writes as a report.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from dpfda._validate import FloatArray
from dpfda.client.crowd import RemoteCrowd
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.datasets import Dataset, simulate_001
from dpfda.local.recipe import JUDGES, plan_study
from dpfda.noise import SimulationSource
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.estimate import (
    NON_PRIVATE,
    in_words,
    majority_error,
    non_private_classifier,
    wilson,
)
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.report import Report
from dpfda.report.contents import Outcome
from dpfda.report.progress import progress
from dpfda.report.terminal import machine, rows_table, to_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Learning from curves that stay private: two studies over HTTP"
CAPTION = "The slope function of the simulation, and its estimates by both studies."

_EPSILON = 2.0
_HELD_OUT = 4000
_RANGE = (-6, 6)
_KNOWN: dict[str, Any] = {"epsilon": _EPSILON, "classes": (-1.0, 1.0)}


def _plans(people: int) -> dict[str, StudyPlan]:
    """A study with MRMA, and a study planned by `plan_study` from public facts."""
    return {
        "MRMA": StudyPlan(
            n_people=people,
            encoder=CurveEncoder("bspline", n_basis=4, rescale="tanh", scale=2.0),
            design={"name": "mrma", "n_classifiers": 20, "evaluation_share": JUDGES},
            title="demo: MRMA",
            **_KNOWN,
        ),
        "questions": plan_study(
            people,
            value_range=_RANGE,
            evaluation_share=JUDGES,
            title="demo: questions",
            **_KNOWN,
        ),
    }


def run(tell: Callable[[float], None] | None = None, *, people: int = 2000) -> Outcome:
    """Run both studies on a collector and compare them with a non-private classifier.

    Args:
        tell: called with the share of people done.
        people: number of people in each study.
    """
    plans = _plans(people)
    data = simulate_001(people * len(plans), random_state=0)
    tested = simulate_001(_HELD_OUT, random_state=1)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="dpfda-demo-") as folder:
        database = f"sqlite:///{Path(folder) / 'demo.db'}"
        with CollectorProcess(database) as collector:
            for plan in plans.values():
                collector.create(plan)
            sent = asyncio.run(_all_crowds(collector, plans, data, tell))
            found = {name: _result(collector, plan, tested) for name, plan in plans.items()}
    seconds = time.perf_counter() - started
    private = [
        _row(name, result["error"], result["private"], people) for name, result in found.items()
    ]
    rows = private + _baselines(plans["questions"].encoder, data, tested)
    guessing = majority_error(_labels(tested))
    promise = plan.guarantee.drawn_from(SimulationSource(0))
    notes = [
        f"Every person was invited, got one task and sent one reply. Guarantee: {promise}.",
        f"{len(plans) * people} people sent {sent / (len(plans) * people):.0f} bytes each over "
        f"HTTP to a collector on SQLite; {seconds:.1f} s in all.",
        f"Errors on {_HELD_OUT} held-out people; the private estimate comes from people who "
        "evaluated the finished model, each with one randomized bit.",
        NON_PRIVATE,
        *(f"{row['method']}: {in_words(row['error'], guessing, _HELD_OUT)}" for row in private),
    ]
    curves = {name: result["model"] for name, result in found.items()}
    return Outcome(
        rows=rows,
        figures={"seconds": seconds, "people": float(len(plans) * people)},
        notes=notes,
        plot=partial(_draw, tested, curves),
    )


def report(outcome: Outcome) -> Report:
    """The report of the demonstration on one page."""
    facts = Deployment(
        product="two classifiers of curves of simulated people",
        mechanism="the studies' reports",
        guarantee=Guarantee(epsilon=_EPSILON, model="local").drawn_from(SimulationSource(0)),
        domain={"classes": _KNOWN["classes"], "value_range": _RANGE},
    )
    return Report.of(facts, outcome.contents(caption=CAPTION), title=TITLE)


async def _all_crowds(
    collector: CollectorProcess,
    plans: dict[str, StudyPlan],
    data: Dataset,
    tell: Callable[[float], None] | None,
) -> int:
    """Let the people of both studies take part at the same time; return the bytes of replies."""
    total, done = len(data.X), 0

    def one_more() -> None:
        nonlocal done
        done += 1
        if tell is not None:
            tell(done / total)

    crowds = []
    for number, plan in enumerate(plans.values()):
        own = slice(number * plan.n_people, (number + 1) * plan.n_people)
        features, labels = encode_people(
            plan, data.X[own], _labels(data)[own], grid_points=data.grid_points
        )
        crowds.append(
            RemoteCrowd(
                collector.url,
                plan,
                features,
                labels,
                tokens=collector.invite(plan.hash, plan.n_people),
                source=SimulationSource(number),
                tell=one_more,
            )
        )
    await asyncio.gather(*(crowd.take_part() for crowd in crowds))
    return sum(crowd.bytes_sent for crowd in crowds)


def _result(collector: CollectorProcess, plan: StudyPlan, tested: Dataset) -> dict[str, Any]:
    """The published model, its error on held-out people, and the study's own estimate."""
    study = f"/api/studies/{plan.hash[:16]}"
    collector.wait_until(plan.hash[:16])
    model = CurveModel.from_dict(collector.request("GET", study + "/model"))
    history = collector.request("GET", study + "/models")
    wrong = model.predict(tested.X, grid_points=tested.grid_points) != _labels(tested)
    return {
        "model": model,
        "error": float(np.mean(wrong)),
        "private": history[-1]["summary"]["error"],
    }


def _row(name: str, error: float, private: dict[str, float] | None, people: int) -> dict[str, Any]:
    low, high = wilson(error, _HELD_OUT, 0.95)
    text = "" if private is None else f"{private['value']:.3f}"
    text += "" if private is None else f" [{private['low']:.3f}, {private['high']:.3f}]"
    return {
        "method": name,
        "ε": _EPSILON if private is not None else "",
        "people": people,
        "error": round(error, 4),
        "interval": f"[{low:.3f}, {high:.3f}]",
        "error by private verdicts": text,
    }


def _baselines(encoder: CurveEncoder, data: Dataset, tested: Dataset) -> list[dict[str, Any]]:
    seen, unseen = (
        encoder.coefficients(part.X, part.grid_points, strict=False) for part in (data, tested)
    )
    rule = non_private_classifier(seen, _labels(data))
    assert rule is not None
    wrong = float(np.mean(rule.predict(unseen) != _labels(tested)))
    return [
        _row("majority class", majority_error(_labels(tested)), None, len(data.X)),
        _row("non-private", wrong, None, len(data.X)),
    ]


def _labels(data: Dataset) -> FloatArray:
    assert data.y is not None
    return np.asarray(data.y, dtype=np.float64)


def _draw(data: Dataset, models: dict[str, CurveModel]) -> Figure:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    grid = data.grid_points
    assert grid is not None
    truth = data.truth["slope"]
    axes.plot(grid, truth / np.sqrt(np.mean(truth**2)), linewidth=4, alpha=0.35, label="truth")
    for name, model in models.items():
        rule = np.zeros(model.encoder.n_features)
        rule[: model.coefficients.shape[1]] = model.coefficients[0] / model.scales[0]
        slope = model.encoder.slope(rule, grid)
        axes.plot(grid, slope / np.sqrt(np.mean(slope**2)), linewidth=1.6, label=name)
    axes.set_xlabel("t")
    axes.set_ylabel("β(t), at the same size")
    axes.legend(frameon=False)
    return figure


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Write the report here.",
)
@click.option("--people", default=2000, show_default=True, help="People in each study.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(out: Path, people: int, as_json: bool) -> None:
    """Run two studies with simulated people.

    The command starts a collector on a temporary SQLite file and a free loopback port. All messages
    go over HTTP, and a report is written.
    """
    with progress("people") as tell:
        outcome = run(tell, people=people)
    path = report(outcome).write(out / "demo.html")
    if as_json:
        shown = {
            "name": "demo",
            "rows": outcome.rows,
            "figures": outcome.figures,
            "notes": outcome.notes,
            "report": str(path),
            "machine": machine(),
        }
        click.echo(to_json(shown))
        return
    Console(markup=False).print(rows_table(outcome, title=TITLE))
    click.echo(f"report: {path}")
