"""Output of commands, and secrets that commands read.

A command checks its output files before it spends anything, and writes before it prints. Secrets
are read from a file that only the user can read, or from the environment. They are never arguments,
because every user of a machine can see the arguments of all processes.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit

import click
from rich.console import Console

from dpfda.cli._group import Complaint
from dpfda.errors import InvalidParameter, MissingExtra
from dpfda.privacy.cost import DELTA
from dpfda.report import Verdict
from dpfda.report.contents import show
from dpfda.report.documents import Documented
from dpfda.report.panels import headed
from dpfda.report.terminal import rich_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpfda.central.moments.curve_moments import CurveMoments, SyntheticCurves
    from dpfda.central.regression.model import RegressionModel
    from dpfda.central.release import Release
    from dpfda.estimators.private_fpca import PrivateFPCA
    from dpfda.protocol.model import StudyModel


_PICTURES = (".png", ".pdf", ".svg")
_PROBE = bytes(1 << 16)  # larger than most documents

Command = Callable[..., Any]
D = TypeVar("D", bound=Documented)


def options_of(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine several options into one decorator; help lists them in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


delta_option = click.option("--delta", type=float, default=DELTA, show_default=True,
    help="δ of the release; 0 for pure ε.")  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
home_option = click.option("--home", type=click.Path(file_okay=False, path_type=Path),
    default=Path.home() / ".dpfda", help="Where your budget and replies are kept.")  # fmt: skip
certificates_option = click.option("--certificates", type=click.Path(exists=True, dir_okay=False),
    help="Certificates to trust instead of the system's (PEM).")  # fmt: skip


class Drawn(Protocol):
    """An object with a `plot` method."""

    def plot(self, ax: Axes | None = None) -> object:
        """Draw the picture."""


def output_options(what: str) -> Callable[[Command], Command]:
    """Add ``--plot``, ``--out`` and ``--json``; `check_outputs` and `publish` read them."""
    file = click.Path(dir_okay=False, path_type=Path)
    used = "dpfda predict and dpfda show" if what == "model" else "dpfda show"

    out = f"Write the {what} here (JSON), for {used}."
    picture = "Write a picture here (.png, .pdf or .svg)."
    return options_of(
        click.option("--plot", type=file, help=picture),
        click.option("--out", type=file, help=out),
        json_option,
    )


def check_outputs(out: Path | None, plot: Path | None) -> None:
    """Check that output files can be written, before anything is spent."""
    check_picture(plot)
    check_writable("--out", out)


def check_writable(option: str, path: Path | None) -> None:
    """Check that a file can be written, before anything is spent."""
    if path is None:
        return
    rule = "a file in a folder that exists and may be written"
    # A device or a pipe cannot be replaced by a file.
    if (path.exists() and not path.is_file()) or (path.is_file() and not os.access(path, os.W_OK)):
        raise InvalidParameter(option, rule, str(path))
    probe = path.with_name(f".{path.name}.part")
    try:
        probe.write_bytes(_PROBE)  # also detects a full disk
    except OSError as error:
        raise InvalidParameter(option, f"{rule} ({error.strerror})", str(path)) from None
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def check_picture(path: Path | None) -> None:
    """Check that a picture can be drawn and written, before anything is spent."""
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot", f"a {', '.join(_PICTURES)} file", path.name)
    check_writable("--plot", path)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None


def publish(document: D, path: Path | None, as_json: bool, show: Callable[[D], object]) -> None:
    """Write a released document, then print it; if either fails, save it elsewhere.

    The budget is spent, so a full disk or a console error must not lose the document.
    """
    wrong = "" if path is None else _unsaved(document, path)
    kept = None if wrong else path
    try:
        print_json(document) if as_json else show(document)
        sys.stdout.flush()
    except (OSError, UnicodeError):
        wrong = wrong or "could not be printed"
    if wrong:
        raise Complaint(f"{wrong}; what was released is in {kept or _elsewhere(document)}")
    if path is not None:
        click.echo(f"written to {path}", err=True)


def print_json(document: Documented) -> None:
    """Print the JSON of a document, with the bands of curves."""
    from dpfda.central.release import Release

    text = document.to_json(indent=2)
    surface = isinstance(document, Release) and len(document.basis.grid) > 1
    if not surface and (columns := document.columns()):
        text = json.dumps(json.loads(text) | {"band": columns}, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # a console that cannot print ε
        text = json.dumps(json.loads(text), indent=2)
    click.echo(text)


def write_columns(document: Documented, path: Path) -> None:
    """Write released curves and their bands as CSV."""
    columns = document.columns()
    if not columns:
        rule = "left out: only curves, densities and surfaces are written as columns"
        raise InvalidParameter("--csv", rule, document.kind)
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerows([list(columns), *zip(*columns.values(), strict=True)])
    except OSError as error:
        raise Complaint(f"{path} was not written: {error.strerror}") from None
    click.echo(f"values and bands written to {path}", err=True)


def _unsaved(document: Documented, path: Path) -> str:
    """Save a document; return why that failed, or an empty string."""
    try:
        document.save(path)
    except OSError as error:
        return f"{path} was not written ({error.strerror})"
    return ""


def _elsewhere(document: Documented) -> str:
    """Save to the current or the temporary folder; otherwise return the document as text."""
    name = f"dpfda-{document.kind}-{secrets.token_hex(4)}.json".replace(" ", "-")
    for place in (Path(name), Path(tempfile.gettempdir(), name)):
        if not _unsaved(document, place):
            return str(place)
    return f"this line alone: {document.to_json()}"


def draw(shown: Drawn, path: Path) -> None:
    """Write a picture of an object with a `plot` method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    shown.plot(axes)
    for ax in figure.axes:
        if title := ax.get_title():
            headed(ax, title)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise Complaint(f"the plot was not written: {error.strerror}") from None
    finally:
        plt.close(figure)
    click.echo(f"plot written to {path}", err=True)


def print_release(release: Release) -> None:
    """Print a table of some points, the guarantee, and the public parameters."""
    from dpfda.central.release_report import table

    console = Console(markup=False)
    console.print(rich_table(table(release)))
    print_public(console, release)


def print_public(console: Console, released: Release | CurveMoments) -> None:
    """Print guarantee, parameters and warnings of a release."""
    console.print(repr(released), markup=False)
    for key, value in released.parameters.items():
        console.print(f"  {key}: {show(value)}", markup=False)
    print_verdict(console, released.verdict, released.warnings)


def print_verdict(console: Console, verdict: Verdict, warnings: Sequence[str] = ()) -> None:
    """Print the findings in sentences, and the warnings."""
    for sentence in verdict.findings:
        console.print(sentence, markup=False)
    for warning in verdict.added_to(warnings):
        console.print(f"warning: {warning}", markup=False)


def print_components(model: PrivateFPCA) -> None:
    """Print mean and components at some points, the explained variance, and the guarantee."""
    console = Console(markup=False)
    console.print(rich_table(model.table()))
    console.print(model.in_words(), markup=False)
    print_public(console, model.release_)


def print_regression(model: RegressionModel) -> None:
    """Print coefficients in the units of the features, the guarantee, and their interpretation."""
    from dpfda.central.regression.model_report import table

    console = Console(markup=False)
    stages = f"{model.stages} stage{'s' * (model.stages != 1)}"
    same = model.link == model.mechanism  # discriminants have a single mechanism
    how = f"{model.link} analysis" if same else f"{model.link} by {model.mechanism}"
    console.print(f"{how}, {model.rows} rows, {stages}", markup=False)
    console.print(rich_table(table(model)))
    console.print(str(model.guarantee), markup=False)
    if model.classes is not None:
        console.print(f"classes: {', '.join(map(str, model.classes))}", markup=False)
    if model.target_range is not None:
        console.print("target: {:g} to {:g}".format(*model.target_range), markup=False)
    for note in model.notes if not model.of_curves else ():
        console.print(f"note: {note}", markup=False)
    print_verdict(console, model.verdict, model.warnings)


def print_study_model(model: StudyModel) -> None:
    """Print the model of a study of people or owners."""
    from dpfda.protocol.model import about, contents

    console = Console(markup=False)
    console.print(model.kind, markup=False)
    for one in contents(model).tables:
        console.print(rich_table(one))
    console.print(str(model.guarantee), markup=False)
    for sentence in about(model):
        console.print(sentence, markup=False)
    print_verdict(console, model.verdict)


def print_moments(moments: CurveMoments) -> None:
    """Print means at some points, sizes and differences of groups, and the guarantee."""
    from dpfda.central.moments.moments_report import means

    console = Console(markup=False)
    console.print(rich_table(means(moments)))
    if moments.groups:
        sizes = zip(moments.groups, moments.sizes, strict=True)
        text = ", ".join(f"{name} about {size:.0f}" for name, size in sizes)
        console.print(f"sizes: {text}", markup=False)
    print_public(console, moments)


def print_synthetic(moments: CurveMoments, drawn: SyntheticCurves) -> None:
    """Print the source of synthetic curves and their quality."""
    print_moments(moments)
    Console(markup=False).print(
        f"{len(drawn)} synthetic curves were drawn from this release. They reveal no more than the "
        "release does: they reproduce its means and covariances, and nothing else of the people.",
        markup=False,
    )


def print_document(loaded: object) -> None:
    """Print a loaded document."""
    from dpfda.central.moments.curve_moments import CurveMoments
    from dpfda.central.regression.model import RegressionModel
    from dpfda.central.release import Release
    from dpfda.protocol.model import StudyModel

    if isinstance(loaded, Release):
        print_release(loaded)
    elif isinstance(loaded, CurveMoments):
        print_moments(loaded)
    elif isinstance(loaded, RegressionModel):
        print_regression(loaded)
    else:
        assert isinstance(loaded, StudyModel)
        print_study_model(loaded)


_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def read_secret(option: str, file: Path) -> str:
    """Read a secret from a file that other users of this machine cannot read."""
    try:
        with file.open(encoding="utf-8") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode & _OTHERS:
                rule = f"closed to other users (chmod 600 {file.name})"
                raise InvalidParameter(option, rule, f"{file.name} with mode {mode:o}")
            return stream.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise InvalidParameter(option, f"a file that can be read ({reason})", str(file)) from None


def holds_password(url: str) -> bool:
    """Whether a URL contains a password.

    Examples:
        >>> [holds_password(f"postgresql://{u}h/d") for u in ("", "u@", "u:p@", ":p@")]
        [False, False, True, True]
        >>> holds_password("postgresql://h/d?user=u&password=p")
        True
    """
    try:
        parts = urlsplit(url)
        told = parts.password is not None
    # an invalid URL is refused elsewhere; it may be a mistyped one with a password
    except ValueError:
        return "@" in url
    return told or any("password" in name for name, _ in parse_qsl(parts.query))
