"""``dpfda serve``: run a collector."""

from __future__ import annotations

import ipaddress
import math
import os
import secrets
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from dpfda.cli._group import Complaint
from dpfda.cli._output import holds_password, read_secret
from dpfda.client.http import is_loopback
from dpfda.errors import DpfdaError, InvalidParameter, MissingExtra

R = TypeVar("R")
_KEY = "DPFDA_ADMIN_KEY"

_DATABASE = "sqlite:///dpfda.db"
_EXPOSED = (
    "warning: other machines reach {} without encryption; give --tls-certificate and --tls-key, "
    "or run it behind a proxy that handles TLS (--proxy)"
)


class _Finite(click.FloatRange):
    """A positive finite number; `click.FloatRange` accepts NaN."""

    def __init__(self, most: float) -> None:
        super().__init__(0, most, min_open=True)

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert and check the value."""
        found = float(super().convert(value, param, ctx))
        return found if math.isfinite(found) else self.fail(f"{found} is not a finite number.")


def _mistakes(ctx: click.Context) -> list[str]:
    """The list of errors in this call, which are reported together."""
    found: list[str] = ctx.meta.setdefault("dpfda.serve.mistakes", [])
    return found


class _Setting(click.Option):
    """An option that collects its error, so that all errors are reported together."""

    def process_value(self, ctx: click.Context, value: object) -> object:
        """Process the value; its error names the environment variable, if it comes from one."""
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            source = ctx.get_parameter_source(self.name or "")
            where = f"{self.envvar}: " if source is ParameterSource.ENVIRONMENT else ""
            _mistakes(ctx).append(where + " ".join(error.format_message().split()))
            return None if not self.multiple else ()


def _setting(name: str, *more: str, **how: object) -> Callable[[Any], Any]:
    """An option that can also be set in the environment or in a file."""
    variable = "DPFDA_" + name.partition("/")[0].removeprefix("--").upper().replace("-", "_")
    return click.option(name, *more, cls=_Setting, envvar=variable, **how)


@click.command()
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), is_eager=True,
    expose_value=False, callback=lambda ctx, _, file: _read_config(ctx, file),
    envvar="DPFDA_CONFIG", metavar="FILE",
    help="TOML file with any of these options by their names, such as port = 8000. "
    "An option overrides the environment (DPFDA_PORT), which overrides the file.")  # fmt: skip
@_setting("--database", metavar="URL",
    help="Database of the studies: sqlite:///FILE or postgresql://USER@HOST/NAME. A password may "
    "stand only in DPFDA_DATABASE or --database-file.  [default: sqlite:///dpfda.db]")  # fmt: skip
@_setting("--database-file", type=click.Path(dir_okay=False, path_type=Path),
    help="File with this URL, which other users cannot read.")  # fmt: skip
@_setting("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@_setting("--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="Port; 0 takes a free one.")  # fmt: skip
@_setting("--admin-listen", metavar="HOST:PORT",
    help="Separate address for the dashboard, /metrics, /live, /ready and all "
    "requests that need the key; the main address then serves participants only.")  # fmt: skip
@_setting("--workers", type=click.IntRange(1),
    help="Processes on the same port, with a supervisor that replaces them one by one on SIGHUP. "
    "Without it there is one process and no supervisor.")  # fmt: skip
@_setting("--admin-key-file", type=click.Path(dir_okay=False, path_type=Path),
    help="File with the administrator's key, which other users cannot read; created "
    "if it does not exist. It may hold several keys, one a line, and is read again "
    "when it changes. Without it the key is taken from DPFDA_ADMIN_KEY, or generated "
    "and shown once.")  # fmt: skip
@_setting("--tls-certificate", type=click.Path(exists=True, dir_okay=False),
    help="TLS certificate (PEM).")  # fmt: skip
@_setting("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its private key.")
@_setting("--proxy", "proxies", multiple=True, metavar="ADDRESS",
    help="Address or network of a proxy before the collector, whose X-Forwarded headers "
    "are trusted. May be repeated; by default none are.")  # fmt: skip
@_setting("--allow-origin", "origins", multiple=True, metavar="ORIGIN",
    help="Origin of a page on another host on which people may take part in studies "
    "of this collector, such as https://studies.example (see page). May be repeated.")  # fmt: skip
@_setting("--public-url", metavar="URL",
    help="Where participants reach this collector, such as https://studies.example: links and QR "
    "codes begin with it.  [default: the address with which the dashboard is opened]")  # fmt: skip
@_setting("--page-url", metavar="URL",
    help="Host of the page that dpfda page has written, such as "
    "https://studies.example: links and QR codes of participants lead there, and "
    "requests from it are allowed.  [default: people take part on the collector's "
    "own page]")  # fmt: skip
@_setting("--secure-cookies/--no-secure-cookies", default=None,
    help="Whether browsers send the dashboard's cookie over https only.  [default: with "
    "a certificate or a proxy]")  # fmt: skip
@_setting("--patience", type=_Finite(1e6), default=10.0, show_default=True,
    help="Seconds that a client may take to send a request.")  # fmt: skip
@_setting("--rate", type=_Finite(1e9), default=5.0, show_default=True,
    help="Largest number of requests per second with one token.")  # fmt: skip
@_setting("--enrolments", type=click.IntRange(0), default=20, show_default=True,
    help="Number of people from one address who may take part in an open study at once; 0 for any "
    "number."
    )  # fmt: skip
@_setting("--purge-after", type=_Finite(1e5), metavar="DAYS",
    help="Purge the replies of a study this long after it finished.  [default: never]"
    )  # fmt: skip
@_setting("--group", type=click.IntRange(1), default=256, show_default=True,
    help="Largest number of replies in one commit.")  # fmt: skip
def command(
    database: str | None,
    database_file: Path | None,
    host: str,
    port: int,
    admin_listen: str | None,
    workers: int | None,
    admin_key_file: Path | None,
    tls_certificate: str | None,
    tls_key: str | None,
    proxies: tuple[str, ...],
    origins: tuple[str, ...],
    public_url: str | None,
    page_url: str | None,
    secure_cookies: bool | None,
    **options: Any,
) -> None:
    """Run a collector of studies.

    The dashboard is at /, the interface under /api. Replies are acknowledged once they are durable.
    The first line on stdout is the address. Every option can also be set in the environment, such
    as DPFDA_PORT, or in a TOML file (--config).
    """
    try:
        from dpfda.collector.middleware import checked_origin
        from dpfda.collector.run import check_certificate, check_storage, inherited, listen, serve
        from dpfda.collector.settings import Settings
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "service") from None
    mistakes = _mistakes(click.get_current_context())

    def check(work: Callable[[], R], default: R) -> R:
        try:
            return work()
        except DpfdaError as error:
            mistakes.append(" ".join(str(error).split()))
            return default

    # Check everything before a key is generated and an address is printed.
    if (tls_certificate is None) != (tls_key is None):
        wrong = InvalidParameter("--tls-key", "given together with --tls-certificate", None)
        mistakes.append(str(wrong))
    elif tls_certificate is not None and tls_key is not None:
        check(partial(check_certificate, tls_certificate, tls_key), None)
    known = set(mistakes)
    url = check(partial(_database, database, database_file), "")
    if (workers or 1) > 1 and not url.startswith("postgresql"):
        wrong = InvalidParameter("--workers", "1 unless the database is PostgreSQL", workers)
        mistakes.append(str(wrong))
    trusted = [check(partial(_network, one), "") for one in proxies]
    elsewhere = [check(partial(checked_origin, one), "") for one in origins]
    public_url, page_url = (
        None if one is None else check(partial(checked_origin, one.rstrip("/"), name=name), None)
        for name, one in (("--public-url", public_url), ("--page-url", page_url))
    )
    elsewhere += [page_url] if page_url is not None and page_url not in elsewhere else []
    place = None if admin_listen is None else check(partial(_place, admin_listen), None)
    check(partial(_check_key, admin_key_file), None)
    if known == set(mistakes):  # only if the database URL is valid
        check(partial(check_storage, url), None)
    with ExitStack() as open_ones:
        found = inherited()
        listener, admin_listener = found.get("public"), found.get("admin")
        if listener is None:
            listener = check(partial(listen, host, port), None)
        if admin_listener is None and place is not None:
            admin_listener = check(partial(listen, *place, name="--admin-listen"), None)
        for one in (listener, admin_listener):
            if one is not None:
                open_ones.enter_context(one)
        if mistakes:
            many = len(mistakes) > 1
            numbered = (f"({i}) {one}" for i, one in enumerate(mistakes, start=1))
            raise Complaint("; ".join(numbered) if many else mistakes[0])
        behind_tls = tls_certificate is not None or bool(trusted)
        settings = Settings(
            database=url,
            admin_key=_admin_key(admin_key_file),
            admin_key_file=None if admin_key_file is None else str(admin_key_file.absolute()),
            secure_cookies=behind_tls if secure_cookies is None else secure_cookies,
            proxies=tuple(trusted),
            origins=tuple(elsewhere),
            public_url=public_url,
            page_url=page_url,
            processes=workers or 1,
            **options,
        )
        if not behind_tls and not is_loopback(host):
            click.echo(_EXPOSED.format(host), err=True)
        serve(
            settings,
            host=host,
            listener=listener,
            admin_listener=admin_listener,
            workers=workers,
            tls=(tls_certificate, tls_key),
            announce=click.echo,
        )


def _read_config(ctx: click.Context, file: Path | None) -> None:
    """Use a file for options that are set neither on the command line nor in the environment."""
    if file is None:
        return
    try:
        text = file.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not TOML"
        rule = f"a file that can be read ({reason})"
        raise InvalidParameter("--config", rule, str(file)) from None
    names = {one.opts[0].removeprefix("--"): one for one in ctx.command.params}
    known: dict[str, Any] = {}
    for name, value in found.items():
        option = names.get(name.replace("_", "-"))
        if option is None or option.name is None:
            _mistakes(ctx).append(f"{file.name}: {name[:60]!r} is not an option of dpfda serve")
        else:
            plain = str(value) if isinstance(value, float) else value
            known[option.name] = plain
    if holds_password(str(known.get("database", ""))):
        read_secret("--config", file)  # raises an error if others can read the file
    ctx.default_map = known


def _database(given: str | None, file: Path | None) -> str:
    """The URL of the database; refused as an argument if it contains a password."""
    typed = click.get_current_context().get_parameter_source("database")
    if given is not None and file is not None and typed is not ParameterSource.ENVIRONMENT:
        raise InvalidParameter("--database-file", "given without --database", file.name)
    if file is not None:
        return read_secret("--database-file", file)
    if given is not None and typed is ParameterSource.COMMANDLINE and holds_password(given):
        rule = (
            "without a password, which every user of this machine could see; "
            "use DPFDA_DATABASE or --database-file"
        )
        raise InvalidParameter("--database", rule, "an address with a password")
    return given or _DATABASE


def _place(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InvalidParameter("--admin-listen", "HOST:PORT, such as 127.0.0.1:9000", given)
    return host.strip("[]"), int(port)


def _network(proxy: str) -> str:
    try:
        everybody = ipaddress.ip_network(proxy).prefixlen == 0
    except ValueError:
        raise InvalidParameter("--proxy", "an IP address or network", proxy) from None
    if everybody:  # every client could then forge its address
        raise InvalidParameter("--proxy", "a network that does not contain every address", proxy)
    return proxy


def _check_key(file: Path | None) -> None:
    """Refuse keys that are too short, or a file that others can read."""
    from dpfda.collector.settings import SHORTEST_KEY, read_keys

    if file is not None and file.exists():
        read_keys(file)
    elif file is None and 0 < len(os.environ.get(_KEY, "")) < SHORTEST_KEY:
        rule = f"a key of {SHORTEST_KEY} characters at least"
        raise InvalidParameter(_KEY, rule, "a shorter one")


def _admin_key(file: Path | None) -> str:
    """The fixed key; empty if the key is in a file, which is created if it is missing."""
    if file is None:
        key = os.environ.get(_KEY) or secrets.token_urlsafe(32)
        if not os.environ.get(_KEY):
            click.echo(f"admin key (shown this once): {key}", err=True)
        return key
    if file.exists():
        return ""
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secrets.token_urlsafe(32) + "\n")
    except OSError as error:
        reason = f"a file that can be written ({error.strerror})"
        raise InvalidParameter("--admin-key-file", reason, str(file)) from None
    return ""
