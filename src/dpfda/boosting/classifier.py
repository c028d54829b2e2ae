"""`LocalBoostingClassifier`: boosting with data owners, the scikit-learn face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.design import BoostingDesign, BoostingProgress
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.gradient_study import GradientDesign
from dpfda.boosting.owner import Owners
from dpfda.boosting.owner_rows import OwnerRows
from dpfda.boosting.plots import draw_rounds
from dpfda.boosting.requests.base import MOST_ROWS
from dpfda.boosting.samme_study import SammeDesign
from dpfda.curves import RowEncoder
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.curve_classifier import CurveClassifierBase
from dpfda.face.estimator import unquoted
from dpfda.privacy.guarantee import ROWS_ARE_PUBLIC, USER_IS_NOT_PROTECTED
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.person import label_numbers
from dpfda.protocol.task import BOX_RANDOMIZERS
from dpfda.simulate import simulate

SHARES = ("gradient", "sample", "statistic", "classifier")
_PRETENDED_ROWS = 1000


class LocalBoostingClassifier(CurveClassifierBase):
    """Learn from owners with a few rows each, who never send a row: one message, once.

    Each round asks a fresh group of owners; nobody takes part twice. The default share sends one
    number of a public codeword near the gradient of a logistic model (methods 8.8) and needs no
    label of the data user; the other three are those of 004, with its corrections C16-C18.

    Args:
        epsilon: what an owner spends: one number, one for each owner (in the order of the sorted
            owners), or a dictionary from owner to ε.
        share: ``gradient``, ``sample`` (nearest centroid), ``statistic`` (decision stumps) or
            ``classifier`` (logistic coefficients).
        mechanism: of the last three: ``piecewise``, ``duchi``, ``laplace`` or ``hybrid``.
        n_rounds: how many rounds.
        owners_per_round: H; by default all owners are shared evenly among the rounds.
        labels: ``public`` tells labels in clear (share ``sample`` only): owners must have agreed.
        feature_bounds: public (low, high) of all features, or one pair a feature; by default the
            range of the data user's rows, or [-1, 1] without any.
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
        ledger: budget of the data over all studies: everybody spends ε before anybody is asked.
        random_state: None draws from the operating system; an integer is a simulation.

    Privacy:
        ε-LDP for all rows and labels of one owner (unit = owner). The data user's own rows are used
        as they are and are not protected.

    Example:
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

    model_: Any

    def __init__(
        self,
        epsilon: float | Sequence[float] | Mapping[Any, float] = 1.0,
        *,
        share: str = "gradient",
        mechanism: str = "piecewise",
        n_rounds: int = 10,
        owners_per_round: int | None = None,
        labels: Literal["private", "public"] = "private",
        feature_bounds: Any = None,
        products: int | None = None,
        radius: float = 0.5,
        n_thresholds: int = 1,
        coefficient_bound: float = 1.0,
        validation: Literal["clean", "feedback"] = "clean",
        retries: int = 3,
        rows_per_owner: int | None = None,
        classes: Sequence[Any] | None = None,
        ledger: BaseLedger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon  # type: ignore[assignment]
        self.share = share
        self.mechanism = mechanism
        self.n_rounds = n_rounds
        self.owners_per_round = owners_per_round
        self.labels = labels
        self.feature_bounds = feature_bounds
        self.products = products
        self.radius = radius
        self.n_thresholds = n_thresholds
        self.coefficient_bound = coefficient_bound
        self.validation = validation
        self.retries = retries
        self.rows_per_owner = rows_per_owner
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        reference: Any = None,
        reference_labels: Any = None,
    ) -> Self:
        """Simulate the study: every owner answers at most once.

        Args:
            X: the owners' rows, shape (n, d).
            y: their labels.
            groups: the owner of each row; by default every row is an owner of its own.
            reference: the data user's own rows, not protected.
            reference_labels: labels of the first of these rows, as far as the data user has any.
        """
        self._check_parameters()
        rows = self._read_rows(X)
        labels = self._read_labels(y, len(rows))
        self._set_classes(labels)
        numbers = self._label_numbers(labels, len(rows))
        owners = OwnerRows.grouped(rows, numbers, groups=groups)
        seed, source = self._public_seed(), self._source()
        epsilons = self._epsilons(groups, owners.owners)
        own, labeled = self._own_rows(reference, reference_labels, seed)
        self.plan_ = self._design(owners, epsilons, own, labeled).plan(
            epsilon=float(np.max(epsilons)),
            owners=owners.owners,
            classes=self.classes_.tolist(),
            protects="both" if self.labels == "private" else "features",
            seed=seed,
        )
        order = np.random.default_rng([seed, 2]).permutation(owners.owners)
        crowd = Owners(self.plan_, owners, order=order, epsilons=epsilons, source=source)
        server = simulate(self.plan_, crowd, source=source, at_once=owners.owners, **self._account)
        progress = server.progress
        assert isinstance(progress, BoostingProgress)
        self.owners_spent_, self.n_owners_ = crowd.asked, owners.owners
        self.model_, self.history_ = progress.boosted, progress.history
        assumed = [USER_IS_NOT_PROTECTED]
        assumed += [ROWS_ARE_PUBLIC] if self.rows_per_owner is None else []
        self.guarantee_ = self._promise(self.plan_.guarantee, source).assuming(*assumed)
        return self

    def predict(self, X: Any) -> Any:  # type: ignore[override]
        """Labels of new rows."""
        rows = self._new_rows(X)
        return self.classes_[self.model_.decide(rows)]

    def decision_function(self, X: Any) -> FloatArray:  # type: ignore[override]
        """Scores: (n,) for two classes, (n, K) for more."""
        rows = self._new_rows(X)
        scores = self.model_.scores(rows)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def plot(self) -> Any:
        """Error and weight, or step and directions, round by round."""
        check_is_fitted(self, "model_")
        return draw_rounds(self.history_)

    # -- pieces -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        _validate.one_of("share", self.share, SHARES)
        _validate.one_of("labels", self.labels, ("private", "public"))
        _validate.one_of("validation", self.validation, ("clean", "feedback"))
        if self.labels == "public" and self.share != "sample":
            raise InvalidParameter("labels", "'private' unless share='sample'", self.labels)
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
            low, high = np.asarray(self._bounds(None)).T
            uniform = np.random.default_rng([seed, 3]).random((_PRETENDED_ROWS, len(low)))
            return low + (high - low) * uniform, None
        own = _validate.batch("reference", reference, columns=self.n_features_in_)
        if labels is None:
            return own, None
        known = np.ravel(labels)
        if len(known) > len(own) or not np.isin(known, self.classes_).all():
            raise InvalidData("reference_labels", f"at most {len(own)} labels among the classes")
        return own, (own[: len(known)], self._label_numbers(known, len(known)))

    def _bounds(self, own: FloatArray | None) -> Any:
        """Public (low, high) of each feature."""
        d = self.n_features_in_
        if self.feature_bounds is None:
            if own is None:
                return [(-1.0, 1.0)] * d
            low, high = own.min(axis=0), own.max(axis=0)
            flat = high <= low
            return np.column_stack([np.where(flat, low - 1, low), np.where(flat, low + 1, high)])
        given = self.feature_bounds
        if np.ndim(given) == 1:
            return [_validate.interval("feature_bounds", given)] * d
        if len(given) != d:
            raise InvalidParameter("feature_bounds", f"a pair, or {d} pairs", len(given))
        return [_validate.interval("feature_bounds", pair) for pair in given]

    def _design(
        self,
        owners: OwnerRows,
        epsilons: FloatArray,
        own: FloatArray,
        labeled: tuple[FloatArray, IntArray] | None,
    ) -> BoostingDesign:
        rows, labels = ([], []) if labeled is None else labeled
        common: dict[str, Any] = {
            "n_rounds": self.n_rounds,
            "n_rows": self.rows_per_owner or self._usual_rows(owners),
            "own_budgets": bool(np.ptp(epsilons)),
            "labeled": rows,
            "labels": labels,
        }
        if self.share == "gradient":
            typical = np.minimum(owners.sizes, common["n_rows"]).mean()
            return GradientDesign(
                features=FeatureMap.learnt(own, products=self.products),
                reference=own[:_PRETENDED_ROWS],
                owners_per_round=self.owners_per_round,
                radius=self.radius,
                typical_rows=float(typical) if self.rows_per_owner is None else None,
                typical_epsilon=float(np.median(epsilons)),
                **common,
            )
        if self.validation == "clean" and labeled is None:
            rule = "given for this share (or pass validation='feedback')"
            raise InvalidParameter("reference_labels", rule, None)
        # A third more rounds than asked for leave owners for repeated ones.
        number = owners.owners
        per_round = self.owners_per_round or max(1, 3 * number // (4 * self.n_rounds))
        judges = 0
        if self.validation == "feedback":
            judges, per_round = per_round - (per_round + 1) // 2, (per_round + 1) // 2
            common |= {"labeled": [], "labels": []}
        bounds = np.asarray(self._bounds(own))
        if self.share == "statistic":
            cuts = np.arange(1, self.n_thresholds + 1) / (self.n_thresholds + 1)
            scaled = Ensemble.empty(bounds, classes=2).scaled(own)
            common["thresholds"] = np.quantile(scaled, cuts, axis=0).T
        return SammeDesign(
            share=self.share,
            randomizer=_validate.one_of("mechanism", self.mechanism, BOX_RANDOMIZERS),
            bounds=bounds,
            owners_per_round=per_round,
            judges=judges,
            retries=self.retries,
            coefficient_bound=self.coefficient_bound,
            **common,
        )

    def _usual_rows(self, owners: OwnerRows) -> int:
        """As many as anybody has; for rows that share ε, as many as owners have on average."""
        if self.share == "sample":
            return round(float(owners.sizes.mean()))
        return min(int(owners.features.shape[1]), MOST_ROWS)

    def _label_numbers(self, labels: Any, count: int) -> IntArray:
        """Of unknown labels: 0."""
        return label_numbers(self._read_labels(labels, count), self.classes_)

    def _read_rows(self, X: Any) -> FloatArray:
        """Owners' rows. With real noise none of them is refused: what is missing becomes 0."""
        seeded = self.random_state is not None
        with unquoted("X"):
            rows = validate_data(self, X, dtype=np.float64, ensure_all_finite=seeded)
        return rows if seeded else RowEncoder(rows.shape[1]).encode(rows, strict=False)

    def _new_rows(self, X: Any) -> FloatArray:
        check_is_fitted(self, "model_")
        with unquoted("X"):
            return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        tags.input_tags.allow_nan = self.random_state is None
        return tags
