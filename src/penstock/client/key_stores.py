"""Certificates and private keys out of the files that people have: PEM and PKCS12.

What a file is, it says itself: `ssl.keystore.type` is not needed, and Java's own tools write PKCS12 into files called
`.jks`. Whatever was given becomes PEM text, which Python's TLS and librdkafka both take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.client.errors import BadOption

_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_JAVA_ONLY: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_INLINE: Final = (".certificates", ".chain", ".pem", ".key")


@dataclass(frozen=True)
class Identity:
    """A certificate with those that signed it, and its private key."""

    certificates_pem: str = field(repr=False)
    key_pem: str = field(repr=False)
    key_password: str | None = field(repr=False)
    option: str


def certificates(option: str, value: str, *, password_option: str, password: str | None) -> str:
    """Those to be trusted; `value` is a path, or the text itself where the option is for that."""
    data = _data(option, value)
    if _is_pem(data):
        found = _blocks(data, "CERTIFICATE")
    else:
        store = _pkcs12(option, value, data, password_option=password_option, password=password)
        own = [] if store.cert is None else [store.cert]
        found = "".join(_certificate_pem(one.certificate) for one in (*own, *store.additional_certs))
    if not found:
        raise BadOption(f"{option}: holds no certificates")
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
            raise BadOption(f"{missing}: must be given with {names[0]}")
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
    password = given.get("ssl.keystore.password")
    store = _pkcs12(option, location, data, password_option="ssl.keystore.password", password=password)
    if store.key is None or store.cert is None:
        raise BadOption(f"{option}: {location} holds no private key with its certificate")
    from cryptography.hazmat.primitives import serialization

    key_pem = store.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    chain = (store.cert, *store.additional_certs)
    return Identity("".join(_certificate_pem(one.certificate) for one in chain), key_pem, None, option)


def _identity_of_pem(
    certificate_option: str, key_option: str, certificate: bytes, key: bytes, key_password: str | None
) -> Identity:
    certificates_pem = _blocks(certificate, "CERTIFICATE")
    if not certificates_pem:
        raise BadOption(f"{certificate_option}: holds no certificate")
    key_pem = _blocks(key, "PRIVATE KEY")
    if not key_pem:
        raise BadOption(f"{key_option}: holds no private key")
    return Identity(certificates_pem, key_pem, key_password, key_option)


def _data(option: str, value: str) -> bytes:
    if option.endswith(_INLINE):
        return value.encode()
    if "-----BEGIN " in value:  # a private key perhaps, which no message should show
        raise BadOption(f"{option}: must be the path of a file, not what is in it")
    try:
        return Path(value).read_bytes()
    except ValueError:
        raise BadOption(f"{option}: is not the path of a file") from None
    except OSError as error:
        raise BadOption(
            f"{option}: cannot read '{value}': {(error.strerror or str(error)).lower()}"
        ) from None


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data or data[:1] not in (b"0", *(magic[:1] for magic in _JAVA_ONLY))


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


def _pkcs12(option: str, path: str, data: bytes, *, password_option: str, password: str | None) -> Any:
    java_only = _JAVA_ONLY.get(data[:4])
    if java_only is not None:
        target = Path(path).with_suffix(".p12")
        raise BadOption(
            f"{option}: {path} is a {java_only} file, which only Java reads; make PKCS12 of it: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {target} -deststoretype PKCS12"
        )
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        if password is None:
            raise BadOption(f"{password_option}: must be given to open {path} ({option})") from None
        raise BadOption(
            f"{password_option}: does not open {path} ({option}), or that is neither PEM nor PKCS12"
        ) from None


def _certificate_pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    text: bytes = certificate.public_bytes(Encoding.PEM)
    return text.decode()
