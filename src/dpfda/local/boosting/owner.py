"""Data owners with several rows: one owner, and a crowd of simulated ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._validate import IntArray
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.local.boosting.request import OwnerRows, Request
from dpfda.noise import Source
from dpfda.protocol.person import Crowd, Person, encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.query import Answer, Query, Records


class Owner(Person):
    """One owner of a few rows, who answers one request of a study, once.

    Args:
        plan: the plan the owner agreed to.
        epsilon: what the owner is willing to spend; the plan's ε by default.
        held: as of `Person`: `curve` are the owner's rows, shape (n, d), and `label` their labels,
            one for each row; there are no `grid_points`.
    """

    def __init__(self, plan: StudyPlan, *, epsilon: float | None = None, **held: Any) -> None:
        self.epsilon = plan.epsilon if epsilon is None else _validate.positive("epsilon", epsilon)
        if self.epsilon < plan.epsilon and not plan.design.get("own_budgets"):
            raise BudgetExceeded(f"the study costs ε = {plan.epsilon:g}, above the owner's")
        super().__init__(plan, **held)

    def _encoded(self, curve: Any, label: Any, grid_points: Any) -> Records:
        if grid_points is not None:
            raise InvalidParameter("grid_points", "None: rows have no t", "some")
        labels = np.ravel(label)
        # How many rows there are is private: none are answered for as any other number is.
        none = not len(labels) and hasattr(curve, "__len__") and not len(curve)
        rows = np.zeros((0, self.plan.encoder.n_features)) if none else curve
        features, numbers = encode_people(self.plan, rows, labels)
        if len(features) != len(numbers):
            raise InvalidData("labels", "one for each row")
        present = np.ones((1, len(numbers)), dtype=bool)
        return OwnerRows(features[None], numbers[None], present)

    def _at_own_price(self, query: Query) -> Query:
        """The request as this owner answers it."""
        assert isinstance(query, Request)
        return query.at(min(self.epsilon, query.epsilon)) if query.own_budgets else query

    def _spend(self, query: Query) -> None:
        super()._spend(self._at_own_price(query))

    def _respond(self, query: Query, number: int) -> Answer:
        return super()._respond(self._at_own_price(query), number)


def public_order(plan: StudyPlan) -> IntArray:
    """The order in which owners take part, drawn from the plan's public seed."""
    return np.random.default_rng([plan.seed, 2]).permutation(plan.n_people)


class Owners(Crowd):
    """Many simulated owners in a public order; each answers once.

    Args:
        plan: what all of them agreed to.
        rows: their private rows.
        order: in which they take part.
        epsilons: what each of them spends, where these differ; at most the plan's ε.
        source: where their randomness comes from.
    """

    def __init__(
        self,
        plan: StudyPlan,
        rows: OwnerRows,
        *,
        source: Source,
        order: IntArray | None = None,
        epsilons: Any = None,
    ) -> None:
        self._order = np.arange(rows.owners) if order is None else order
        self._epsilons = np.broadcast_to(
            plan.epsilon if epsilons is None else np.asarray(epsilons), (rows.owners,)
        )
        own_budgets = bool(plan.design.get("own_budgets"))
        if np.any(self._epsilons > plan.epsilon) or (
            np.any(self._epsilons < plan.epsilon) and not own_budgets
        ):
            rule = f"{'at most ' * own_budgets}{plan.epsilon:g}, as the plan says"
            raise InvalidParameter("epsilons", rule, sorted(set(self._epsilons.tolist()))[:3])
        super().__init__(
            plan, lambda start, stop: rows.take(self._order[start:stop]), source=source
        )

    def _answers(self, query: Query, records: Records, number: int) -> Answer:
        """All owners who spend the same in one batch."""
        assert isinstance(query, Request)
        rows = OwnerRows(*records)
        if not query.own_budgets:
            return super()._answers(query, records, number)
        spent = self._epsilons[self._order[number : number + query.people]]
        values = np.empty((query.people, query.width))
        for epsilon in np.unique(spent):
            who = np.flatnonzero(spent == epsilon)
            part = query.rows(who).at(float(epsilon))
            values[who] = part.answer(rows.take(who), self.source).values
        return Answer(values=values, n=query.people)
