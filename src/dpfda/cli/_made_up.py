"""Invented rows for the rehearsal of a command, from its public options and column names.

Only the header of the real file is used. Numbers are drawn uniformly from their public ranges,
categories and classes with equal frequency, and curves as smooth curves within their range.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from dpfda._validate import AnyArray, FloatArray, IntArray
from dpfda.cli._reading import feature_ranges, read_ranges, reading_from
from dpfda.curves.files import Opened
from dpfda.curves.files.cells import place_of
from dpfda.curves.ranges import PublicColumns
from dpfda.planning.releases import smooth_curves

_SPREAD = 0.15  # standard deviation of people about their mean, as a share of the range
_POINTS = 12  # points of a curve in long form
_KNOWN = 5  # points of a sparsely observed curve
_SEPARATOR = ";"


def made_up_files(
    folder: Path, command: str, options: dict[str, Any], *, people: int, seed: int
) -> tuple[list[Path], dict[str, Any]]:
    """Write invented rows and return the options for reading them.

    Args:
        folder: where to write.
        command: ``release``, ``regress`` or ``classify``.
        options: parsed options of the command.
        people: number of people.
        seed: seed of the random draws.

    Returns:
        One or two files, as the command reads them, and the options of `Reading` that differ from
        those of the real file.
    """
    options = dict(options)
    files = options.pop("files")
    aside = {}
    for name in ("covariates", "target", *(["label"] if command == "release" else [])):
        for column in (options.get(name) or "").split(","):
            if column.strip():
                aside[column.strip()] = f"--{name}"
    label = options.pop("label", None) if command == "release" else options.get("label")
    reading = reading_from(options)
    if (tables := _is_table(command, options)) and reading.columns is None:
        named = options["feature_ranges"] and read_ranges(options["feature_ranges"])
        if isinstance(named, dict):
            reading = reading.choosing(list(named), by="--feature-ranges")
    opened = reading.open(files[0], aside=aside)
    chosen = reading.chosen(opened, aside=aside)
    rng = np.random.default_rng(seed)
    rows = np.arange(people)
    long = not tables and reading.id is not None and len(chosen) == 2
    if long:  # id, t, x
        rows = np.repeat(rows, _POINTS)
    names = opened.names
    columns: dict[int, AnyArray] = {}
    for who in filter(None, (reading.id, reading.groups)):
        columns[place_of(who, names)] = np.array([f"p{row + 1}" for row in rows])
    for name in filter(None, (options.get("target"), label)):
        columns[place_of(name, names)] = _outcomes(options, people, rng)[rows]
    covariates = [name for name, option in aside.items() if option == "--covariates"]
    ranges = feature_ranges(options.get("feature_ranges"), chosen if tables else covariates)
    for one in PublicColumns.of(ranges or {}).columns:
        drawn: AnyArray = rng.uniform(one.low, one.high, size=people)
        if one.categories:
            drawn = np.array(list(map(str, one.categories)))[
                rng.integers(len(one.categories), size=people)
            ]
        columns[place_of(one.key, names)] = drawn[rows]
    if not (tables and ranges):
        values = _curves(options, people, _POINTS if long else len(chosen), rng, tables=tables)
        if long:
            low, high = options.get("domain_range") or (0.0, 1.0)
            times = np.tile(np.linspace(low, high, _POINTS), people)
            values = np.stack([times, values.ravel()], axis=1)
        for name, column in zip(chosen, values.T, strict=True):
            columns[place_of(name, names)] = column
    paths = [folder / f"made-up-{place}.csv" for place in range(min(len(files), 2))]
    for path, part in zip(paths, np.array_split(np.arange(len(rows)), len(paths)), strict=True):
        _write(path, opened, columns, part)
    how = {"sep": _SEPARATOR, "decimal": opened.decimal, "header": opened.header}
    return paths, how | {"scheduler": None}


def _is_table(command: str, options: dict[str, Any]) -> bool:
    """Whether the rows form a table; otherwise each row is a curve."""
    if command == "release":
        return options["summary"] in ("density", "kernel-machine")
    return command == "regress" and not options["curves"] and options["value_range"] is None


def _outcomes(options: dict[str, Any], people: int, rng: np.random.Generator) -> AnyArray:
    """Draw public classes, or numbers in the public range of the target."""
    if options.get("classes") is not None:
        classes = np.array([part.strip() for part in options["classes"].split(",")])
        return np.asarray(classes[rng.integers(len(classes), size=people)])
    low, high = options.get("target_range") or (0.0, 1.0)
    return rng.uniform(low, high, size=people)


def _curves(
    options: dict[str, Any], people: int, points: int, rng: np.random.Generator, *, tables: bool
) -> FloatArray:
    """Draw smooth curves in their range, or rows of a table in their ball."""
    if tables:
        edge = (options.get("feature_norm_bound") or 1.0) / np.sqrt(points)
        return rng.uniform(-edge, edge, size=(people, points))
    center, half = options.get("center") or 0.0, options.get("bound") or 1.0
    span = options.get("value_range") or (center - half, center + half)
    curves = smooth_curves(people, rng, points=points, value_range=span, spread=_SPREAD)
    if options.get("design") == "sparse" and points > _KNOWN:
        unknown = np.argsort(rng.random(curves.shape), axis=1) >= _KNOWN
        curves[unknown] = np.nan
    return curves


def _write(path: Path, opened: Opened, columns: dict[int, AnyArray], rows: IntArray) -> None:
    """Write a file with the columns of the real one; columns that the command ignores are 0."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=_SEPARATOR)
        if opened.header:
            writer.writerow(opened.names)
        none = np.zeros(rows.max(initial=0) + 1)
        cells = [
            [_cell(one, opened.decimal) for one in columns.get(place, none)[rows]]
            for place in range(len(opened.names))
        ]
        writer.writerows(zip(*cells, strict=True))


def _cell(value: Any, decimal: str) -> str:
    if isinstance(value, str):
        return value
    return "" if np.isnan(value) else f"{value:.6g}".replace(".", decimal)
