"""The group of all commands: finds them by file name and imports only the one that is asked for."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import click

from dpfda import cli
from dpfda._version import __version__
from dpfda.errors import DpfdaError


class CommandFiles(click.Group):
    """A click group whose commands are the files of `dpfda.cli`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the files."""
        return sorted(
            module.name.replace("_", "-")
            for module in pkgutil.iter_modules(cli.__path__)
            if not module.name.startswith("_")
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one file and return its ``command``."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"dpfda.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        command.name = cmd_name
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the package refuses on purpose is one line, not a traceback."""
        try:
            return super().invoke(ctx)
        except DpfdaError as error:
            raise Complaint(" ".join(str(error).split())) from error


class Complaint(click.ClickException):
    """An error of the package, shown on one line of stderr."""

    exit_code = 2


@click.group(cls=CommandFiles, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpfda")
def dpfda() -> None:
    """Learn from curves that nobody may see."""
