"""Real parts: a PostgreSQL server, collectors on loopback, small studies."""

from __future__ import annotations

import datetime
import ipaddress
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litestar", reason="the service extra is not installed")
pytest.importorskip("sqlalchemy", reason="the service extra is not installed")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from devices import Device
from organizer import Organizer, QuickForecasts

from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Storage
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda_bench.postgres import NoPostgreSQL, temporary_postgresql


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL of a fresh PostgreSQL server on loopback, run by a user of its own."""
    try:
        with temporary_postgresql() as url:
            yield url
    except NoPostgreSQL as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    """One that forecasts quickly, unless a file has a collector of its own."""
    folder = tmp_path_factory.mktemp("collector")
    options = ["--rate", "100"]
    with QuickForecasts(f"sqlite:///{folder}/x.db", log=folder / "log", options=options) as found:
        yield found


@pytest.fixture(scope="module")
def organizer(collector: CollectorProcess) -> Organizer:
    """Somebody who is signed in there."""
    return Organizer(collector)


@pytest.fixture
def device(browser: Any, collector: CollectorProcess) -> Iterator[Device]:
    """A person's browser, which in the end has met no problem."""
    found = Device(browser, collector.url)
    yield found
    assert found.problems == []
    found.context.close()


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database; parametrize indirectly with the backend's name."""
    backend = getattr(request, "param", "sqlite")
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
    elif backend == "postgresql":
        yield from _fresh_database(request.getfixturevalue("postgresql"))
    else:
        yield "memory:"


def _fresh_database(server: str) -> Iterator[str]:
    import psycopg

    name = f"t{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def storage(database: str) -> Iterator[Storage]:
    opened = open_storage(database)
    yield opened
    opened.close()


@pytest.fixture
def make_plan() -> Callable[..., StudyPlan]:
    """Plans for vectors in [-1, 1]^2 whose first coordinate decides the label."""

    def make(
        n_people: int = 60, *, epsilon: float = 4.0, seed: int = 0, **design: object
    ) -> StudyPlan:
        return StudyPlan(
            epsilon=epsilon,
            n_people=n_people,
            encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
            classes=("no", "yes"),
            design={"name": "moments", **design},
            seed=seed,
            title="a small study",
        )

    return make


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that only this test knows, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    paths = tmp_path / "certificate.pem", tmp_path / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths
