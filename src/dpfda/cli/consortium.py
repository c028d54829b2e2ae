"""``dpfda consortium``: the coordinator's side of a study of sites that share only masked sums."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from dpfda.cli._output import delta_option, print_document
from dpfda.cli._reading import public_labels, read_ranges
from dpfda.curves.files import Reading
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter, printable
from dpfda.estimators.boosting_base import BoostingClassifier
from dpfda.estimators.file_block import frame
from dpfda.estimators.local_ada_boost_classifier import RULES, LocalAdaBoostClassifier
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.privacy import durable
from dpfda.protocol.model import CurveModel
from dpfda.report.documents import Documented
from dpfda.sites.app import environment
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.identity import Card, Certificates
from dpfda.sites.inquiry import Inquiry
from dpfda.sites.link import FlowerCarrier
from dpfda.sites.owners import OwnersInquiry
from dpfda.sites.plan import Plan, PlanBody
from dpfda.sites.processes import ended_by_signals
from dpfda.sites.servers import ServersInquiry
from dpfda.sites.shared import SharedInquiry
from dpfda.sites.stored_files import alone, kept, secret
from dpfda.sites.study_folder import StudyFolder, read_card
from dpfda.sites.sums import TableInquiry

ESTIMATORS = {
    "classes": "PrivateCurveClassifier",
    "components": "PrivateFPCA",
    "covariance": "PrivateCovariance",
    "curve-regression": "PrivateCurveRegression",
    "density": "PrivateDensity",
    "function-on-scalar": "PrivateFunctionOnScalar",
    "groups": "PrivateGroupComparison",
    "linear": "PrivateLinearRegression",
    "logistic": "PrivateLogisticRegression",
    "mean": "PrivateMean",
    "moments": "PrivateMoments",
}
_NO_REFERENCE = (
    "warning: without --reference, features are built for rows spread evenly over the public "
    "ranges; where real rows are skewed, the model may predict no better than the majority class"
)
_LABELS = {"classes": "classes", "logistic": "classes", "groups": "groups"}
_CURVES_OF = "function-on-scalar"  # the result whose targets are curves
_MOST = 10_000  # columns
Command = Callable[..., Any]


def inquiry_options(command: Command) -> Command:
    """Add the options that `inquiry_from` reads."""
    pair: dict[str, Any] = {"type": (float, float), "metavar": "LOW HIGH"}
    given: list[Callable[[Command], Command]] = [
        click.option("--ask", "what", type=click.Choice(sorted([*ESTIMATORS, *OTHERS])),
            required=True, help="The result to compute."),
        click.option("--target", help="Column to predict, or column of classes or groups; for "
    "function-on-scalar all columns of the curve: t0..t49."),
        click.option("--feature-ranges", metavar="RANGES",
            help="Columns of a table with public ranges: age=18:99,weight=30:150, or a .json "
            "file, which may list categories."),
        click.option("--columns", metavar="COLUMNS",
            help="Columns of a curve, one for each point: t0..t49, or a,b,c."),
        click.option("--grid", metavar="START:END", default="0:1", show_default=True,
            help="Positions of the first and the last point."),
        click.option("--range", "value_range", **pair, help="Public range of curves' values."),
        click.option("--target-range", **pair, help="Public range of the target."),
        click.option("--classes", help="Public labels of the target: no,yes."),
        click.option("--mechanism", help="Mechanism, if the result has several."),
        click.option("--epsilon", type=float, required=True,
            help="ε of the study."),
        delta_option,
        click.option("--unit", help="Protected unit: whose data one row is, or all rows of an "
    "owner. Default: person or owner."),
        click.option("--rule", type=click.Choice(RULES), default="statistic", show_default=True,
            help="What owners send (ada-boost)."),
        click.option("--rounds", type=click.IntRange(1), default=10, show_default=True,
            help="Number of rounds, each with other owners (boosting)."),
        click.option("--rows-per-owner", type=click.IntRange(1),
            help="How many rows of an owner count (boosting)."),
        click.option("--reference", type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE", help="Public rows with the columns of --feature-ranges, from which "
            "features are built; the plan contains some of them (boosting)."),
        click.option("--like", type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="MODEL", help="Model of any server: all servers use its encoder (servers)."),
        click.option("--own-epsilon", type=float,
            help="Largest ε that a server's own study cost its participants (servers)."),
    ]  # fmt: skip
    for option in reversed(given):
        command = option(command)
    return command


def inquiry_from(given: dict[str, Any], *, rows: int) -> SharedInquiry:
    """The inquiry that the options describe."""
    if given["what"] in OTHERS:
        return OTHERS[given["what"]](given, rows)
    parameters = {name: given[name] for name in ("epsilon", "delta")}
    parameters["unit"] = given["unit"] or "person"
    for name in ("value_range", "target_range"):
        if given[name] is not None:
            parameters[name] = list(given[name])
    if given["mechanism"] is not None:
        parameters["mechanism"] = given["mechanism"]
    targets: tuple[str, ...] = () if given["target"] is None else (given["target"],)
    if given["what"] == _CURVES_OF:
        targets = listed(given["target"] or "", option="--target")
    columns, points = _columns(given, parameters, targets)
    if given["what"] in _LABELS:
        parameters[_LABELS[given["what"]]] = list(public_labels(given["classes"]))
    elif given["classes"] is not None:
        rule = f"left out for --ask {given['what']}, which has no labels"
        raise InvalidParameter("--classes", rule, given["classes"])
    inquiry = Inquiry(
        estimator=ESTIMATORS[given["what"]],
        parameters=parameters,
        rows=rows,
        columns=columns,
        grid_points=points,
    )
    return TableInquiry(inquiry=inquiry, targets=targets)


def _columns(
    given: dict[str, Any], parameters: dict[str, Any], targets: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[float, ...] | None]:
    """Columns of X, and the grid points if X or the targets are curves."""
    if (given["feature_ranges"] is None) == (given["columns"] is None):
        rule = "given, one of them: the columns of a table, or of curves"
        raise InvalidParameter("--feature-ranges or --columns", rule, None)
    if given["feature_ranges"] is not None:
        ranges = parameters["feature_ranges"] = _named_ranges(given)
        points = _points(given["grid"], len(targets)) if given["what"] == _CURVES_OF else None
        return tuple(ranges), points
    names = listed(given["columns"])
    return names, _points(given["grid"], len(names))


def _named_ranges(given: dict[str, Any]) -> dict[str, list[Any]]:
    ranges = read_ranges(given["feature_ranges"])
    if not isinstance(ranges, dict):
        rule = "like age=18:99,weight=30:150, or a .json file: the columns by their names"
        raise InvalidParameter("--feature-ranges", rule, given["feature_ranges"])
    return {name: list(known) for name, known in ranges.items()}


def _owners(given: dict[str, Any], owners: int) -> OwnersInquiry:
    """A boosting study of the owners at all sites."""
    for name in ("feature_ranges", "target", "rows_per_owner"):
        if given[name] is None:
            rule = f"given with --ask {given['what']}"
            raise InvalidParameter("--" + name.replace("_", "-"), rule, None)
    ranges = _named_ranges(given)
    parameters: dict[str, Any] = {
        "n_rounds": given["rounds"],
        "rows_per_owner": given["rows_per_owner"],
        "feature_ranges": ranges,
        "classes": public_labels(given["classes"]),
        "unit": given["unit"] or "owner",
    }
    classifier: BoostingClassifier
    if given["what"] == "ada-boost":  # the coordinator has no labeled rows
        parameters |= {"rule": given["rule"], "validation": "feedback"}
        classifier = LocalAdaBoostClassifier(given["epsilon"], **parameters)
    else:
        classifier = LocalGradientBoostingClassifier(given["epsilon"], **parameters)
    reference = None
    if given["reference"] is not None:
        table, public = Reading().open(given["reference"]).table(), PublicColumns.of(ranges)
        for name in ranges:
            if name not in table.names:
                raise InvalidData("--reference", f"a table with the column {name!r}")
        reference = frame(table, public, gaps=True)
    else:
        click.echo(_NO_REFERENCE, err=True)
    study = classifier.planned(owners, reference=reference)
    return OwnersInquiry(study=study, feature_ranges=ranges, target=given["target"])


def _servers(given: dict[str, Any], people: int) -> ServersInquiry:
    """A study in which servers share and evaluate their models."""
    for name in ("like", "own_epsilon"):
        if given[name] is None:
            rule = "given with --ask servers"
            raise InvalidParameter("--" + name.replace("_", "-"), rule, None)
    like = CurveModel.from_json(given["like"].read_bytes())
    return ServersInquiry(
        encoder=like.encoder,
        classes=like.classes,
        epsilon=given["epsilon"],
        own_epsilon=given["own_epsilon"],
        unit=given["unit"] or "person",
    )


OTHERS: dict[str, Callable[[dict[str, Any], int], SharedInquiry]] = {
    "ada-boost": _owners,
    "gradient-boosting": _owners,
    "servers": _servers,
}
"""Inquiries that do not ask about rows of a table."""


def _points(grid: str, count: int) -> tuple[float, ...]:
    try:
        start, end = map(float, grid.split(":"))
    except ValueError:
        raise InvalidParameter("--grid", "like 0:24", grid) from None
    return tuple(np.linspace(start, end, count).tolist())


def listed(text: str, *, option: str = "--columns") -> tuple[str, ...]:
    """Parse names of columns and numbered ranges of names.

    Examples:
        >>> listed("t0..t3,last")
        ('t0', 't1', 't2', 't3', 'last')
        >>> listed("t08..t10")
        ('t08', 't09', 't10')
    """
    found: list[str] = []
    for part in text.split(","):
        counted = re.fullmatch(r"(\D*)(\d+)\.\.(\D*)(\d+)", part.strip())
        if counted is None:
            found.append(part.strip())
            continue
        first, last = int(counted[2]), int(counted[4])
        if counted[1] != counted[3] or not first < last < first + _MOST:
            raise InvalidParameter(option, "like t0..t49", part)
        width = len(counted[2])  # t00..t49 keeps leading zeros
        found += [f"{counted[1]}{number:0{width}}" for number in range(first, last + 1)]
    if not all(found):
        raise InvalidParameter(option, "names of columns", text)
    return tuple(found)


_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Lead a study of hospitals that share only masked sums."""


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--name", required=True, help="Name of the coordinator.")
def init(folder: Path, name: str) -> None:
    """Create the identity of a coordinator. Sites pin its card once, for all its studies."""
    place = StudyFolder(folder)
    if place.card_path.exists():
        raise InvalidParameter("FOLDER", "one without an identity", str(folder))
    _write_card(place, card := Card.signed_by(place.identity, name=name))
    click.echo(f"coordinator {printable(card.name)}, fingerprint {card.fingerprint}")
    click.echo(f"give {place.card_path} to every site; keep the rest")


def _write_card(place: StudyFolder, card: Card) -> None:
    durable.keep(place.card_path, msgspec.json.format(msgspec.json.encode(card), indent=2))


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--name", help="Name of the coordinator, unless --identity is given.")
@click.option("--identity", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder made by `dpfda consortium init`, whose coordinator leads the study.")  # fmt: skip
@click.option("--study", required=True, help="Title of the study.")
@click.option("--site", "sites", type=_FILE, multiple=True, required=True, metavar="CARD",
    help="Card of a site that takes part; may be repeated.")  # fmt: skip
@click.option("--address", default="127.0.0.1:8000", show_default=True, metavar="HOST:PORT",
    help="Address at which sites reach the coordinator.")  # fmt: skip
@inquiry_options
@click.option("--colluders", type=int, default=1, show_default=True,
    help="Number of sites that may collude with the coordinator.")  # fmt: skip
@click.option("--dropouts", type=int, default=0, show_default=True,
    help="Number of sites that may drop out during a question.")  # fmt: skip
def plan(folder: Path, **given: Any) -> None:
    """Write a plan for sites to sign: only its queries are asked."""
    cards = tuple(map(read_card, given["sites"]))
    asked = inquiry_from(given, rows=sum(card.rows for card in cards))
    host = _check_address("--address", given["address"])
    place = StudyFolder(folder)
    card = _coordinator(place, given["name"], given["identity"])
    made = Certificates.made_for(host)
    body = PlanBody(
        study=given["study"],
        coordinator=card,
        sites=cards,
        colluders=given["colluders"],
        dropouts=given["dropouts"],
        inquiry=asked.to_dict(),
        address=given["address"],
        certificate=made.authority.decode(),
    )
    written = Plan.signed_by(place.identity, body)
    place.begin(written)
    durable.keep(place.private / "server.pem", made.server)
    durable.keep(place.private / "server.key", made.key)
    _write_card(place, card)
    for line in str(written).split("\n"):
        click.echo(printable(line))
    click.echo(f"give {place.plan_path} and {place.card_path} to every site; keep the rest")


def _coordinator(place: StudyFolder, name: str | None, identity: Path | None) -> Card:
    """The card of a new or existing identity; its key is copied into the folder of the study."""
    if (name is None) == (identity is None):
        rule = "given, or --identity with the folder of `dpfda consortium init`, and not both"
        raise InvalidParameter("--name", rule, name)
    if identity is None:
        return Card.signed_by(place.identity, name=str(name))
    lasting = StudyFolder(identity)
    if not lasting.card_path.exists():
        raise InvalidParameter("--identity", "a folder of `dpfda consortium init`", str(identity))
    card, key = read_card(lasting.card_path), lasting.private / "identity.key"
    kept(place.private / "identity.key", secret(key))
    if card.public != lasting.identity.public or card.public != place.identity.public:
        raise InvalidParameter("FOLDER", "one without another identity", str(place.path))
    return card


@command.command()
@click.argument("folder", type=_FOLDER)
@click.option("--wait", type=float, default=120.0, show_default=True,
    help="Seconds after which a site that did not reply counts as dropped out.")  # fmt: skip
@click.option("--gather", type=float, default=600.0, show_default=True,
    help="Seconds to wait for sites to connect.")  # fmt: skip
@click.option("--start", type=float, default=120.0, show_default=True,
    help="Seconds that Flower's processes here may take to start.")  # fmt: skip
@click.option("--bind", metavar="HOST:PORT",
    help="Where to listen, if not at the plan's address: 0.0.0.0:8443.")  # fmt: skip
def run(folder: Path, wait: float, gather: float, start: float, bind: str | None) -> None:
    """Send the queries of the plan to the sites, and write the result.

    After a crash, run the command again: it continues where it stopped. If there is a result, it
    notifies the sites, so that their processes end.
    """
    if bind is not None:
        _check_address("--bind", bind)
    place = StudyFolder(folder)
    found = place.plan()
    if place.over_path.exists():
        raise InvalidParameter("FOLDER", "a folder without a result", str(folder))
    environment(place.private / "network" / "home")  # raises an error if Flower is missing
    with (
        ended_by_signals(),
        alone(place.private / "run.lock", "this study"),
        FlowerCarrier(place, found, bind=bind, wait=wait, start=start, say=_say) as carry,
    ):
        leader = Coordinator(found, identity=place.identity, folder=place, carrier=carry, say=_say)
        # sites that know of the end are gone; those that still wait reconnect soon
        again = place.finished
        _await(carry, found, min(gather, wait) if again else gather)
        published = _concluded(leader, again=again)
        kept = place.keep_results(published)
        for name, path in kept.items():
            if len(published) > 1:
                click.echo(printable(name))
            print_document(published[name])
            click.echo(f"written to {path}", err=True)
        leader.end(carry.present() if again else None)
        durable.keep(place.over_path, b"")


@command.command()
@click.argument("folder", type=_FOLDER)
def status(folder: Path) -> None:
    """Show who signed a plan, and how many of its questions are answered."""
    place = StudyFolder(folder)
    found = place.plan()
    for line in str(found).split("\n"):
        click.echo(printable(line))
    agreed = place.agreed
    for name in found.terms.names:
        click.echo(f"{printable(name)}: {'signed' if name in agreed else 'not heard of'}")
    for number, attempts in enumerate(place.attempts):
        who = place.who(number)
        how = "no answer" if who is None else f"answered by {len(who)} sites"
        click.echo(f"question {number}: {how}, {attempts} attempts")
    click.echo("finished" if place.finished else "not finished")


def _check_address(option: str, given: str) -> str:
    """Check an address and return its host."""
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise InvalidParameter(option, "like 10.0.0.5:8000", given)
    return host


def _concluded(leader: Coordinator, *, again: bool) -> dict[str, Documented]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the result
        # `lead` uses stored answers
        return leader.plan.inquiry.lead(leader) if again else leader.run()


def _await(carry: FlowerCarrier, found: Plan, gather: float) -> None:
    """Wait until every site is connected, or until the time is over."""
    end, said = time.monotonic() + gather, None
    while True:
        present = carry.present()
        missing = [name for name in found.terms.names if name not in present]
        if not missing or time.monotonic() >= end:
            return
        if missing != said:
            _say(f"waiting for {', '.join(missing)}")
            said = missing
        time.sleep(0.5)


def _say(text: str) -> None:
    click.echo(printable(text), err=True)
