"""The files of a secured stack, without anything that runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from penstock.client.errors import UserError
from penstock.client.property_files import read_properties
from penstock.security.jaas import parse_login
from penstock.stack import secured
from penstock.stack.certificates import Authority
from penstock.stack.stack import Stack
from penstock.stack.stack_file import read_stack
from tests.unit.stack.stacks import asked, made


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return made(tmp_path / "box", asked(brokers=2)._replace(secure=True))


def names_of(stack: Stack) -> set[str]:
    certificate = x509.load_pem_x509_certificate((stack.directory / "security" / "broker-1.pem").read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in found}


def options_of(stack: Stack, *settings: str) -> dict[str, str]:
    return read_properties(str(secured.write_broker_options(stack, stack.member("broker-1"), settings)))


def test_a_stack_remembers_that_it_is_secured(stack: Stack) -> None:
    assert read_stack(stack.directory) == stack
    assert stack.is_secure
    assert made(stack.directory, asked()).is_secure
    plain = made(stack.directory.parent / "plain", asked())
    with pytest.raises(UserError, match="was made without --secure"):
        made(plain.directory, asked()._replace(secure=True))


def test_brokers_have_no_open_listener(stack: Stack) -> None:
    options = options_of(stack, "num.partitions=6")
    assert options["listeners"] == "SASL_SSL://127.0.0.1:9092"
    assert options["security.inter.broker.protocol"] == "SASL_SSL"
    assert options["num.partitions"] == "6"
    login = parse_login(options["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"]).options
    assert login["username"] == "broker"
    assert options_of(stack) == {name: value for name, value in options.items() if name != "num.partitions"}


def test_a_certificate_names_where_the_broker_is_found(stack: Stack) -> None:
    options_of(stack)
    assert {"127.0.0.1", "localhost"} <= names_of(stack)
    options_of(stack, "advertised.listeners=SASL_SSL://kafka.example.com:9092")
    assert "kafka.example.com" in names_of(stack)
    options_of(stack._replace(host="10.1.2.3"))
    assert "10.1.2.3" in names_of(stack)


def test_a_certificate_is_renewed_in_its_last_month(stack: Stack) -> None:
    path = stack.directory / "security" / "broker-1.pem"

    def days_left() -> timedelta:
        return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc - datetime.now(UTC)

    options_of(stack)
    hosts = sorted(names_of(stack))
    for days, is_renewed in ((20, True), (40, False)):
        Authority(path.parent).issue("broker-1", hosts=hosts, days=days).pem()
        before = path.read_bytes()
        options_of(stack)
        assert (path.read_bytes() != before) == is_renewed
    assert days_left() > timedelta(days=30)
    path.write_text("no certificate")
    options_of(stack)
    assert days_left() > timedelta(days=300)


@pytest.mark.parametrize("name", sorted(secured.ITS_OWN))
def test_what_would_open_it_cannot_be_set(stack: Stack, name: str) -> None:
    with pytest.raises(UserError, match=f"--set: {name} is not for you to set"):
        secured.check_settings(stack, [name, "num.partitions"])
    secured.check_settings(stack._replace(is_secure=False), [name])


def test_passwords_with_every_character_are_quoted() -> None:
    for password in ('a"b', "a\\b", "a b;c", "p='x'"):
        assert parse_login(secured.jaas_line("ana", password)).options["password"] == password


def test_files_that_were_damaged_are_one_clear_line(stack: Stack) -> None:
    options_of(stack)
    (stack.directory / "client.properties").write_text("security.protocol=SASL_SSL\n")
    with pytest.raises(UserError, match="holds no login"):
        secured.prepare(stack, bootstrap="127.0.0.1:1", zookeeper="127.0.0.1:1")
    (stack.directory / "security" / "broker-1.pem").unlink()
    (stack.directory / "security" / "ca.key").write_text("")
    with pytest.raises(UserError, match=r"the authority in .* cannot be used"):
        options_of(stack)
    (stack.directory / "security" / "passwords.properties").write_text("broker=x\n")
    with pytest.raises(UserError, match="does not have the password of zookeeper"):
        options_of(stack)


def test_one_key_of_tokens_for_all_brokers_also_where_there_was_none(stack: Stack) -> None:
    path = stack.directory / "security" / "passwords.properties"

    def key() -> str:
        return options_of(stack)["delegation.token.secret.key"]

    made = key()
    assert len(made) >= 32
    assert key() == made
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "tokens" not in line))
    assert key() != made
    assert key() == key()
