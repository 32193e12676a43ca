"""Passwords in the metadata: what they were stored with, and what becomes of them at a start."""

from __future__ import annotations

import logging

import pytest

from penstock.broker.metadata.stored_passwords import StoredPasswords
from penstock.config.layers import BrokerConfig
from penstock.security.password_encoder import is_encoded

NAME = "listener.name.tls.ssl.keystore.password"


def passwords(secret: str = "", old_secret: str = "") -> StoredPasswords:
    given = {"password.encoder.secret": secret, "password.encoder.old.secret": old_secret}
    return StoredPasswords(BrokerConfig({name: text for name, text in given.items() if text}))


def test_what_an_older_version_left_in_clear_counts_and_is_encrypted() -> None:
    stored = {NAME: "hush", "num.io.threads": "4"}
    assert passwords().open(stored) == stored
    assert passwords().sealed_anew(stored) == stored
    sealed = passwords("new").sealed_anew(stored)
    assert is_encoded(sealed[NAME])
    assert sealed["num.io.threads"] == "4"
    assert passwords("new").open(sealed) == stored


def test_a_changed_secret_needs_the_old_one_once() -> None:
    stored = {NAME: passwords("old").seal("hush")}
    renewed = passwords("new", "old").sealed_anew(stored)
    assert renewed != stored
    assert passwords("new").open(renewed) == {NAME: "hush"}
    assert passwords("new", "old").sealed_anew(renewed) == renewed


@pytest.mark.parametrize("secret", ["", "another"])
def test_what_cannot_be_opened_is_left_out_and_told(secret: str, caplog: pytest.LogCaptureFixture) -> None:
    sealed = passwords("right").seal("hush")
    with caplog.at_level(logging.ERROR):
        assert passwords(secret).open({NAME: sealed, "num.io.threads": "4"}) == {"num.io.threads": "4"}
    (record,) = caplog.records
    assert record.message.startswith(f"Dynamic password config {NAME} could not be decoded, ignoring: ")
    assert sealed not in record.message


def test_what_was_opened_is_remembered() -> None:
    sealed = {NAME: passwords("a").seal("hush")}
    reader = passwords("a")
    assert reader.must_open(sealed)
    reader.open(sealed)
    assert not reader.must_open(sealed)
