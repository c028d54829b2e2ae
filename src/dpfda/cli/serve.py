"""``dpfda serve``: run a collector."""

from __future__ import annotations

import ipaddress
import math
import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dpfda.cli._output import holds_password, read_secret
from dpfda.client.http import is_loopback
from dpfda.errors import InvalidParameter, MissingExtra

_DATABASE = "sqlite:///dpfda.db"
_EXPOSED = (
    "warning: other machines reach {} without encryption; give --tls-certificate and --tls-key, "
    "or put a proxy that speaks TLS before it (--proxy)"
)


class _Finite(click.FloatRange):
    """A positive number; ranges of click let NaN through."""

    def __init__(self, most: float) -> None:
        super().__init__(0, most, min_open=True)

    def convert(self, *given: Any) -> float:
        """Read it."""
        found: float = super().convert(*given)
        return found if math.isfinite(found) else self.fail(f"{found} is not a finite number.")


@click.command()
@click.option("--database", metavar="URL",
    help="Where studies are kept: sqlite:///FILE or postgresql://USER@HOST/NAME. With a password "
    "only in DPFDA_DATABASE or --database-file.  [default: sqlite:///dpfda.db]")  # fmt: skip
@click.option("--database-file", type=click.Path(dir_okay=False, path_type=Path),
    help="File that holds that URL, closed to other users.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--admin-listen", metavar="HOST:PORT",
    help="A listener of its own for the dashboard, /metrics, /live, /ready and whatever needs the "
    "key; the other one then serves participants only.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True,
    help="Processes on the same port.")  # fmt: skip
@click.option("--admin-key-file", type=click.Path(dir_okay=False, path_type=Path),
    help="File with the administrator's key, closed to other users; made if it does not exist. "
    "Without it the key is taken from DPFDA_ADMIN_KEY, or made up and shown once.")  # fmt: skip
@click.option("--tls-certificate", type=click.Path(exists=True, dir_okay=False),
    help="TLS certificate (PEM).")  # fmt: skip
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its private key.")
@click.option("--proxy", "proxies", multiple=True, metavar="ADDRESS",
    help="Address or network of a proxy before the collector, whose X-Forwarded headers are "
    "believed. May be repeated; without it nobody's are.")  # fmt: skip
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN",
    help="Origin of a page elsewhere on which people may take part in studies of this collector, "
    "such as https://studies.example (see page). May be repeated.")  # fmt: skip
@click.option("--secure-cookies/--no-secure-cookies", default=None,
    help="Whether browsers keep the dashboard's cookie to https.  "
    "[default: with a certificate or a proxy]")  # fmt: skip
@click.option("--patience", type=_Finite(1e6), default=10.0, show_default=True,
    help="Seconds that a client may take to send a request.")  # fmt: skip
@click.option("--rate", type=_Finite(1e9), default=5.0, show_default=True,
    help="Requests a second of one token.")  # fmt: skip
@click.option("--enrolments", type=click.IntRange(0), default=20, show_default=True,
    help="People of one address who may take part in an open study at once; 0 for any number."
    )  # fmt: skip
@click.option("--group", type=click.IntRange(1), default=256, show_default=True,
    help="Largest group commit.")  # fmt: skip
def command(
    database: str | None,
    database_file: Path | None,
    host: str,
    port: int,
    admin_listen: str | None,
    workers: int,
    admin_key_file: Path | None,
    tls_certificate: str | None,
    tls_key: str | None,
    proxies: tuple[str, ...],
    origins: tuple[str, ...],
    secure_cookies: bool | None,
    **options: Any,
) -> None:
    """Run a collector of studies.

    Studies, people, a dashboard at /, the interface under /api. Replies are acknowledged once they
    are durable. The first line on stdout is the address.
    """
    if (tls_certificate is None) != (tls_key is None):
        raise InvalidParameter("--tls-key", "given together with --tls-certificate", None)
    url = _database(database, database_file)
    if workers > 1 and not url.startswith("postgresql"):
        raise InvalidParameter("--workers", "1 unless the database is PostgreSQL", workers)
    try:
        from dpfda.collector.middleware import checked_origin
        from dpfda.collector.run import check_certificate, check_storage, listen, serve
        from dpfda.collector.settings import SHORTEST_KEY, Settings
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "service") from None
    trusted = tuple(map(_network, proxies))
    elsewhere = tuple(map(checked_origin, origins))
    # Whatever can go wrong goes wrong before a key is made up and an address is shown.
    if tls_certificate is not None and tls_key is not None:
        check_certificate(tls_certificate, tls_key)
    check_storage(url)
    behind_tls = tls_certificate is not None or bool(trusted)
    with ExitStack() as listeners:
        listener = listeners.enter_context(listen(host, port))
        admin_listener = None
        if admin_listen is not None:
            place = _place(admin_listen)
            admin_listener = listeners.enter_context(listen(*place, name="--admin-listen"))
        settings = Settings(
            database=url,
            admin_key=_admin_key(admin_key_file, SHORTEST_KEY),
            secure_cookies=behind_tls if secure_cookies is None else secure_cookies,
            proxies=trusted,
            origins=elsewhere,
            processes=workers,
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
            certificate=tls_certificate,
            private_key=tls_key,
            announce=click.echo,
        )


def _database(given: str | None, file: Path | None) -> str:
    """The URL of the storage: an argument for those without a secret."""
    if given is not None and file is not None:
        raise InvalidParameter("--database-file", "given without --database", file.name)
    if file is not None:
        return read_secret("--database-file", file)
    if given is not None and holds_password(given):
        rule = (
            "without a password, which every user of this machine could see; "
            "use DPFDA_DATABASE or --database-file"
        )
        raise InvalidParameter("--database", rule, "one that has it")
    return given or os.environ.get("DPFDA_DATABASE") or _DATABASE


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
    if everybody:  # whoever comes could say that they come from anywhere
        raise InvalidParameter("--proxy", "a network that is not everybody's", proxy)
    return proxy


def _admin_key(file: Path | None, shortest: int) -> str:
    rule = f"a key of {shortest} characters at least"
    if file is not None and file.exists():
        key = read_secret("--admin-key-file", file)
        if len(key) < shortest:
            raise InvalidParameter("--admin-key-file", rule, file.name)
        return key
    given = os.environ.get("DPFDA_ADMIN_KEY")
    if file is None and given:
        if len(given) < shortest:
            raise InvalidParameter("DPFDA_ADMIN_KEY", rule, "a shorter one")
        return given
    key = secrets.token_urlsafe(32)
    if file is None:
        click.echo(f"admin key (shown this once): {key}", err=True)
        return key
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(key + "\n")
    except OSError as error:
        reason = f"a file that can be written ({error.strerror})"
        raise InvalidParameter("--admin-key-file", reason, str(file)) from None
    return key
