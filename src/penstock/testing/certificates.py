"""Certificates for tests: an authority, and what it has signed for this machine's loopback address and for a client."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, KeySerializationEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID


class Authority:
    """`ca.pem` in the directory is its own certificate."""

    def __init__(self, directory: Path, *, name: str = "penstock test authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.path = directory / "ca.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, host: str = "127.0.0.1") -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        place = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        certificate = (
            _builder(_named(name), self._name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([place]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        return Issued(self._directory / name, certificate, key, self.certificate)


class Issued:
    """A certificate with its key, in the forms that brokers and clients take."""

    def __init__(
        self,
        stem: Path,
        certificate: x509.Certificate,
        key: ec.EllipticCurvePrivateKey,
        authority: x509.Certificate,
    ) -> None:
        self._stem = stem
        self._certificate = certificate
        self._key = key
        self._authority = authority

    def certificate_text(self) -> str:
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_text(self, password: str | None = None) -> str:
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, _encryption(password)
        ).decode()

    def pem(self, password: str | None = None) -> Path:
        """Key and certificate in one file."""
        path = self._stem.with_suffix(".pem")
        path.write_text(self.key_text(password) + self.certificate_text())
        return path

    def pkcs12(self, password: str) -> Path:
        path = self._stem.with_suffix(".p12")
        path.write_bytes(
            serialize_key_and_certificates(
                b"own", self._key, self._certificate, [self._authority], _encryption(password)
            )
        )
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _encryption(password: str | None) -> KeySerializationEncryption:
    return serialization.NoEncryption() if password is None else BestAvailableEncryption(password.encode())
