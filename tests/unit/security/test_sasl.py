"""PLAIN, step by step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.sasl import LoginFailed, PlainExchange

USERS = {"ana": "s3cret"}


def test_who_knows_the_password_is_let_in() -> None:
    for token in (b"\0ana\0s3cret", b"ana\0ana\0s3cret"):
        exchange = PlainExchange(USERS)
        assert exchange.step(token) == b""
        assert exchange.user == "ana"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0ana\0guess", "Invalid username or password"),
        (b"\0nobody\0guess", "Invalid username or password"),
        (b"\0nobody\0\0", "expected 3 tokens, got 4"),
        (b"ana", "expected 3 tokens, got 1"),
        (b"\0\0s3cret", "username not specified"),
        (b"\0ana\0", "password not specified"),
        (b"bob\0ana\0s3cret", "different from username"),
        (b"\xff\0ana\0s3cret", "not UTF-8"),
    ],
)
def test_others_are_told_in_kafkas_words_and_no_secret_is(token: bytes, text: str) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(LoginFailed, match=text) as failure:
        exchange.step(token)
    assert exchange.user is None
    assert "s3cret" not in str(failure.value) + failure.value.cause


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_words(token: bytes) -> None:
    exchange = PlainExchange(USERS)
    try:
        exchange.step(token)
    except LoginFailed:
        pass
    assert exchange.user in (None, "ana")
