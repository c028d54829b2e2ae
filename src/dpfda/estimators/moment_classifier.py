"""`MomentClassifier`: one perturbed product of label and curve from everybody."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from dpfda.curves import CurveEncoder
from dpfda.curves.observations import with_own_grids
from dpfda.curves.ranges import middle as public_middle
from dpfda.errors import InvalidParameter
from dpfda.estimators.local_base import EncodedClassifier
from dpfda.estimators.study_base import StudyClassifier
from dpfda.protocol.plan import Protects, StudyPlan


@dataclass(eq=False, repr=False)
class MomentClassifier(EncodedClassifier, StudyClassifier):
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

    protects: ClassVar[Protects] = "both"  # type: ignore[misc]

    epsilon: float = 1.0
    _: KW_ONLY
    mechanism: str = "piecewise"

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, grid_points: Any = None, groups: Any = None
    ) -> Self:
        """Ask more people, who never took part before: moments add up.

        Args:
            X: as in `fit`.
            y: the label of each row.
            classes: the label set, with the first people, instead of the parameter `classes`.
            grid_points: as in `fit`.
            groups: the person behind each of these rows.
        """
        X, grid_points = with_own_grids(X, grid_points)
        first = not hasattr(self, "server_")
        seed = self._public_seed()
        rows, y = self._read(X, y, groups, seed=seed, reset=first)
        if first:
            self._set_classes(y, classes)
            self._ask(rows, y, grid_points, seed=seed, source=self._source())
        else:
            self._check_labels(y)
            known = self.plan_.encoder, self.plan_.epsilon
            if known != (self._encoder(rows, grid_points), self.epsilon):
                rule = "those of earlier people, as ε and grid are (or use fit)"
                raise InvalidParameter("ranges", rule, "others")
            (earlier,) = self.server_.run.summaries
            # Of a seed, a part that nobody before these people has drawn from.
            source = self._source(int(earlier["people"].sum()))
            self._ask(rows, y, grid_points, seed=seed, source=source)
            self.server_.run = self.server_.run.joined_by([earlier])
            self._conclude(source)
        self._non_private = None  # it would have seen the last people only
        return self

    def _curve_encoder(self, value_range: Any, domain: tuple[float, float]) -> CurveEncoder:
        """Cosines: y z* is added up as it is, so features must not repeat each other.

        Noise is as large as the box that z* lies in, and curves hardly ever fill what their range
        allows: a quarter of it is enough for the box.
        """
        if value_range is None:
            return CurveEncoder("cosine", n_basis=4, domain_range=domain, rescale="tanh", scale=1.0)
        middle, half = public_middle("value_range", value_range)
        stretch = math.sqrt(domain[1] - domain[0])
        return CurveEncoder(
            "cosine",
            n_basis=4,
            domain_range=domain,
            rescale="clip",
            center=[middle * stretch, 0.0, 0.0, 0.0],
            scale=half * stretch / 4,
        )

    def _plan(self, X: Any, grid_points: Any, **known: Any) -> StudyPlan:
        design = {"name": "moments", "mechanism": self.mechanism}
        return StudyPlan(encoder=self._encoder(X, grid_points), design=design, **known)
