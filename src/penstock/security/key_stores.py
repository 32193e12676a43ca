"""Certificates and private keys out of the files that people have: PEM, PKCS12 and JKS.

What a file is, it says itself: `ssl.keystore.type` is not needed, and Java's own tools write PKCS12 into files called
`.jks`. Whatever was given becomes PEM text, which Python's TLS and librdkafka both take.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.security.java_key_stores import JCEKS, JKS, KeyStore, WrongPassword, read_key_store

_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_MAGIC: Final = (JKS, JCEKS)
# What a file is → the types that Java reads it as: JKS and PKCS12 stand for one another there (`keystore.type.compat`).
_READ_AS: Final = {
    "PEM": ("PEM",),
    "PKCS12": ("PKCS12", "JKS"),
    "JKS": ("JKS", "PKCS12", "JCEKS"),
    "JCEKS": ("JCEKS",),
}
_INLINE: Final = (".certificates", ".chain", ".pem", ".key")


class BadStore(ValueError):
    """A certificate, a key or their file cannot be used; the message begins with the option's name."""


@dataclass(frozen=True)
class Identity:
    """A certificate with those that signed it, and its private key."""

    certificates_pem: str = field(repr=False)
    key_pem: str = field(repr=False)
    key_password: str | None = field(repr=False)
    option: str

    def load_into(self, context: ssl.SSLContext) -> None:
        """Python reads a key from a file only. This one is in memory: a key without its password never lies on a disk."""
        memory = os.memfd_create("penstock-identity")
        try:
            with open(memory, "w", closefd=False) as file:
                file.write(self.key_pem + self.certificates_pem)
            context.load_cert_chain(f"/proc/self/fd/{memory}", password=lambda: self.key_password or "")
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise BadStore(
                    f"{self.option}: the private key is of another certificate than the one given"
                ) from None
            told = (
                "does not open the private key" if self.key_password else "is missing, or the key is broken"
            )
            raise BadStore(f"ssl.key.password: {told} ({self.option})") from None
        finally:
            os.close(memory)


def check_type(type_option: str, given: str, option: str | None, value: str) -> None:
    """BadStore where the type that was given is none, or not what the file or the text of `option` is."""
    kind = given.strip().upper()
    if kind not in _READ_AS:
        raise BadStore(f"{type_option}: '{given}' is not {', '.join(_READ_AS)}")
    if option is None:
        return
    data = _data(option, value)
    is_a = next(
        (name for name, magic in (("JKS", JKS), ("JCEKS", JCEKS)) if data.startswith(magic)), "PKCS12"
    )
    if _is_pem(data):
        is_a = "PEM"
    if kind not in _READ_AS[is_a]:
        what = option if option.endswith(_INLINE) else f"{value} ({option})"
        raise BadStore(
            f"{type_option}: is {kind}, and {what} is {is_a}; leave the type out, it is not needed"
        )


def certificates(option: str, value: str, *, password_option: str, password: str | None) -> str:
    """Those to be trusted; `value` is a path, or the text itself where the option is for that."""
    data = _data(option, value)
    if _is_pem(data):
        found = _blocks(data, "CERTIFICATE")
    else:
        found = _Store(option, value, data, password_option, password).certificates()
    if not found:
        raise BadStore(f"{option}: holds no certificates")
    return found


def identity(given: Mapping[str, str]) -> Identity | None:
    """Of the client, where one is given, in any of three ways: Java's store, Java's texts, librdkafka's pair."""
    key_password = given.get("ssl.key.password") or None
    for certificate_option, key_option in (
        ("ssl.keystore.certificate.chain", "ssl.keystore.key"),
        ("ssl.certificate.pem", "ssl.key.pem"),
        ("ssl.certificate.location", "ssl.key.location"),
    ):
        names = [name for name in (certificate_option, key_option) if given.get(name)]
        if len(names) == 1:
            missing = key_option if names == [certificate_option] else certificate_option
            raise BadStore(f"{missing}: must be given with {names[0]}")
        if names:
            certificate, key = (_data(name, given[name]) for name in names)
            return _identity_of_pem(certificate_option, key_option, certificate, key, key_password)
    location = given.get("ssl.keystore.location")
    if not location:
        return None
    option = "ssl.keystore.location"
    data = _data(option, location)
    if _is_pem(data):
        return _identity_of_pem(option, option, data, data, key_password)
    store = _Store(option, location, data, "ssl.keystore.password", given.get("ssl.keystore.password"))
    certificates_pem, key_pem = store.identity(key_password)
    return Identity(certificates_pem, key_pem, None, option)


def _identity_of_pem(
    certificate_option: str, key_option: str, certificate: bytes, key: bytes, key_password: str | None
) -> Identity:
    certificates_pem = _blocks(certificate, "CERTIFICATE")
    if not certificates_pem:
        raise BadStore(f"{certificate_option}: holds no certificate")
    key_pem = _blocks(key, "PRIVATE KEY")
    if not key_pem:
        raise BadStore(f"{key_option}: holds no private key")
    return Identity(certificates_pem, key_pem, key_password, key_option)


def _data(option: str, value: str) -> bytes:
    if option.endswith(_INLINE):
        return value.encode()
    if "-----BEGIN " in value:  # a private key perhaps, which no message should show
        raise BadStore(f"{option}: must be the path of a file, not what is in it")
    try:
        return Path(value).read_bytes()
    except ValueError:
        raise BadStore(f"{option}: is not the path of a file") from None
    except OSError as error:
        raise BadStore(f"{option}: cannot read '{value}': {(error.strerror or str(error)).lower()}") from None


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data or data[:1] not in (b"0", *(magic[:1] for magic in _MAGIC))


def _blocks(data: bytes, kind: str) -> str:
    """The PEM blocks of a kind. A property's value often has its line ends as spaces; they are put right."""
    found = []
    for label, body in _PEM_BLOCK.findall(data.decode("ascii", "replace")):
        if not label.endswith(kind):
            continue
        if ":" not in body:  # the old form of an encrypted key has headers, and its lines have to stay
            packed = "".join(body.split())
            body = "\n" + "".join(f"{packed[at : at + 64]}\n" for at in range(0, len(packed), 64))
        found.append(f"-----BEGIN {label}-----{body}-----END {label}-----\n")
    return "".join(found)


class _Store:
    """A file of Java's programs, PKCS12 or JKS, opened with its password. BadStore names what is wrong."""

    def __init__(
        self, option: str, path: str, data: bytes, password_option: str, password: str | None
    ) -> None:
        self._option, self._path = option, path
        self._password_option, self._password = password_option, password
        self._java: KeyStore | None = None
        self._pkcs12: Any = None
        try:
            if data.startswith(_MAGIC):
                self._java = read_key_store(data, password)
            else:
                from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

                self._pkcs12 = load_pkcs12(data, None if password is None else password.encode())
        except WrongPassword:
            raise BadStore(f"{password_option}: does not open {path} ({option})") from None
        except ValueError as error:
            if data.startswith(_MAGIC):
                raise BadStore(f"{option}: cannot read {path}: {error}") from None
            raise self._unopened() from None

    def certificates(self) -> str:
        """Those to be trusted."""
        if self._java is not None:
            return _pem(
                *self._java.trusted, *(key.certificates[0] for key in self._java.keys if key.certificates)
            )
        store = self._pkcs12
        own = [] if store.cert is None else [store.cert]
        return _pem(*(_der(one.certificate) for one in (*own, *store.additional_certs)))

    def identity(self, key_password: str | None) -> tuple[str, str]:
        """The certificates and the private key."""
        missing = BadStore(f"{self._option}: {self._path} holds no private key with its certificate")
        if self._java is not None:
            if not self._java.keys or not self._java.keys[0].certificates:
                raise missing
            return _pem(*self._java.keys[0].certificates), self._java_key(key_password)
        store = self._pkcs12
        if store.key is None or store.cert is None:
            raise missing
        from cryptography.hazmat.primitives import serialization

        key: bytes = store.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return _pem(*(_der(one.certificate) for one in (store.cert, *store.additional_certs))), key.decode()

    def _java_key(self, key_password: str | None) -> str:
        """Of the key's own password, or else the store's."""
        assert self._java is not None
        password = self._password if key_password is None else key_password
        if password is None:
            raise self._unopened()
        try:
            key = self._java.keys[0].unprotected(password)
        except WrongPassword:
            raise BadStore(
                f"ssl.key.password: does not open the private key in {self._path} ({self._option})"
            ) from None
        except ValueError:
            target = Path(self._path).with_suffix(".p12")
            raise BadStore(
                f"{self._option}: the key in {self._path} can only be read by Java; make PKCS12 of it: keytool "
                f"-importkeystore -srckeystore {self._path} -destkeystore {target} -deststoretype PKCS12"
            ) from None
        body = base64.encodebytes(key).decode()
        return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"

    def _unopened(self) -> BadStore:
        if self._password is None:
            return BadStore(f"{self._password_option}: must be given to open {self._path} ({self._option})")
        return BadStore(
            f"{self._password_option}: does not open {self._path} ({self._option}), or that is neither PEM, PKCS12 "
            "nor JKS"
        )


def _pem(*certificates: bytes) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))


def _der(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    encoded: bytes = certificate.public_bytes(Encoding.DER)
    return encoded
