"""`LocalBoostingClassifier`: boosting with data owners, the scikit-learn face."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dpfda import _validate
from dpfda._validate import FloatArray, IntArray
from dpfda.boosting.ensemble import Ensemble
from dpfda.boosting.feature_map import FeatureMap
from dpfda.boosting.gradient_user import GradientUser
from dpfda.boosting.owners import OwnerRows
from dpfda.boosting.plots import draw_rounds
from dpfda.boosting.requests.base import Request
from dpfda.boosting.requests.share import Labels, ShareRequest
from dpfda.boosting.roles import Crowd, DataUser, run
from dpfda.boosting.samme_user import SammeUser
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.noise import SecureSource, SimulationSource, Source

SHARES = ("gradient", "sample", "statistic", "classifier")
_NOISE_STREAM = 1
_PRETENDED_ROWS = 1000


class LocalBoostingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
        labels: ``public`` tells labels in clear (share ``sample`` only), which must be asked for.
        feature_bounds: public (low, high) of all features, or one pair a feature; by default the
            range of the data user's rows, or [-1, 1] without any.
        products: how many leading whitened features are multiplied with each other (gradient).
        radius: gradients of N rows are cut at radius · √(k/N) (gradient); 0.5 was better than 2
            even where every owner has rows of one class only.
        n_thresholds: thresholds for each feature (statistic), quantiles of the data user's rows.
        coefficient_bound: public box of local coefficients (classifier).
        validation: ``clean``: the data user's labelled rows weigh the rounds; ``feedback``: half of
            a round's owners judge the rule of the others, and no clean label is needed.
        retries: how often a round that is no better than chance is repeated with other owners.
        classes: the label set; by default the labels that occur, which are then public.
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

    def __init__(
        self,
        epsilon: float | Sequence[float] | Mapping[Any, float] = 1.0,
        *,
        share: str = "gradient",
        mechanism: str = "piecewise",
        n_rounds: int = 10,
        owners_per_round: int | None = None,
        labels: Labels = "private",
        feature_bounds: Any = None,
        products: int | None = None,
        radius: float = 0.5,
        n_thresholds: int = 1,
        coefficient_bound: float = 1.0,
        validation: Literal["clean", "feedback"] = "clean",
        retries: int = 3,
        classes: Sequence[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
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
        self.classes = classes
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
        rows = validate_data(self, _validate_rows(X), dtype=np.float64)
        numbers = self._label_numbers(self._read_labels(y, len(rows)), reset=True)
        owners = OwnerRows.grouped(rows, numbers, groups=groups)
        seed = secrets.randbits(62) if self.random_state is None else self.random_state
        source = self._source()
        crowd = Crowd(owners, epsilon=self._epsilons(groups, len(owners)), rng=source)
        own, labelled = self._own_rows(reference, reference_labels, seed)
        self.data_user_ = self._data_user(crowd, owners, own, labelled, seed)
        order = np.random.default_rng([seed, 2]).permutation(len(owners))
        question = self.data_user_.request
        self.owners_spent_ = run(self.data_user_, crowd, order=order)
        self.n_owners_ = len(owners)
        self.model_ = self.data_user_.model
        self.history_ = self.data_user_.history
        promise = question.guarantee(float(crowd.epsilons.max())).drawn_from(source)
        self.guarantee_ = promise.assuming("the data user's own rows are not protected")
        return self

    def predict(self, X: Any) -> Any:
        """Labels of new rows."""
        rows = self._new_rows(X)
        return self.classes_[self.model_.decide(rows)]

    def decision_function(self, X: Any) -> FloatArray:
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
        if self.random_state is not None:
            _validate.whole("random_state", self.random_state, least=0)

    def _source(self) -> Source:
        if self.random_state is None:
            return SecureSource()
        return SimulationSource(np.random.SeedSequence([self.random_state, _NOISE_STREAM]))

    def _epsilons(self, groups: Any, owners: int) -> Any:
        if not isinstance(self.epsilon, Mapping):
            return self.epsilon
        names = np.unique(np.arange(owners) if groups is None else np.asarray(groups)).tolist()
        missing = [name for name in names if name not in self.epsilon]
        if missing:
            raise InvalidParameter("epsilon", "given for every owner", f"{len(missing)} missing")
        return [self.epsilon[name] for name in names]

    def _own_rows(
        self, reference: Any, labels: Any, seed: int
    ) -> tuple[FloatArray, tuple[FloatArray, IntArray] | None]:
        """The data user's rows and the labelled ones among them."""
        if reference is None:
            if labels is not None:
                raise InvalidParameter("reference", "given with reference_labels", None)
            low, high = np.asarray(self._bounds(None)).T
            uniform = np.random.default_rng([seed, 3]).random((_PRETENDED_ROWS, len(low)))
            return low + (high - low) * uniform, None
        own = _validate.batch("reference", reference, columns=self.n_features_in_)
        if labels is None:
            return own, None
        known = self._read_labels(labels, len(np.ravel(labels)))
        if len(known) > len(own):
            raise InvalidData("reference_labels", f"at most {len(own)} labels")
        return own, (own[: len(known)], self._label_numbers(known, reset=False))

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

    def _data_user(
        self,
        crowd: Crowd,
        owners: OwnerRows,
        own: FloatArray,
        labelled: tuple[FloatArray, IntArray] | None,
        seed: int,
    ) -> DataUser:
        study = f"boosting-{seed}"
        classes, number = len(self.classes_), len(owners)
        if self.share == "gradient":
            used = number
            if self.owners_per_round is not None:
                used = min(number, self.owners_per_round * self.n_rounds)
            return GradientUser(
                study,
                features=FeatureMap.learnt(own, products=self.products),
                reference=own[:_PRETENDED_ROWS],
                classes=classes,
                owners=used,
                epsilon=float(np.median(crowd.epsilons)),
                rows=float(owners.sizes.mean()),
                rounds=self.n_rounds,
                labelled=labelled,
                radius=self.radius,
                seed=seed,
            )
        if self.validation == "clean" and labelled is None:
            rule = "given for this share (or pass validation='feedback')"
            raise InvalidParameter("reference_labels", rule, None)
        # A third more rounds than asked for leave owners for repeated ones.
        per_round = self.owners_per_round or max(1, 3 * number // (4 * self.n_rounds))
        judges = 0
        if self.validation == "feedback":
            judges, per_round = per_round - (per_round + 1) // 2, (per_round + 1) // 2
        return SammeUser(
            study,
            request=self._share_request(own, classes),
            owners_per_round=per_round,
            rounds=self.n_rounds,
            retries=self.retries,
            validation=labelled if self.validation == "clean" else None,
            feedback_owners=judges,
        )

    def _share_request(self, own: FloatArray, classes: int) -> ShareRequest:
        ensemble = Ensemble.empty(self._bounds(own), classes=classes)
        extra: dict[str, Any] = {"mechanism": self.mechanism, "labels": self.labels}
        if self.share == "statistic":
            cuts = np.arange(1, self.n_thresholds + 1) / (self.n_thresholds + 1)
            extra["thresholds"] = np.quantile(ensemble.scaled(own), cuts, axis=0).T
        if self.share == "classifier":
            extra["bound"] = self.coefficient_bound
        made = Request.named(self.share)(ensemble=ensemble, **extra)  # type: ignore[call-arg]
        assert isinstance(made, ShareRequest)
        return made

    def _read_labels(self, labels: Any, count: int) -> npt.NDArray[Any]:
        if labels is None:
            raise ValueError("This classifier requires y to be passed, but the target y is None")
        values = np.asarray(column_or_1d(labels, warn=True))
        if len(values) != count:
            raise InvalidData("labels", f"{count} labels, one for each row")
        if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
            raise ValueError("Input y contains NaN or infinity.")
        check_classification_targets(values)
        return values

    def _label_numbers(self, labels: npt.NDArray[Any], *, reset: bool) -> IntArray:
        if reset:
            self.classes_ = np.unique(labels if self.classes is None else np.asarray(self.classes))
        if len(self.classes_) < 2:
            raise InvalidData("labels", "of at least 2 classes, not one class only")
        if not np.isin(labels, self.classes_).all():
            raise InvalidData("labels", "among the given classes")
        return np.asarray(np.searchsorted(self.classes_, labels), dtype=np.int64)

    def _new_rows(self, X: Any) -> FloatArray:
        check_is_fitted(self, "model_")
        return np.asarray(validate_data(self, _validate_rows(X), dtype=np.float64, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # privacy costs accuracy on their small data sets
        tags.non_deterministic = self.random_state is None
        return tags


def _validate_rows(rows: Any) -> Any:
    """Refuse text before a library's error message quotes it."""
    if hasattr(rows, "dtype") and getattr(rows.dtype, "kind", "f") in "OUS":
        try:
            return np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            if isinstance(error, TypeError):
                raise
            raise InvalidData("X", "an array of real numbers") from None
    return rows
