"""The group of all commands: finds them by name and imports only the one that is asked for."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from dpfda import cli
from dpfda._version import __version__
from dpfda.errors import DpfdaError, MissingExtra

#: Commands that `dpfda` is known for and that another package brings.
_ELSEWHERE = {"bench": "dpfda-bench", "reproduce": "dpfda-bench"}


class CommandFiles(click.Group):
    """A click group: the files of `dpfda.cli`, and what other packages add as `dpfda.commands`."""

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

    def _imported(self, cmd_name: str) -> click.Command | None:
        command: click.Command
        if cmd_name in _files():
            module = importlib.import_module(f"dpfda.cli.{cmd_name.replace('-', '_')}")
            command = module.command
        elif cmd_name in (added := _added()):
            command = added[cmd_name].load()
        elif cmd_name in _ELSEWHERE:
            package = _ELSEWHERE[cmd_name]
            raise Complaint(f"{cmd_name} is in the package {package}: pip install {package}")
        else:
            return None
        command.name = cmd_name
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the package refuses on purpose is one line, not a traceback."""
        try:
            return super().invoke(ctx)
        except DpfdaError as error:
            raise Complaint(" ".join(str(error).split())) from error
        except ModuleNotFoundError as error:
            raise Complaint(str(MissingExtra.of(error) or error)) from error
        except BrokenPipeError:
            raise  # click ends quietly: nobody reads any more
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise Complaint(f"{where}{error.strerror or error}") from error


def _absent(name: str, missing: MissingExtra) -> click.Command:
    """Stands for a command whose extra is not installed, so that the others can be listed."""

    def complain(**_: Any) -> None:
        raise missing

    rest = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(
        name, callback=complain, params=[rest], help=f"({missing})", context_settings=settings
    )


def _files() -> list[str]:
    names = (module.name for module in pkgutil.iter_modules(cli.__path__))
    return [name.replace("_", "-") for name in names if not name.startswith("_")]


def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="dpfda.commands")}


class Complaint(click.ClickException):
    """An error of the package, shown on one line of stderr."""

    exit_code = 2


@click.group(cls=CommandFiles, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpfda")
def dpfda() -> None:
    """Learn from curves that nobody may see."""
