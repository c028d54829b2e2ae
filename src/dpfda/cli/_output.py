"""What a command writes: checked before anything is spent, written before anything is printed."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dpfda.errors import InvalidParameter, MissingExtra

_PICTURES = (".png", ".pdf", ".svg")


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is None:
        return
    folder = path.parent
    if not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise InvalidParameter(option, "in a folder that exists and may be written", str(path))


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
    """Write what was released, then print it; what cannot be printed is kept in a file.

    Noise is drawn once: a console that cannot be written to must not cost the budget.
    """
    if path is not None:
        document.save(path)
    try:
        click.echo(document.to_json(indent=2)) if as_json else show(document)
        sys.stdout.flush()
    except (OSError, UnicodeError):
        if path is None:
            path = Path(f"dpfda-{document.kind}-{secrets.token_hex(4)}.json")
            document.save(path)
        raise click.ClickException(
            f"could not be printed; what was released is in {path}"
        ) from None
    if path is not None:
        click.echo(f"written to {path}", err=True)


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
        raise click.ClickException(f"the plot was not written: {error.strerror}") from None
    finally:
        plt.close(figure)
    click.echo(f"plot written to {path}", err=True)
