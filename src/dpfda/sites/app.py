"""The Flower app: two files without a line of code, the same for every study.

Its components name this installed package, so that a network which runs apps finds them. Neither a
site nor a coordinator of dpfda loads them: both read messages as data (`node`, `link`).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from dpfda.errors import MissingExtra

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "dpfda-consortium"
version = "1.0.0"
description = "Carries questions to sites that share nothing; holds no code."
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41,<1.42"]

[tool.flwr.app]
publisher = "dpfda"
fab-format-version = 1
flwr-version-target = "1.41.0"

[tool.flwr.app.components]
serverapp = "dpfda.sites.components:server"
clientapp = "dpfda.sites.components:client"

[tool.flwr.app.config]
"""
LICENSE = "Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0\n"
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
"""Flower tells nobody, asks nobody and installs nothing."""


def need_flower(home: Path) -> None:
    """Keep Flower quiet and in a folder of ours, before it is imported; or say what to install."""
    os.environ.update(QUIET)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ["FLWR_HOME"] = str(home.resolve())
    try:
        import flwr  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("flwr", "federation") from None


def built() -> bytes:
    """The app as Flower packs it: the same bytes on every machine with the same Flower."""
    from flwr.cli.build import build_fab_from_files

    files = {"pyproject.toml": PROJECT.encode(), "LICENSE": LICENSE.encode()}
    packed: bytes = build_fab_from_files(files)[0]
    return packed


def app_hash() -> str:
    """By which a site knows the app."""
    return hashlib.sha256(built()).hexdigest()


def write_app(folder: Path) -> None:
    """The two files, for whoever wants to read them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "LICENSE").write_text(LICENSE, encoding="utf-8")
