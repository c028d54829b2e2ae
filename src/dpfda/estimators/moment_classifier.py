"""`MomentClassifier`: one perturbed product of label and curve from everybody."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dpfda._validate import AnyArray, ArrayLike, FloatArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.curves.ranges import middle as public_center
from dpfda.errors import InvalidParameter
from dpfda.estimators.local_base import (
    CurveClassifier,
    account,
    curves_and_points,
    evaluate_classifier,
    plain_classes,
    stamped,
    warn_if_few,
)
from dpfda.estimators.reading import check_classes, set_classes
from dpfda.estimators.study_report import StudyResult, draw_study, study_contents
from dpfda.noise import Source
from dpfda.protocol.estimate import Estimate
from dpfda.protocol.person import Entries, Groups
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.report import Contents
from dpfda.simulate import people_from, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class MomentClassifier(CurveClassifier):
    """Average y z* over everybody: a linear classifier through the public center.

    The server keeps two sums, whatever the number of people (docs/methods/moment-reports.md).
    Strong where the public center lies between the classes, weak where it does not;
    `LocalCurveClassifier` finds the center itself.

    Args:
        epsilon: what each person spends.
        encoder: how a row becomes a vector in [-1, 1]^d; by default made of the public ranges, or,
            without any, four cosines that suit curves of moderate size.
        value_range: public (low, high) of x(t); values outside are clipped.
        domain_range: public (start, end) of t; by default that of the shared grid points, [0, 1]
            without any, and an FDataGrid's own; must be given for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair a
            column, or a mapping from column to (low, high) or to its categories.
        mechanism: registered name of the mechanism of vectors.
        classes: the public label set; must be given unless a seed makes this a simulation.
        unit: whose data a row is, or all rows of one group.
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer, a seed sequence or a source
            makes a simulation.

    Privacy:
        ε-LDP for curve and label of one person: y z* lies in the box that z* lies in.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> study = simulate_001(3000, 0)
        >>> classifier = MomentClassifier(epsilon=1.0, random_state=0)
        >>> classifier.fit(study.X, study.y).guarantee_.epsilon
        1.0
    """

    epsilon: float = 1.0
    _: KW_ONLY
    encoder: CurveEncoder | None = None
    mechanism: str = "piecewise"
    plan_: StudyPlan = field(init=False)
    server_: Server = field(init=False)

    def fit(
        self, X: Curves, y: Entries, *, grid_points: GridPoints = None, groups: Groups = None
    ) -> Self:
        """Simulate the study: every person answers once, privately.

        Args:
            X: an array (n, T), or (n, T, C) for C channels; scikit-fda curves; a list of pairs
                (t, x); or a table.
            y: the label of each row.
            grid_points: the T points of an array, equidistant by default; or a list of grids, one
                for each curve.
            groups: the person behind each row, where people have several; then each person
                reports one of their rows, chosen at random, so that ε is per person.
        """
        X, grid_points = curves_and_points(self, X, grid_points)
        seed = self._public_seed()
        rows, labels = self._read_people(X, y, groups, seed=seed)
        set_classes(self, labels)
        warn_if_few(len(labels), self.epsilon)
        source = self._source()
        self._ask(rows, labels, grid_points, seed=seed, source=source)
        self._conclude(source)
        self._fit_comparison(rows, labels, grid_points)
        return self

    def partial_fit(
        self,
        X: Curves,
        y: Entries,
        classes: Any = None,
        *,
        grid_points: GridPoints = None,
        groups: Groups = None,
    ) -> Self:
        """Ask more people, who never took part before: moments add up.

        Args:
            X: as in `fit`.
            y: the label of each row.
            classes: the label set, with the first people, instead of the parameter `classes`.
            grid_points: as in `fit`.
            groups: the person behind each of these rows.
        """
        X, grid_points = curves_and_points(self, X, grid_points)
        first = not hasattr(self, "server_")
        seed = self._public_seed()
        rows, labels = self._read_people(X, y, groups, seed=seed, reset=first)
        warn_if_few(len(labels), self.epsilon)
        if first:
            set_classes(self, labels, classes)
            source = self._source()
            self._ask(rows, labels, grid_points, seed=seed, source=source)
        else:
            check_classes(self, labels)
            encoder = self._public_encoder(rows, grid_points)
            if (self.plan_.encoder, self.plan_.epsilon) != (encoder, self.epsilon):
                rule = "the same as for earlier people, like epsilon and the grid (or use fit)"
                raise InvalidParameter("ranges", rule, "different ones")
            (earlier,) = self.server_.run.summaries
            # Of a seed, a part that nobody before these people has drawn from.
            source = self._source(int(earlier["people"].sum()))
            self._ask(rows, labels, grid_points, seed=seed, source=source)
            self.server_.run = self.server_.run.joined_by([earlier])
        self._conclude(source)
        self._non_private = None  # it would have seen the last people only
        return self

    def _ask(
        self, rows: Any, labels: AnyArray, grid_points: GridPoints, *, seed: int, source: Source
    ) -> None:
        """Everybody behind these rows reports one product of label and curve."""
        self.grid_points_ = grid_points
        self.plan_ = StudyPlan(
            epsilon=self.epsilon,
            n_people=len(labels),
            classes=plain_classes(self.classes_),
            encoder=self._public_encoder(rows, grid_points),
            design={"name": "moments", "mechanism": self.mechanism},
            protects="both",
            unit=self.unit,
            seed=seed,
        )
        people = people_from(self.plan_, rows, labels, grid_points=grid_points)
        self.server_ = simulate(self.plan_, people, source=source, **account(self))

    def _conclude(self, source: Source) -> None:
        self.guarantee_ = self._promise(self.plan_.guarantee, source)
        self.model_ = stamped(self.server_.model, self.guarantee_)
        self.result_ = StudyResult.of(self.server_.findings)

    def _curve_encoder(self, value_range: Any, domain: tuple[float, float]) -> CurveEncoder:
        """Cosines: products are added up as they are, so features must be uncorrelated.

        The noise is as large as the box of z*, and curves seldom fill their range: a quarter of the
        range is enough for the box.
        """
        if value_range is None:
            return CurveEncoder("cosine", n_basis=4, domain_range=domain, rescale="tanh", scale=1.0)
        center, half_width = public_center("value_range", value_range)
        stretch = math.sqrt(domain[1] - domain[0])
        return CurveEncoder(
            "cosine",
            n_basis=4,
            domain_range=domain,
            rescale="clip",
            center=[center * stretch, 0.0, 0.0, 0.0],
            scale=half_width * stretch / 4,
        )

    def evaluate(self, X: Curves, y: Entries, *, grid_points: GridPoints = None) -> StudyResult:
        """Errors on held-out people, beside the majority class and the non-private error.

        The non-private classifier is fitted to raw curves, so it exists in simulations only.
        """
        return evaluate_classifier(self, X, y, grid_points)

    @property
    def error_estimate_(self) -> Estimate | None:
        """The server's own estimate of the error; None, because nobody is set aside for it."""
        return self.server_.findings.error

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) at `points`, one row a score; for vectors, feature weights.

        It describes the score where no feature is clipped.
        """
        return self.model_.slope(points)

    def plot(self) -> Figure:
        """Slope function, what was learnt with intervals, and who was asked what."""
        return draw_study(self.model_, self.server_.findings)

    def _contents(self) -> Contents:
        return study_contents(self)
