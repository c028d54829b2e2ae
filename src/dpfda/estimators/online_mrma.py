"""`OnlineMRMA`: MRMA for people who arrive over time, with a classifier that adapts to changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dpfda._validate import AnyArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidParameter
from dpfda.estimators.local_base import (
    CurveClassifier,
    account,
    curves_and_points,
    plain_classes,
    stamped,
)
from dpfda.estimators.mrma_classifier import mrma_design
from dpfda.estimators.reading import check_classes, set_classes
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.local.mrma.designs import StreamDesign
from dpfda.local.mrma.members import DEFAULT_SPREAD
from dpfda.local.mrma.result import MRMAFindings, MRMAResult, draw
from dpfda.protocol.person import Entries, Groups
from dpfda.protocol.plan import Design, StudyPlan
from dpfda.protocol.server import Server
from dpfda.simulate import people_from, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class OnlineMRMA(CurveClassifier):
    """MRMA for people who arrive over time (001 §3.5).

    Every call of `partial_fit` is a round of new people. Some of them report, and new members are
    fitted to their reports; the others evaluate old and new members. Older evaluations are
    discounted by `memory` in every round, and the weakest members are removed. If the answers of a
    round clearly contradict the classifier, older evaluations are discarded. After an abrupt change
    of sign, the members are therefore reversed within one round.

    Privacy:
        ε-LDP for every person; a person may take part in one round only.

    Args:
        epsilon: ε of every person.
        encoder: as in `MRMAClassifier`, like the public ranges that may replace it.
        learner: weak learner.
        learner_parameters: parameters of the learner.
        n_classifiers: largest number of members.
        new_classifiers: number of new members in a round.
        member_size: number of reports for each new member.
        training_share: share of the people of a round who report.
        boundary_spread: expected distance of a good boundary from the center of [-1, 1]^d; noisy
            intercepts are shrunk accordingly. None does not shrink them, as in the papers.
        memory: discount factor of evaluations for each round.
        alarm: older evaluations are discarded if the classifier is worse than chance by this number
            of standard errors.
        cutoff: r0; None is ½ plus `strictness` standard errors.
        strictness: as in `MRMAClassifier`.
        classes: the public labels; required unless `random_state` makes this a simulation. More
            than two classes are allowed, as in `MRMAClassifier`.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        unit: the protected unit to which a row, or all rows of one group, belong.
        random_state: None for real data; an integer, a seed sequence or a source for simulations.

    Attributes:
        model_: the classifier after the last round.
        guarantee_: the privacy guarantee of every person.
        rounds_: number of rounds.
        drifts_: rounds (from 1) after which older evaluations were discarded.
        result_: current members and weights.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> clf = OnlineMRMA(epsilon=5.0, random_state=0)
        >>> for day in range(3):
        ...     data = simulate_001(1000, random_state=day)
        ...     clf = clf.partial_fit(data.X, data.y, grid_points=data.grid_points)
        >>> clf.rounds_, clf.drifts_
        (3, [])
    """

    epsilon: float = 1.0
    _: KW_ONLY
    encoder: CurveEncoder | None = None
    learner: str = "conjugate_gradient"
    learner_parameters: Mapping[str, Any] | None = None
    n_classifiers: int = 50
    member_size: int = 50
    training_share: float = 1 / 6
    boundary_spread: float | None = DEFAULT_SPREAD
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    new_classifiers: int = 10
    memory: float = 0.7
    alarm: float = 2.0
    plan_: StudyPlan = field(init=False)

    def fit(
        self, X: Curves, y: Entries, *, grid_points: GridPoints = None, groups: Groups = None
    ) -> Self:
        """Start again with one round; arguments as in `MRMAClassifier.fit`."""
        for name in ("_round", "rounds_", "drifts_", "classes_", "model_"):
            self.__dict__.pop(name, None)
        return self.partial_fit(X, y, grid_points=grid_points, groups=groups)

    def partial_fit(
        self,
        X: Curves,
        y: Entries,
        classes: Any = None,
        *,
        grid_points: GridPoints = None,
        groups: Groups = None,
    ) -> Self:
        """Run one more round, with people who did not take part before.

        Args:
            X: as in `MRMAClassifier.fit`.
            y: the label of each row.
            classes: the public labels, in the first round, instead of the parameter `classes`.
            grid_points: the points of an array.
            groups: the person of each row of this round.
        """
        X, grid_points = curves_and_points(self, X, grid_points)
        first = not hasattr(self, "_round")
        seed = (
            self._public_seed() >> 1 if first else self._stream_seed
        )  # one bit less, to add round numbers
        rows, labels = self._read_people(X, y, groups, seed=seed, reset=first)
        if first:
            self._begin(labels, classes, self._public_encoder(rows, grid_points), seed)
        else:
            check_classes(self, labels)
        if not first and self.epsilon != self.plan_.epsilon:
            rule = f"{self.plan_.epsilon:g} in every round, as people were promised (or use fit)"
            raise InvalidParameter("epsilon", rule, self.epsilon)
        self.grid_points_ = grid_points
        plan = StudyPlan(
            epsilon=self.epsilon,
            n_people=len(labels),
            classes=plain_classes(self.classes_),
            encoder=self._stream_encoder,
            design=self._round.to_dict(),
            unit=self.unit,
            seed=self._stream_seed + self.rounds_,
        )
        people = people_from(plan, rows, labels, grid_points=grid_points)
        server = simulate(plan, people, source=self._stream_source, **account(self))
        self._finish_round(plan, server)
        return self

    def plot(self, *, level: float = 0.95) -> Figure:
        """Draw the slope function, and accuracies and weights of members, as a figure."""
        self._require_fitted()
        return draw(self.result_, self.model_, level=level)

    def _begin(self, labels: AnyArray, classes: Any, encoder: CurveEncoder, seed: int) -> None:
        set_classes(self, labels, classes)
        self._stream_source, self._stream_encoder, self._stream_seed = self._source(), encoder, seed
        self.rounds_ = 0
        self.drifts_: list[int] = []
        self._round: Design = mrma_design(self, StreamDesign)

    def _finish_round(self, plan: StudyPlan, server: Server) -> None:
        findings = server.findings
        assert isinstance(findings, MRMAFindings)
        self.rounds_ += 1
        if findings.drifted:
            self.drifts_.append(self.rounds_)
        assert findings.following is not None
        self._round = findings.following
        self.plan_ = plan
        self.guarantee_ = self._promise(plan.guarantee, self._stream_source)
        self.model_ = stamped(server.model, self.guarantee_)
        self.result_ = MRMAResult(*findings.judged)
