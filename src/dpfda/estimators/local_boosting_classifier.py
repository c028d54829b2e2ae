"""`LocalBoostingClassifier`: boosting with data owners, the scikit-learn face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.curves import RowEncoder
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.local_base import LocalClassifier
from dpfda.estimators.study_report import settings
from dpfda.local.boosting.design import BoostingDesign, BoostingFindings
from dpfda.local.boosting.ensemble import Ensemble
from dpfda.local.boosting.feature_map import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.model import RowModel, draw_rounds, no_grid
from dpfda.local.boosting.owner import Owners, public_order
from dpfda.local.boosting.requests.base import MOST_ROWS, OwnerRows
from dpfda.local.boosting.samme_study import SammeDesign
from dpfda.privacy.guarantee import ROWS_ARE_PUBLIC, USER_IS_NOT_PROTECTED
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.task import box_mechanisms
from dpfda.report import Contents, Picture
from dpfda.simulate import simulate

RULES = ("gradient", "sample", "statistic", "classifier")
_PRETENDED_ROWS = 1000


@dataclass(eq=False, repr=False)
class LocalBoostingClassifier(LocalClassifier):
    """Learn from owners with a few rows each, who never send a row: one message, once.

    Each round asks a fresh group of owners; nobody takes part twice. By default owners send one
    number of a public codeword near the gradient of a logistic model, which needs no label of the
    data user (docs/methods/gradient-boosting.md); the other three rules are those of 004, with its
    corrections C16-C18.

    Args:
        epsilon: what an owner spends: one number, one for each owner (in the order of the sorted
            owners), or a dictionary from owner to ε.
        rule: what owners send, and what is made of it: ``gradient``, ``sample`` (nearest
            centroids), ``statistic`` (decision stumps) or ``classifier`` (logistic coefficients).
        mechanism: of the last three: ``piecewise``, ``duchi``, ``laplace`` or ``hybrid``.
        n_rounds: how many rounds.
        owners_per_round: H; by default all owners are shared evenly among the rounds.
        protects: ``both``; ``features`` tells labels in clear (rule ``sample`` only): owners must
            have agreed.
        feature_ranges: public (low, high) of all columns, one pair a column, or a mapping from
            column to (low, high) or to its categories; by default the range of the data user's
            rows, or, in a simulation without any, [-1, 1].
        products: how many leading whitened features are multiplied with each other (gradient).
        radius: gradients of N rows are cut at radius · √(k/N) (gradient); 0.5 was better than 2
            even where every owner has rows of one class only.
        n_thresholds: thresholds for each feature (statistic), quantiles of the data user's rows.
        coefficient_bound: public box of local coefficients (classifier).
        validation: ``clean``: the data user's labeled rows weigh the rounds; ``feedback``: half of
            a round's owners judge the rule of the others, and no clean label is needed.
        retries: how often a round that is no better than chance is repeated with other owners.
        rows_per_owner: N, how many rows of an owner count. By default as many as anybody has, or
            (sample) as owners have on average; these numbers are then public.
        classes: the label set; must be given unless a seed makes it a simulation. By default the
            labels that occur, which are then public.
        unit: whose data all rows of one group are.
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer, a seed sequence or a source
            makes a simulation.

    Privacy:
        ε-LDP for all rows and labels of one owner. The data user's own rows are used
        as they are and are not protected.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(8000, 3))
        >>> y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
        >>> owners = np.repeat(np.arange(2000), 4)
        >>> classifier = LocalBoostingClassifier(epsilon=2.0, random_state=0)
        >>> classifier = classifier.fit(X, y, groups=owners, reference=rng.normal(size=(500, 3)))
        >>> bool(classifier.score(X, y) > 0.9)
        True
        >>> print(classifier.guarantee_)  # doctest: +ELLIPSIS
        ε = 2, local, unit = owner, sampler = simulation (seeded), assuming ...
    """

    epsilon: Any = 1.0
    _: KW_ONLY
    rule: str = "gradient"
    mechanism: str = "piecewise"
    n_rounds: int = 10
    owners_per_round: int | None = None
    protects: str = "both"
    products: int | None = None
    radius: float = 0.5
    n_thresholds: int = 1
    coefficient_bound: float = 1.0
    validation: str = "clean"
    retries: int = 3
    rows_per_owner: int | None = None
    unit: str = "owner"
    model_: RowModel = field(init=False)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        grid_points: Any = None,
        groups: Any = None,
        reference: Any = None,
        reference_labels: Any = None,
    ) -> Self:
        """Simulate the study: every owner answers at most once.

        Args:
            X: the owners' rows, shape (n, d).
            y: their labels.
            grid_points: None, as for every table; curves are encoded first, in a pipeline:
                ``make_pipeline(CurveEncoder(...), LocalBoostingClassifier(...))``.
            groups: the owner of each row; by default every row is an owner of its own.
            reference: the data user's own rows, not protected.
            reference_labels: labels of the first of these rows, as far as the data user has any.
        """
        self._check_parameters()
        no_grid(grid_points)
        self._require_raw_rows()
        rows = self._read_rows(X, reset=True)
        labels = self._read_labels(y, len(rows))
        self._set_classes(labels)
        numbers = self._label_numbers(labels, len(rows))
        owners = OwnerRows.grouped(rows, numbers, groups=groups)
        seed, source = self._public_seed(), self._source()
        epsilons = self._epsilons(groups, owners.owners)
        if reference is None:
            self._require_ranges("feature_ranges")
        own, labeled = self._own_rows(reference, reference_labels, seed)
        self._warn_if_few(len(rows), float(np.median(epsilons)))
        n_rows = self.rows_per_owner or self._usual_rows(owners)
        usual = float(np.minimum(owners.sizes, n_rows).mean())
        typical = usual if self.rows_per_owner is None else None
        design = self._design(epsilons, own, labeled, n_rows=n_rows, typical=typical)
        self.plan_ = self._plan(design, epsilons, seed)
        order = public_order(self.plan_)
        crowd = Owners(self.plan_, owners, order=order, epsilons=epsilons, source=source)
        server = simulate(self.plan_, crowd, source=source, at_once=owners.owners, **self._account)
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
        """The study of owners who are elsewhere, from what is public alone; nobody is asked.

        Args:
            owners: how many there are.
            reference: as in `fit`.
            reference_labels: as in `fit`.

        Examples:
            >>> classifier = LocalBoostingClassifier(
            ...     1.0, feature_ranges={"age": (18, 99)}, classes=["no", "yes"], rows_per_owner=4
            ... )
            >>> classifier.planned(500).n_people
            500
        """
        made: Self = clone(self)
        made._check_parameters()
        for name in ("classes", "feature_ranges", "rows_per_owner"):
            if getattr(made, name) is None:
                raise InvalidParameter(name, "given: owners are elsewhere", None)
        assert made.rows_per_owner is not None
        made._set_classes(np.asarray(made.classes))
        made.n_features_in_ = len(PublicColumns.of(made.feature_ranges).names)
        seed = made._public_seed()
        epsilons = made._epsilons(None, _validate.whole("owners", owners))
        own, labeled = made._own_rows(reference, reference_labels, seed)
        design = made._design(epsilons, own, labeled, n_rows=made.rows_per_owner, typical=None)
        return made._plan(design, epsilons, seed)

    def predict_proba(self, X: Any, *, grid_points: Any = None) -> FloatArray:
        """Probabilities (n, K) in the order of ``classes_``: the softmax of the scores.

        It is the link of both models: scores of ``gradient`` are a logistic model's, and a vote
        of SAMME is log-odds up to a constant, without a factor (Zhu et al. 2009: g/(K - 1) is
        Σ α 1{T = k} and a constant). Not calibrated: weights are estimated under noise, and a model
        that does not fit is too sure of itself. Expected calibration errors at ε = 2 and 10 000
        owners (`tools/calibration.py`): 0.04 (``gradient``), 0.08, 0.05 and 0.06 on a logistic
        model, 0.18, 0.07, 0.09 and 0.08 on four columns of Adult.
        """
        return super().predict_proba(X, grid_points=grid_points)

    def _contents(self) -> Contents:
        told = "Error and weight, or step and directions, round by round."
        # Rounds may have been weighed by rows of the data user, which nothing protects.
        shown = (Picture(caption=told, draw=self.plot),) * self._is_simulation
        return replace(self.model_._contents(), pictures=shown, settings=settings(self.plan_))

    def plot(self) -> Any:
        """Error and weight, or step and directions, round by round."""
        self._require_fitted()
        return draw_rounds(self.history_)

    # -- pieces -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        _validate.one_of("rule", self.rule, RULES)
        _validate.one_of("mechanism", self.mechanism, box_mechanisms())
        _validate.one_of("protects", self.protects, ("both", "features"))
        _validate.one_of("validation", self.validation, ("clean", "feedback"))
        if self.protects != "both" and self.rule != "sample":
            raise InvalidParameter("protects", "'both' unless rule='sample'", self.protects)
        _validate.whole("n_rounds", self.n_rounds)
        _validate.whole("n_thresholds", self.n_thresholds, most=64)
        if self.owners_per_round is not None:
            _validate.whole("owners_per_round", self.owners_per_round)
        if self.rows_per_owner is not None:
            _validate.whole("rows_per_owner", self.rows_per_owner)

    def _epsilons(self, groups: Any, owners: int) -> FloatArray:
        """What each owner spends, in the order of the sorted owners."""
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

    def _own_rows(
        self, reference: Any, labels: Any, seed: int
    ) -> tuple[FloatArray, tuple[FloatArray, IntArray] | None]:
        """The data user's rows and the labeled ones among them."""
        if reference is None:
            if labels is not None:
                raise InvalidParameter("reference", "given with reference_labels", None)
            low, high = self._ranges(None).T
            uniform = np.random.default_rng([seed, 3]).random((_PRETENDED_ROWS, len(low)))
            return low + (high - low) * uniform, None
        if self._named:
            own = PublicColumns.of(self.feature_ranges).read(reference)
        else:
            own = _validate.batch("reference", reference, columns=self.n_features_in_)
        if labels is None:
            return own, None
        known = np.ravel(labels)
        if len(known) > len(own) or not np.isin(known, self.classes_).all():
            raise InvalidData("reference_labels", f"at most {len(own)} labels among the classes")
        return own, (own[: len(known)], self._label_numbers(known, len(known)))

    def _ranges(self, own: FloatArray | None) -> FloatArray:
        """Public (low, high) of each number of a row, shape (d, 2)."""
        if self.feature_ranges is None and own is not None:
            low, high = own.min(axis=0), own.max(axis=0)
            flat = high <= low
            return np.column_stack([np.where(flat, low - 1, low), np.where(flat, low + 1, high)])
        table = self._public_table(self.n_features_in_)
        return np.column_stack([table.low, table.high])

    @property
    def _named(self) -> bool:
        """Whether columns have names, and perhaps categories."""
        return isinstance(self.feature_ranges, Mapping)

    def _public_table(self, width: int) -> PublicColumns:
        given = (-1.0, 1.0) if self.feature_ranges is None else self.feature_ranges
        return PublicColumns.of(given, width=width)

    def _plan(self, design: BoostingDesign, epsilons: FloatArray, seed: int) -> StudyPlan:
        return design.plan(
            epsilon=float(np.max(epsilons)),
            owners=len(epsilons),
            classes=self.classes_.tolist(),
            protects=self.protects,
            unit=self.unit,
            seed=seed,
        )

    def _design(
        self,
        epsilons: FloatArray,
        own: FloatArray,
        labeled: tuple[FloatArray, IntArray] | None,
        *,
        n_rows: int,
        typical: float | None,
    ) -> BoostingDesign:
        rows, labels = ([], []) if labeled is None else labeled
        common: dict[str, Any] = {
            "n_rounds": self.n_rounds,
            "n_rows": n_rows,
            "own_budgets": bool(np.ptp(epsilons)),
            "labeled": rows,
            "labels": labels,
        }
        if self.rule == "gradient":
            return GradientDesign(
                features=FeatureMap.learnt(own, products=self.products),
                reference=own[:_PRETENDED_ROWS],
                owners_per_round=self.owners_per_round,
                radius=self.radius,
                typical_rows=typical,
                typical_epsilon=float(np.median(epsilons)),
                **common,
            )
        if self.validation == "clean" and labeled is None:
            rule = "given for this rule (or pass validation='feedback')"
            raise InvalidParameter("reference_labels", rule, None)
        # A third more rounds than asked for leave owners for repeated ones.
        number = len(epsilons)
        per_round = self.owners_per_round or max(1, 3 * number // (4 * self.n_rounds))
        judges = 0
        if self.validation == "feedback":
            judges, per_round = per_round - (per_round + 1) // 2, (per_round + 1) // 2
            common |= {"labeled": [], "labels": []}
        ranges = self._ranges(own)
        if self.rule == "statistic":
            cuts = np.arange(1, self.n_thresholds + 1) / (self.n_thresholds + 1)
            scaled = Ensemble.empty(ranges, classes=2).scaled(own)
            common["thresholds"] = np.quantile(scaled, cuts, axis=0).T
        return SammeDesign(
            rule=self.rule,
            mechanism=self.mechanism,
            feature_ranges=ranges,
            owners_per_round=per_round,
            judges=judges,
            retries=self.retries,
            coefficient_bound=self.coefficient_bound,
            **common,
        )

    def _usual_rows(self, owners: OwnerRows) -> int:
        """As many as anybody has; for rows that share ε, as many as owners have on average."""
        if self.rule == "sample":
            return round(float(owners.sizes.mean()))
        return min(int(owners.features.shape[1]), MOST_ROWS)

    def _read_rows(self, X: Any, *, reset: bool) -> FloatArray:
        """Owners' rows. With real noise none of them is refused: what is missing becomes 0."""
        private = reset and not self._is_simulation
        rows = self._checked_table(
            self.feature_ranges, X, reset=reset, ensure_all_finite=not private
        )
        if self._named:
            table = PublicColumns.of(self.feature_ranges)
            table.check(rows)
            rows = table.read(rows, strict=not private)
        return RowEncoder(rows.shape[1]).encode(rows, strict=False) if private else rows

    def _scores(self, X: Any, grid_points: Any) -> FloatArray:
        no_grid(grid_points)
        self._require_fitted()
        return self.model_.scores(self._read_rows(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        tags.input_tags.allow_nan = not self._is_simulation
        return tags
