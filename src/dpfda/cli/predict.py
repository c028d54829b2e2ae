"""``dpfda predict``: apply a saved model to the rows of a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from dpfda._validate import AnyArray
from dpfda.central.regression.model import RegressionModel
from dpfda.cli._output import check_writable, json_option
from dpfda.cli._reading import reading_from, reading_options
from dpfda.curves.files import Reading, Rows
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.estimators.file_block import frame
from dpfda.local.boosting.model import RowModel
from dpfda.local.mrma.rules import VoteModel
from dpfda.protocol.model import CurveModel, CurveRegression
from dpfda.report import documents
from dpfda.report.terminal import to_json


@click.command(name="predict")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@reading_options(without={
    "groups": "every row is predicted (--id to tell them apart)",
    "drop_empty": "every row is predicted (--fill for empty cells)",
})  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the predictions here (CSV) instead of printing them.")  # fmt: skip
@json_option
def command(model: Path, file: Path, out: Path | None, as_json: bool, **options: object) -> None:
    """Predict the rows of a file by a saved model.

    MODEL is a file written by dpfda classify, dpfda regress or a study. It is public, and
    predicting costs no budget. The predictions are as private as the rows of FILE. With --label
    the share of wrong predictions is shown as well.
    """
    check_writable("--out", out)
    reading = reading_from(options)
    loaded = documents.load(model)
    if not hasattr(loaded, "predict"):
        raise InvalidParameter("MODEL", "one that predicts (see dpfda show)", loaded.kind)
    public, curves = _read_by(loaded)
    if public is not None and public.named:
        opened = reading.open(file, aside=[one.key for one in public.columns])
        cells = opened.table(least=1)
        X = frame(cells, public, gaps=reading.fill)
        rows = Rows(X, tuple(public.names), None, reading.said(opened, len(cells)), cells)
    else:
        if isinstance(loaded, RegressionModel) and not curves and reading.columns is None:
            reading = _by_name(reading, file, loaded.features)
        rows = reading.rows(file, curves=curves, least=1)
    click.echo(rows.said, err=True)
    where = {} if not curves or rows.grid_points is None else {"grid_points": rows.grid_points}
    if not where:
        _check_width(loaded, rows.X)
    predicted = np.asarray(loaded.predict(rows.X, **where))
    columns: dict[str, Any] = {} if reading.id is None else {reading.id: rows.text(reading.id)}
    columns["predicted"] = predicted.tolist()
    if isinstance(loaded, RegressionModel) and loaded.classes is not None:
        chances = loaded.predict_proba(rows.X, **where)
        for name, chance in zip(loaded.classes, chances.T, strict=True):
            columns[f"probability of {name}"] = [round(float(value), 4) for value in chance]
    judged = "" if reading.label is None else _judged(loaded, predicted, rows, reading.label)
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(lines)
        click.echo(f"written to {out}", err=True)
    if as_json:
        click.echo(to_json([dict(zip(columns, line, strict=True)) for line in lines[1:]]))
    elif out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
    if judged:
        click.echo(judged, err=True)


def _judged(model: object, predicted: AnyArray, rows: Rows, label: str) -> str:
    """The error of predictions on the labels of the file; not private."""
    numbers = isinstance(model, RegressionModel) and model.classes is None
    if numbers or isinstance(model, CurveRegression):
        off = predicted - rows.numbers([label])[:, 0]
        return f"root mean squared error: {np.sqrt(np.mean(off**2)):.4g}"
    wrong = np.mean(rows.text(label) != predicted.astype(str))
    return f"wrong: {100 * wrong:.1f} % of {len(predicted)}"


def _read_by(
    model: RowModel | RegressionModel | CurveModel | CurveRegression | VoteModel,
) -> tuple[PublicColumns | None, bool]:
    """The public columns that a model reads, if it states them, and whether it reads curves."""
    if isinstance(model, RowModel):
        return model.table, False
    if isinstance(model, RegressionModel):
        return (None, True) if model.of_curves else (model.recipe.table, False)
    return model.encoder.table, model.encoder.basis.functional


def _by_name(reading: Reading, file: Path, features: Sequence[str]) -> Reading:
    """Choose features by name; by order if the model has numbers and the file has names."""
    numbered = [list(map(str, range(first, first + len(features)))) for first in (0, 1)]
    if list(features) in numbered and not set(features) <= set(reading.open(file).names):
        return reading
    return reading.choosing(features)


def _check_width(model: object, X: object) -> None:
    """Refuse curves with another number of points than the model, unless --grid is given."""
    known = model.recipe.grid_points if isinstance(model, RegressionModel) else None
    if known is not None and isinstance(X, np.ndarray) and X.shape[1] != len(known):
        rule = f"curves at the {len(known)} points of the model (other points: pass --grid)"
        raise InvalidData("FILE", rule, f"{X.shape[1]} columns")
