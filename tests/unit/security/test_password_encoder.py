"""Stored passwords, byte for byte as Apache Kafka 3.9.1's EncryptingPasswordEncoder writes and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.password_encoder import NotDecoded, PasswordEncoder, is_encoded

SECRET, PASSWORD = "the sécret", 'pä"ss, 😀:x'
# Written by Kafka 3.9.1.
OF_KAFKA = (
    "initializationVector:seY5V3jGk2m7qPzFRCONCw==,keyLength:128,salt:dNxnJyrytQESXvfWWyqcj2gQ6v4BJ2SNt9wQW+5R2mu6Fq"
    "OHOQf0hf7815VEzXOIt9nP60bX9HLKzvXJY5P29t88EGRYkIX1wMU4hGLyBWeJKwkttLX+HRVLPCKMSWqUtdkGKUqw6RHw9/18Vi+o9eJwlJnp"
    "xTUO1m1lGGORAsON1ojDr93aHMfNZsVXGwBomRVjS070poonWonCf3BRli4aAMD96RQRCyUpL/ITMoHjQIjAHtGztKXQ953fxwR6fQYRu3nE6C"
    "z42oWQ8zPrxtvlZM7LKBkTADHrNTXGV5u9PChmY6imk5TU0tDGbHNR27KvT7fQZ2AxYtIGWyEfXg==,keyFactoryAlgorithm:PBKDF2WithHm"
    "acSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:11,encryptedPassword:oSZ7SCCltYMAoI"
    "79jgFoSw=="
)


def test_what_kafka_has_written_is_read() -> None:
    assert PasswordEncoder(SECRET).decode(OF_KAFKA) == PASSWORD
    assert is_encoded(OF_KAFKA)


def test_what_kafka_reads_is_written() -> None:
    """With this salt and vector: Kafka 3.9.1 has read it."""
    encoder = PasswordEncoder(SECRET, random_bytes=lambda count: bytes(range(count % 256 or 256)))
    fields = dict(field.rpartition(":")[::2] for field in encoder.encode(PASSWORD).split(","))
    assert fields.pop("salt").startswith("AAECAwQFBgcICQoL")
    assert fields == {
        "keyFactoryAlgorithm": "PBKDF2WithHmacSHA512",
        "cipherAlgorithm": "AES/CBC/PKCS5Padding",
        "keyLength": "128",
        "iterations": "4096",
        "initializationVector": "AAECAwQFBgcICQoLDA0ODw==",
        "passwordLength": "11",
        "encryptedPassword": "u9nDOxIrIrGBYlTSgTSImA==",
    }


@pytest.mark.parametrize("key_factory", ["PBKDF2WithHmacSHA1", "PBKDF2WithHmacSHA256"])
@pytest.mark.parametrize("key_bits", [128, 256])
def test_other_algorithms_are_told_by_the_text(key_factory: str, key_bits: int) -> None:
    text = PasswordEncoder(SECRET, key_factory=key_factory, key_bits=key_bits, iterations=1024).encode("")
    assert PasswordEncoder(SECRET).decode(text) == ""


def test_another_secret_opens_nothing() -> None:
    with pytest.raises(NotDecoded, match=r"another password\.encoder\.secret") as caught:
        PasswordEncoder("other").decode(OF_KAFKA)
    assert "other," not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("iterations:4096", "iterations:1000000000"),
        ("iterations:4096", "iterations:x"),
        ("keyLength:128", "keyLength:7"),
        ("cipherAlgorithm:AES/CBC/PKCS5Padding", "cipherAlgorithm:DES"),
        ("keyFactoryAlgorithm:PBKDF2WithHmacSHA512", "keyFactoryAlgorithm:MD5"),
        ("passwordLength:11", "passwordLength:12"),
        ("encryptedPassword:", "encryptedPassword:="),
        ("initializationVector:", "vector:"),
    ],
)
def test_what_is_broken_is_refused_at_once(field: str, value: str) -> None:
    assert field in OF_KAFKA
    with pytest.raises(NotDecoded):
        PasswordEncoder(SECRET).decode(OF_KAFKA.replace(field, value))


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(NotDecoded):
        PasswordEncoder(SECRET).decode(text)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"key_factory": "MD5"}, r"password\.encoder\.keyfactory\.algorithm"),
        ({"cipher": "AES/GCM/NoPadding"}, r"password\.encoder\.cipher\.algorithm"),
        ({"key_bits": 100}, r"password\.encoder\.key\.length"),
        ({"iterations": 10**9}, r"password\.encoder\.iterations"),
    ],
)
def test_options_that_cannot_be_are_named(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        PasswordEncoder(SECRET, **options)  # type: ignore[arg-type]
