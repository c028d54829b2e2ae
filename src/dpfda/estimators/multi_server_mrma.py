"""`MultiServerMRMA`: servers share their classifiers, and each server selects and averages them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from dpfda import _validate
from dpfda._validate import AnyArray, ArrayLike, FloatArray, IntArray
from dpfda.curves import CurveEncoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidParameter
from dpfda.estimators.local_base import (
    CurveClassifier,
    account,
    curves_and_points,
    plain_classes,
    stamped,
    warn_if_few,
)
from dpfda.estimators.mrma_classifier import mrma_design
from dpfda.estimators.reading import set_classes, take
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.mrma.members import DEFAULT_SPREAD
from dpfda.local.mrma.result import exchange_plan
from dpfda.noise import Source
from dpfda.privacy import tally
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import Entries, Groups, People, encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.public_randomness import one_row_each
from dpfda.protocol.server import Server
from dpfda.simulate import ask_everybody


@dataclass(eq=False, repr=False)
class MultiServerMRMA(CurveClassifier):
    """K servers share their MRMA classifiers, and each server's own people evaluate all of them.

    Every server first runs its own MRMA study. All K classifiers are then public. The people of
    each server evaluate all of them, and each server reverses and averages them separately. A
    server with a different population thus gives the classifiers of the others no weight, or
    reverses them.

    Privacy:
        ε-LDP for every person. With ``exchange="split"`` the same people evaluate in both stages,
        each time with ε/2; with ``"separate"`` different people evaluate, once with ε.

    Args:
        epsilon: ε of every person, for all answers together.
        encoder: as in `MRMAClassifier`, like the public ranges that may replace it.
        exchange: ``"split"`` or ``"separate"``.
        exchange_share: share of a server's people who evaluate shared classifiers (separate
            groups).
        exchange_cutoff: r0* of the exchange; None is the public rule (C3). A mapping from servers
            to cutoffs gives each server its own value.
        learner: weak learner.
        learner_parameters: parameters of the learner.
        n_classifiers: B of each server.
        member_size: n0 of each server.
        training_share: share of a server's people who report.
        boundary_spread: expected distance of a good boundary from the center of [-1, 1]^d; noisy
            intercepts are shrunk accordingly. None does not shrink them, as in the papers.
        cutoff: r0 of each server's own study; None is ½ plus `strictness` standard errors.
        strictness: as in `MRMAClassifier`, in both stages.
        classes: the public labels; required unless `random_state` makes this a simulation. More
            than two classes are split into halves, as in `MRMAClassifier`; the people of a server
            then evaluate the rule of every server for every split.
        ledger: budget of the data over all studies; all people spend ε before the first query.
        unit: the protected unit to which a row, or all rows of one group, belong.
        random_state: None for real data; an integer, a seed sequence or a source for simulations.

    Attributes:
        servers_: names of the servers.
        local_models_: the classifiers that the servers shared.
        models_: the final classifier of each server.
        exchanges_: the findings of each server in the exchange, with the weights of all
            classifiers in `judgement`.
        guarantee_: the privacy guarantee of every person.

    Examples:
        >>> from dpfda.datasets import simulate_001
        >>> data = simulate_001(6000, random_state=1)
        >>> where = np.repeat(["a", "b"], 3000)
        >>> clf = MultiServerMRMA(epsilon=5.0, random_state=0)
        >>> clf = clf.fit(data.X, data.y, servers=where, grid_points=data.grid_points)
        >>> bool(np.mean(clf.predict(data.X[:500], server="a") == data.y[:500]) > 0.7)
        True
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
    exchange: str = "split"
    exchange_share: float = 1 / 3
    exchange_cutoff: Any = None

    def fit(
        self,
        X: Curves,
        y: Entries,
        *,
        grid_points: GridPoints = None,
        groups: Groups = None,
        servers: Groups = None,
    ) -> Self:
        """Run all servers' studies, then the exchange.

        Args:
            X: as in `MRMAClassifier.fit`.
            y: the label of each row.
            grid_points: the points of an array.
            groups: the person of each row; each person takes part at one server, with one row.
            servers: the server of each row; by default there is one server.
        """
        _validate.one_of("exchange", self.exchange, ("split", "separate"))
        X, grid_points = curves_and_points(self, X, grid_points)
        seed = self._public_seed()
        rows, labels = self._read_people(X, y, None, seed=seed)
        where = np.zeros(len(labels), dtype=int) if servers is None else np.asarray(servers)
        if where.shape != (len(labels),):
            raise InvalidParameter("servers", "one name for each row", f"shape {where.shape}")
        if groups is not None:
            kept = one_row_each(groups, seed=seed, rows=len(labels))
            rows, labels, where = take(rows, kept), labels[kept], where[kept]
        set_classes(self, labels)
        self.grid_points_ = grid_points
        self.servers_, number = np.unique(where, return_inverse=True)
        source = self._source()
        encoder = self._public_encoder(rows, grid_points)
        whole = self._study_plan(encoder, len(labels), MRMADesign(), seed=seed)
        whole.encoder.check_grid(rows, grid_points)
        people = encode_people(whole, rows, labels, grid_points=grid_points)
        order = np.random.default_rng(seed).permutation(len(labels))
        rosters = [order[number[order] == k] for k in range(len(self.servers_))]
        warn_if_few(min(map(len, rosters)), self.epsilon)
        tally.pay(whole.guarantee, source=source, **account(self))
        studies = [
            self._server_study(encoder, people, roster, seed=seed + k, source=source)
            for k, roster in enumerate(rosters)
        ]
        shared = [server.model for server, _ in studies]
        plans = [
            self._exchange_plan(shared, len(evaluators), k, seed=seed + k)
            for k, (_, evaluators) in enumerate(studies)
        ]
        exchanges = [
            ask_everybody(plan, _people(people, evaluators), source=source)
            for plan, (_, evaluators) in zip(plans, studies, strict=True)
        ]
        self.guarantee_ = self._promise(whole.guarantee, source)
        self.local_models_ = [stamped(model, self.guarantee_) for model in shared]
        self.exchanges_ = [server.findings for server in exchanges]
        self.models_ = [stamped(server.model, self.guarantee_) for server in exchanges]
        self.model_ = self.models_[0]
        return self

    def predict(
        self, X: Curves, *, grid_points: GridPoints = None, server: object = None
    ) -> AnyArray:
        """Labels of new curves, by the classifier of `server` (by default the first one)."""
        return CurveClassifier.predict(self._at(server), X, grid_points=grid_points)

    def decision_function(
        self, X: Curves, *, grid_points: GridPoints = None, server: object = None
    ) -> FloatArray:
        """Scores of new curves, by the classifier of `server`."""
        return CurveClassifier.decision_function(self._at(server), X, grid_points=grid_points)

    def predict_proba(
        self, X: Curves, *, grid_points: GridPoints = None, server: object = None
    ) -> FloatArray:
        """Probabilities (n, K), by the classifier of `server`."""
        return CurveClassifier.predict_proba(self._at(server), X, grid_points=grid_points)

    def score(
        self,
        X: Curves,
        y: Entries,
        sample_weight: ArrayLike | None = None,
        *,
        grid_points: GridPoints = None,
        server: object = None,
    ) -> float:
        """Share of labels that the classifier of `server` predicts correctly; not private."""
        more = {"sample_weight": sample_weight, "grid_points": grid_points}
        return CurveClassifier.score(self._at(server), X, y, **more)

    def _at(self, server: object) -> CurveClassifier:
        """A copy with the classifier of one server."""
        classifier = copy(self)
        classifier.model_ = self.model_of(server)
        classifier.models_ = [classifier.model_]
        return classifier

    def model_of(self, server: object = None) -> CurveModel:
        """The final classifier of a server."""
        self._require_fitted()
        if server is None:
            return self.models_[0]
        found = np.flatnonzero(self.servers_ == server)
        if not len(found):
            raise InvalidParameter("server", f"one of {self.servers_.tolist()}", server)
        return self.models_[int(found[0])]

    def _study_plan(
        self, encoder: CurveEncoder, n_people: int, design: MRMADesign, *, seed: int
    ) -> StudyPlan:
        return StudyPlan(
            epsilon=self.epsilon,
            n_people=n_people,
            classes=plain_classes(self.classes_),
            encoder=encoder,
            design=design.to_dict(),
            unit=self.unit,
            seed=seed,
        )

    def _server_study(
        self,
        encoder: CurveEncoder,
        people: tuple[FloatArray, IntArray],
        roster: IntArray,
        *,
        seed: int,
        source: Source,
    ) -> tuple[Server, IntArray]:
        """A server's own MRMA study, and the people who evaluate classifiers in the exchange."""
        split = self.exchange == "split"
        kept = 0 if split else round(self.exchange_share * len(roster))
        taking_part = roster[: len(roster) - kept]
        share = 0.5 if split else 1.0
        design = mrma_design(self, MRMADesign, verdict_share=share)
        plan = self._study_plan(encoder, len(taking_part), design, seed=seed)
        server = ask_everybody(plan, _people(people, taking_part), source=source)
        reports = design.n_reports(len(taking_part))
        return server, taking_part[reports:] if split else roster[len(taking_part) :]

    def _exchange_plan(
        self, shared: list[CurveModel], evaluators: int, number: int, *, seed: int
    ) -> StudyPlan:
        """The study in which one server's people evaluate the classifiers of all servers."""
        cutoff = self.exchange_cutoff
        if isinstance(cutoff, Mapping):
            cutoff = cutoff.get(self.servers_[number].item())
        return exchange_plan(
            shared,
            epsilon=self.epsilon / 2 if self.exchange == "split" else self.epsilon,
            people=max(1, evaluators),
            cutoff=cutoff,
            strictness=self.strictness,
            seed=seed,
            unit=self.unit,
        )


def _people(people: tuple[FloatArray, IntArray], who: IntArray) -> People:
    """Some of the encoded people, in this order."""
    return lambda start, stop: tuple(column[who[start:stop]] for column in people)
