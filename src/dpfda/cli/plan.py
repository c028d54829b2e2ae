"""``dpfda plan``: a study from public facts, before anybody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dpfda.cli._output import check_writable
from dpfda.cli._reading import read_ranges
from dpfda.questions.recipe import in_words, plan_study
from dpfda.study.outcome import Outcome
from dpfda.study.results import rows_table, to_json


@click.command()
@click.option("--people", "n_people", type=int, required=True, help="How many take part.")
@click.option("--epsilon", type=float, required=True, help="What each of them spends, once.")
@click.option("--classes", required=True, metavar="A,B,...", help="The labels.")
@click.option("--range", "--value-range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the values of a curve.")  # fmt: skip
@click.option("--domain-range", type=(float, float), metavar="START END", default=(0, 1),
    show_default=True, help="Public domain of the curves.")  # fmt: skip
@click.option("--feature-ranges", metavar="RANGES",
    help="For a table: 0:1,5:9 in order, age=18:99,weight=30:150, or a JSON file.")  # fmt: skip
@click.option("--protects", type=click.Choice(["both", "features", "labels"]), default="both",
    show_default=True, help="What is not public anyway.")  # fmt: skip
@click.option("--evaluation-share", type=float, default=0.0, show_default=True,
    help="Share of people who judge the finished classifier.")  # fmt: skip
@click.option("--class-share", type=float,
    help="Public share of the second label in order, such as a prevalence.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True,
    help="Of the public randomness: who is asked what.")  # fmt: skip
@click.option("--title", default="", help="For people to read.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(
    classes: str, feature_ranges: str | None, out: Path | None, as_json: bool, **facts: Any
) -> None:
    """Plan a study before anybody is asked.

    From public facts alone: what people are asked, how many of them, and what they are promised.
    """
    check_writable("--out", out)
    plan = plan_study(
        classes=[label.strip() for label in classes.split(",")],
        feature_ranges=None if feature_ranges is None else read_ranges(feature_ranges),
        **facts,
    )
    document = to_json(plan.to_dict())
    if out is not None:
        out.write_text(document + "\n", encoding="utf-8")
    if as_json:
        click.echo(document)
        return
    rows, notes = in_words(plan)
    Console().print(rows_table(Outcome(rows=rows, notes=notes), title=plan.title))
    click.echo(f"hash: {plan.hash}")
    if out is not None:
        click.echo(f"written to {out}", err=True)
