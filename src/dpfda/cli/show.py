"""``dpfda show``: print a saved model or release."""

from __future__ import annotations

from pathlib import Path

import click

from dpfda.cli._output import (
    check_picture,
    check_writable,
    draw,
    json_option,
    print_document,
    print_json,
    write_columns,
)
from dpfda.cli._record import check_record, record_options, write_record
from dpfda.errors import InvalidParameter
from dpfda.report import documents


@click.command(name="show")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path),
    help="Write a picture here (.png, .pdf or .svg).")  # fmt: skip
@json_option
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path),
    help="Write values and 95 % bands here.")  # fmt: skip
@record_options
def command(
    model: Path, plot: Path | None, as_json: bool, csv: Path | None, **options: object
) -> None:
    """Show a saved model or release: guarantee, ranges, numbers.

    MODEL is a file that another command has written with --out.
    """
    check_picture(plot)
    check_writable("--csv", csv)
    words = check_record(options, model)
    loaded = documents.load(model)
    if plot is not None and not hasattr(loaded, "plot"):
        raise InvalidParameter("--plot", f"left out: a {loaded.kind} has no picture", str(plot))
    if as_json:
        print_json(loaded)
    else:
        print_document(loaded)
    write_record(loaded, words)
    if csv is not None:
        write_columns(loaded, csv)
    if plot is not None:
        draw(loaded, plot)
