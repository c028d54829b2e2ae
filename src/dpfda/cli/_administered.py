"""Options of commands for organizers: which collector, and whose key."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from dpfda.cli._output import certificates_option, json_option, options_of, read_secret
from dpfda.client.administrator import Administrator
from dpfda.errors import InvalidParameter

Command = Callable[..., Any]


_options = options_of(
    click.option("--url", default="http://127.0.0.1:8000", show_default=True,
        help="The collector."),
    click.option("--admin-key-file", type=click.Path(dir_okay=False, path_type=Path),
        help="File with the administrator's or an organizer's key; without it the key is "
        "taken from DPFDA_ADMIN_KEY."),
    certificates_option,
    click.option("--insecure", is_flag=True,
        help="Allow http:// to another machine: anybody in between can read the key."),
    json_option,
)  # fmt: skip


def administered(function: Command) -> Command:
    """Add options of the collector and the key; the command gets an `Administrator`."""

    @wraps(function)
    def connected(
        url: str,
        admin_key_file: Path | None,
        certificates: str | None,
        insecure: bool,
        **rest: object,
    ) -> None:
        if admin_key_file is not None:
            key = read_secret("--admin-key-file", admin_key_file)
        else:
            key = os.environ.get("DPFDA_ADMIN_KEY", "")
        if not key:
            raise InvalidParameter("--admin-key-file", "given, or the key in DPFDA_ADMIN_KEY", None)
        administrator = Administrator(url, key, certificates=certificates, insecure=insecure)
        try:
            function(administrator=administrator, **rest)
        finally:
            administrator.hang_up()

    return _options(connected)
