"""``dpfda predict``: what a saved model says about the rows of a file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from dpfda import documents
from dpfda.boosting.model import RowModel
from dpfda.cli._output import check_writable
from dpfda.cli._reading import reading_from, reading_options
from dpfda.errors import InvalidData, InvalidParameter
from dpfda.face.from_files import frame
from dpfda.files import Rows
from dpfda.protocol.curve_regression import CurveRegression
from dpfda.regression.model import RegressionModel
from dpfda.study.results import to_json


@click.command(name="predict")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@reading_options(without={"groups": "every row is predicted (--id to tell them apart)"})
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the predictions here (CSV) instead of printing them.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: Path, file: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    """Predict the rows of a file by a saved model.

    MODEL is what dpfda classify, dpfda regress or a study has written. It is public and predicting
    costs no budget, but the predictions are about the rows of FILE: they are as private as those.
    With --label the share of wrong ones is shown as well.
    """
    check_writable("--out", out)
    reading = reading_from(options)
    loaded = documents.load(model)
    if not hasattr(loaded, "predict"):
        raise InvalidParameter("MODEL", "one that predicts (see dpfda show)", loaded.kind)
    owners = isinstance(loaded, RowModel)
    regression = isinstance(loaded, RegressionModel) and not loaded.of_curves
    table = owners or regression
    columns_of = (loaded.table if owners else loaded.recipe.table) if table else None
    if columns_of is not None and columns_of.named:
        opened = reading.open(file, aside=[one.key for one in columns_of.columns])
        cells = opened.table(least=1)
        X = frame(cells, columns_of, gaps=reading.fill)
        rows = Rows(X, tuple(columns_of.names), None, reading.said(opened, len(cells)), cells)
    else:
        if regression and reading.columns is None:
            reading = reading.choosing(loaded.features)
        rows = reading.rows(file, curves=not table, least=1)
    click.echo(rows.said, err=True)
    where = {} if table or rows.grid_points is None else {"grid_points": rows.grid_points}
    if not where:
        _check_width(loaded, rows.X)
    predicted = np.asarray(loaded.predict(rows.X, **where))
    columns: dict[str, Any] = {} if reading.id is None else {reading.id: rows.text(reading.id)}
    columns["predicted"] = predicted.tolist()
    if isinstance(loaded, RegressionModel) and loaded.classes is not None:
        chances = loaded.predict_proba(rows.X, **where)
        for name, chance in zip(loaded.classes, chances.T, strict=True):
            columns[f"probability of {name}"] = [round(float(value), 4) for value in chance]
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(lines)
        click.echo(f"written to {out}", err=True)
    if as_json:
        click.echo(to_json([dict(zip(columns, line, strict=True)) for line in lines[1:]]))
    elif out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
    if reading.label is not None and isinstance(loaded, CurveRegression):
        off = predicted - rows.numbers([reading.label])[:, 0]
        click.echo(f"root mean squared error: {np.sqrt(np.mean(off**2)):.4g}", err=True)
    elif reading.label is not None:
        wrong = np.mean(rows.text(reading.label) != predicted.astype(str))
        click.echo(f"wrong: {100 * wrong:.1f} % of {len(predicted)}", err=True)


def _check_width(model: Any, X: Any) -> None:
    """Refuse curves of other points than the model's, where nobody says which."""
    known = model.recipe.grid_points if isinstance(model, RegressionModel) else None
    if known is not None and isinstance(X, np.ndarray) and X.shape[1] != len(known):
        rule = f"curves at the {len(known)} points of the model (other points: pass --grid)"
        raise InvalidData("FILE", rule, f"{X.shape[1]} columns")
