"""``dpfda serve``: run a collector."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from dpfda.errors import InvalidParameter, MissingExtra


@click.command()
@click.option("--database", default="sqlite:///dpfda.db", show_default=True,
    help="Where studies are kept: sqlite:///FILE or postgresql://USER@HOST/NAME.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="Port; 0 takes a free one.")
@click.option("--workers", default=1, show_default=True, help="Processes on the same port.")
@click.option("--admin-key-file", type=click.Path(dir_okay=False, path_type=Path),
    help="File with the administrator's key; made if it does not exist. "
    "Without it the key is taken from DPFDA_ADMIN_KEY, or made up and shown once.")  # fmt: skip
@click.option("--tls-certificate", type=click.Path(exists=True, dir_okay=False),
    help="TLS certificate (PEM).")  # fmt: skip
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its private key.")
@click.option("--patience", default=10.0, show_default=True,
    help="Seconds that a client may take to send a request.")  # fmt: skip
@click.option("--rate", default=5.0, show_default=True, help="Requests a second of one token.")
@click.option("--group", default=256, show_default=True, help="Largest group commit.")
@click.option("--quiet", is_flag=True, help="Log no granted requests.")
def command(
    database: str,
    host: str,
    port: int,
    workers: int,
    admin_key_file: Path | None,
    tls_certificate: str | None,
    tls_key: str | None,
    patience: float,
    rate: float,
    group: int,
    quiet: bool,
) -> None:
    """Run a collector of studies.

    Studies, people, a dashboard at /, the interface under /api. Replies are acknowledged once they
    are durable. The first line on stdout is the address.
    """
    if (tls_certificate is None) != (tls_key is None):
        raise InvalidParameter("--tls-key", "given together with --tls-certificate", None)
    if workers > 1 and not database.startswith("postgresql"):
        raise InvalidParameter("--workers", "1 unless the database is PostgreSQL", workers)
    try:
        from dpfda.collector.run import listen, serve
        from dpfda.collector.settings import Settings
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "service") from None
    listener = listen(host, port)  # before a key is made up and shown
    settings = Settings(
        database=database,
        admin_key=_admin_key(admin_key_file),
        group=group,
        rate=rate,
        patience=patience,
        secure_cookies=tls_certificate is not None,
        quiet=quiet,
    )
    serve(
        settings,
        host=host,
        listener=listener,
        workers=workers,
        certificate=tls_certificate,
        private_key=tls_key,
        announce=click.echo,
    )


def _admin_key(file: Path | None) -> str:
    if file is not None and file.exists():
        key = file.read_text(encoding="utf-8").strip()
        if len(key) < 16:
            raise InvalidParameter("--admin-key-file", "a key of at least 16 characters", file.name)
        return key
    if file is None and os.environ.get("DPFDA_ADMIN_KEY"):
        return os.environ["DPFDA_ADMIN_KEY"]
    key = secrets.token_urlsafe(32)
    if file is None:
        click.echo(f"admin key (shown this once): {key}", err=True)
    else:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(key + "\n")
    return key
