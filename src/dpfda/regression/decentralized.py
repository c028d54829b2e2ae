"""Regression among sites that show nobody their rows: capeFM of 002, in its sound form (C8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from dpfda import _validate
from dpfda.curves.observations import with_own_grids
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.curves import count_rows
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.consortium import convene
from dpfda.protocol.query import Records
from dpfda.protocol.secure_sum.session import Silence
from dpfda.protocol.site import addable
from dpfda.regression.private_regression import PrivateRegression, stated_range
from dpfda.regression.problem import Link

_SITES = "a mapping site → (X, y)"
_MADE_UP = 3  # sites of a simulation that names none


@dataclass(eq=False, repr=False, kw_only=True)
class DecentralizedRegression(PrivateRegression):
    """Linear or logistic regression among sites that trust neither each other nor a coordinator.

    Every question of the mechanism is one secure sum: each site adds its own share of the noise,
    hides its vector under masks modulo 2^64, and only the sum over sites is ever seen. With no
    colluders and no dropouts the noise is that of one curator who holds all rows, for any number of
    sites.

    Privacy:
        (ε, δ)-DP for replacing one row of one site, or with `groups` all rows of one person,
        towards the coordinator, everybody who reads the result, and up to `colluders` sites that
        pool all they know with them. A site knows its own noise, so `colluders=0` protects against
        outsiders and the coordinator only; with 1, the default, also against each single site. Each
        site's noise is a discrete Gaussian of at least 2^20 lattice steps; the sum of S of them
        differs from a discrete Gaussian of the summed variance by a factor within
        exp(±10 S e^{-π² 2^40}) (Kairouz, Liu & Steinke 2021), which is 1 in any arithmetic used
        here.

    Args:
        epsilon, delta: the budget of the whole fit.
        link: ``linear`` or ``logistic``.
        feature_ranges, value_range, domain_range, fit_intercept, feature_norm_bound,
            feature_center, encoder, target_range, classes, unit, random_state: as in
            `PrivateLinearRegression` and `PrivateLogisticRegression`.
        mechanism: one whose questions are sums with Gaussian noise: ``moments``, ``gaussian_fm``,
            ``relaxed_fm``, ``noisy_gradient``.
        colluders: c, sites that may collude.
        dropouts: k, sites that may fall silent in a stage.
        aggregation: ``secure_sum``, or ``conventional``: every site alone adds all the noise (the
            baseline of 002, S times the variance).
        ledgers: the sites' own budgets over all fits, by site; each is spent before its site draws
            noise.
        ledger: budget over all fits that pays, once, for the sites without one of their own.

    Attributes:
        coef_, intercept_, coef_standard_error_, clipping_inflation_, model_: as in
            `PrivateLinearRegression`.
        survivors_, noise_ratio_: of each stage: who took part, and the variance of the noise in
            units of one curator's.
        guarantee_: what the fit promises.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(20, 60, (12_000, 2))
        >>> y = X @ [0.8, -0.4]
        >>> hospital = np.array(["north", "east", "south", "west"] * 3000)
        >>> model = DecentralizedRegression(
        ...     1.0, feature_ranges=(20, 60), target_range=(-10, 40), random_state=0
        ... ).fit(X, y, sites=hospital)
        >>> print(model.guarantee_.model, model.survivors_[0])
        decentralized ('east', 'north', 'south', 'west')
        >>> bool(np.abs(model.predict(X) - y).mean() < 2)
        True
    """

    link: Link = "linear"
    colluders: int = 1
    dropouts: int = 0
    aggregation: Literal["secure_sum", "conventional"] = "secure_sum"
    target_range: tuple[float, float] | None = None
    classes: Sequence[Any] | None = None
    ledgers: Mapping[str, BaseLedger] | None = None

    @property
    def _link(self) -> Link:
        return "logistic" if self.link == "logistic" else "linear"

    def _target_range(self) -> tuple[float, float]:
        return (0.0, 1.0) if self._link == "logistic" else stated_range(self.target_range)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sites: Any = None,
        groups: Any = None,
        grid_points: Any = None,
        silent: Silence | None = None,
    ) -> Self:
        """Fit in one process, as sites would that hold their own rows.

        Args:
            X: rows, a DataFrame or curves of all sites; or a mapping site → (X, y).
            y: targets; None where X is a mapping.
            sites: the site of each row; by default, in a simulation, rows go to three sites in
                turn.
            groups: the person behind each row, where people have several: one row of each is
                used, whichever sites they visited.
            grid_points: the points of curves given as arrays.
            silent: (step, attempt) -> sites that fall silent, to rehearse dropouts.
        """
        self._require_raw_rows()
        _validate.one_of("link", self.link, ("linear", "logistic"))
        _validate.one_of("aggregation", self.aggregation, ("secure_sum", "conventional"))
        if isinstance(X, Mapping) and not hasattr(X, "shape"):  # some sparse tables are mappings
            if not y is sites is groups is None:
                raise InvalidData("y", f"left out, as sites and groups are, for {_SITES}")
            held = self._tables(X, grid_points)
        else:
            held = self._parts(X, y, sites, grid_points=grid_points, groups=groups)
        if self._link == "logistic":
            self._set_classes(np.concatenate([values for _, values in held.values()]))
        records = {name: (rows, self._targets(values)) for name, (rows, values) in held.items()}
        regression = self._regression(rows=sum(len(rows) for rows, _ in records.values()))
        if not addable(next(regression.questions())):
            rule = "one whose questions are sums with Gaussian noise"
            raise InvalidParameter("mechanism", rule, regression.mechanism.name)
        fitted, consortium = convene(
            regression,
            records,
            source=self._source(),
            colluders=self.colluders,
            dropouts=self.dropouts,
            alone=self.aggregation == "conventional",
            ledger=self.ledger,
            ledgers=self.ledgers,
            silent=silent,
        )
        self.survivors_, self.noise_ratio_ = consortium.survivors, consortium.noise_ratio
        promise = consortium.guarantee(regression.guarantee)
        return self._finish(fitted, regression, consortium.transcript, promise)

    def _parts(self, X: Any, y: Any, sites: Any, **read: Any) -> dict[str, Records]:
        """The rows of one table, by site."""
        if sites is None and not self._is_simulation:
            rule = "given: the site of each row; only a simulation makes sites up"
            raise InvalidParameter("sites", rule, None)
        X, read["grid_points"] = with_own_grids(X, read["grid_points"])
        X = self._checked(X, reset=True, least=_MADE_UP)
        n = count_rows(X)
        where = [f"site{k % _MADE_UP + 1}" for k in range(n)] if sites is None else sites
        names = np.asarray(where).astype(str)
        if names.shape != (n,):
            raise InvalidParameter("sites", f"one entry for each of {n} rows", names.shape)
        rows, values, names = self._read_all(X, y, names, **read)
        return {
            name: (rows[names == name], values[names == name]) for name in np.unique(names).tolist()
        }

    def _tables(self, tables: Mapping[str, Any], grid_points: Any) -> dict[str, Records]:
        """The rows of each site's own table."""
        held: dict[str, Records] = {}
        for pair in tables.values():
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InvalidData("X", _SITES)
        for name, (X, y) in tables.items():
            try:
                checked = self._checked(X, reset=not held)
                if not held:
                    self._recipe = self._make_recipe(checked, grid_points)
                held[name] = self._read(checked, y, grid_points)
            except InvalidData as error:
                found = str(error).partition(", got ")[2]
                raise InvalidData(f"{error.name} of site {name!r}", error.rule, found) from None
        if not held:
            raise InvalidData("X", _SITES, "none")
        return held
