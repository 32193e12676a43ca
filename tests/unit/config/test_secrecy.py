import pytest

from penstock.config.secrecy import is_secret


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.tls.ssl.key.password", True),
        ("listener.name.tls.scram-sha-512.sasl.jaas.config", True),
        ("plain.sasl.jaas.config", True),
        ("delegation.token.secret.key", True),
        ("confluent.some.password", True),
        ("ssl.keystore.location", False),
        ("num.partitions", False),
        ("unknown", False),
    ],
)
def test_passwords_keys_and_login_lines_are_secrets(name: str, expected: bool) -> None:
    assert is_secret(name) == expected
