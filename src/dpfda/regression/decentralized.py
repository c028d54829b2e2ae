"""Regression among sites that show nobody their rows: capeFM of 002, in its sound form (C8)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.consortium import convene
from dpfda.protocol.secure_sum.session import Silence
from dpfda.protocol.site import addable
from dpfda.regression.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dpfda.regression.private_regression import RegressionParameters
from dpfda.regression.problem import Task

_SITES = "a mapping or a list with one pair (X, y) for each site"


@dataclass(eq=False, repr=False, kw_only=True)
class DecentralizedRegression(RegressionParameters):
    """Linear or logistic regression among sites that trust neither each other nor a coordinator.

    Every question of the method is one secure sum: each site adds its own share of the noise, hides
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
        method: one whose questions are sums with Gaussian noise: ``moments``, ``gaussian_fm``,
            ``relaxed_fm``, ``noisy_gradient``.
        colluders: c, sites that may collude.
        dropouts: k, sites that may fall silent in a stage.
        aggregation: ``secure_sum``, or ``conventional``: every site alone adds all the noise (the
            baseline of 002, S times the variance).
        fit_intercept, feature_norm_bound, feature_center, target_bound, target_center, clip,
            encoder, unit, random_state: as in `PrivateLinearRegression`; every site encodes its own
            curves.
        grid_points: the points of curves given as arrays.
        ledgers: the sites' budgets over all fits, by site; each is spent before its site draws
            noise. A site without one is not refused.

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
        decentralized (('site1', 'site2', 'site3', 'site4'), ('site1', 'site2', 'site3', 'site4'))
        >>> bool(np.abs(model.predict(X) - X @ [0.8, -0.4]).mean() < 0.05)
        True
    """

    task: Task = "linear"
    colluders: int = 1
    dropouts: int = 0
    aggregation: Literal["secure_sum", "conventional"] = "secure_sum"
    target_bound: float = 1.0
    target_center: float = 0.0
    grid_points: Any = None
    ledgers: Mapping[str, BaseLedger] | None = None

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
        regression, source = face._regression(widths.pop(), rows=people)
        if not addable(next(regression.questions())):
            rule = "one whose questions are sums with Gaussian noise"
            raise InvalidParameter("method", rule, regression.method.name)
        self.fit_, consortium = convene(
            regression,
            held,
            source=source,
            colluders=self.colluders,
            dropouts=self.dropouts,
            alone=self.aggregation == "conventional",
            ledgers=self.ledgers,
            silent=silent,
        )
        self.survivors_, self.noise_ratio_ = consortium.survivors, consortium.noise_ratio
        self.coef_, self.intercept_ = self.fit_.slope, self.fit_.intercept
        self.clipping_inflation_ = self.fit_.inflation
        self.n_features_in_ = regression.problem.dimension
        self.terms_ = consortium.terms
        self.guarantee_ = consortium.guarantee(regression.guarantee)
        for text in self.fit_.warnings:
            warnings.warn(text, UserWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted targets, or 0/1 classes."""
        check_is_fitted(self, "fit_")
        return self._face().predict(X)

    def score(self, X: Any, y: Any) -> float:
        """R² of the predictions, or their accuracy for a logistic task; not private."""
        predicted = self.predict(X)
        targets = self._face()._targets(y)
        return float((accuracy_score if self.task == "logistic" else r2_score)(targets, predicted))

    # -- pieces -----------------------------------------------------------------------------------

    def _face(self) -> PrivateLinearRegression | PrivateLogisticRegression:
        """The pooled estimator with the same public bounds: reads and checks rows alike."""
        shared = {field.name: getattr(self, field.name) for field in fields(RegressionParameters)}
        _validate.one_of("task", self.task, ("linear", "logistic"))
        face: PrivateLinearRegression | PrivateLogisticRegression
        if self.task == "logistic":
            face = PrivateLogisticRegression(**shared, classes=(0, 1))
            face.classes_ = np.array([0.0, 1.0])
        else:
            face = PrivateLinearRegression(
                **shared, target_bound=self.target_bound, target_center=self.target_center
            )
        face.grid_points_ = self.grid_points
        if hasattr(self, "fit_"):
            face.fit_, face.n_features_in_ = self.fit_, self.n_features_in_
        return face


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
