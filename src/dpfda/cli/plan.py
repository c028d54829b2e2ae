"""``dpfda plan``: plan a study from public facts, and forecast its error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from dpfda.cli._output import check_writable, delta_option, json_option
from dpfda.cli._reading import read_ranges, reading_from, reading_options
from dpfda.cli._sweep import SWEEP_OPTIONS, sweep_options, sweeping
from dpfda.curves.files import Reading
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.local.recipe import JUDGES, in_words, plan_averaging, plan_study
from dpfda.planning import page
from dpfda.planning.boosting import BASES, plan_boosting
from dpfda.planning.families import FAMILIES
from dpfda.planning.forecast import Forecast, forecast
from dpfda.planning.people_file import public_people
from dpfda.planning.releases import SUMMARIES, Summary, forecast_release
from dpfda.protocol.plan import StudyPlan
from dpfda.report.contents import Outcome
from dpfda.report.terminal import rich_table, rows_table, to_json

_NEED_FORECASTS = ("error", "class_shares", "family", "typical", "folder")
_ABOUT_FORECASTS = ("non_private_error", "sample", "studies", *_NEED_FORECASTS)


@click.group(invoke_without_command=True)
@click.option("--people", "n_people", type=int, help="Number of participants.")
@click.option("--epsilon", type=float, help="ε that each participant spends, once.")
@click.option("--error", type=float,
    help="Target error, where --people or --epsilon is left out. For a number: mean "
    "squared error as a share of its variance.")  # fmt: skip
@click.option("--method", type=click.Choice(["study", "mrma", "boosting"]), default="study",
    show_default=True,
    help="What participants are asked; mrma is the method of the papers, without a forecast; with "
    "boosting they are owners of several rows of a table.")  # fmt: skip
@click.option("--rows-per-owner", type=int, metavar="N",
    help="For the method boosting: number of rows of an owner that are used.")  # fmt: skip
@click.option("--base", type=click.Choice(BASES),
    help="For the method boosting: what owners send. [default: gradient]")  # fmt: skip
@click.option("--hostile-share", type=float, metavar="SHARE",
    help="For the method boosting: share of owners whose replies may be chosen to do the most "
    "damage. [default: 0]")  # fmt: skip
@click.option("--classifiers-per-person", type=int, metavar="K",
    help="For the method mrma: number of classifiers that a participant evaluates, with an equal "
    "part of ε for each. [default: 1]")  # fmt: skip
@click.option("--classes", metavar="A,B,...", help="The labels.")
@click.option("--target-range", type=(float, float), metavar="LOW HIGH",
    help="Public range of a number to predict, instead of labels.")  # fmt: skip
@click.option("--range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the values of a curve.")  # fmt: skip
@click.option("--domain-range", type=(float, float), metavar="START END", default=(0, 1),
    show_default=True, help="Public domain of the curves.")  # fmt: skip
@click.option("--feature-ranges", metavar="RANGES",
    help="For a table: 0:1,5:9 in order, age=18:99,weight=30:150, or, with categories, JSON or a "
    ".json or .toml file.")  # fmt: skip
@click.option("--protects", type=click.Choice(["both", "features", "labels"]), default="both",
    show_default=True, help="What is private: features, labels, or both.")  # fmt: skip
@click.option("--evaluation-share", type=float,
    show_default=f"{JUDGES:g}, or none where labels alone are protected",
    help="Share of participants who evaluate the finished model. With 0 its error stays "
    "unknown.")  # fmt: skip
@click.option("--temperature-share", type=float, default=0.0, show_default=True,
    help="Share of participants whose answers calibrate the probabilities of the "
    "finished model.")  # fmt: skip
@click.option("--class-share", type=float,
    help="Public share of the second label in order, such as a prevalence.")  # fmt: skip
@click.option("--spread-differs", is_flag=True,
    help="Classes may differ in spread, not only in location: add queries about it.")  # fmt: skip
@click.option("--non-private-error", type=float,
    help="Forecast: the error that you expect of a classifier without privacy, or the "
    "share of a number's variance that a regression leaves unexplained.")  # fmt: skip
@click.option("--family", type=click.Choice(list(FAMILIES)),
    help="Forecast: the kind of curves to simulate. Default: smooth curves, or a "
    "table.")  # fmt: skip
@click.option("--typical", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Forecast: a file of typical public curves, one a class, with their --label.")  # fmt: skip
@click.option("--sample", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Forecast: a file of public people instead, with their --label.")  # fmt: skip
@click.option("--shares", "class_shares", metavar="A,B,...",
    help="Forecast: shares of the labels, in sorted order. Default: equal shares.")  # fmt: skip
@click.option("--studies", type=int, default=40, show_default=True,
    help="Forecast: number of simulated studies.")  # fmt: skip
@reading_options(without={"groups": "everybody in a study has one curve or row"})
@click.option("--seed", type=int, default=0, show_default=True,
    help="Seed of the public randomness, which determines who is asked what.")  # fmt: skip
@click.option("--title", default="", help="Title of the study, which participants read.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path),
    help="Forecast: write plan, program, commands, consent text and page here.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the plan, or the forecast, as JSON.")
@sweep_options(kept=True)
@click.pass_context
def command(
    context: click.Context,
    /,
    classes: str | None,
    feature_ranges: str | None,
    out: Path | None,
    as_json: bool,
    **options: object,
) -> None:
    """Plan a study before anybody takes part.

    `dpfda plan release SUMMARY` forecasts a release of a curator instead (see its --help).

    The plan depends on public facts only. It states the queries, the number of people and their
    guarantee. With --non-private-error, or a --sample of public people, whole studies are simulated
    first. Give two of --people, --epsilon and --error; the third is computed.
    """
    if context.invoked_subcommand is not None:
        for parameter in context.command.params:
            if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
                rule = f"given after the word {context.invoked_subcommand}"
                raise DpfdaError(f"{parameter.opts[0]} must be {rule}")
        return
    check_writable("--out", out)
    reading = reading_from(options)
    method = options.pop("method")
    averaging = method == "mrma"
    told = {name: options.pop(name) for name in _ABOUT_FORECASTS}
    how = {name: options.pop(name) for name in SWEEP_OPTIONS}
    if options["evaluation_share"] is None and method != "boosting":
        options["evaluation_share"] = 0.0 if options["protects"] == "labels" else JUDGES
    facts: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if classes is not None:
        facts["classes"] = [label.strip() for label in classes.split(",")]
    elif "target_range" not in facts:
        raise InvalidParameter("--classes", "given, or --target-range for a number", None)
    if feature_ranges is not None:
        facts["feature_ranges"] = read_ranges(feature_ranges)
    if method == "boosting":
        _plan_owners(facts, told, how, out=out, as_json=as_json)
        return
    folder = told["folder"]
    _only_of("boosting", facts, "rows_per_owner", "base", "hostile_share")
    if averaging:
        _only_of_studies(facts, told)
    else:
        _only_of("mrma", facts, "classifiers_per_person")
    if told["non_private_error"] is not None or told["sample"] is not None:
        _two_of_three(facts, told)
        found = _forecast(facts, told, reading, how)
        plan, document = found.plan, page.document(found)
        shown = page.outcome(found)
    elif any(told[name] is not None for name in _NEED_FORECASTS):
        rule = "given for a forecast (or a --sample of public people)"
        raise InvalidParameter("--non-private-error", rule, None)
    else:
        for name in ("n_people", "epsilon"):
            if name not in facts:
                option = "--people" if name == "n_people" else "--epsilon"
                raise InvalidParameter(option, "given, or found by a forecast (--error)", None)
        plan = plan_averaging(**facts) if averaging else plan_study(**facts)
        document = plan.to_dict()
        shown = Outcome()
    if out is not None:
        out.write_text(to_json(plan.to_dict()) + "\n", encoding="utf-8")
    if as_json:
        click.echo(to_json(document))
    else:
        _print(plan, shown, (out, folder))


def _print(plan: StudyPlan, shown: Outcome, files: tuple[Any, ...]) -> None:
    """Print the plan, its forecast if there is one, and the written files."""
    console = Console(markup=False)
    rows, notes = in_words(plan)
    console.print(rows_table(Outcome(rows=rows, notes=notes), title=plan.title))
    if shown.rows:
        console.print(rows_table(shown, title="\nForecast"))
    click.echo(f"hash: {plan.hash}")
    for written in filter(None, files):
        click.echo(f"written to {written}", err=True)


@command.command()
@click.argument("summary", metavar="SUMMARY", type=click.Choice(SUMMARIES))
@click.option("--people", "--n", "n", type=int, help="Number of people in the data.")
@click.option("--epsilon", type=float, help="ε of the release.")
@click.option("--error", type=float,
    help="The error to reach, where --people or --epsilon is left out.")  # fmt: skip
@delta_option
@click.option("--range", "value_range", type=(float, float), metavar="LOW HIGH",
    required=True,
    help="Public range of the values of a curve, of points, or of a target.")  # fmt: skip
@click.option("--spread", type=float, default=0.15, show_default=True,
    help="Guess: standard deviation of people about their mean, as a share of the "
    "range.")  # fmt: skip
@click.option("--points", type=int, default=50, show_default=True,
    help="Grid points of a curve.")  # fmt: skip
@click.option("--features", type=int, default=3, show_default=True,
    help="Columns of a regression.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulation.")
@click.option("--repeats", type=int, default=20, show_default=True,
    help="Number of simulated releases.")  # fmt: skip
@json_option
def release(summary: Summary, as_json: bool, **options: Any) -> None:
    """Forecast a release before anything is spent.

    SUMMARY is mean, groups, components, regression or density. The command simulates people from
    public facts and releases their data with seeded noise. It prints the expected error and the
    error without privacy. Give two of --people, --epsilon and --error; the third is computed. No
    file is read.
    """
    named = {"n": "--people", "epsilon": "--epsilon", "error": "--error"}
    given = [option for name, option in named.items() if options[name] is not None]
    if len(given) != 2:
        rule = "given, two of the three: the third is computed"
        raise InvalidParameter("--people, --epsilon and --error", rule, given)
    found = forecast_release(summary, **options)
    if as_json:
        click.echo(to_json(found.to_dict()))
        return
    console = Console(markup=False)
    console.print(rich_table(found.table()))
    console.print(str(found), markup=False)


_OF_STUDIES = ("target_range", "temperature_share", "class_share", "spread_differs")


def _only_of_studies(facts: dict[str, Any], told: dict[str, Any]) -> None:
    """Refuse options that method mrma does not have, and remove their defaults from the facts."""
    for name in _OF_STUDIES:
        if facts.pop(name, None):
            rule = "left out with --method mrma"
            raise InvalidParameter(f"--{name.replace('_', '-')}", rule, "given")
    for name in ("non_private_error", "sample", "error"):
        if told[name] is not None:
            rule = "left out with --method mrma, which has no forecast (see dpfda simulate)"
            raise InvalidParameter(f"--{name.replace('_', '-')}", rule, "given")


def _plan_owners(
    facts: dict[str, Any],
    told: dict[str, Any],
    how: dict[str, Any],
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    """Plan a study of owners, print it and write it."""
    names = {"people": "owners", "error": "error"}
    given: dict[str, Any] = {"owners": facts.pop("n_people", None), "error": told.pop("error")}
    needed = {"--rows-per-owner": facts, "--feature-ranges": facts, "--non-private-error": told}
    for option, where in needed.items():
        if where.get(option[2:].replace("-", "_")) is None:
            raise InvalidParameter(option, "given with --method boosting", None)
    for name in ("non_private_error", "studies"):
        given[name] = told.pop(name)
    given["shares"] = _numbers(told.pop("class_shares"))
    allowed = {"epsilon", "classes", "feature_ranges", "rows_per_owner", "base", "hostile_share"}
    allowed |= {"unit", "seed"}
    ignored = {"domain_range": (0, 1), "protects": "both", "title": "", "evaluation_share": None}
    for name, value in {**facts, **told}.items():
        if name not in allowed and value and value != ignored.get(name):
            rule = "left out with --method boosting"
            option = "range" if name == "value_range" else name.replace("_", "-")
            raise InvalidParameter(f"--{option}", rule, value)
    given |= {name: value for name, value in facts.items() if name in allowed}
    if sum(given.get(name) is not None for name in (*names.values(), "epsilon")) != 2:
        rule = "given, two of the three: the third is computed"
        raise InvalidParameter("--people, --epsilon and --error", rule, None)
    with sweeping("plan boosting", how) as sweep:
        found = plan_boosting(**given, sweep=replace(sweep, tell=None))
    if out is not None:
        out.write_text(to_json(found.plan.to_dict()) + "\n", encoding="utf-8")
    if as_json:
        click.echo(to_json(found.to_dict()))
        return
    Console(markup=False).print(rows_table(found.outcome, title="Forecast"))
    click.echo(f"hash: {found.plan.hash}")
    if out is not None:
        click.echo(f"written to {out}", err=True)


def _numbers(text: str | None) -> list[float] | None:
    """Parse numbers like 0.7,0.3."""
    try:
        return None if text is None else [float(one) for one in text.split(",")]
    except ValueError:
        raise InvalidParameter("--shares", "numbers like 0.7,0.3", text) from None


def _only_of(method: str, facts: dict[str, Any], *names: str) -> None:
    """Refuse options that only another method has."""
    for name in names:
        if (given := facts.pop(name, None)) is not None:
            rule = f"left out without --method {method}"
            raise InvalidParameter(f"--{name.replace('_', '-')}", rule, given)


def _two_of_three(facts: dict[str, Any], told: dict[str, Any]) -> None:
    """Check that two of three options are given, so that errors name options."""
    names = {"--people": "n_people", "--epsilon": "epsilon", "--error": "error"}
    given = [option for option, name in names.items() if {**told, **facts}.get(name) is not None]
    if len(given) != 2:
        rule = "given, two of the three: the third is computed"
        raise InvalidParameter("--people, --epsilon and --error", rule, given)


def _forecast(
    facts: dict[str, Any], told: dict[str, Any], reading: Reading, how: dict[str, Any]
) -> Forecast:
    """Compute the forecast and write the folder."""
    paths = {name: path for name in ("typical", "sample") if (path := told.pop(name))}
    shares, folder = told.pop("class_shares"), told.pop("folder")
    asked = {name: value for name, value in told.items() if value is not None}
    if shares is not None:
        asked["class_shares"] = _numbers(shares)
    known: dict[str, Any] = {name: facts.get(name) for name in ("classes", "feature_ranges")}
    for name, path in paths.items():
        asked[name], said = public_people(path, reading, **known)
        click.echo(said, err=True)
    with sweeping("plan", how) as sweep:
        still = replace(sweep, tell=None)
        found = forecast(**facts, **asked, sweep=still, tell=sweep.tell)
    if folder is not None:
        own = {name: value for name, value in facts.items() if name not in ("n_people", "epsilon")}
        plain = {name: asked[name] for name in asked if name not in ("error", *paths)}
        texts = {name: _read_again(name, path, reading, known) for name, path in paths.items()}
        page.write_folder(found, folder, own, plain, texts)
    return found


def _read_again(name: str, path: Path, reading: Reading, known: dict[str, Any]) -> str:
    """Python source that reads a file of public people."""
    return (
        "from pathlib import Path\n\nfrom dpfda.curves.files import Reading\n"
        "from dpfda.planning.people_file import public_people\n\n"
        f"path = Path({str(path.resolve())!r})\nreading = {reading!r}\n"
        f"{name}, said = public_people(path, reading, **{known!r})\n\n"
    )
