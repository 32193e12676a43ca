"""Certificates for a cluster of one's own: an authority, and what it signs for brokers and clients.

They are for tests and for clusters inside a company. Keys are made anew on an elliptic curve (P-256), and their files can be
read by their owner only. A company's own authority does the same and better; the broker does not care who signed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, KeySerializationEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID

from penstock.stack.secret_file import write_secret

LOOPBACK = "127.0.0.1"
DEFAULT_DAYS = 365
AUTHORITY_DAYS = 3650


class Authority:
    """`ca.pem` in the directory is its certificate, `ca.key` its key. Where both are there already, it is that one."""

    def __init__(self, directory: Path, *, name: str = "penstock authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.path = directory / "ca.pem"
        self.key_path = directory / "ca.key"
        if self.path.exists() and self.key_path.exists():
            self._load()
        else:
            self._make(name)

    def _make(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(name)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.certificate = (
            _builder(subject, subject, self._key, days=AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        write_secret(self.key_path, _key_text(self._key, None))
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _load(self) -> None:
        """ValueError where the files are not those of an authority."""
        key = serialization.load_pem_private_key(self.key_path.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{self.key_path} holds another kind of key than this authority makes")
        self._key = key
        self.certificate = x509.load_pem_x509_certificate(self.path.read_bytes())

    def issue(
        self, name: str, *, host: str = LOOPBACK, hosts: Sequence[str] = (), days: int = DEFAULT_DAYS
    ) -> Issued:
        """For a client by its name, or for a broker by the names and addresses under which it is reached."""
        key = ec.generate_private_key(ec.SECP256R1())
        places = [_place(each) for each in hosts or (host,)]
        certificate = (
            _builder(_named(name), self.certificate.subject, key, days=days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(places), critical=False)
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
        return _key_text(self._key, password)

    def pem(self, password: str | None = None) -> Path:
        """Key and certificate in one file."""
        path = self._stem.with_name(f"{self._stem.name}.pem")
        write_secret(path, self.key_text(password) + self.certificate_text())
        return path

    def pkcs12(self, password: str) -> Path:
        path = self._stem.with_name(f"{self._stem.name}.p12")
        store = serialize_key_and_certificates(
            b"own", self._key, self._certificate, [self._authority], _encryption(password)
        )
        write_secret(path, store)
        return path


def _key_text(key: ec.EllipticCurvePrivateKey, password: str | None) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, _encryption(password)
    ).decode()


def _place(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks of other machines may be behind
        .not_valid_after(now + timedelta(days=days))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _encryption(password: str | None) -> KeySerializationEncryption:
    return serialization.NoEncryption() if password is None else BestAvailableEncryption(password.encode())
