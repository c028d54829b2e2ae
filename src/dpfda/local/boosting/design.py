"""Studies of owners: the common parts of their designs, and the plan of a study."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._validate import FloatArray, IntArray
from dpfda.curves import RowEncoder
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.model import BoostedModel, RowModel
from dpfda.local.boosting.request import MOST_ROWS
from dpfda.protocol.fields import array, check_fields, flag, whole
from dpfda.protocol.findings import Findings
from dpfda.protocol.plan import Design, Label, StudyPlan, Terms
from dpfda.protocol.study import Result

MOST_ROUNDS = 10**4


@dataclass(frozen=True, kw_only=True, eq=False)
class BoostingDesign(Design):
    """Rounds of requests, each to new owners.

    The data user's own rows are part of the plan, so all participants can read them.

    Attributes:
        n_rounds: the number of rounds.
        n_rows: N, the largest number of rows per owner that are used.
        own_budgets: whether owners may spend less than the plan's ε; replies then state the ε.
        labeled: the data user's labeled rows; not protected.
        labels: their label numbers.
    """

    n_rounds: int = whole(most=MOST_ROUNDS, default=10)
    n_rows: int = whole(most=MOST_ROWS, default=1)
    own_budgets: bool = flag(default=False)
    labeled: FloatArray = array("real", "labeled", "columns", default=())
    labels: IntArray = array("whole", "labeled", least=0, most=1 << 10, default=())

    def __post_init__(self) -> None:
        if not len(self.labeled):  # JSON does not store the width of an empty array
            object.__setattr__(self, "labeled", np.zeros((0, self.columns)))
        check_fields(self)

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of features d."""

    def terms(self, plan: StudyPlan, **more: object) -> Terms:
        """The fixed values of every request of a study."""
        if plan.encoder.n_features != self.columns:
            raise InvalidParameter("design", "about rows with the plan's columns", self.name)
        return {
            "dimension": self.columns,
            "n_classes": plan.n_classes,
            "n_rows": self.n_rows,
            "own_budgets": self.own_budgets,
            **more,
        }

    def plan(
        self,
        *,
        epsilon: float,
        owners: int,
        classes: Sequence[Label],
        unit: str = "owner",
        **more: Any,
    ) -> StudyPlan:
        """The plan of a study of owners, who have rows instead of a curve."""
        return StudyPlan(
            epsilon=epsilon,
            n_people=owners,
            encoder=RowEncoder(self.columns),
            classes=tuple(classes),
            design=self.to_dict(),
            unit=unit,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class BoostingFindings(Findings):
    """The findings about the rounds.

    Attributes:
        history: one dictionary per round.
    """

    history: Sequence[dict[str, Any]] = ()


def known(plan: StudyPlan, boosted: BoostedModel, history: Sequence[dict[str, Any]]) -> Result:
    """The model with labels and guarantee, and the history of the rounds."""
    model = RowModel(boosted=boosted, classes=plan.classes, guarantee=plan.guarantee)
    return Result(model, BoostingFindings(classes=plan.classes, history=tuple(history)))
