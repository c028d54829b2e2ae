"""``dpfda simulate``: simulate studies with the rows of a file as their participants."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click
import numpy as np
from rich.console import Console

from dpfda import _validate
from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.cli._output import json_option
from dpfda.cli._reading import (
    feature_ranges,
    public_domain,
    public_labels,
    read_ranges,
    reading_from,
    reading_options,
)
from dpfda.curves import CurveEncoder
from dpfda.curves.files import Reading
from dpfda.curves.observations import public_domain as domain_of
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.file_block import check_labels, frame
from dpfda.estimators.local_curve_classifier import LocalCurveClassifier
from dpfda.estimators.local_gradient_boosting_classifier import LocalGradientBoostingClassifier
from dpfda.estimators.mrma_classifier import MRMAClassifier
from dpfda.estimators.multi_server_mrma import MultiServerMRMA
from dpfda.estimators.reading import take
from dpfda.protocol.estimate import NON_PRIVATE, majority_error, non_private_classifier, wilson
from dpfda.report.contents import Outcome
from dpfda.report.terminal import rows_table, to_json

STAMP = (
    "A simulation with seeded noise: all rows of the file are used directly, and errors on test "
    "people are computed without noise. Nothing printed here is private."
)
GUARANTEE = "In a real study every participant would have ε-local differential privacy."
_BASIS = 8  # basis functions of a curve, for methods without an encoder


@dataclass(frozen=True, kw_only=True)
class People:
    """The people of a file, in the form that all methods use.

    Attributes:
        X: curves, or numbers of a table.
        labels: one label per row.
        classes: the public set of labels; None: those of the file.
        given: the public ranges, as parameters of estimators.
        points: grid points of curves, if they have common ones.
        persons: identifier of each row's person; None if every person has one row.
        servers: the server of each row; None without servers.
    """

    X: FloatArray | Sequence[object]
    labels: AnyArray
    classes: tuple[str, ...] | None
    given: dict[str, Any]
    points: FloatArray | None = None
    persons: AnyArray | None = None
    servers: AnyArray | None = None

    def only(self, who: IntArray) -> People:
        """Some of the rows."""
        persons = None if self.persons is None else self.persons[who]
        servers = None if self.servers is None else self.servers[who]
        chosen = {"X": take(self.X, who), "labels": self.labels[who]}
        return replace(self, **chosen, persons=persons, servers=servers)

    @property
    def number(self) -> int:
        """Number of people."""
        return len(self.labels if self.persons is None else np.unique(self.persons))

    @property
    def features(self) -> FloatArray:
        """Numbers of a table unchanged; curves as coefficients within their public range."""
        ranges = self.given.get("value_range")
        if ranges is None:
            return np.asarray(self.X)
        domain = domain_of(self.X, self.points, self.given["domain_range"])
        size = 4 if self.points is None else int(np.clip(np.size(self.points), 4, _BASIS))
        encoder = CurveEncoder("bspline", n_basis=size, domain_range=domain, feature_ranges=ranges)
        return encoder.encode(self.X, self.points, strict=False)


Predict = Callable[[People], AnyArray]


class Known(TypedDict):
    """Parameters of every method besides the people."""

    epsilon: float
    classes: tuple[str, ...] | None
    random_state: int


def _one_server(
    kind: type[LocalCurveClassifier] | type[MRMAClassifier], **parameters: Any
) -> Callable[..., Predict]:
    """Methods whose participants answer one server."""

    def fitted(people: People, **known: Unpack[Known]) -> Predict:
        made = kind(**people.given, **known, **parameters)
        made.fit(people.X, people.labels, grid_points=people.points, groups=people.persons)
        return lambda others: np.asarray(made.predict(others.X, grid_points=others.points))

    return fitted


def _several_servers(people: People, **known: Unpack[Known]) -> Predict:
    """Servers that share classifiers; each row is predicted by its own server."""
    if people.servers is None:
        raise InvalidParameter("--servers", "given for several servers: the column of names", None)
    made = MultiServerMRMA(**people.given, **known)
    where = {"groups": people.persons, "servers": people.servers}
    made.fit(people.X, people.labels, grid_points=people.points, **where)

    def predict(others: People) -> AnyArray:
        assert others.servers is not None
        found = np.empty(len(others.labels), dtype=others.labels.dtype)
        for server in np.unique(others.servers):
            own = np.flatnonzero(others.servers == server)
            rows = take(others.X, own)
            found[own] = made.predict(rows, grid_points=others.points, server=server)
        return found

    return predict


def _owners(people: People, **known: Unpack[Known]) -> Predict:
    """Owners, each with the rows of one person, send gradients; curves are encoded first."""
    ranges = people.given.get("feature_ranges", (-1.0, 1.0))
    made = LocalGradientBoostingClassifier(feature_ranges=ranges, **known)
    made.fit(people.features, people.labels, groups=people.persons)
    return lambda others: np.asarray(made.predict(others.features))


METHODS: dict[str, Callable[..., Predict]] = {
    "study": _one_server(LocalCurveClassifier),
    "mrma": _one_server(MRMAClassifier),
    "mrma-trees": _one_server(MRMAClassifier, learner="shallow_tree"),
    "mrma-kernels": _one_server(MRMAClassifier, learner="kernel_machine"),
    "multi-server": _several_servers,
    "boosting": _owners,
}


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--method", "methods", type=click.Choice(list(METHODS)), multiple=True,
    default=["study"], show_default=True,
    help="Method of the study; may be repeated, each method is one row.")  # fmt: skip
@click.option("--epsilon", "epsilons", type=float, multiple=True, required=True,
    help="ε of each participant; may be repeated, each value is one row.")  # fmt: skip
@click.option("--classes", help="The labels: no,yes or a,b,c. Default: those of the file.")
@click.option("--range", "value_range", type=(float, float), metavar="LOW HIGH",
    help="Public range of the values of a curve.")  # fmt: skip
@click.option("--domain-range", type=(float, float), metavar="START END",
    help="Public domain of the curves. Default: that of the grid points.")  # fmt: skip
@click.option("--feature-ranges", "ranges", metavar="RANGES",
    help="For a table: 0:1 for all columns, age=18:99,weight=30:150, or, with categories, JSON or "
    "a .json or .toml file.")  # fmt: skip
@click.option(
    "--servers", metavar="COLUMN", help="Multi-server: the column that names each person's server."
)
@click.option("--test-share", type=float, default=0.25, show_default=True,
    help="Share of people who are held out to measure errors.")  # fmt: skip
@reading_options()
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of noise and split.")
@json_option
def command(
    file: Path, methods: tuple[str, ...], epsilons: tuple[float, ...], as_json: bool, **options: Any
) -> None:
    """Simulate studies with the rows of a file as their participants.

    FILE is CSV, TSV, Parquet, NPZ or XLSX; a row is a curve (--range) or a row of a table
    (--feature-ranges), and --label the column of its class. The command prints the error of every
    method on held-out people, and the errors of guessing and of a classifier without privacy. It
    reads all rows, so this is a simulation and protects nobody.
    """
    for epsilon in epsilons:
        _validate.positive("--epsilon", epsilon)
    _validate.fraction("--test-share", options["test_share"])
    _validate.whole("--seed", options["seed"], least=0)
    if (options["value_range"] is None) == (options["ranges"] is None):
        raise InvalidParameter("--range or --feature-ranges", "given, one of them", None)
    reading = reading_from(options)
    people, said = read(file, reading, options)
    click.echo(said, err=True)
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        outcome = run(
            people, methods, epsilons, test_share=options["test_share"], seed=options["seed"]
        )
    told = [str(one.message) for one in doubts if issubclass(one.category, UserWarning)]
    outcome.notes.extend(dict.fromkeys(told))
    if as_json:
        document = {"simulation": True, "rows": outcome.rows, "notes": outcome.notes}
        click.echo(to_json(document))
        return
    Console(markup=False).print(rows_table(outcome, title=f"Simulated studies of {file.name}"))


def read(file: Path, reading: Reading, options: dict[str, Any]) -> tuple[People, str]:
    """The people of the file, and how it was read."""
    label = reading.label
    if label is None:
        raise InvalidParameter("--label", "given: the column of classes", None)
    servers, classes = options["servers"], options["classes"]
    names = None if classes is None else public_labels(classes)
    aside = {} if servers is None else {servers: "--servers"}
    beside: object
    if options["value_range"] is not None:
        _validate.interval("--range", options["value_range"])
        middle = sum(options["value_range"]) / 2
        reading = replace(reading, center=middle, domain_range=options["domain_range"])
        beside = reading.rows(file, aside=aside)
        said, X, points = beside.said, beside.X, beside.grid_points
        domain = public_domain(beside, options["domain_range"])
        given = {"value_range": options["value_range"], "domain_range": domain}
    else:
        if options["domain_range"] is not None:
            rule = "left out with --feature-ranges: a table has no domain"
            raise InvalidParameter("--domain-range", rule, options["domain_range"])
        named = read_ranges(options["ranges"])
        if isinstance(named, dict) and reading.columns is None:
            reading = reading.choosing(list(named), by="--feature-ranges")
        opened = reading.open(file, aside=aside)
        columns = reading.chosen(opened, aside=aside)
        table = PublicColumns.of(feature_ranges(options["ranges"], columns))
        beside = reading.prepared(opened.table(least=2), columns, beside=aside)
        said, points = reading.said(opened, len(beside)), None
        X = table.read(frame(beside, table, gaps=reading.fill))
        pairs = list(zip(table.low.tolist(), table.high.tolist(), strict=True))
        given = {"feature_ranges": pairs}
    labels = np.asarray(beside.text(label)).astype(str)
    if names is not None:
        row = beside.row if hasattr(beside, "row") else beside.row_number
        check_labels(labels, names, label, row=row)
    if len(names or np.unique(labels)) < 2:
        raise InvalidData("FILE", "of two classes at least", "one label")
    people = People(X=X, labels=labels, classes=names, given=given, points=points)
    if reading.groups is not None:
        people = replace(people, persons=np.asarray(beside.text(reading.groups)))
    if servers is not None:
        people = replace(people, servers=np.asarray(beside.text(servers)).astype(str))
    return people, said


def run(
    people: People,
    methods: Sequence[str],
    epsilons: Sequence[float],
    *,
    test_share: float,
    seed: int,
) -> Outcome:
    """Run every method at every ε with the same participants and the same test people.

    Args:
        people: all of them.
        methods: names in `METHODS`.
        epsilons: values of ε per participant.
        test_share: share of people who are held out.
        seed: seed of the split and of the noise.
    """
    asked, others = _split(people, test_share, seed)
    rows = list(_rows(asked, others, methods, epsilons, seed))
    plain = non_private_classifier(asked.features, asked.labels)
    references = {"most frequent label": majority_error(others.labels)}
    if plain is not None:
        wrong = plain.predict(others.features) != others.labels
        references["without privacy"] = float(np.mean(wrong))
    rows += [_row(name, None, error, asked, others) for name, error in references.items()]
    return Outcome(rows=rows, notes=[STAMP, GUARANTEE, NON_PRIVATE])


def _rows(
    asked: People, others: People, methods: Sequence[str], epsilons: Sequence[float], seed: int
) -> Iterator[dict[str, Any]]:
    for method in dict.fromkeys(methods):
        for epsilon in epsilons:
            fitted = METHODS[method](
                asked, epsilon=epsilon, classes=asked.classes, random_state=seed
            )
            wrong = fitted(others) != others.labels
            yield _row(method, epsilon, float(np.mean(wrong)), asked, others)


def _row(
    method: str, epsilon: float | None, error: float, asked: People, others: People
) -> dict[str, Any]:
    """One error in percent, with Wilson's interval over the held-out rows."""
    ends = zip(("low, %", "high, %"), wilson(error, len(others.labels), 0.95), strict=True)
    return {
        "method": method,
        "ε": epsilon,
        "people": asked.number,
        "error, %": round(100 * error, 1),
        **{name: round(100 * end, 1) for name, end in ends},
        "test rows": len(others.labels),
    }


def _split(people: People, share: float, seed: int) -> tuple[People, People]:
    """Split people into participants and test people; all rows of a person stay together."""
    rows = len(people.labels)
    persons = np.arange(rows) if people.persons is None else people.persons
    _, person = np.unique(persons, return_inverse=True)
    order = np.random.default_rng(seed).permutation(int(person.max()) + 1)
    kept = max(1, round(share * len(order)))
    if kept >= len(order):
        raise InvalidParameter(
            "--test-share", f"small enough that some of the {len(order)} people take part", share
        )
    tested = np.isin(person, order[:kept])
    return people.only(np.flatnonzero(~tested)), people.only(np.flatnonzero(tested))
