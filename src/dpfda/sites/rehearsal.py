"""A rehearsal of a fit among sites: one process holds all tables, and acts as every site.

Computation, spending, masking and opening of sums are the same as among remote sites, but nothing
is hidden from the process that runs the rehearsal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.central_base import CentralEstimator
from dpfda.estimators.reading import count_rows, take
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.consortium import Consortium, convene
from dpfda.protocol.secure_sum.aggregator import Silence
from dpfda.protocol.site import addable

Model = TypeVar("Model", bound=CentralEstimator)
_SUMS = "one whose questions are sums with Gaussian noise (delta above 0)"
_TABLES = "a mapping site → X, or site → (X, y)"


def rehearse(
    estimator: Model,
    X: object,
    y: object = None,
    *,
    sites: object = None,
    grid_points: object = None,
    colluders: int = 1,
    dropouts: int = 0,
    alone: bool = False,
    ledgers: Mapping[str, BaseLedger] | None = None,
    silent: Silence | None = None,
) -> tuple[Model, Consortium]:
    """Fit an estimator as if among sites that trust neither each other nor a coordinator.

    Every question is one secure sum: each site adds its share of the noise to its own sums, hides
    them under masks modulo 2^64, and only the sum over sites is opened. With no colluders and no
    dropouts the noise is that of one curator who holds all rows, for any number of sites.

    Privacy:
        (ε, δ)-DP for replacing one row of one site, against everybody who reads the result. Among
        remote sites, the same holds against the coordinator and up to `colluders` sites that share
        all their knowledge with it. *This process sees every row*, and the guarantee states that. A
        site knows its own noise, so ``colluders=0`` protects only against outsiders and the
        coordinator. Each site's noise is a discrete Gaussian of at least 2^19 lattice steps; the
        sum of S of them differs from a discrete Gaussian of the summed variance by a factor within
        exp(±10 S e^{-π² 2^38}) (Kairouz, Liu & Steinke 2021). Two rows of a person at different
        sites are protected separately.

    Args:
        estimator: any whose questions are sums with Gaussian noise (δ > 0): means, covariances,
            components, densities, function-on-scalar, moments, groups, classifiers, regressions.
        X: a mapping from a site to its X, or to (X, y); or all rows, with `sites`.
        y: with `sites`, the target or label of each row.
        sites: the site of each row of one table.
        grid_points: the points of curves given as arrays.
        colluders: c, the number of sites that may share their knowledge with the coordinator.
        dropouts: k, the number of sites that may stop replying in a stage.
        alone: whether every site adds all the noise (the baseline of 002, S times the variance).
        ledgers: the sites' own budgets, each spent before its site draws noise; the estimator's
            `ledger` pays once for sites without one.
        silent: (step, attempt) -> sites that stop replying, to rehearse dropouts.

    Returns:
        The fitted estimator, and the consortium. The consortium states which sites took part in
        each stage (`survivors`), and the variance of the noise divided by that of one curator
        (`noise_ratio`).

    Examples:
        >>> from dpfda import PrivateMean
        >>> curves = np.sin(np.linspace(0, 3, 20)) + np.zeros((3000, 1))
        >>> mean = PrivateMean(1.0, delta=1e-6, value_range=(-2, 2), random_state=0)
        >>> hospitals = dict(zip("ABC", np.array_split(curves, 3)))
        >>> mean, consortium = rehearse(mean, hospitals)
        >>> mean.guarantee_.model, consortium.survivors[0]
        ('decentralized', ('A', 'B', 'C'))
    """
    if not isinstance(estimator, CentralEstimator):
        raise InvalidParameter("estimator", _SUMS, type(estimator).__name__)
    estimator._names_of_y()
    tables = _by_site(X, y, sites)
    form: Any = None
    chunks: dict[str, Any] = {}
    for name, (rows, targets) in tables.items():
        try:
            if not chunks:
                form = estimator._form(rows, targets, grid_points=grid_points)
            chunks[name] = estimator._read(rows, targets, grid_points=grid_points, reset=False)
        except InvalidData as error:
            found = str(error).partition(", got ")[2]
            raise InvalidData(f"{error.name} of site {name!r}", error.rule, found) from None
    many = sum(count_rows(rows) for rows, _ in tables.values())
    asked = estimator._conversation(form, many).among_sites()
    if not addable(first := next(asked.questions())):
        raise InvalidParameter("estimator", _SUMS, f"{type(estimator).__name__}, {first.name}")
    result, consortium = convene(
        asked,
        {name: estimator._records(asked, chunk) for name, chunk in chunks.items()},
        source=estimator._source(),
        colluders=colluders,
        dropouts=dropouts,
        alone=alone,
        ledger=estimator.ledger,
        ledgers=ledgers,
        silent=silent,
    )
    promise, transcript = consortium.guarantee(asked.guarantee), consortium.transcript
    estimator._conclude(asked, form, result, transcript, promise)
    return estimator, consortium


def _by_site(X: object, y: object, sites: object) -> dict[str, tuple[Any, Any]]:
    """The tables of all sites, each (X, y)."""
    if sites is not None:
        names = np.asarray(sites).astype(str)
        if names.shape != (count_rows(X),):
            rule = f"one entry for each of {count_rows(X)} rows"
            raise InvalidParameter("sites", rule, names.shape)
        own = {name: np.flatnonzero(names == name) for name in np.unique(names).tolist()}
        return {
            name: (take(X, rows), None if y is None else take(y, rows))
            for name, rows in own.items()
        }
    if not isinstance(X, Mapping) or hasattr(X, "shape") or not X:
        raise InvalidData("X", f"{_TABLES}; or all rows, with sites=")
    if y is not None:
        raise InvalidData("y", f"left out for {_TABLES}")
    if len({str(name) for name in X}) < len(X):
        raise InvalidData("X", "of sites whose names differ as text")
    return {
        str(name): one if isinstance(one, tuple) and len(one) == 2 else (one, None)
        for name, one in X.items()
    }
