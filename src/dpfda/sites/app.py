"""The Flower app of every study, and the signature by which a site allows it to run.

The app contains no code. Its two files name `components` of the installed package, so each party
runs the code that it installed itself. The card of every site contains its signature on the hash of
the app. The site starts its SuperNode with its own key as the only trusted key. Flower then
refuses, before unpacking it, an app that is changed, unsigned, or signed with another key.
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
_SIGNED_AT = (0).to_bytes(8, "big")  # signed by Flower with the hash; approvals do not expire

RECORD, ENTRY = "dpfda", "message"
"""Names of the record and the entry of a Flower message that contain our message."""
SOCKET, SOCKET_KEY = "DPFDA_SOCKET", "DPFDA_SOCKET_KEY"
"""Environment variables through which a component finds the process that started Flower."""


class Delivery(msgspec.Struct, frozen=True):
    """Messages by node from a coordinator to its ServerApp, and how long to wait for replies."""

    messages: dict[int, bytes]
    wait: float


class Arrival(msgspec.Struct, frozen=True):
    """A node's reply from the ServerApp, the reason why there is none, or the nodes online."""

    node: int = 0
    content: bytes | None = None
    trouble: str = ""
    online: tuple[int, ...] | None = None


def bundle() -> bytes:
    """The app in Flower's format; the bytes are the same on every machine."""
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
    """Flower's file of trusted keys (JSON, which is valid YAML), with one key."""
    key = Ed25519PublicKey.from_public_bytes(public)
    written = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return msgspec.json.encode({key_id(public): written})


def verification(public: bytes, signature: bytes) -> dict[str, str | int]:
    """A site's signature on the app, in the form that Flower's hub would return."""
    encoded = urlsafe_b64encode(signature).decode()
    return {"public_key_id": key_id(public), "signature": encoded, "signed_at": 0}


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of Flower's processes: without telemetry, offline, in the given folder.

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
