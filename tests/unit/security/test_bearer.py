"""OAUTHBEARER's messages, and tokens without a signature."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.bearer import (
    MAX_TOKEN_BYTES,
    BadMessage,
    BadToken,
    UnsecuredRules,
    check_unsecured,
    first_message,
    parse_first,
)

NOW_MS = 1_000_000


def test_the_message_of_our_client_is_understood() -> None:
    said = parse_first(first_message("a.b-c_d."))
    assert (said.authorization_id, said.token, said.extensions) == ("", "a.b-c_d.", {})


def test_extensions_and_an_authorization_id_are_taken() -> None:
    said = parse_first(b"n,a=ana=2C=3D,\x01traceparent=7 8\x01auth=bearer  x.y.z\x01Tenant=b\x01\x01")
    assert said == ("ana,=", "x.y.z", {"traceparent": "7 8", "Tenant": "b"})


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer x.y.z\x01",  # half of it
        b"y,,\x01auth=Bearer x.y.z\x01\x01",
        b"n,,\x01auth=Basic x.y.z\x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer x.y.z\x01no value\x01\x01",
        b"n,,\x01k3y=v\x01auth=Bearer x.y.z\x01\x01",
        b"n,a=,\x01auth=Bearer x.y.z\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * MAX_TOKEN_BYTES + b"\x01\x01",
    ],
)
def test_other_messages_are_refused(message: bytes) -> None:
    with pytest.raises(BadMessage) as refused:
        parse_first(message)
    assert "x.y.z" not in str(refused.value)


@given(st.binary(max_size=80))
def test_any_bytes_are_refused_in_words(message: bytes) -> None:
    try:
        parse_first(b"n,," + message)
    except BadMessage:
        pass


def unsecured(header: Any = None, *, signature: str = "", **claims: Any) -> str:
    def part(said: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()

    claims = {"sub": "ana", "exp": NOW_MS / 1000 + 60, **claims}
    return ".".join([part(header or {"alg": "none"}), part(claims), signature])


RULES = UnsecuredRules(required_scope=frozenset({"read"}), clock_skew_ms=1000)


def test_a_token_without_a_signature_names_somebody() -> None:
    for scope in ("read write", ["read"]):
        found = check_unsecured(unsecured(scope=scope), RULES, NOW_MS)
        assert (found.name, found.expires_ms) == ("ana", NOW_MS + 60_000)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (unsecured(scope="write"), "has not the scope read"),
        (unsecured(scope="read", sub=" "), "sub is not a name"),
        (unsecured(scope="read", sub=7), "sub is not a name"),
        (unsecured(scope="read", exp=None), "has no exp"),
        (unsecured(scope="read", exp="soon"), "exp is not a time"),
        (unsecured(scope="read", exp=float("nan")), "exp is not a time"),
        (unsecured(scope="read", exp=NOW_MS / 1000 - 1), "expired"),
        (unsecured(scope="read", iat=NOW_MS / 1000 + 2), "future"),
        (unsecured(scope={"read": 1}), "scope cannot be read"),
        (unsecured({"alg": "HS256"}, scope="read"), "signature"),
        (unsecured(scope="read", signature="c2ln"), "signature"),
        ("a.b", "three parts"),
        ("%%%.e30.", "header cannot be read"),
        ("e30.W10.", "claims cannot be read"),
    ],
)
def test_other_tokens_without_a_signature_are_refused(token: str, why: str) -> None:
    with pytest.raises(BadToken, match=why):
        check_unsecured(token, RULES, NOW_MS)


def test_unsecured_tokens_must_be_asked_for() -> None:
    assert UnsecuredRules.of({"unsecuredLoginStringClaim_sub": "ana"}) is None
    given = {"unsecuredValidatorPrincipalClaimName": "who", "unsecuredValidatorRequiredScope": "a b"}
    assert UnsecuredRules.of(given) == ("who", "scope", {"a", "b"}, 0)
    with pytest.raises(ValueError, match="unsecuredValidatorAllowableClockSkewMs"):
        UnsecuredRules.of({"unsecuredValidatorAllowableClockSkewMs": "long"})
