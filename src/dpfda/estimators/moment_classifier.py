"""`MomentClassifier`: every person reports one noisy product of label and curve."""

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
    """A linear classifier through the public center, from the mean of y z* over all people.

    The server stores two sums for any number of people (docs/methods/moment-reports.md). The
    classifier is accurate if the public center lies between the classes; `LocalCurveClassifier`
    estimates the center instead.

    Args:
        epsilon: ε of each person.
        encoder: the map from a row to a vector in [-1, 1]^d; by default it follows from the public
            ranges; without ranges, it has four cosines for curves of moderate size.
        value_range: public (low, high) of x(t); values outside are clipped.
        domain_range: public (start, end) of t. The default is the domain of the shared grid
            points or of an FDataGrid, otherwise [0, 1]. It is required for pairs (t, x).
        feature_ranges: for a table instead of curves: (low, high) of all columns, one pair per
            column, or a mapping from columns to (low, high) or to categories.
        mechanism: registered name of the mechanism of vectors.
        classes: the public labels; required unless `random_state` makes this a simulation.
        unit: the protected unit to which a row, or all rows of one group, belong.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        random_state: None for noise of the operating system; an integer, a seed sequence or a
            source for a simulation.

    Privacy:
        ε-LDP for the curve and the label of one person, because y z* is in the same box as z*.

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
            groups: the person of each row, if people have several rows; each person then
                reports one randomly chosen row, so that ε is per person.
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
        """Query more people, who did not take part before; their moments are added.

        Args:
            X: as in `fit`.
            y: the label of each row.
            classes: the public labels, in the first call, instead of the parameter `classes`.
            grid_points: as in `fit`.
            groups: the person of each of these rows.
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
            # A stream of the seed that earlier people have not used.
            source = self._source(int(earlier["people"].sum()))
            self._ask(rows, labels, grid_points, seed=seed, source=source)
            self.server_.run = self.server_.run.joined_by([earlier])
        self._conclude(source)
        self._non_private = None  # it would be fitted to the last people only
        return self

    def _ask(
        self, rows: Any, labels: AnyArray, grid_points: GridPoints, *, seed: int, source: Source
    ) -> None:
        """Each person reports one noisy product of label and curve."""
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
        """Cosines, because the mean of products is a good direction only for uncorrelated features.

        The noise is proportional to the box of z*. Curves rarely fill their range, so the box is a
        quarter of the range.
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
        """Errors on held-out people, with those of the majority class and of no privacy.

        The non-private classifier is fitted to raw curves, so it is available in simulations only.
        """
        return evaluate_classifier(self, X, y, grid_points)

    @property
    def error_estimate_(self) -> Estimate | None:
        """The private estimate of the error; None, because no people are reserved for it."""
        return self.server_.findings.error

    def slope(self, points: ArrayLike | None = None) -> FloatArray:
        """The slope function β(t) at `points`, one row for each score; for tables, feature weights.

        It describes the score if no feature is clipped.
        """
        return self.model_.slope(points)

    def plot(self) -> Figure:
        """Draw the slope function, the estimates with intervals, and the people of each phase."""
        return draw_study(self.model_, self.server_.findings)

    def _contents(self) -> Contents:
        return study_contents(self)
