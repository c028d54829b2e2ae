"""Regression among sites that show nobody their rows: capeFM of 002, in its sound form (C8)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.mechanisms.gaussian import Gaussian
from dpfda.noise import SecureSource, SimulationSource, Source, discrete_gaussian, source_for
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.answer import Answer
from dpfda.protocol.conversation import converse
from dpfda.protocol.query import AdditiveLook, Query
from dpfda.protocol.secure_sum import Identity, Member, Terms, add_up
from dpfda.protocol.secure_sum.session import Silence
from dpfda.regression.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dpfda.regression.methods import Method, Regression

_SITES = "a mapping or a list with one pair (X, y) for each site"


class RegressionSite:
    """A site with its own rows: answers a stage with a noisy, later masked, vector of integers.

    Privacy:
        The site draws its own share of the noise, as its terms demand, and keeps its own account: a
        stage that would take Σμ_i² above μ² is refused, whoever asks.

    Args:
        site: its role in the secure sum.
        rows, targets: its people; they never leave this object.
        terms: what all sites agreed on.
        mu: the whole budget.
        source: where its noise comes from.
        alone: add all the noise instead of a share of it.

    Example:
        >>> identity = Identity()
        >>> roster = (("a", identity.public), ("b", bytes(32)))
        >>> terms = Terms(study="s", coordinator=b"k" * 32, roster=roster)
        >>> role, source = Member("a", identity, terms), SimulationSource(0)
        >>> RegressionSite(role, np.zeros((5, 2)), np.zeros(5), terms=terms, mu=0.1, source=source)
        RegressionSite('a', 5 rows)
    """

    def __init__(
        self,
        site: Member,
        rows: FloatArray,
        targets: FloatArray,
        *,
        terms: Terms,
        mu: float,
        source: Source,
        alone: bool = False,
    ) -> None:
        self.site = site
        self._source = source
        self.size = len(rows)
        self._rows = rows
        self._targets = targets
        self._sigma = site_sigma(1 if alone else terms.noisy_sites)
        self._left = mu**2 * (1 + 1e-12)

    def answer(self, number: int, query: Query) -> None:
        """Contribute this site's part of a sum: fixed-point integers plus noise."""
        noise = query.mechanism
        if not (isinstance(query, AdditiveLook) and query.linear and isinstance(noise, Gaussian)):
            raise InvalidParameter("method", "one whose stages are sums", type(query).__name__)
        if noise.mu**2 > self._left:
            raise BudgetExceeded("this stage would cost more than is left of the budget")
        self._left -= noise.mu**2
        exact = query.statistic(query.sums(query.fitting((self._rows, self._targets))))
        drawn = discrete_gaussian(len(exact), sigma=self._sigma, source=self._source)
        self.site.contribute(number, noise.lattice(exact) + drawn)

    def __repr__(self) -> str:
        return f"RegressionSite({self.site.name!r}, {self.size} rows)"


def site_sigma(sharing: int) -> int:
    """Lattice steps of one site's noise, so that `sharing` sites together reach 2^24; rounded up.

    Example:
        >>> site_sigma(1) == 2**24, site_sigma(4) == 2**23
        (True, True)
    """
    return math.isqrt((Gaussian.steps**2 - 1) // sharing) + 1


class DecentralizedRegression(BaseEstimator):  # type: ignore[misc]
    """Linear or logistic regression among sites that trust neither each other nor a coordinator.

    Every stage of the method is one secure sum: each site adds its own share of the noise, hides
    its vector under masks modulo 2^64, and only the sum over sites is ever seen. With no colluders
    and no dropouts the noise is that of one curator who holds all rows, for any number of sites.

    Privacy:
        (ε, δ)-DP for replacing one row of one site, towards the coordinator, everybody who reads
        the result, and up to `colluders` sites that pool all they know with them. A site knows its
        own noise, so `colluders=0` protects against outsiders and the coordinator only; with 1, the
        default, also against each single site. Each site's noise is a discrete Gaussian of at least
        2^20 lattice steps; the sum of S of them differs from a discrete Gaussian of the summed
        variance by a factor within exp(±10 S e^{-π² 2^40}) (Kairouz, Liu & Steinke 2021), which is
        1 in any arithmetic used here.

    Args:
        epsilon, delta: the budget of the whole fit.
        task: ``linear`` or ``logistic``.
        method: one whose stages are sums with Gaussian noise: ``moments``, ``gaussian_fm``,
            ``relaxed_fm``, ``noisy_gradient``.
        colluders: c, sites that may collude.
        dropouts: k, sites that may fall silent in a stage.
        aggregation: ``secure_sum``, or ``conventional``: every site alone adds all the noise (the
            baseline of 002, S times the variance).
        fit_intercept, feature_norm_bound, feature_center, target_bound, target_center, clip,
            encoder, unit, random_state: as in `PrivateLinearRegression`; every site encodes its own
            curves.
        grid_points: the points of curves given as arrays.

    Attributes:
        coef_, intercept_, clipping_inflation_: as in `PrivateLinearRegression`.
        survivors_, noise_ratio_: of each stage: who took part, and the variance of the noise in
            units of one curator's.
        guarantee_: what the fit promises.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> hospitals = []
        >>> for _ in range(4):
        ...     X = rng.uniform(-0.5, 0.5, (3000, 2))
        ...     hospitals.append((X, X @ [0.8, -0.4]))
        >>> model = DecentralizedRegression(1.0, random_state=0).fit(hospitals)
        >>> print(model.guarantee_.model, model.survivors_)
        decentralised (('site1', 'site2', 'site3', 'site4'), ('site1', 'site2', 'site3', 'site4'))
        >>> bool(np.abs(model.predict(X) - X @ [0.8, -0.4]).mean() < 0.05)
        True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        task: Literal["linear", "logistic"] = "linear",
        method: str | Method = "moments",
        colluders: int = 1,
        dropouts: int = 0,
        aggregation: Literal["secure_sum", "conventional"] = "secure_sum",
        fit_intercept: bool = True,
        feature_norm_bound: float | None = 1.0,
        feature_center: Any = 0.0,
        target_bound: float = 1.0,
        target_center: float = 0.0,
        clip: bool = False,
        encoder: Any = None,
        grid_points: Any = None,
        unit: str = "person",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.task = task
        self.method = method
        self.colluders = colluders
        self.dropouts = dropouts
        self.aggregation = aggregation
        self.fit_intercept = fit_intercept
        self.feature_norm_bound = feature_norm_bound
        self.feature_center = feature_center
        self.target_bound = target_bound
        self.target_center = target_center
        self.clip = clip
        self.encoder = encoder
        self.grid_points = grid_points
        self.unit = unit
        self.random_state = random_state

    def fit(
        self,
        sites: Mapping[str, tuple[Any, Any]] | Sequence[tuple[Any, Any]],
        y: None = None,
        *,
        silent: Silence | None = None,
    ) -> Self:
        """Fit from each site's own (X, y), in one process.

        Args:
            sites: rows and targets by site.
            y: must be None; targets come with their sites.
            silent: (step, attempt) -> sites that fall silent, to rehearse dropouts.
        """
        _validate.one_of("aggregation", self.aggregation, ("secure_sum", "conventional"))
        face = self._face()
        if y is not None:
            raise InvalidData("sites", _SITES + ", without a separate y")
        held = {name: _held(face, name, pair) for name, pair in _named(sites).items()}
        widths = {rows.shape[1] for rows, _ in held.values()}
        if len(widths) != 1:
            raise InvalidData("sites", "rows with the same features at every site")
        people = sum(len(rows) for rows, _ in held.values())
        regression = Regression(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            problem=face._problem(widths.pop(), rows=people),
            method=self.method if isinstance(self.method, Method) else Method.named(self.method)(),
        )
        if regression.method.pure:
            rule = "one whose stages are sums with Gaussian noise"
            raise InvalidParameter("method", rule, regression.method.name)
        identities = {name: Identity() for name in held}
        coordinator = Identity()
        terms = Terms(
            study="regression",
            coordinator=coordinator.public,
            roster=tuple((name, one.public) for name, one in identities.items()),
            colluders=self.colluders,
            dropouts=self.dropouts,
        )
        sources = _sources(self.random_state, len(held))
        members = {
            name: RegressionSite(
                Member(name, identities[name], terms),
                *held[name],
                terms=terms,
                mu=regression.whole.mu,
                source=source,
                alone=self.aggregation == "conventional",
            )
            for name, source in zip(held, sources, strict=True)
        }
        self.survivors_: tuple[tuple[str, ...], ...] = ()
        self.noise_ratio_: tuple[float, ...] = ()
        self.fit_ = converse(
            regression,
            lambda query, number: self._answer(
                members, terms, coordinator, query, number, silent=silent
            ),
        )
        self.coef_, self.intercept_ = self.fit_.slope, self.fit_.intercept
        self.clipping_inflation_ = self.fit_.inflation
        self.n_features_in_ = regression.problem.dimension
        self.terms_ = terms
        self.guarantee_ = self._guarantee(terms).drawn_from(sources[0])
        for text in self.fit_.warnings:
            warnings.warn(text, UserWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted targets, or 0/1 classes."""
        check_is_fitted(self, "fit_")
        rows = self._face()._rows(X)
        line = self.fit_.predict(_validate.batch("X", rows, columns=self.n_features_in_))
        if self.task == "logistic":
            return np.asarray(line >= 0, dtype=np.float64)
        low, high = self.target_center - self.target_bound, self.target_center + self.target_bound
        return np.asarray(np.clip(line, low, high))

    def score(self, X: Any, y: Any) -> float:
        """R² of the predictions, or their accuracy for a logistic task; not private."""
        predicted = self.predict(X)
        targets = self._face()._targets(y)
        return float((accuracy_score if self.task == "logistic" else r2_score)(targets, predicted))

    # -- pieces -----------------------------------------------------------------------------------

    def _answer(
        self,
        members: Mapping[str, RegressionSite],
        terms: Terms,
        coordinator: Identity,
        query: Query,
        number: int,
        *,
        silent: Silence | None,
    ) -> Answer:
        for member in members.values():
            member.answer(number, query)
        noise = query.mechanism
        assert isinstance(noise, Gaussian)
        sigma = site_sigma(1 if self.aggregation == "conventional" else terms.noisy_sites)
        result = add_up(
            [member.site for member in members.values()],
            terms,
            coordinator,
            stage=number,
            size=len(noise.axes),
            silent=silent,
        )
        self.survivors_ += (result.survivors,)
        steps = noise.lattice_step
        deviation = sigma * math.sqrt(len(result.survivors))
        self.noise_ratio_ += ((deviation / noise.steps) ** 2,)
        return Answer(
            values=np.asarray(result.total * steps),
            n=sum(members[name].size for name in result.survivors),
            law=NoiseLaw(law="gaussian", scales=deviation * steps),
        )

    def _face(self) -> PrivateLinearRegression | PrivateLogisticRegression:
        """The pooled estimator with the same public bounds: reads and checks rows alike."""
        shared = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "fit_intercept": self.fit_intercept,
            "feature_norm_bound": self.feature_norm_bound,
            "feature_center": self.feature_center,
            "clip": self.clip,
            "encoder": self.encoder,
        }
        _validate.one_of("task", self.task, ("linear", "logistic"))
        face: PrivateLinearRegression | PrivateLogisticRegression
        if self.task == "logistic":
            face = PrivateLogisticRegression(**shared, classes=(0, 1))
        else:
            face = PrivateLinearRegression(
                **shared, target_bound=self.target_bound, target_center=self.target_center
            )
        face.grid_points_ = self.grid_points
        return face

    def _guarantee(self, terms: Terms) -> Guarantee:
        promise = Guarantee(
            epsilon=self.epsilon, delta=self.delta, model="decentralised", unit=self.unit
        )
        if self.aggregation == "conventional":
            return promise
        return promise.assuming(
            f"at most {terms.colluders} of {terms.sites} sites collude with the coordinator",
            f"at most {terms.dropouts} fall silent in a stage",
            f"{terms.threshold} sites are needed to open a sum",
            "X25519, HKDF-SHA256 and ChaCha20 are secure",
        )


def _named(
    sites: Mapping[str, tuple[Any, Any]] | Sequence[tuple[Any, Any]],
) -> dict[str, tuple[Any, Any]]:
    if isinstance(sites, Mapping):
        named = dict(sites)
    elif isinstance(sites, Sequence) and not isinstance(sites, str):
        named = {f"site{number}": pair for number, pair in enumerate(sites, start=1)}
    else:
        raise InvalidData("sites", _SITES, f"type {type(sites).__name__}")
    if not named:
        raise InvalidData("sites", _SITES, "none")
    for pair in named.values():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidData("sites", _SITES)
    return named


def _held(
    face: PrivateLinearRegression | PrivateLogisticRegression, name: str, pair: tuple[Any, Any]
) -> tuple[FloatArray, FloatArray]:
    """One site's checked rows and targets; an error says which site it was."""
    try:
        return face._read(*pair)
    except InvalidData as error:
        found = str(error).partition(", got ")[2]
        rule = error.rule.partition("; pass classes")[0]  # among sites they are 0 and 1
        raise InvalidData(f"{error.name} of site {name!r}", rule, found) from None


def _sources(random_state: Any, count: int) -> list[Source]:
    """A source of its own for every site."""
    first = source_for(random_state)
    if isinstance(first, SimulationSource):
        return list(first.spawn(count))
    return [SecureSource() for _ in range(count)]
