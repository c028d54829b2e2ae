"""The result of a central release: noisy coefficients and all public facts about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpfda import _validate
from dpfda._registry import plain
from dpfda._validate import FloatArray
from dpfda.central.coefficient_functions import NoiseBody, Numbers, Solved, SolvedBody
from dpfda.central.functions import FunctionBasis, as_grid, as_places, derivatives
from dpfda.curves.band import Of, whose
from dpfda.curves.observations import GridPoints
from dpfda.errors import InvalidData, InvalidParameter, MissingExtra
from dpfda.noise.law import NoiseLaw
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.report import Contents, Verdict
from dpfda.report.documents import Body, Documented
from dpfda.report.panels import axes_or_new, headed, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from skfda import FDataGrid

NOTHING = np.zeros(1)
"""`unseen` of a release without clipping and without omitted coefficients."""
_PATHS = 4000  # number of simulated noise curves for a band; their seed is public and fixed


DOMAIN = ("value_range", "bound", "feature_ranges", "target_range", "weight_bound")
"""Parameters that state the public ranges of the values."""


class ReleaseBody(Body):
    """The document of a `Release`; `values` on `grid_points` are for readers only."""

    summary: str
    sensitivity: float
    warnings: tuple[str, ...]
    parameters: dict[str, Any]
    grid_points: list[list[float]]
    values: list[Any]
    coefficients: Numbers
    noisy: Numbers
    noise: list[NoiseBody]
    sampling: list[NoiseBody]
    unseen: Numbers
    functions: list[list[float]]
    center: Numbers
    density: bool
    channels: int
    names: tuple[str, ...]
    solved: SolvedBody | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(Documented):
    """A public noisy function, with its privacy guarantee and the known law of its noise.

    Privacy:
        That of `guarantee`, which covers the released coefficients. Curves, derivatives, bands and
        plots are post-processing; they spend no budget, on any grid and any number of times.

    Attributes:
        summary: the kind of function: mean, covariance, density, ...
        coefficients: released coefficients after post-processing, (J,); (C, J) for C channels, or
            (p, J) for p functions.
        noisy: the coefficients before shrinkage; the law of their noise is known exactly.
        noise: independent noise laws whose sum is the noise of `noisy`.
        unseen: standard deviations, at each point, of the bias that clipping and omitted
            coefficients may have caused: equally likely values, (K,); (C, K) for C channels.
        sampling: laws of the sampling error, if the release knows them.
        basis: the functions of the coefficients.
        center: public function that is added, on the grid of the basis; one for each channel or
            function.
        guarantee: the privacy guarantee.
        sensitivity: the sensitivity for which the noise is calibrated, in the mechanism's norm.
        parameters: all public parameters.
        warnings: warnings for the reader, computed from released numbers only. Estimators add the
            sentences of a doubtful `verdict`.
        density: whether `values` form a density: nonnegative with integral 1.
        channels: number of channels of the curves; with several, `values` have shape (C, T).
        names: names of p functions, one for each row of `values`; empty if they have no names.
        solved: the released moments, if the functions solve a system of equations.

    Examples:
        >>> from dpfda import PrivateMean
        >>> curves = np.sin(np.linspace(0, 3, 50)) + np.zeros((300, 1))
        >>> release = PrivateMean(epsilon=1.0, bound=1.0, random_state=0).fit(curves).release_
        >>> release.values([0.0, 0.5, 1.0]).shape
        (3,)
        >>> low, high = release.interval(0.95)
        >>> bool(np.all(low < high))
        True
    """

    kind: ClassVar[str] = "release"
    body: ClassVar[type[Body]] = ReleaseBody

    summary: str
    coefficients: FloatArray
    noisy: FloatArray
    noise: tuple[NoiseLaw, ...]
    basis: FunctionBasis
    center: FloatArray
    guarantee: Guarantee
    sensitivity: float
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    density: bool = False
    channels: int = 1
    sampling: tuple[NoiseLaw, ...] = ()
    unseen: FloatArray = field(default_factory=lambda: NOTHING)
    names: tuple[str, ...] = ()
    solved: Solved | None = None

    @property
    def grid_points(self) -> FloatArray | tuple[FloatArray, ...]:
        """The grid of the input: an array, or one array for each variable."""
        return self.basis.grid[0] if len(self.basis.grid) == 1 else self.basis.grid

    def values(self, grid_points: GridPoints = None) -> FloatArray:
        """The released function on a grid (its own by default)."""
        curve = self._curve(self.coefficients, grid_points)
        if self.density:
            own = np.maximum(self._curve(self.coefficients, None), 0.0)
            curve = np.maximum(curve, 0.0) / max(float(own @ self.basis.weights), 1e-12)
        return self._shaped(curve, grid_points)

    def __call__(self, grid_points: GridPoints) -> FloatArray:
        """The released function on a grid."""
        return self.values(grid_points)

    def interval(
        self,
        level: float = 0.95,
        *,
        of: Of | None = None,
        simultaneous: bool = False,
        grid_points: GridPoints = None,
    ) -> tuple[FloatArray, FloatArray]:
        """A band that covers the true function with probability `level`.

        With ``of="sample"`` the band covers the non-private summary of the people in the data. It
        accounts for the privacy noise, whose law is known exactly, but not for sampling error. For
        the default mean it also accounts for the bias of clipping and of omitted coefficients
        (`unseen`). The size of this bias is estimated for curves that scatter evenly around a mean
        without jumps and narrow peaks. For other curves, the coverage of the whole curve may be
        below `level`.

        With ``of="population"`` the band covers the mean of the population. This requires
        ``PrivateMean(inference=True)``.

        The band is centered at the noisy curve before shrinkage. It is widened where the released
        curve would leave it, and cut at 0 for a density; neither reduces its coverage.

        Args:
            level: coverage probability of the band.
            of: ``population`` or ``sample``; by default ``population`` if the release allows it.
            simultaneous: whether the band covers the whole curve at once or each point separately.
            grid_points: points of evaluation; by default the grid of the release.
        """
        level = _validate.fraction("level", level)
        laws = self._errors(of)
        functions = self.basis.functions if grid_points is None else self.basis.at(grid_points)
        # Fewer paths for large grids (surfaces), so that the table of paths stays below 200 MB.
        size = max(500, min(_PATHS, int(2.5e7 / (functions.shape[1] * self.noisy[..., 0].size))))
        if self.solved is not None:
            center = self._curve(np.zeros_like(self.noisy), grid_points)
            ends = self.solved.interval(level, functions, simultaneous=simultaneous, size=size)
            low, high = (end + center for end in ends)
        else:
            if grid_points is None:
                unseen = tuple(map(tuple, np.atleast_2d(self.unseen).tolist()))
                spread = _own_half_width(
                    laws, self.basis, unseen, level=level, simultaneous=simultaneous, size=size
                )
            else:
                spread = _half_width(
                    laws, functions, level, unseen=self.unseen, simultaneous=simultaneous, size=size
                )
            middle = self._curve(self.noisy, grid_points)
            low = self._shaped(middle - spread, grid_points)
            high = self._shaped(middle + spread, grid_points)
        if self.density:
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        own = self.values(grid_points)
        return np.minimum(low, own), np.maximum(high, own)

    def derivative(
        self,
        order: int = 1,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        grid_points: GridPoints = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The derivative of a released curve, and the two ends of its band.

        Privacy:
            Post-processing; no budget is spent.

        The band accounts for the noise of the released coefficients only. It does not account for
        the bias of clipping and of omitted coefficients, because waves that are small in the curve
        can be large in its derivative.

        Args:
            order: 1 or 2.
            level: coverage probability of the band.
            simultaneous: whether the band covers the whole curve at once or each point separately.
            grid_points: points of evaluation; by default the grid of the release.

        Examples:
            >>> from dpfda import PrivateMean
            >>> t = np.linspace(0, 1, 50)
            >>> curves = t**2 + np.zeros((3000, 1))
            >>> fit = PrivateMean(1.0, value_range=(0, 1), random_state=0)
            >>> slope, low, high = fit.fit(curves, grid_points=t).release_.derivative()
            >>> bool(np.mean((low <= 2 * t) & (2 * t <= high)) > 0.8)
            True
        """
        level = _validate.fraction("level", level)
        if self.solved is not None or self.density:
            rule = "of a mean curve: a density and solved functions are not linear in their numbers"
            raise InvalidParameter("order", rule, self.summary)
        places = self.basis.grid if grid_points is None else as_places(grid_points)
        known = np.vstack([self.basis.functions, self.center])
        # Checks that the places lie in the domain of one variable.
        FunctionBasis(self.basis.grid, known, np.ones(len(known))).at(places)
        found = derivatives(self.basis.grid, known, places[0], order=order)
        functions, center = np.split(found, [self.basis.size])
        beside = center if self.center.ndim > 1 else center[0]
        size = max(500, min(_PATHS, int(2.5e7 / (functions.shape[1] * self.noisy[..., 0].size))))
        spread = _half_width(
            self.noise, functions, level, unseen=NOTHING, simultaneous=simultaneous, size=size
        )
        own, middle = (np.asarray(c @ functions + beside) for c in (self.coefficients, self.noisy))
        return own, np.minimum(middle - spread, own), np.maximum(middle + spread, own)

    def variance_along(self, functions: FloatArray) -> FloatArray:
        """Variance of the noise at each point of functions (J, points)."""
        return _variance(self.noise, functions)

    def _errors(self, of: Of | None) -> tuple[NoiseLaw, ...]:
        """Laws of the differences between the noisy coefficients and the target of a band."""
        if of is not None and whose(of) == "sample":
            return self.noise
        if of is not None and not self.sampling:
            rule = "'sample': a band for the population needs a release with inference=True"
            raise InvalidParameter("of", rule, of)
        return self.noise + self.sampling

    def _deployment(self) -> Deployment:
        known = self.parameters
        return Deployment(
            product=f"the {self.summary} of {'points' if self.density else 'curves'}",
            mechanism=str(known.get("mechanism", self.summary)),
            guarantee=self.guarantee,
            records=known.get("n"),
            domain={name: known[name] for name in DOMAIN if name in known},
            computed=f"Bands speak {self.covered}; they are computed from the release and cost "
            "nothing more.",
        )

    def _judged(self) -> Verdict:
        from dpfda.central.release_report import verdict_of  # imports this module

        return verdict_of(self)

    def _contents(self) -> Contents:
        from dpfda.central.release_report import contents  # imports this module

        return contents(self)

    def columns(self) -> dict[str, list[float]]:
        """Grid, values and the ends of pointwise and simultaneous 95 % bands."""
        from dpfda.central.release_report import columns  # imports this module

        return columns(self)

    def _fields(self) -> dict[str, Any]:
        return {
            "summary": self.summary,
            "sensitivity": self.sensitivity,
            "warnings": self.warnings,
            "parameters": {name: plain(value) for name, value in self.parameters.items()},
            "grid_points": self.basis.grid,
            "values": self.values(),
            "coefficients": self.coefficients,
            "noisy": self.noisy,
            "noise": [NoiseBody.of(law) for law in self.noise],
            "sampling": [NoiseBody.of(law) for law in self.sampling],
            "unseen": self.unseen,
            "functions": self.basis.functions,
            "center": self.center,
            "density": self.density,
            "channels": self.channels,
            "names": self.names,
            "solved": None if self.solved is None else self.solved.document(),
        }

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Self:
        del body["values"]  # determined by the coefficients
        grid = as_grid(tuple(map(np.array, body.pop("grid_points"))))
        points = math.prod(axis.size for axis in grid)
        functions = _array(body, "functions", (None, points))
        channels = () if body["channels"] == 1 else (body["channels"],)
        several = channels or ((len(body["names"]),) if body["names"] else ())
        noisy = _array(body, "noisy", (*several, len(functions)))
        unseen = _array(body, "unseen", (*channels, None))
        if unseen.ndim != len(channels) + 1 or not unseen.size or not np.all(unseen >= 0):
            rule = f"numbers of shape {(*channels, None)}, 0 at least"
            raise InvalidData("unseen", rule, f"shape {unseen.shape}")
        own = {
            "basis": FunctionBasis(grid, functions, np.ones(len(functions))),
            "noisy": noisy,
            "coefficients": _array(body, "coefficients", noisy.shape),
            "center": _array(body, "center", (*several, points)),
            "noise": tuple(law.read() for law in body["noise"]),
            "sampling": tuple(law.read() for law in body["sampling"]),
            "unseen": unseen,
            "solved": None if body["solved"] is None else Solved.read(body["solved"]),
        }
        del body["functions"]
        return cls(**(body | own))

    def to_skfda(self) -> FDataGrid:
        """The released function as a scikit-fda ``FDataGrid``."""
        try:
            from skfda import FDataGrid
        except ImportError:
            raise MissingExtra("scikit-fda", "fda") from None
        values, grid = self.values(), list(self.basis.grid)
        if self.channels > 1:
            return FDataGrid(values.T[None], grid_points=grid)
        return FDataGrid(values if self.coefficients.ndim > 1 else values[None], grid_points=grid)

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the curve with its simultaneous band, or the surface, and return the axes.

        Several curves, such as coefficients, have one panel each; the first panel is returned.
        """
        values, title = self.values(), f"{self.summary}: {self.guarantee}"
        if len(self.basis.grid) == 2:
            ax = axes_or_new(ax)
            x, y = self.basis.grid
            picture = ax.pcolormesh(x, y, values.T, shading="auto")
            ax.figure.colorbar(picture, ax=ax, label=self.summary)
            ax.set_xlabel("s")
            ax.set_ylabel("t")
            headed(ax, title)
            return ax
        band = f"{100 * level:g} % band {self.covered}, whole curve"
        rows = [np.atleast_2d(part) for part in (values, *self.interval(level, simultaneous=True))]
        names = [self.name_of(number + 1) for number in range(len(rows[0]))]
        places = panels(ax, names, title=title if len(names) == 1 else f"{title}\n{band}")
        for place, name, row, bottom, top in zip(places, names, *rows, strict=True):
            t = self.basis.grid[0]
            (line,) = place.plot(t, row, label=f"released {name}")
            shade = {"color": line.get_color(), "alpha": 0.15, "linewidth": 0}
            place.fill_between(t, bottom, top, label=band, **shade)
        if len(places) == 1:
            places[0].set(xlabel="t", ylabel=self.summary)
            legend_below(places[0])
        return places[0]

    @property
    def target(self) -> str:
        """The default target of a band, in words."""
        if self.sampling:
            return f"the {self.summary} of everybody who might have been asked"
        if self.density:
            cells = self.parameters.get("cells")
            detail = f", counted in {cells} cells a side" if cells else ", smoothed as released"
            return f"the density of these points{detail}"
        if self.solved is not None:
            return (
                "the least-squares coefficient functions of these people, of curves written in "
                f"{self.basis.size} smooth functions"
            )
        return f"the {self.summary} of these curves"

    @property
    def covered(self) -> str:
        """Which errors a band includes by default, for readers of tables and pictures."""
        return "of noise and sampling" if self.sampling else "of the privacy noise"

    def name_of(self, number: int) -> str:
        """The name of row `number` (from 1), if there are several."""
        if self.coefficients.ndim == 1:
            return self.summary
        if self.names:
            return self.names[number - 1]
        return f"{self.summary}{', channel' if self.channels > 1 else ''} {number}"

    def __repr__(self) -> str:
        shape = "×".join(str(axis.size) for axis in self.basis.grid)
        shape += f", {self.channels} channels" if self.channels > 1 else ""
        return (
            f"Release({self.summary}, grid {shape}, {self.coefficients.shape[-1]} coefficients, "
            f"{self.guarantee})"
        )

    def _curve(self, coefficients: FloatArray, grid_points: GridPoints) -> FloatArray:
        if grid_points is None:
            return np.asarray(coefficients @ self.basis.functions + self.center)
        known = np.vstack([self.basis.functions, self.center])
        there = FunctionBasis(self.basis.grid, known, np.ones(len(known))).at(grid_points)
        functions, center = np.split(there, [self.basis.size])
        return np.asarray(
            coefficients @ functions + (center if self.center.ndim > 1 else center[0])
        )

    def _shaped(self, flat: FloatArray, grid_points: GridPoints) -> FloatArray:
        if len(self.basis.grid) == 1:
            return flat
        axes = self.basis.grid if grid_points is None else as_places(grid_points)
        return flat.reshape(*flat.shape[:-1], *(np.size(axis) for axis in axes))


@lru_cache(maxsize=8)
def _own_half_width(
    laws: tuple[NoiseLaw, ...],
    basis: FunctionBasis,
    unseen: tuple[tuple[float, ...], ...],
    *,
    level: float,
    simultaneous: bool,
    size: int,
) -> FloatArray:
    """`_half_width` on the grid of the release, cached for its verdict, report and plot."""
    known = np.array(unseen[0] if len(unseen) == 1 else unseen)
    return _half_width(
        laws, basis.functions, level, unseen=known, simultaneous=simultaneous, size=size
    )


def _half_width(
    laws: tuple[NoiseLaw, ...],
    functions: FloatArray,
    level: float,
    *,
    unseen: FloatArray,
    simultaneous: bool,
    size: int,
) -> FloatArray:
    """Half-width of a band about functions (J, points), from simulated noise and omitted parts."""
    generator = np.random.default_rng(0)
    paths = np.asarray(sum(law.draw(size, generator) for law in laws) @ functions)
    variance = _variance(laws, functions)
    if np.any(unseen):  # every path uses one of the equally likely values, at all points
        channels = unseen.shape[:-1] or (1,) * (paths.ndim - 2)  # several functions may share it
        beside = np.resize(np.moveaxis(unseen, -1, 0), (size, *channels, 1))
        paths += beside * generator.standard_normal(paths.shape)
        variance = variance + (unseen**2).mean(axis=-1, keepdims=True)
    spread = np.sqrt(variance)
    ratio = np.abs(paths, out=paths)
    ratio /= np.maximum(spread, 1e-300)
    if simultaneous:
        axes = tuple(range(1, ratio.ndim))
        return np.asarray(np.quantile(ratio.max(axis=axes), level) * spread)
    return np.asarray(np.quantile(ratio, level, axis=0) * spread)


def _variance(laws: tuple[NoiseLaw, ...], functions: FloatArray) -> FloatArray:
    return np.asarray(sum(law.along(functions) for law in laws))


def _array(body: dict[str, Any], name: str, shape: tuple[int | None, ...]) -> FloatArray:
    """A field as an array whose last axes have the required lengths."""
    try:
        array = np.array(body[name], dtype=np.float64)
    except ValueError:
        array = np.empty(0)
    found = array.shape[-len(shape) :]
    if len(found) < len(shape) or any(
        k not in (None, j) for j, k in zip(found, shape, strict=True)
    ):
        raise InvalidData(name, f"numbers of shape {shape}", f"shape {array.shape}")
    return array
