"""What the estimators of this package share: parameters, and how a release is asked for."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.conversation import CentralConversation
from dpfda.central.quadrature import Grid
from dpfda.central.records import public_center, read_records
from dpfda.central.release import Release
from dpfda.errors import InvalidParameter
from dpfda.noise.source import source_for
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.query import Records


@dataclass(eq=False, repr=False)
class CentralEstimator(BaseEstimator):  # type: ignore[misc]
    """Holds public parameters; `fit` reads data and asks one conversation about them."""

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    unit: str = "person"
    ledger: BaseLedger | None = None
    random_state: int | None = None

    @property
    def _budget(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "unit": self.unit}

    def _ask(
        self, asked: CentralConversation, records: Records, *, public: dict[str, Any], **more: Any
    ) -> None:
        """Ask, and keep the release; `public` parameters stand first on its record."""
        source = source_for(self.random_state)
        found = asked.ask(records, source=source, ledger=self.ledger)
        parameters = {"n": asked.n, **public, **found.parameters}
        self.release_: Release = replace(found, parameters=parameters, **more)
        self.guarantee_ = self.release_.guarantee

    def _values(self) -> FloatArray:
        """The released function on its own grid."""
        check_is_fitted(self, "release_")
        return self.release_.values()


class Curves(NamedTuple):
    """Curves about a public center on a public grid, and their public bound."""

    rows: FloatArray
    grid: Grid
    bound: float
    center: FloatArray


@dataclass(eq=False, repr=False, kw_only=True)
class CurveEstimator(CentralEstimator):
    """An estimator that reads curves."""

    surfaces: ClassVar[bool] = False
    gaps: ClassVar[bool] = True  # whether X, what is fitted, may miss points

    bound: float | None = None
    center: Any = 0.0
    domain_range: tuple[float, float] | None = None

    def __sklearn_tags__(self) -> Any:
        """Missing points are welcome: they are filled along the curve."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.gaps
        return tags

    def _read(self, curves: Any, grid_points: Any) -> Curves:
        if self.bound is None:
            raise InvalidParameter("bound", "given: a public bound on the norm of a curve", None)
        records, grid = read_records(curves, grid_points, domain_range=self.domain_range)
        if len(grid) != 1 and not self.surfaces:
            raise InvalidParameter("grid_points", "of one variable", f"{len(grid)} variables")
        center = public_center(self.center, records.shape[1])
        return Curves(records - center, grid, _validate.positive("bound", self.bound), center)
