"""`PrivateMean`: the mean of curves of a curator.

Several rows of one person are averaged to one row, so that the guarantee is per person.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._validate import FloatArray
from dpfda.central.channels import ChannelMeans
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.central.moments.moments_release import MeanWithInference
from dpfda.central.moments.sparse_mean import DENSE, Sparse
from dpfda.central.release import Release
from dpfda.central.weighted_mean import OF_CURVES, WeightedMean, weighted_curves
from dpfda.errors import InvalidParameter
from dpfda.estimators.central_base import CentralEstimator, HeldRecords
from dpfda.estimators.curve_reader import CurveReader, bound_in_norm
from dpfda.estimators.weights import checked_weights, weighted, weights_of
from dpfda.protocol.query import Records


def averages(rows: FloatArray, groups: Any) -> FloatArray:
    """The average row of each person.

    Examples:
        >>> averages(np.array([[1.0], [5.0], [3.0]]), ["ann", "bob", "ann"]).tolist()
        [[2.0], [5.0]]
    """
    _, person = np.unique(_persons(groups, len(rows)), return_inverse=True)
    count = np.bincount(person)
    sums = np.zeros((len(count), rows.shape[1]))
    np.add.at(sums, person, rows)
    return np.asarray(sums / count[:, None])


def _persons(groups: Any, rows: int) -> npt.NDArray[Any]:
    persons = np.asarray(groups)
    if persons.shape != (rows,):
        raise InvalidParameter("groups", f"one entry for each of {rows} rows", persons.shape)
    if persons.dtype.kind == "O":  # names of several kinds do not sort
        persons = persons.astype(str)
    return persons


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateMean(CentralEstimator):
    """Release the mean of curves of a trusted curator, with one or several channels.

    Several channels (an array (n, T, C), an FDataGrid, or pairs (t, x) with x of shape (T, C)) are
    released one after the other, each with an equal share of the budget; `mean_` then has shape
    (C, T). An array (n, T1, T2) is read as surfaces if ``grid_points=(s, t)`` has two axes.

    Privacy:
        (ε, δ)-DP for replacing the curves of one person (pure ε with ``delta=0``). Curves are
        clipped to the ball whose radius, in root mean square, is the half-width of `value_range`;
        n, the grid and the range are public. With ``random_state=None`` the noise is exact and from
        the operating system; otherwise the release is a simulation, and the guarantee says so.

    Args:
        epsilon: ε.
        delta: δ; 0 for pure ε.
        value_range: public range (low, high) of X(t), or one pair per channel; curves outside are
            clipped. If None, the default mechanism finds location and scale privately, which
            requires n·ε ≥ 500 (1000 with δ = 0). With δ > 0 this hardly increases the error; with
            pure ε the squared error may be several times larger (`dpfda bench ranges`).
        domain_range: public range of t, if the data do not contain it.
        bound: for experts, instead of a range: public bound τ on the norm √(average of X(t)²) of a
            curve minus the center; for ``mechanism="bernstein"`` on its largest absolute value.
            Curves are clipped to it.
        center: with `bound`, a public curve (or number) that is subtracted first.
        mechanism: ``"adaptive"`` (default), ``"allocation"``, ``"iclp_qr"``, ``"iclp_ar"``,
            ``"frl"``, ``"bernstein"``, ``"gaussian_process"``, or an instance with parameters.
        inference: also release second moments, with the same budget. Bands then cover the mean of
            the population (`release_.interval(0.95, of="population")`), and not only the mean of
            the people in the data. For the default mechanism.
        design: ``"dense"``: curves are known at many points and interpolated; ``"sparse"``: a few
            points of each curve are known (pairs (t, x), or NaN elsewhere), and the points of all
            people are pooled. The sparse design requires a range or bound, and its bands cover the
            mean of the population. The design is never chosen from the data.
        times: with ``design="sparse"``, the density of the times of the points: ``"uniform"``,
            ``"estimate"`` (privately, with 15 % of the budget), its values at the grid points, or a
            function of t. A declared density is checked with 5 % of the budget. If all curves have
            the same points, it is the frequency with which each point is observed.
        weight_bound: public bound on the private weights `sample_weight` of curves in `fit`;
            weights are clipped to [0, weight_bound]. For survey weights it follows from the design
            of the survey; the largest weight in the data is not public. The release estimates the
            weighted mean Σ w X / Σ w of these people. If weights are inverse sampling
            probabilities, this estimates the mean of the population. The guarantee is the same as
            without weights, and also covers the weight of a person
            (`dpfda.central.weighted_mean`). A tenth of the budget is for the mean weight. The noise
            is proportional to weight_bound over the mean weight. Weights require one channel and a
            range or bound, without `inference` and ``design="sparse"``.
        unit: the protected unit to which one row (or group) belongs.
        ledger: budget of the data over all releases; every query spends before noise is drawn.
        random_state: None, or a seed for simulations.

    Several curves of one person (`groups` in `fit`) are averaged first.

    Examples:
        >>> import numpy as np
        >>> curves = np.linspace(0, 1, 40) + np.random.default_rng(0).normal(0, 0.1, (500, 1))
        >>> mean = PrivateMean(epsilon=1.0, value_range=(-0.5, 1.5), random_state=0).fit(curves)
        >>> bool(np.abs(mean.mean_ - np.linspace(0, 1, 40)).max() < 0.1)
        True
        >>> print(mean.guarantee_)
        ε = 1, δ = 1e-06, central, unit = person, sampler = simulation (seeded), \
assuming the number of records is public
    """

    _fills_gaps = True

    value_range: tuple[float, float] | Sequence[tuple[float, float]] | None = None
    domain_range: tuple[float, float] | None = None
    bound: float | None = None
    center: Any = None
    mechanism: str | FunctionMechanism = "adaptive"
    inference: bool = False
    design: Literal["dense", "sparse"] = "dense"
    times: Any = "uniform"
    weight_bound: float | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        grid_points: Any = None,
        groups: Any = None,
    ) -> Self:
        """Release the mean of all curves.

        Args:
            X: curves, in any form that this estimator reads.
            y: ignored.
            sample_weight: private weights, such as survey weights, in [0, `weight_bound`]. The
                weight of a person must not depend on other records, as normalized weights do.
            grid_points: the points of curves given as an array; equidistant by default.
            groups: the person of each curve, if people have several curves.
        """
        y = weighted(self, y, sample_weight)
        return super().fit(X, y, grid_points=grid_points, groups=groups)

    @property
    def _sparse(self) -> bool:
        chosen = isinstance(self.mechanism, Sparse) or self.mechanism == "sparse"
        return _validate.one_of("design", self.design, ("dense", "sparse")) == "sparse" or chosen

    @property
    def _curves(self) -> CurveReader:
        finds, times = self._mechanism().finds_bound, self.times if self._sparse else None
        return CurveReader.of(self, finds_range=finds, channels=True, surfaces=True, times=times)

    def _read(
        self, X: Any, y: Any, *, grid_points: Any, reset: bool, least: int = 1
    ) -> HeldRecords:
        _, weights = weights_of(self, y)
        read = self._curves.read(self, X, grid_points, reset=reset, least=least)
        if weights is None:
            return read
        self._require_plain(len(read.bounds), math.isfinite(read.bounds[0]))
        found = checked_weights(self, weights, len(read.rows[0])) / float(self.weight_bound or 1)
        curves = weighted_curves(
            read.rows[0],
            found,
            bound=read.bounds[0],
            grid=read.grid,
            largest=self._mechanism().bounds_largest,
        )
        return read._replace(rows=(curves, found[:, None]))

    def _require_plain(self, channels: int, bounded: bool) -> None:
        """Raise an error for options that have no weighted form."""
        rules = {
            "value_range": (bounded, "given with sample_weight (or bound)"),
            "inference": (not self.inference, "False with sample_weight"),
            "design": (not self._sparse, "'dense' with sample_weight"),
            "curves": (channels == 1, "of one channel with sample_weight"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise InvalidParameter(name, rule, getattr(self, name, channels))

    def _one_each(self, rows: Records, groups: Any) -> Records:
        return tuple(averages(channel, groups) for channel in rows)

    def _conversation(self, read: HeldRecords, n: int) -> MeanRelease | ChannelMeans | WeightedMean:
        mechanism, count = self._mechanism(), len(read.bounds)
        if isinstance(mechanism, Sparse):
            mechanism = replace(mechanism, density=read.density)
        largest = mechanism.bounds_largest
        bounds = [
            one if largest else bound_in_norm(self, one, read.grid, n=n, channels=count)
            for one in read.bounds
        ]
        known: dict[str, Any] = {**self._budget, "n": n}
        mean = MeanRelease(
            **known, bound=bounds[0], grid=read.grid, mechanism=mechanism, either=True
        )
        if self.weight_bound is not None:
            mean = replace(mean, share=OF_CURVES)
            return WeightedMean(**known, mean=mean, weight_bound=self.weight_bound)
        if len(bounds) == 1:
            return mean
        return ChannelMeans(**known, parts=mean.divided(bounds))

    def _mechanism(self) -> FunctionMechanism:
        chosen = self.mechanism
        if self._sparse:
            if isinstance(chosen, Sparse):
                return chosen
            if chosen not in ("adaptive", "sparse"):
                rule = "'adaptive' with design='sparse', which has queries of its own"
                raise InvalidParameter("mechanism", rule, chosen)
            return Sparse(estimate=isinstance(self.times, str) and self.times == "estimate")
        if self.inference:
            if chosen != "adaptive":
                rule = "'adaptive' with inference=True: the others do not estimate how curves vary"
                raise InvalidParameter("mechanism", rule, chosen)
            return MeanWithInference()
        return FunctionMechanism.named(chosen)() if isinstance(chosen, str) else chosen

    def _records(self, asked: Any, read: HeldRecords) -> Records:
        if isinstance(asked, ChannelMeans):
            return asked.records(read.rows)
        if isinstance(asked, WeightedMean):
            return asked.records(read.rows[0], read.rows[1][:, 0])
        assert isinstance(asked, MeanRelease)
        return asked.records(read.rows[0])

    def _keep(self, asked: Any, read: HeldRecords, found: Release) -> Self:
        parameters = dict(found.parameters)
        if not self._sparse:
            parameters["reading"] = DENSE
        return super()._keep(asked, read, replace(found, center=read.center, parameters=parameters))

    @property
    def mean_(self) -> FloatArray:
        """The released mean on the grid of the data: (T,), (C, T) or (T1, T2)."""
        return self.release_.values()
