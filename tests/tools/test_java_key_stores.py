"""JKS files as Java's keytool makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client.errors import BadOption
from penstock.client.security import Security, security_of
from penstock.security.java_key_stores import read_key_store
from penstock.stack.certificates import Authority
from tests.secured import STORE_PASSWORD, keytool

KEY_PASSWORD = "of-the-key"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pkcs12(authority: Authority) -> Path:
    return authority.issue("client").pkcs12(STORE_PASSWORD)


@pytest.fixture(scope="module")
def key_store(authority: Authority, pkcs12: Path) -> Path:
    return converted(pkcs12, authority.path.with_name("client.jks"), "JKS")


@pytest.fixture(scope="module")
def trust_store(authority: Authority) -> Path:
    store = authority.path.with_name("trusted.jks")
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", str(authority.path),
        "-keystore", str(store), "-storetype", "JKS", "-storepass", STORE_PASSWORD,
    )  # fmt: skip
    return store


def converted(pkcs12: Path, store: Path, kind: str) -> Path:
    keytool(
        "-importkeystore", "-srckeystore", str(pkcs12), "-srcstorepass", STORE_PASSWORD,
        "-destkeystore", str(store), "-deststoretype", kind, "-deststorepass", STORE_PASSWORD,
        "-srcalias", first_alias(pkcs12), "-destkeypass", KEY_PASSWORD,
    )  # fmt: skip
    return store


def first_alias(store: Path) -> str:
    listed = keytool("-list", "-keystore", str(store), "-storepass", STORE_PASSWORD)
    return next(line.partition(",")[0] for line in listed.splitlines() if "PrivateKeyEntry" in line)


def secured(**given: str) -> Security:
    return security_of(
        {"security.protocol": "SSL"} | {name.replace("_", "."): value for name, value in given.items()}
    )


@pytest.mark.parametrize("password", [{"ssl_truststore_password": STORE_PASSWORD}, {}])
def test_a_trust_store_holds_what_a_pem_file_does(
    authority: Authority, trust_store: Path, password: dict[str, str]
) -> None:
    """Without its password it is read unchecked, as in Java."""
    trusted = secured(ssl_truststore_location=str(trust_store), **password)
    assert trusted.trusted_pem == secured(ssl_truststore_location=str(authority.path)).trusted_pem


def test_a_key_store_holds_what_a_pkcs12_file_does(key_store: Path, pkcs12: Path) -> None:
    ours = secured(
        ssl_keystore_location=str(key_store),
        ssl_keystore_password=STORE_PASSWORD,
        ssl_key_password=KEY_PASSWORD,
    ).identity
    same = secured(ssl_keystore_location=str(pkcs12), ssl_keystore_password=STORE_PASSWORD).identity
    assert ours is not None
    assert same is not None
    assert ours.certificates_pem == same.certificates_pem
    assert "".join(ours.key_pem.split()) == "".join(same.key_pem.split())


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"ssl_keystore_password": "wrong", "ssl_key_password": KEY_PASSWORD}, "ssl.keystore.password: does not open"),
        ({"ssl_keystore_password": STORE_PASSWORD}, "ssl.key.password: does not open the private key in"),
        ({"ssl_keystore_password": STORE_PASSWORD, "ssl_key_password": "wrong"}, "ssl.key.password: does not open"),
        ({}, "ssl.keystore.password: must be given to open"),
    ],
)  # fmt: skip
def test_a_password_that_does_not_open_it_is_named(
    key_store: Path, given: dict[str, str], complaint: str
) -> None:
    with pytest.raises(BadOption, match=f"^{complaint}"):
        secured(ssl_keystore_location=str(key_store), **given)


def test_a_store_without_a_key_is_told(trust_store: Path) -> None:
    with pytest.raises(BadOption, match=r"^ssl\.keystore\.location: .* holds no private key"):
        secured(ssl_keystore_location=str(trust_store), ssl_keystore_password=STORE_PASSWORD)


def test_of_a_jceks_file_the_certificates_are_read_and_keys_have_a_way_out(
    authority: Authority, pkcs12: Path, tmp_path: Path
) -> None:
    store = converted(pkcs12, tmp_path / "client.jceks", "JCEKS")
    assert secured(ssl_truststore_location=str(store), ssl_truststore_password=STORE_PASSWORD).trusted_pem
    with pytest.raises(
        BadOption, match=r"^ssl\.keystore\.location: .* can only be read by Java; make PKCS12 of it"
    ):
        secured(
            ssl_keystore_location=str(store),
            ssl_keystore_password=STORE_PASSWORD,
            ssl_key_password=KEY_PASSWORD,
        )


def test_a_store_that_is_cut_off_anywhere_is_told(key_store: Path) -> None:
    data = key_store.read_bytes()
    for size in range(4, len(data), 7):
        with pytest.raises(ValueError, match="it "):
            read_key_store(data[:size], None)


def test_a_byte_that_changed_is_noticed(key_store: Path) -> None:
    data = bytearray(key_store.read_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(ValueError):
        read_key_store(bytes(data), STORE_PASSWORD)
