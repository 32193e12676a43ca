"""How passwords that are set while a broker runs are stored: encrypted, in the form of Kafka's brokers on ZooKeeper (up to 3.9).

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:…,iterations:4096,
    initializationVector:…,passwordLength:6,encryptedPassword:…

in any order, with base64 for bytes. The key is made of the secret (`password.encoder.secret`) and the salt. CBC proves nothing:
the length, and the padding, are all that tells a wrong secret from the right one.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from typing import Final

DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
CIPHER: Final = "AES/CBC/PKCS5Padding"
KEY_FACTORIES: Final = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA384": "sha384",
    DEFAULT_KEY_FACTORY: "sha512",
}
KEY_BITS: Final = (128, 192, 256)
MAX_ITERATIONS: Final = 1_000_000
"""What is stored says how many: not more than this is computed for it."""
SALT_BYTES: Final = 256
BLOCK_BYTES: Final = 16


class NotDecoded(ValueError):
    """The text is not what this secret has encrypted. The message holds neither of them."""


def is_encoded(text: str) -> bool:
    """Whether it has the form of what is encrypted; else it is a password in clear."""
    return all(f"{name}:" in text for name in ("encryptedPassword", "salt", "iterations", "passwordLength"))


class PasswordEncoder:
    """ValueError, which names the option, where it cannot be made so."""

    def __init__(
        self,
        secret: str,
        *,
        key_factory: str | None = None,
        cipher: str = CIPHER,
        key_bits: int = 128,
        iterations: int = 4096,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._secret = secret
        self._key_factory = key_factory or DEFAULT_KEY_FACTORY
        self._key_bits = key_bits
        self._iterations = iterations
        self._random_bytes = random_bytes
        if self._key_factory not in KEY_FACTORIES:
            raise ValueError(
                f"password.encoder.keyfactory.algorithm: {key_factory} is not {', '.join(KEY_FACTORIES)}"
            )
        if cipher != CIPHER:
            raise ValueError(f"password.encoder.cipher.algorithm: {cipher} is not {CIPHER}")
        if key_bits not in KEY_BITS:
            raise ValueError(
                f"password.encoder.key.length: {key_bits} is not {', '.join(map(str, KEY_BITS))}"
            )
        if iterations > MAX_ITERATIONS:
            raise ValueError(f"password.encoder.iterations: {iterations} is more than {MAX_ITERATIONS}")

    def encode(self, password: str) -> str:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC
        from cryptography.hazmat.primitives.padding import PKCS7

        salt, vector = self._random_bytes(SALT_BYTES), self._random_bytes(BLOCK_BYTES)
        key = self._key(self._key_factory, salt, self._iterations, self._key_bits)
        padding, encryptor = PKCS7(8 * BLOCK_BYTES).padder(), Cipher(AES(key), CBC(vector)).encryptor()
        padded = padding.update(password.encode()) + padding.finalize()
        fields = {
            "keyFactoryAlgorithm": self._key_factory,
            "cipherAlgorithm": CIPHER,
            "keyLength": str(self._key_bits),
            "salt": base64.b64encode(salt).decode(),
            "iterations": str(self._iterations),
            "initializationVector": base64.b64encode(vector).decode(),
            "passwordLength": str(_java_length(password)),
            "encryptedPassword": base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode(),
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC
        from cryptography.hazmat.primitives.padding import PKCS7

        fields = dict(field.strip().rpartition(":")[::2] for field in text.split(","))
        try:
            if fields["cipherAlgorithm"] != CIPHER:
                raise NotDecoded(f"it is encrypted with {fields['cipherAlgorithm'][:60]}, not {CIPHER}")
            salt, vector, encrypted = (
                base64.b64decode(fields[name], validate=True)
                for name in ("salt", "initializationVector", "encryptedPassword")
            )
            iterations, bits = int(fields["iterations"]), int(fields["keyLength"])
            factory = fields.get("keyFactoryAlgorithm", DEFAULT_KEY_FACTORY)
            if not 1 <= iterations <= MAX_ITERATIONS or bits not in KEY_BITS:
                raise NotDecoded("its number of iterations or the length of its key cannot be")
            key = self._key(factory, salt, iterations, bits)
            decryptor, padding = Cipher(AES(key), CBC(vector)).decryptor(), PKCS7(8 * BLOCK_BYTES).unpadder()
            padded = decryptor.update(encrypted) + decryptor.finalize()
            password = (padding.update(padded) + padding.finalize()).decode()
            if _java_length(password) != int(fields["passwordLength"]):
                raise ValueError
        except NotDecoded:
            raise
        except (KeyError, ValueError):
            raise NotDecoded("it was encrypted with another password.encoder.secret, or is broken") from None
        return password

    def _key(self, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        return hashlib.pbkdf2_hmac(KEY_FACTORIES[factory], self._secret.encode(), salt, iterations, bits // 8)


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
