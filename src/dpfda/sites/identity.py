"""The card of a site (its public keys and number of rows), and the certificates of a study."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
from dataclasses import dataclass

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dpfda import _validate
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.protocol.secure_sum import Identity
from dpfda.protocol.secure_sum.crypto import signed
from dpfda.sites.app import approved_content

_LONGEST_NAME = 60  # bytes: files are named after sites
_KEY_BYTES = 32


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public identity of a site or a coordinator.

    Attributes:
        name: its name in the roster.
        key: its long-term Ed25519 identity, in hexadecimal digits.
        node: its key on the Flower network (OpenSSH); empty for a coordinator.
        app: its signature on the Flower app that may run at the site; empty for a coordinator.
        rows: the public number of its records.
        signature: signature of the identity on all other fields, which proves the card's origin.

    Examples:
        >>> identity = Identity()
        >>> card = Card.signed_by(identity, name="north", rows=400)
        >>> card.check()
        >>> msgspec.structs.replace(card, rows=4).check()
        Traceback (most recent call last):
        dpfda.errors.ProtocolError: the card of 'north' is not signed by its key
    """

    name: str
    key: str
    node: str = ""
    app: str = ""
    rows: int = 0
    signature: str = ""

    @classmethod
    def signed_by(cls, identity: Identity, *, name: str, node: str = "", rows: int = 0) -> Card:
        """A new card, signed by its identity."""
        app = identity.sign(approved_content()).hex() if node else ""
        card = cls(name=name, key=identity.public.hex(), node=node, app=app, rows=rows)
        card = msgspec.structs.replace(card, signature=identity.sign(card.content).hex())
        card.check()
        return card

    @property
    def public(self) -> bytes:
        """The identity key."""
        return from_hex("key", self.key)

    @property
    def approval(self) -> bytes:
        """The signature on the Flower app."""
        return from_hex("app", self.app)

    @property
    def content(self) -> bytes:
        """The bytes that the identity signs."""
        unsigned = msgspec.structs.replace(self, signature="")
        return b"dpfda card" + msgspec.json.encode(unsigned, order="sorted")

    @property
    def fingerprint(self) -> str:
        """A few letters of the hash, to be compared by telephone."""
        digest = hashlib.sha256(self.public).hexdigest()
        return "-".join(digest[k : k + 4] for k in range(0, 20, 4))

    def check(self) -> None:
        """Refuse a card with an invalid signature or name."""
        name = self.name
        plain = name.isprintable() and name == name.strip() != ""
        if not plain or len(name.encode()) > _LONGEST_NAME:
            raise InvalidParameter("name", f"a name of at most {_LONGEST_NAME} bytes", name)
        _validate.whole("rows", self.rows, least=0)
        if len(self.public) != _KEY_BYTES or not signed(
            self.public, from_hex("signature", self.signature), self.content
        ):
            raise ProtocolError(f"the card of {self.name!r} is not signed by its key")


def from_hex(name: str, text: str) -> bytes:
    """Bytes from hexadecimal digits."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ProtocolError(f"{name} must be hexadecimal digits") from None


def new_node_key() -> bytes:
    """A private key for the Flower network (P-384, in the OpenSSH format that Flower reads)."""
    return ec.generate_private_key(ec.SECP384R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )


def is_node_key(text: str) -> bool:
    """Whether the text is a public key in the unique form that cards use."""
    try:
        key = serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return False
    return isinstance(key, ec.EllipticCurvePublicKey) and _written(key) == text


def node_public(private: bytes) -> str:
    """The public key, in the form that cards use."""
    key = serialization.load_ssh_private_key(private, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return _written(key.public_key())


def _written(key: ec.EllipticCurvePublicKey) -> str:
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(*form).decode()


_DAYS = 825


@dataclass(frozen=True)
class Certificates:
    """PEM texts: the authority that sites trust, and the server's certificate and key.

    Examples:
        >>> Certificates.made_for("127.0.0.1").authority.startswith(b"-----BEGIN CERTIFICATE")
        True
    """

    authority: bytes
    server: bytes
    key: bytes

    @classmethod
    def made_for(cls, host: str) -> Certificates:
        """New certificates; the private key of the authority is used once and not stored."""
        authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        authority_name = _name("dpfda study")
        authority = (
            _builder(authority_name, authority_name, authority_key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        server = (
            _builder(_name(host), authority_name, server_key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(_alternatives(host)), critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        key = server_key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(authority.public_bytes(pem), server.public_bytes(pem), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternatives(host: str) -> list[x509.GeneralName]:
    """Names of the server: the host, and the loopback address for the coordinator itself."""
    local = ipaddress.ip_address("127.0.0.1")
    try:
        own = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return [x509.DNSName(host), x509.IPAddress(local)]
    return [x509.IPAddress(one) for one in {own: None, local: None}]
