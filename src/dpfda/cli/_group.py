"""The group of all commands; it imports only the requested command."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import re
import sys
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click

from dpfda import cli
from dpfda._version import __version__
from dpfda.errors import DpfdaError, MissingExtra, UnknownName, printable

#: Well-known commands that another package provides.
_ELSEWHERE = {"bench": "dpfda-bench", "reproduce": "dpfda-bench"}


class Complaint(click.ClickException):
    """Print an error on one line of stderr, escaped, because parts of it may come from others."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, most=sys.maxsize))


class CommandFiles(click.Group):
    """A click group of the files of `dpfda.cli` and of the entry points `dpfda.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the files and of the entry points."""
        return sorted({*_files(), *_added()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        try:
            return self._imported(cmd_name)
        except ModuleNotFoundError as error:
            missing = MissingExtra.of(error)
            if missing is None:
                raise
            return _absent(cmd_name, missing)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with a summary, read from the files, as importing all takes seconds."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(name)) for name in self.list_commands(ctx)])

    def _imported(self, cmd_name: str) -> click.Command:
        command: click.Command
        if cmd_name in _files():
            module = importlib.import_module(f"dpfda.cli.{cmd_name.replace('-', '_')}")
            command = module.command
        elif cmd_name in (added := _added()):
            command = added[cmd_name].load()
        elif cmd_name in _ELSEWHERE:
            package = _ELSEWHERE[cmd_name]
            how = f"pip install {package}, or pip install ./bench in a checkout"
            raise Complaint(f"{cmd_name} is in the package {package}: {how}")
        else:
            raise UnknownName("command", cmd_name, {*_files(), *added, *_ELSEWHERE})
        command.name = cmd_name
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        """Read the options before the command."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise one_line(error) from error
        except OSError as error:
            raise _trouble(error) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; print errors of the package on one line, without a traceback."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise one_line(error, ctx.invoked_subcommand) from error
        except DpfdaError as error:
            raise Complaint(self._by_options(ctx, " ".join(str(error).split()))) from error
        except ModuleNotFoundError as error:
            raise Complaint(str(MissingExtra.of(error) or error)) from error
        except OSError as error:
            raise _trouble(error) from error
        except MemoryError as error:  # a file may declare a huge size
            raise Complaint("there is not enough memory for this file") from error

    def _by_options(self, ctx: click.Context, text: str) -> str:
        """Replace names of Python arguments by the names of options in an error."""
        name = ctx.invoked_subcommand
        command = self.get_command(ctx, name) if name in self.list_commands(ctx) else None
        given = [] if command is None else [*command.params]
        if isinstance(command, click.Group):  # subcommands, such as `dpfda site init`
            given += [part for one in command.commands.values() for part in one.params]
        names = {
            "random_state": "--seed",
            "grid_points": "--grid",
            "limit_delta": "--ledger-limit",
            "X": "FILE",
        }
        for part in given:
            option = isinstance(part, click.Option)
            names[part.name or ""] = part.opts[0] if option else part.human_readable_name
        argument, must, rest = text.partition(" must be ")
        text = f"{names.get(argument, argument)}{must}{rest}"

        def option_of(found: re.Match[str]) -> str:
            name, value = found.groups()
            if name not in names:
                return found[0]
            value = value.strip("'")
            return names[name] if value == "True" else f"{names[name]} {value}"

        text = re.sub(r"\b([a-z_]+)=(True\b|'[^']*'|[0-9][0-9.e-]*\b)", option_of, text)
        # Inside a sentence, replace only names with underscores, which are no English words.
        return re.sub(r"\b[a-z]+_[a-z]+\b", lambda found: names.get(found[0], found[0]), text)


def one_line(error: click.UsageError, command: str | None = None) -> click.ClickException:
    """An error of click in the wording of this package."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        return error
    path = " ".join(["dpfda", command or ""]).strip()
    text = error.format_message()
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        text = f"{error.param.opts[0]} must be given"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        text = f"{error.param.human_readable_name} must be given"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        text = _bad_value(error, error.param, text)
    return Complaint(f"{' '.join(text.split()).removesuffix('.')} (see {path} --help)")


def _bad_value(error: click.BadParameter, param: click.Parameter, text: str) -> str:
    """The message for an invalid choice or number: the rule, and the nearest valid choice."""
    name = param.opts[0] if isinstance(param, click.Option) else param.human_readable_name
    found = re.fullmatch(r"'(.*)' is not (one of|a valid (float|integer)).*", error.message)
    if found is None:
        return text
    value, _, kind = found.groups()
    if kind is not None:
        rule = {"float": "a number", "integer": "a whole number"}[kind]
        return f"{name} must be {rule}, got {value!r}"
    if not isinstance(param.type, click.Choice):
        return text
    known = [str(one) for one in param.type.choices]
    near = get_close_matches(value, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"{name} must be one of {', '.join(known)}, got {value!r}{meant}"


def _trouble(error: OSError) -> Exception:
    """A one-line message about a file or the console."""
    if isinstance(error, BrokenPipeError):
        return error  # the reader closed the pipe: click ends quietly
    where = f"{error.filename}: " if error.filename else ""
    return Complaint(f"{where}{error.strerror or error}")


def _absent(name: str, missing: MissingExtra) -> click.Command:
    """A placeholder for a command whose extra is not installed, so that others can be listed."""

    def complain(**_: object) -> None:
        raise missing

    rest = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(
        name, callback=complain, params=[rest], help=f"({missing})", context_settings=settings
    )


def _files() -> list[str]:
    names = (module.name for module in pkgutil.iter_modules(cli.__path__))
    return [name.replace("_", "-") for name in names if not name.startswith("_")]


def _summary(name: str) -> str:
    """The first line of the docstring of a command."""
    if name in _files():
        module, function = f"dpfda.cli.{name.replace('-', '_')}", "command"
    else:
        module, _, function = _added()[name].value.partition(":")
    found = importlib.util.find_spec(module)
    source = Path(found.origin).read_bytes() if found and found.origin else b""
    for part in ast.parse(source).body:
        if isinstance(part, ast.FunctionDef) and part.name == function:
            return (ast.get_docstring(part) or "").partition("\n")[0]
    return ""


def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="dpfda.commands")}


@click.group(cls=CommandFiles, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpfda")
def dpfda() -> None:
    """Differential privacy for functional data: learn from curves without collecting them."""
