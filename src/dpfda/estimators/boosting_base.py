"""The base of both boosting classifiers, for owners with a few rows who answer at most once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.curves import RowEncoder
from dpfda.curves.observations import Curves, GridPoints
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.local_base import LocalClassifier, account, require_ranges, warn_if_few
from dpfda.estimators.reading import read_labels, set_classes
from dpfda.estimators.study_report import settings
from dpfda.local.boosting.design import BoostingDesign, BoostingFindings
from dpfda.local.boosting.model import RowModel, draw_rounds, no_grid
from dpfda.local.boosting.request import MOST_ROWS, OwnerRows, Owners, public_order
from dpfda.privacy.guarantee import ROWS_ARE_PUBLIC, USER_IS_NOT_PROTECTED
from dpfda.protocol.person import Entries, Groups, label_numbers
from dpfda.protocol.plan import Protects, StudyPlan
from dpfda.report import Contents, Picture, Table
from dpfda.simulate import simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sklearn.utils import Tags

REFERENCE_ROWS = 1000
"""Number of rows drawn from the public ranges if the data user has none; also the largest number
of reference rows in a plan."""


class PublicFacts(NamedTuple):
    """The public facts of a boosting study; they contain no owner's data.

    Attributes:
        epsilons: ε of each owner.
        reference: rows of the data user, or rows drawn from the public ranges.
        labeled: the labeled rows of the data user with their label numbers; None if there are none.
        n_rows: largest number of rows of an owner that are used.
        typical_rows: mean number of used rows per owner; None if it is not public.
    """

    epsilons: FloatArray
    reference: FloatArray
    labeled: tuple[FloatArray, IntArray] | None
    n_rows: int
    typical_rows: float | None


@dataclass(eq=False, repr=False)
class BoostingClassifier(LocalClassifier):
    """Base of classifiers that query new owners in every round.

    Subclasses define in `_design` what owners send and how a round changes the model.
    """

    epsilon: Any = 1.0  # one number, one for each owner, or a mapping from owner
    _: KW_ONLY
    n_rounds: int = 10
    owners_per_round: int | None = None
    rows_per_owner: int | None = None
    unit: str = "owner"
    model_: RowModel = field(init=False)
    plan_: StudyPlan = field(init=False)
    n_features_in_: int = field(init=False)

    def fit(
        self,
        X: Curves,
        y: Entries,
        *,
        grid_points: GridPoints = None,
        groups: Groups = None,
        reference: Any = None,
        reference_labels: Any = None,
    ) -> Self:
        """Simulate the study: every owner answers at most once.

        Args:
            X: the owners' rows, shape (n, d).
            y: their labels.
            grid_points: None, as for every table; curves are encoded first, in a pipeline:
                ``make_pipeline(CurveEncoder(...), LocalGradientBoostingClassifier(...))``.
            groups: the owner of each row; by default every row has a different owner.
            reference: rows of the data user, which are not protected.
            reference_labels: labels of the first rows of `reference`, if the data user has labels.
        """
        self._check_parameters()
        no_grid(grid_points)
        self._require_raw_rows()
        rows = self._read_rows(X, reset=True)
        labels = read_labels(y, len(rows), strict=self._is_simulation)
        set_classes(self, labels)
        owners = OwnerRows.grouped(rows, label_numbers(labels, self.classes_), groups=groups)
        seed, source = self._public_seed(), self._source()
        epsilons = self._epsilons(groups, owners.owners)
        if reference is None:
            require_ranges(self, "feature_ranges")
        known_rows, labeled = self._reference_rows(reference, reference_labels, seed)
        warn_if_few(len(rows), float(np.median(epsilons)))
        n_rows = self.rows_per_owner or self._usual_rows(owners)
        typical = None
        if self.rows_per_owner is None:
            typical = float(np.minimum(owners.sizes, n_rows).mean())
        facts = PublicFacts(epsilons, known_rows, labeled, n_rows, typical)
        self.plan_ = self._study_plan(facts, seed)
        crowd = Owners(
            self.plan_, owners, order=public_order(self.plan_), epsilons=epsilons, source=source
        )
        server = simulate(self.plan_, crowd, source=source, at_once=owners.owners, **account(self))
        findings = server.findings
        assert isinstance(findings, BoostingFindings)
        self.owners_spent_, self.n_owners_ = crowd.asked, owners.owners
        self.history_ = list(findings.history)
        assumed = [USER_IS_NOT_PROTECTED]
        assumed += [ROWS_ARE_PUBLIC] if self.rows_per_owner is None else []
        self.guarantee_ = self._promise(self.plan_.guarantee, source).assuming(*assumed)
        table = PublicColumns.of(self.feature_ranges) if self._named else None
        self.model_ = replace(server.model, guarantee=self.guarantee_, table=table)
        return self

    def planned(
        self, owners: int, *, reference: Any = None, reference_labels: Any = None
    ) -> StudyPlan:
        """The plan of a study with remote owners, from public facts only, without any query.

        Args:
            owners: number of owners.
            reference: as in `fit`.
            reference_labels: as in `fit`.

        Examples:
            >>> from dpfda import LocalGradientBoostingClassifier
            >>> classifier = LocalGradientBoostingClassifier(
            ...     1.0, feature_ranges={"age": (18, 99)}, classes=["no", "yes"], rows_per_owner=4
            ... )
            >>> classifier.planned(500).n_people
            500
        """
        made: Self = clone(self)
        made._check_parameters()
        for name in ("classes", "feature_ranges", "rows_per_owner"):
            if getattr(made, name) is None:
                raise InvalidParameter(name, "given, because no rows of owners are read", None)
        assert made.rows_per_owner is not None
        set_classes(made, np.asarray(made.classes))
        made.n_features_in_ = len(PublicColumns.of(made.feature_ranges).names)
        seed = made._public_seed()
        epsilons = made._epsilons(None, _validate.whole("owners", owners))
        known_rows, labeled = made._reference_rows(reference, reference_labels, seed)
        facts = PublicFacts(epsilons, known_rows, labeled, made.rows_per_owner, None)
        return made._study_plan(facts, seed)

    @abstractmethod
    def _design(self, facts: PublicFacts) -> BoostingDesign:
        """The design of the study: the requests of each round."""

    @property
    def _labels_are_public(self) -> bool:
        """Whether owners send labels without noise."""
        return False

    def _usual_rows(self, owners: OwnerRows) -> int:
        """Default of `rows_per_owner`: the largest number of rows of any owner."""
        return min(int(owners.features.shape[1]), MOST_ROWS)

    def _study_plan(self, facts: PublicFacts, seed: int) -> StudyPlan:
        protects: Protects = "features" if self._labels_are_public else "both"
        return self._design(facts).plan(
            epsilon=float(np.max(facts.epsilons)),
            owners=len(facts.epsilons),
            classes=self.classes_.tolist(),
            protects=protects,
            unit=self.unit,
            seed=seed,
        )

    def _shared_terms(self, facts: PublicFacts) -> dict[str, Any]:
        """The fields that both designs have."""
        rows, labels = ([], []) if facts.labeled is None else facts.labeled
        return {
            "n_rounds": self.n_rounds,
            "n_rows": facts.n_rows,
            "own_budgets": bool(np.ptp(facts.epsilons)),
            "labeled": rows,
            "labels": labels,
        }

    def _contents(self) -> Contents:
        caption = "Error and weight, or step and directions, round by round."
        # Weights of rounds may depend on the data user's rows, which are not protected.
        pictures = (Picture(caption=caption, draw=self.plot),) * self._is_simulation
        found = self.model_._contents()
        tables = (*found.tables, *self._convergence())
        return replace(found, pictures=pictures, settings=settings(self.plan_), tables=tables)

    def _convergence(self) -> tuple[Table, ...]:
        """A table of the convergence condition of 004 §IV for every round, if it applies."""
        return ()

    def plot(self) -> Figure:
        """Draw error and weight, or step and directions, of every round."""
        self._require_fitted()
        return draw_rounds(self.history_)

    # -- reading ------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        _validate.whole("n_rounds", self.n_rounds)
        if self.owners_per_round is not None:
            _validate.whole("owners_per_round", self.owners_per_round)
        if self.rows_per_owner is not None:
            _validate.whole("rows_per_owner", self.rows_per_owner)

    def _epsilons(self, groups: Groups, owners: int) -> FloatArray:
        """The ε of each owner, in the order of the sorted owners."""
        given: Any = self.epsilon
        if isinstance(given, Mapping):
            names = np.unique(np.arange(owners) if groups is None else np.asarray(groups)).tolist()
            missing = sum(name not in given for name in names)
            if missing:
                raise InvalidParameter("epsilon", "given for every owner", f"{missing} missing")
            given = [given[name] for name in names]
        each = np.asarray(given, dtype=np.float64)
        if each.ndim > 1 or (each.ndim == 1 and each.shape != (owners,)):
            raise InvalidData("epsilon", f"one number or {owners}", f"shape {each.shape}")
        for value in np.unique(each):
            _validate.positive("epsilon", value)
        return np.broadcast_to(each, (owners,))

    def _reference_rows(
        self, reference: Any, labels: Any, seed: int
    ) -> tuple[FloatArray, tuple[FloatArray, IntArray] | None]:
        """The reference rows, and the labeled ones with their label numbers."""
        if reference is None:
            if labels is not None:
                raise InvalidParameter("reference", "given with reference_labels", None)
            low, high = self._ranges(None).T
            uniform = np.random.default_rng([seed, 3]).random((REFERENCE_ROWS, len(low)))
            return low + (high - low) * uniform, None
        if self._named:
            rows = PublicColumns.of(self.feature_ranges).read(reference)
        else:
            rows = _validate.batch("reference", reference, columns=self.n_features_in_)
        if labels is None:
            return rows, None
        given = np.ravel(labels)
        if len(given) > len(rows) or not np.isin(given, self.classes_).all():
            raise InvalidData("reference_labels", f"at most {len(rows)} labels among the classes")
        given = read_labels(given, len(given), strict=self._is_simulation)
        return rows, (rows[: len(given)], label_numbers(given, self.classes_))

    def _ranges(self, reference: FloatArray | None) -> FloatArray:
        """Public (low, high) of each column, shape (d, 2)."""
        if self.feature_ranges is None and reference is not None:
            low, high = reference.min(axis=0), reference.max(axis=0)
            flat = high <= low
            return np.column_stack([np.where(flat, low - 1, low), np.where(flat, low + 1, high)])
        given = (-1.0, 1.0) if self.feature_ranges is None else self.feature_ranges
        table = PublicColumns.of(given, width=self.n_features_in_)
        return np.column_stack([table.low, table.high])

    @property
    def _named(self) -> bool:
        """Whether columns have names, and perhaps categories."""
        return isinstance(self.feature_ranges, Mapping)

    def _read_rows(self, X: Curves, *, reset: bool) -> FloatArray:
        """Rows of owners. With real noise no value raises an error; missing values become 0."""
        private = reset and not self._is_simulation
        rows = self._checked_table(
            self.feature_ranges, X, reset=reset, ensure_all_finite=not private
        )
        if self._named:
            table = PublicColumns.of(self.feature_ranges)
            table.check(rows)
            rows = table.read(rows, strict=not private)
        return RowEncoder(rows.shape[1]).encode(rows, strict=False) if private else rows

    def _scores(self, X: Curves, grid_points: GridPoints) -> FloatArray:
        no_grid(grid_points)
        self._require_fitted()
        return self.model_.scores(self._read_rows(X, reset=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not self._is_simulation
        return tags
