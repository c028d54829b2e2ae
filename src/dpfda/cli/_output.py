"""What a command writes: checked before anything is spent, written before anything is printed."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from dpfda.errors import InvalidParameter, MissingExtra, printable

_PICTURES = (".png", ".pdf", ".svg")
_PROBE = bytes(1 << 16)  # more than a document usually has

Command = Callable[..., Any]


class Complaint(click.ClickException):
    """What went wrong, on one line of stderr, which somebody else may have had a say in."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, most=sys.maxsize))


def output_options(what: str) -> Callable[[Command], Command]:
    """Add ``--plot``, ``--out`` and ``--json``; `check_outputs` and `publish` read them."""
    file = click.Path(dir_okay=False, path_type=Path)
    names = ["--out", "--model"] if what == "model" else ["--out"]
    used = "dpfda predict and dpfda show" if what == "model" else "dpfda show"

    def add(command: Command) -> Command:
        command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
        out = f"Write the {what} here (JSON), for {used}."
        command = click.option(*names, "out", type=file, help=out)(command)
        picture = "Write a picture here (.png, .pdf or .svg)."
        return click.option("--plot", type=file, help=picture)(command)

    return add


def check_outputs(out: Path | None, plot: Path | None) -> None:
    """Refuse files that could not be written, before anything is spent."""
    check_picture(plot)
    check_writable("--out", out)


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is None:
        return
    rule = "a file in a folder that exists and may be written"
    # A device or a pipe cannot be replaced by a whole document.
    if (path.exists() and not path.is_file()) or (path.is_file() and not os.access(path, os.W_OK)):
        raise InvalidParameter(option, rule, str(path))
    probe = path.with_name(f".{path.name}.part")
    try:
        probe.write_bytes(_PROBE)  # a full disk is noticed as well
    except OSError as error:
        raise InvalidParameter(option, f"{rule} ({error.strerror})", str(path)) from None
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def check_picture(path: Path | None) -> None:
    """Refuse a picture that could not be drawn or written, before anything is spent."""
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot", f"a {', '.join(_PICTURES)} file", path.name)
    check_writable("--plot", path)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None


def publish(document: Any, path: Path | None, as_json: bool, show: Callable[[Any], None]) -> None:
    """Write what was released, then print it; what cannot be written or printed is kept elsewhere.

    Noise is drawn once: neither a full disk nor a console may cost the budget.
    """
    wrong = "" if path is None else _unsaved(document, path)
    kept = None if wrong else path
    try:
        click.echo(document.to_json(indent=2)) if as_json else show(document)
        sys.stdout.flush()
    except (OSError, UnicodeError):
        wrong = wrong or "could not be printed"
    if wrong:
        raise Complaint(f"{wrong}; what was released is in {kept or _elsewhere(document)}")
    if path is not None:
        click.echo(f"written to {path}", err=True)


def _unsaved(document: Any, path: Path) -> str:
    """Save; in words why not."""
    try:
        document.save(path)
    except OSError as error:
        return f"{path} was not written ({error.strerror})"
    return ""


def _elsewhere(document: Any) -> str:
    """Save where there is room: here, among temporary files, or else on the terminal alone."""
    name = f"dpfda-{document.kind}-{secrets.token_hex(4)}.json".replace(" ", "-")
    for place in (Path(name), Path(tempfile.gettempdir(), name)):
        if not _unsaved(document, place):
            return str(place)
    return f"this line alone: {document.to_json()}"


def draw(shown: Any, path: Path) -> None:
    """Write a picture of what can draw itself."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    shown.plot(axes)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise Complaint(f"the plot was not written: {error.strerror}") from None
    finally:
        plt.close(figure)
    click.echo(f"plot written to {path}", err=True)
