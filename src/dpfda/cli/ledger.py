"""``dpfda ledger``: what was spent from a ledger on disk, and what is left for planned releases."""

from __future__ import annotations

from pathlib import Path

import click

from dpfda import _validate
from dpfda.cli._output import check_writable, delta_option, json_option
from dpfda.errors import BudgetExceeded, InvalidData, InvalidParameter
from dpfda.privacy.events import ApproximateEvent, Event, PureEvent
from dpfda.privacy.ledger_file import FileLedger
from dpfda.privacy.price import compose
from dpfda.report.terminal import to_json


class _ShownByDefault(click.Group):
    """``dpfda ledger FILE`` is ``dpfda ledger show FILE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


_FILE = click.argument(
    "path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.group(cls=_ShownByDefault)
def command() -> None:
    """Show a budget on disk, plan releases from it, or split it.

    FILE is the file that other commands name with --ledger. `dpfda ledger FILE` shows it.
    """


@command.command()
@_FILE
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON.")
@click.option("--parts", is_flag=True, help="Print a line for each question of a release.")
def show(path: Path, as_json: bool, parts: bool) -> None:
    """Show what was spent: when, for what, under which assumptions, and what is left.

    A release that asked several questions is one line; --json and --parts show each of them.
    """
    ledger = _opened(path)
    if as_json:
        click.echo(to_json([entry.to_dict() for entry in ledger.entries]))
    else:
        click.echo(ledger.table(parts=parts))
        click.echo(f"left: {ledger.left()}")


@command.command()
@_FILE
@click.option("--epsilon", type=float, required=True, help="ε of each planned release.")
@delta_option
@click.option("--times", type=click.IntRange(min=1), default=1, show_default=True,
    help="Number of such releases.")  # fmt: skip
@json_option
def plan(path: Path, epsilon: float, delta: float, times: int, as_json: bool) -> None:
    """Show whether planned releases fit, and what they would leave. Nothing is spent.

    The exit status is 2 if they do not fit.
    """
    _validate.positive("--epsilon", epsilon)
    _validate.delta("--delta", delta)
    ledger = _opened(path)
    if delta and not ledger.limit.delta:
        raise InvalidParameter("--delta", f"0: {path.name} has no δ", delta)
    after = ledger.after(epsilon=epsilon, delta=delta, times=times)
    if as_json:
        pure, other = (ledger.remaining_pure, ledger.remaining) if after is None else after
        fields = {"fits": after is not None, "left_pure": pure, "left": vars(other)}
        click.echo(to_json(fields))
        raise SystemExit(0 if after is not None else 2)
    each = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
    what = f"{times} releases of {each}" if times > 1 else f"a release of {each}"
    if after is None:
        raise InvalidParameter("--epsilon", f"smaller: {ledger.left()} is left", epsilon)
    click.echo(f"{what} would leave {ledger.left(*after)}")


@command.command()
@_FILE
@click.argument("parts", metavar="NAME=EPSILON...", nargs=-1, required=True)
@click.option("--delta", type=float, default=0.0, show_default=True,
    help="δ of each part; above 0 it must fit into the δ of FILE.")  # fmt: skip
def split(path: Path, parts: tuple[str, ...], delta: float) -> None:
    """Split the remaining budget into separate ledgers, one file each.

    NAME=EPSILON writes NAME with the limit ε = EPSILON, and charges FILE with all of it at once.
    Several teams can then spend independently. Parts that are not used up stay charged, so one
    shared file never costs more. Releases from NAME must be about the same unit as those of FILE.
    """
    _validate.delta("--delta", delta)
    ledger = _opened(path)
    wanted: dict[Path, float] = {}
    for part in parts:
        name, _, number = part.rpartition("=")
        try:
            epsilon = float(number)
        except ValueError:
            epsilon = 0.0
        if not name or not 0 < epsilon < float("inf") or Path(name) in wanted:
            raise InvalidParameter("NAME=EPSILON", "like team-a.jsonl=0.5, each once", part)
        if Path(name).exists() or Path(name) == path:
            raise InvalidParameter("NAME=EPSILON", "a file that does not exist yet", name)
        check_writable("NAME=EPSILON", Path(name))
        wanted[Path(name)] = epsilon
    whole = {name: _event(epsilon, delta) for name, epsilon in wanted.items()}
    if reason := ledger.refusal(compose(whole.values())):  # check before the first file is written
        raise BudgetExceeded(f"nothing was split: {reason}")
    for place, epsilon in wanted.items():
        # first: after a crash in between, the cost is overstated
        ledger.spend(whole[place], label=f"budget {place.name}")
        FileLedger(place, limit_epsilon=epsilon, limit_delta=delta)
        click.echo(f"{place} may spend ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else ""))
    click.echo(f"left in {path}: {ledger.left()}")


def _event(epsilon: float, delta: float) -> Event:
    """An event that covers all releases from a ledger with this limit.

    Concurrent interactive mechanisms compose like their (ε, δ) (Lyu 2022, Vadhan & Zhang 2023).
    """
    if delta:
        return ApproximateEvent(epsilon=epsilon, delta=delta)
    return PureEvent(epsilon=epsilon)


def _opened(path: Path) -> FileLedger:
    try:
        return FileLedger(path)
    except InvalidParameter:  # an empty file: with a limit, it would become a new ledger
        rule = "a ledger that another command created with --ledger"
        raise InvalidData(path.name, rule, "an empty file") from None
