"""Reports of a release: its verdict, table and picture.

The verdict says whether a released function shows more than noise. It compares the release with a
public baseline: the center of the curves, a uniform density, a constant, or no effect. The law of
the privacy noise is known. The released numbers therefore give estimates of the distance between
the truth and the baseline and of the error of the release. All of this is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpfda._validate import FloatArray
from dpfda.central.adaptive import DOUBTED
from dpfda.central.density import RESOLVED
from dpfda.central.release import Release
from dpfda.report import Contents, Picture, Table, Verdict, worst_of
from dpfda.report.contents import Kind

_THIRD = 1 / 3
"""A release is doubted if its estimated error exceeds this share of the baseline's error. True
shares above a half then rarely pass, and true shares below a tenth are rarely doubted."""
NARROW = 0.05
"""A band narrower than this share of the public range determines the curve well, even if the curve
is close to the public center."""
MOSTLY = 0.5
"""A mean is reported as the public center if its expected squared error exceeds this share of the
center's error."""
_SAME = 0.2
"""A mean is reported as the public center if it is nearer to it than this share of the noise's
standard deviation."""
NO_COMPONENT = "No component stands out of the noise: those that were kept may be noise alone."
"""A warning about components; the covariance surface may be accurate although no component is."""
_REMEDY = "Ask more people, allow a larger epsilon or give a narrower public range."
_WIDER = "Give a wider public range first."


class Strength(NamedTuple):
    """Squared norms, estimated from released numbers.

    Attributes:
        signal: squared norm of the difference between the truth and the baseline; the estimate
            minus one standard deviation.
        error: squared norm of the difference between the truth and the release.
        noise: expected squared norm of the noise before shrinkage.
        released: squared norm of the difference between the release and the baseline.
    """

    signal: float
    error: float
    noise: float
    released: float

    @property
    def clear(self) -> bool:
        """Whether the release is much closer to the truth than the baseline."""
        return self.signal > 0 and self.error <= _THIRD**2 * self.signal

    @property
    def hidden(self) -> bool:
        """Whether the baseline may be as close to the truth as the release."""
        return self.error >= self.signal

    @property
    def same(self) -> bool:
        """Whether the release is practically equal to the baseline."""
        return self.released <= _SAME**2 * self.noise


def strength(release: Release, *, row: int = 0, even: bool = False) -> Strength:
    """Estimate the signal and the error of a released function.

    Args:
        release: the release.
        row: the index of the function.
        even: whether the baseline is the mean level of the function instead of the public center.
    """
    functions, weights = release.basis.functions, release.basis.weights
    if even:
        functions = functions - (functions @ weights / weights.sum())[:, None]
    noisy = np.atleast_2d(release.noisy)[row]
    kept = np.atleast_2d(release.coefficients)[row]
    factors = np.clip(kept / np.where(noisy == 0, 1.0, noisy), 0.0, 1.0)
    sampling = 0.0
    if (
        release.density and "n" in release.parameters
    ):  # sampling variance for n points with a uniform density
        sampling = 1 / (release.parameters["n"] * weights.sum())

    def variance(factor: FloatArray) -> float:
        along = np.atleast_2d(release.variance_along(functions * factor[:, None]))
        spread = ((functions * factor[:, None]) ** 2).sum(axis=0) @ weights
        return float(along[row if len(along) > 1 else 0] @ weights + sampling * spread)

    def square(coefficients: FloatArray) -> float:
        return float((coefficients @ functions) ** 2 @ weights)

    noise = variance(np.ones_like(noisy))
    left = variance(factors)
    # Stein's estimate of the risk, with the shrinkage factors treated as known.
    risk = square(noisy - kept) + 2 * variance(np.sqrt(factors)) - noise
    each = np.atleast_2d(np.asarray(sum(law.variance for law in release.noise))) + sampling
    norms = functions**2 @ weights
    doubt = blur(noisy**2 * norms, each[row if len(each) > 1 else 0] * norms)
    signal = max(square(noisy) - noise - doubt, 0.0)
    error = max(risk, left)
    if release.density and release.parameters.get("cells", 0) < RESOLVED:
        error += _beyond(noisy**2 * norms, each[0] * norms)
    return Strength(signal, error, noise, square(kept))


def _beyond(squares: FloatArray, variance: FloatArray) -> float:
    """Estimate the squared norm of a narrow density beyond the released functions.

    It is extrapolated: its ratio to the squared norm of the rougher half of the functions equals
    the ratio of the rougher half to the smoother half.
    """
    half = len(squares) // 2
    smooth, rough = ((squares - variance)[part].sum() for part in (slice(half), slice(half, None)))
    rough = max(float(rough), 0.0)
    return rough * min(rough / max(float(smooth), 1e-300), 1.0)


def blur(squares: FloatArray, variance: FloatArray) -> float:
    """Standard deviation of Σ y² for noisy y with these variances; `squares` are the y²."""
    kept = np.maximum(squares - variance, 0.0)
    return math.sqrt(float((2 * variance**2 + 4 * variance * kept).sum()))


def verdict_of(release: Release) -> Verdict:
    """The verdict on a release, depending on its kind."""
    if release.summary == "mean":
        rows = range(len(np.atleast_2d(release.noisy)))
        return worst_of(_mean(release, row) for row in rows)
    if release.summary.startswith("function-on-scalar"):
        return _effects(release)
    if release.summary == "covariance":
        found = _by_doubt(release, "a covariance of 0", "noise")
        if not found.doubted and NO_COMPONENT in release.warnings:
            return Verdict(kind="noise", sentences=(NO_COMPONENT,))
        return found
    if release.summary == "density":
        return _shape(release, "an even density")
    return _by_doubt(release, "a constant", "guessing")


def _sentence(what: str, instead: str, *, hidden: bool) -> str:
    """A sentence on the effect of noise, compared with the baseline."""
    if hidden:
        return f"noise hides {what}: {instead} may be as close"
    return f"noise blurs {what}: its error may be more than half of that of {instead}"


def _mean(release: Release, row: int) -> Verdict:
    """Whether the mean differs from the public center beyond noise, or has a narrow band."""
    name, found = release.name_of(row + 1), strength(release, row=row)
    span, curve = public_span(release.parameters, row), len(release.basis.grid) == 1
    wide = known = level = False
    clear, same, hidden = found.clear, found.same, found.hidden
    if "doubt" in release.parameters:  # the default mean states its expected error
        doubt = float(np.ravel(release.parameters["doubt"])[row if release.channels > 1 else 0])
        clear, same, hidden = doubt <= DOUBTED, doubt > MOSTLY, False
    if curve:
        low, high = (np.atleast_2d(side)[row] for side in release.interval(simultaneous=True))
        level = bool(low.max() <= high.min())
    if curve and span is not None:
        width = float(np.median(high - low))
        wide, known = width >= span, width <= NARROW * span
    if known or (clear and not wide):
        text = f"{name}: a level line fits into the band, so no shape of the curve was found."
        return Verdict(sentences=(text,) * level)
    if clear:
        return _wide(release, row, span)
    kind: Kind = "center" if same else "noise"
    what = "this is the public center of the curves, or close to it: noise hides where they are"
    if not same:
        what = _sentence("the curve", "the public center", hidden=hidden or wide)
    if wide:
        what += ", and the band is as wide as the public range of values, so this release says "
        what += "nothing"
    return Verdict(kind=kind, sentences=(f"{name}: {what}. {remedy(release.warnings)}",))


def _wide(release: Release, row: int, span: float | None) -> Verdict:
    """The verdict on an accurate mean whose band is as wide as the public range."""
    kind: Kind = "noise"
    why = "noise hides the shape of the curve"
    if release.sampling and span is not None:
        ends = release.interval(of="sample", simultaneous=True)
        low, high = (np.atleast_2d(side)[row] for side in ends)
        if float(np.median(high - low)) < span:
            kind = "unclear"
            why = "for this epsilon, too few people were asked to know the mean of everybody"
    text = f"{release.name_of(row + 1)}: the band is as wide as the public range of values: {why}."
    return Verdict(kind=kind, sentences=(f"{text} {remedy(release.warnings)}",))


def remedy(warnings: Iterable[str]) -> str:
    """Advice on how to reduce the noise; if the public range is too small, to widen it first."""
    return _WIDER if any("too small" in one for one in warnings) else _REMEDY


def public_span(parameters: Mapping[str, Any], row: int = 0) -> float | None:
    """The width of the public range of values, if known."""
    given = parameters.get("value_range")
    if given is None:
        bound = parameters.get("bound")
        return 2 * float(bound) if isinstance(bound, (int, float)) else None
    low, high = given if np.ndim(given) == 1 else given[row]
    return float(high) - float(low)


def _effects(release: Release) -> Verdict:
    """Whether predictions differ from the public center, and which effects may be 0."""
    doubt = float(release.parameters["doubt"])
    if doubt > DOUBTED:
        kind: Kind = "center" if doubt > MOSTLY else "noise"
        what = _sentence("the expected curves", "the public center", hidden=kind == "center")
        return Verdict(kind=kind, sentences=(f"{what}. {remedy(release.warnings)}",))
    low, high = (np.atleast_2d(side) for side in release.interval(simultaneous=True))
    hidden = np.all((low <= 0) & (high >= 0), axis=1).tolist()
    effects = [(release.name_of(row + 1), found) for row, found in enumerate(hidden)]
    effects = [effect for effect in effects if effect[0] != "intercept"]
    names = ", ".join(name for name, found in effects if found)
    text = f"{names}: the band holds 0 everywhere, so this may be noise alone."
    if all(found for _, found in effects):
        text = f"No effect on the curves was found ({names}): bands hold 0 everywhere, so this may "
        return Verdict(
            kind="noise", sentences=(f"{text}be noise alone. {remedy(release.warnings)}",)
        )
    return Verdict(sentences=(text,) * bool(names))


def _by_doubt(release: Release, instead: str, kind: Kind) -> Verdict:
    """Whether the shape is accurate, for a release that states its expected error.

    Args:
        release: the release.
        instead: the baseline, in words.
        kind: kind of the verdict if the baseline may be as close to the truth.
    """
    doubt = float(release.parameters["doubt"])
    if doubt <= DOUBTED:
        return Verdict()
    hidden = doubt > MOSTLY
    text = f"{release.summary}: {_sentence('its shape', instead, hidden=hidden)}."
    return Verdict(
        kind=kind if hidden else "noise", sentences=(f"{text} {remedy(release.warnings)}",)
    )


def _shape(release: Release, instead: str) -> Verdict:
    """Whether the shape differs from a constant beyond noise."""
    found = strength(release, even=True)
    if found.clear:
        return Verdict()
    text = _sentence("its shape", instead, hidden=found.hidden)
    return Verdict(
        kind="noise", sentences=(f"{release.summary}: {text}. {remedy(release.warnings)}",)
    )


_ROWS, _SURFACE_ROWS = 10, 5  # rows of the table of a curve and of a surface


def contents(release: Release) -> Contents:
    """The contents of the report: the verdict, a table of some points with bands, and a picture."""
    curve = len(release.basis.grid) == 1
    caption = f"The released {release.summary}"
    if curve:
        caption += f", with a 95 % band {release.covered} for the whole curve"
    return Contents(
        verdict=release.verdict.findings,
        doubts=release.verdict.added_to(release.warnings),
        tables=(table(release),),
        pictures=(Picture.of(release.plot, f"{caption}."),),
        settings=release.parameters,
        notes=(_about_bands(release),) if curve else (),
    )


def table(release: Release) -> Table:
    """The function at some points."""
    return _curve(release) if len(release.basis.grid) == 1 else _surface(release)


def columns(release: Release) -> dict[str, list[float]]:
    """Grid, values and the ends of pointwise and simultaneous 95 % bands."""
    axes = np.meshgrid(*release.basis.grid, indexing="ij")
    names = ("t",) if len(axes) == 1 else tuple(f"t{number}" for number in range(1, len(axes) + 1))
    found = {name: axis.ravel().tolist() for name, axis in zip(names, axes, strict=True)}
    parts = [release.values(), *release.interval(0.95)]
    parts += release.interval(0.95, simultaneous=True)
    rows = [np.reshape(part, (-1, axes[0].size)) for part in parts]
    suffixes = ("", " low", " high", " low of the whole", " high of the whole")
    for number, kinds in enumerate(zip(*rows, strict=True), start=1):
        name = release.name_of(number) if len(rows[0]) > 1 else "value"
        known = zip(suffixes, kinds, strict=True)
        found |= {f"{name}{end}": [float(value) for value in row] for end, row in known}
    return found


def _about_bands(release: Release) -> str:
    about = (
        f"Bands of the table hold at each point by itself, with 95 %; they speak {release.covered}"
    )
    if release.sampling:
        return f"{about}: they hold {release.target}."
    not_held = f"and hold {release.target}: not of who else might have been asked, nor of values "
    if not np.any(release.unseen):
        return f"{about} alone, {not_held}that were clipped."
    return (
        f"{about} and of what coefficients that were left out and curves that were clipped may "
        f"take off, {not_held}outside the public range. Of a mean with jumps or narrow peaks, "
        "or of curves that lie far more to one side of their mean than to the other, the band of "
        "the whole curve may miss a part."
    )


def _curve(release: Release) -> Table:
    t = np.linspace(release.basis.grid[0][0], release.basis.grid[0][-1], _ROWS)
    low, high = (np.atleast_2d(side) for side in release.interval(0.95, grid_points=t))
    values = np.atleast_2d(release.values(t))
    headings = ["t"]
    for number in range(len(values)):
        headings.append(release.name_of(number + 1) if len(values) > 1 else "value")
        headings.append(f"95 % band {release.covered}")
    rows = []
    for place, point in enumerate(t):
        cells = [f"{point:.4g}"]
        for row in range(len(values)):
            cells.append(f"{values[row, place]:.4g}")
            cells.append(f"{low[row, place]:.4g} … {high[row, place]:.4g}")
        rows.append(tuple(cells))
    title = f"{release.summary} (ten points of the domain)"
    return Table(headings=tuple(headings), rows=tuple(rows), title=title)


def _surface(release: Release) -> Table:
    s, t = (np.linspace(axis[0], axis[-1], _SURFACE_ROWS) for axis in release.basis.grid)
    rows: list[tuple[Any, ...]] = [
        (f"{point:.4g}", *(f"{value:.4g}" for value in row))
        for point, row in zip(s, release.values((s, t)), strict=True)
    ]
    headings = ("s", *(f"t = {point:.4g}" for point in t))
    title = f"{release.summary} (rows s, columns t)"
    return Table(headings=headings, rows=tuple(rows), title=title)
