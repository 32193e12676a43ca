"""Settings of connectors for the eye."""

from __future__ import annotations

import pytest

from penstock.console.upstream.connect import HIDDEN, without_secrets


@pytest.mark.parametrize(
    "name", ["connection.password", "aws.secret.access.key", "api.key", "sasl.jaas.config", "auth.TOKEN"]
)
def test_what_is_called_a_secret_is_hidden(name: str) -> None:
    assert without_secrets(name, "x") == HIDDEN


def test_logins_in_addresses_are_hidden_and_the_rest_is_shown() -> None:
    shown = without_secrets(
        "connection.url", "jdbc:mysql://ana:s3cret@db:3306/x?user=ana&password=s3cret&ssl=true"
    )
    assert "s3cret" not in shown
    assert "db:3306/x?user=ana" in shown
    assert shown.endswith("&ssl=true")


def test_what_is_empty_stays_empty() -> None:
    assert without_secrets("connection.password", "") == ""


def test_a_value_of_megabytes_is_cut() -> None:
    assert len(without_secrets("file", "x" * 5_000_000)) == 4000
