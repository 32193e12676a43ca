"""Java's own key stores (JKS): certificates that are trusted, and private keys with their certificates.

    magic FEEDFEED, version, number of entries; then for each entry
      1, alias, date, key as an EncryptedPrivateKeyInfo, number of certificates, certificates
      2, alias, date, certificate
    SHA-1 of the password, "Mighty Aphrodite" and all bytes before

A certificate is a type (from version 2 on) and DER. Text is as in Java's writeUTF. A key is XORed with a chain of SHA-1 of
the password, which begins with a salt. JCEKS has another magic number and other keys; its certificates are read, too.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final, NamedTuple

JKS: Final = b"\xfe\xed\xfe\xed"
JCEKS: Final = b"\xce\xce\xce\xce"
_KEY, _CERTIFICATE = 1, 2
_MAX_VERSION: Final = 2
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
# Sun's protection of keys in a JKS file, as an object identifier in DER: 1.3.6.1.4.1.42.2.17.1.1
_PROTECTED_BY_JKS: Final = bytes.fromhex("060a2b060104012a02110101")


class WrongPassword(ValueError):
    """Of the store, or of the key in it."""


class PrivateKey(NamedTuple):
    protected: bytes
    certificates: list[bytes]
    """The key's own, then those that signed it."""

    def unprotected(self, password: str) -> bytes:
        """PKCS #8 in DER. WrongPassword; ValueError for a key that was not protected by JKS."""
        if _PROTECTED_BY_JKS not in self.protected[:32]:
            raise ValueError("its key is not protected as in a JKS file")
        salt, sealed, check = _octets(self.protected)
        secret = password.encode("utf-16-be")
        stream, digest = b"", salt
        while len(stream) < len(sealed):
            digest = hashlib.sha1(secret + digest).digest()
            stream += digest
        key = bytes(one ^ other for one, other in zip(sealed, stream, strict=False))
        if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
            raise WrongPassword
        return key


class KeyStore(NamedTuple):
    trusted: list[bytes]
    keys: list[PrivateKey]


def read_key_store(data: bytes, password: str | None) -> KeyStore:
    """Certificates are in DER. Without a password they are taken unchecked, as in Java. ValueError for what is no such file."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        wanted = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body).digest()
        if not hmac.compare_digest(wanted, digest):
            raise WrongPassword
    reader = _Reader(body, 4)
    version, count = reader.integer(), reader.integer()
    if version > _MAX_VERSION:
        raise ValueError(f"it has the version {version}")
    store = KeyStore([], [])
    for _ in range(count):
        kind = reader.integer()
        reader.text(), reader.take(8)  # its alias and date
        if kind == _KEY:
            protected = reader.block()
            chain = [reader.certificate(version) for _ in range(reader.integer())]
            store.keys.append(PrivateKey(protected, chain))
        elif kind == _CERTIFICATE:
            store.trusted.append(reader.certificate(version))
        else:
            raise ValueError("it holds something other than certificates and private keys")
    return store


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def take(self, size_bytes: int) -> bytes:
        end = self._position + size_bytes
        if size_bytes < 0 or end > len(self._data):
            raise ValueError("it ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def text(self) -> bytes:
        return self.take(int(struct.unpack(">H", self.take(2))[0]))

    def block(self) -> bytes:
        return self.take(self.integer())

    def certificate(self, version: int) -> bytes:
        if version == _MAX_VERSION and self.text() != b"X.509":
            raise ValueError("it holds a certificate that is not X.509")
        return self.block()


def _octets(protected: bytes) -> tuple[bytes, bytes, bytes]:
    """Salt, key and check value: the OCTET STRING behind the algorithm of an EncryptedPrivateKeyInfo."""
    outer, _ = _der(protected, 0x30)
    _, octets = _der(outer, 0x30)
    value, _ = _der(octets, 0x04)
    if len(value) < 2 * _DIGEST_BYTES:
        raise ValueError("its key is too short")
    return value[:_DIGEST_BYTES], value[_DIGEST_BYTES:-_DIGEST_BYTES], value[-_DIGEST_BYTES:]


def _der(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """A value of this tag in DER, and what is behind it."""
    if len(data) < 2 or data[0] != tag:
        raise ValueError("its key is not in DER")
    size, start = data[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    return data[start : start + size], data[start + size :]
