"""Certificates for tests of TLS, made in a directory: an authority's, and valid, invalid and expired ones.

Nothing here is a secret, and nothing outlives the tests. The keys are on an elliptic curve, so they are made quickly.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BadKind = Literal["expired", "of another authority", "self-signed"]
BAD_KINDS: tuple[BadKind, ...] = get_args(BadKind)
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in files."""

    certificate: Path
    key: Path

    def replace(self, other: Pair) -> None:
        """Puts another pair's contents into these files, as a renewal does."""
        self.certificate.write_bytes(other.certificate.read_bytes())
        self.key.write_bytes(other.key.read_bytes())


@dataclass
class Authority:
    """Signs certificates. Its own is in `certificate`."""

    directory: Path
    name: str = "authority"
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.certificate = self.directory / f"{self.name}.pem"
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = _builder(self.name, self.name, self._key.public_key(), -DAY, DAY)
        signed = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def server(self, file: str = "server") -> Pair:
        """For brokers on the loopback."""
        return self._sign(file, "localhost", ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, common_name: str, file: str | None = None, *, expired: bool = False) -> Pair:
        ends = -DAY / 2 if expired else DAY
        return self._sign(file or "client", common_name, ExtendedKeyUsageOID.CLIENT_AUTH, ends=ends)

    def peer(self, file: str = "peer") -> Pair:
        """For brokers on the loopback that dial each other."""
        return self._sign(file, "localhost", ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(
        self, file: str, common_name: str, *usages: x509.ObjectIdentifier, ends: datetime.timedelta = DAY
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(common_name, self.name, key.public_key(), -DAY, ends)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if ExtendedKeyUsageOID.SERVER_AUTH in usages:
            addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
            names = x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses])
            builder = builder.add_extension(names, critical=False)
        return _write(self.directory / file, builder.sign(self._key, hashes.SHA256()), key)


def self_signed(directory: Path, common_name: str, file: str = "self-signed") -> Pair:
    """A client's certificate that no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(common_name, common_name, key.public_key(), -DAY, DAY)
    return _write(directory / file, builder.sign(key, hashes.SHA256()), key)


def bad_certificate(authority: Authority, kind: BadKind, common_name: str = "clara") -> Pair:
    """A client's certificate that brokers which trust the authority must refuse."""
    match kind:
        case "expired":
            return authority.client(common_name, "expired", expired=True)
        case "of another authority":
            return Authority(authority.directory / "other", "another authority").client(common_name)
        case "self-signed":
            return self_signed(authority.directory, common_name)


def client_context(authority: Authority, pair: Pair | None = None) -> ssl.SSLContext:
    """For a client that trusts the authority, and presents its own certificate if it has one."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


def _builder(
    subject: str,
    issuer: str,
    key: ec.EllipticCurvePublicKey,
    begins: datetime.timedelta,
    ends: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
    )


def _write(path: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pair = Pair(path.with_suffix(".pem"), path.with_suffix(".key"))
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pair
