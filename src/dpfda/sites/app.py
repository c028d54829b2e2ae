"""The Flower app of every study, and the signature by which a site allows it to run.

The app holds no code. Its two files name `components` of the installed package, so what runs is
what each party installed itself. Every site signs the hash of the app with its own key, in its
card, and starts its SuperNode with that key as the only trusted one: Flower then refuses, before
it is unpacked, an app that is changed, unsigned, or signed by anybody else.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile
from base64 import urlsafe_b64encode
from importlib.util import find_spec
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dpfda.errors import MissingExtra

NAME, VERSION = "@dpfda/consortium", "1.0.0"
PROJECT = f"""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "consortium"
version = "{VERSION}"
description = "Delivers queries to sites that share only sums; holds no code."
license = "Apache-2.0"
dependencies = ["flwr>=1.40"]

[tool.flwr.app]
publisher = "dpfda"

[tool.flwr.app.components]
serverapp = "dpfda.sites.components:server"
clientapp = "dpfda.sites.components:client"

[tool.flwr.app.config]
"""
LICENSE = "Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0\n"
_FILES = {"pyproject.toml": PROJECT, "LICENSE": LICENSE}
_SIGNED_AT = (0).to_bytes(8, "big")  # Flower signs a time with the hash; an approval has no end

RECORD, ENTRY = "dpfda", "message"
"""Where a Flower message holds ours."""
SOCKET, SOCKET_KEY = "DPFDA_SOCKET", "DPFDA_SOCKET_KEY"
"""Environment variables that lead a component to the process that started Flower."""


class Delivery(msgspec.Struct, frozen=True):
    """Messages by node that a coordinator gives to its ServerApp, and how long to wait."""

    messages: dict[int, bytes]
    wait: float


class Arrival(msgspec.Struct, frozen=True):
    """A node's reply from the ServerApp, or why there is none; or the nodes online."""

    node: int = 0
    content: bytes | None = None
    trouble: str = ""
    online: tuple[int, ...] | None = None


def bundle() -> bytes:
    """The app as Flower packs it, the same bytes everywhere."""
    packed = io.BytesIO()
    listed = [
        f"{name},{hashlib.sha256(text.encode()).hexdigest()},{8 * len(text.encode())}"
        for name, text in _FILES.items()
    ]
    with zipfile.ZipFile(packed, "w") as file:
        for name, text in (*_FILES.items(), (".info/CONTENT", "\n".join(listed))):
            file.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


def approved_content() -> bytes:
    """The bytes that a site signs to allow this app: Flower's format, a time and the app's hash."""
    return _SIGNED_AT + hashlib.sha256(bundle()).digest()


def key_id(public: bytes) -> str:
    """The name of a key in Flower's list of trusted keys."""
    return f"fpk_{hashlib.sha256(public).hexdigest()[:32]}"


def trusted(public: bytes) -> bytes:
    """Flower's file of trusted keys (JSON is YAML), with one key."""
    key = Ed25519PublicKey.from_public_bytes(public)
    written = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return msgspec.json.encode({key_id(public): written})


def verification(public: bytes, signature: bytes) -> dict[str, str | int]:
    """A site's signature on the app, as Flower's hub would hand it out."""
    encoded = urlsafe_b64encode(signature).decode()
    return {"public_key_id": key_id(public), "signature": encoded, "signed_at": 0}


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of Flower's processes: quiet, offline, in a folder of ours.

    Raises:
        MissingExtra: if Flower is not installed.
    """
    if find_spec("flwr") is None:
        raise MissingExtra("flwr", "federation")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {
        **os.environ,
        "PATH": programs,
        "FLWR_HOME": str(home.resolve()),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        "PYTHONUNBUFFERED": "1",
        **more,
    }
