"""Contexts for TLS, from Kafka's options."""

import ssl
from pathlib import Path

import pytest

from penstock.security.tls_context import client_context, server_context
from penstock.stack.certificates import Authority

NEWER = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"
OLDER = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


@pytest.fixture(scope="module")
def key_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("certificates")).issue("server").pem()


def test_who_names_only_ciphers_of_tls_1_3_has_nothing_older(key_store: Path) -> None:
    given = {"ssl.keystore.location": str(key_store), "ssl.cipher.suites": NEWER}
    assert server_context(given).minimum_version == ssl.TLSVersion.TLSv1_3
    assert client_context({"ssl.cipher.suites": NEWER}).minimum_version == ssl.TLSVersion.TLSv1_3


def test_with_a_cipher_of_tls_1_2_both_versions_are_on(key_store: Path) -> None:
    context = server_context(
        {"ssl.keystore.location": str(key_store), "ssl.cipher.suites": f"{NEWER},{OLDER}"}
    )
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    older = [each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.2"]
    assert older == ["ECDHE-ECDSA-AES256-GCM-SHA384"]


@pytest.mark.parametrize(
    ("ciphers", "versions", "complaint"),
    [
        (NEWER, "TLSv1.2", "has only ciphers of TLS 1.3"),
        ("TLS_AES_256_GCM_SHA38", "TLSv1.2,TLSv1.3", "OpenSSL has none of TLS_AES_256_GCM_SHA38"),
    ],
)
def test_ciphers_that_cannot_be_are_refused(
    key_store: Path, ciphers: str, versions: str, complaint: str
) -> None:
    given = {
        "ssl.keystore.location": str(key_store),
        "ssl.cipher.suites": ciphers,
        "ssl.enabled.protocols": versions,
    }
    with pytest.raises(ValueError, match=f"ssl.cipher.suites: {complaint}"):
        server_context(given)
