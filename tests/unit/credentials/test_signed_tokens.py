"""Tokens are checked with keys: which are let in, and why others are not."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from penstock.credentials.signed_tokens import Key, NoKeys, Rules, check, fetched_keys, key_id, parse_keys
from penstock.security.bearer import BadToken
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider

RULES = Rules(ISSUER, (AUDIENCE, "other"), clock_skew_s=5)


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        provider.new_key("curve", "EC")
        yield provider


def checked(provider: IdentityProvider, token: str, rules: Rules = RULES) -> str:
    keys = parse_keys(provider.jwks().encode())
    return check(token, keys[key_id(token)], rules).name


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256"])
def test_signatures_of_key_pairs_count(provider: IdentityProvider, algorithm: str) -> None:
    key = "curve" if algorithm == "ES256" else "first"
    assert checked(provider, provider.token(key=key, algorithm=algorithm)) == "ana"


def test_claims_with_other_names(provider: IdentityProvider) -> None:
    rules = RULES._replace(subject_claim="client_id", scope_claim="scp")
    token = provider.token(client_id="app-7", scp=["a", "b"], scope=[7])
    assert checked(provider, token, rules) == "app-7"
    with pytest.raises(BadToken, match="scope cannot be read"):
        checked(provider, token, RULES)


class FromNow(int):
    """Seconds from the moment at which the test runs, which may be long after it was collected."""


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": FromNow(-60)}, "expired"),
        ({"exp": None}, "has no exp"),
        ({"exp": "never"}, "cannot be read"),
        ({"iat": None}, "has no iat"),
        ({"nbf": FromNow(600)}, "not valid yet"),
        ({"iss": "https://elsewhere"}, "another issuer"),
        ({"aud": "elsewhere"}, "another audience"),
        ({"aud": None}, "has no aud"),
        ({"sub": None}, "has no sub"),
        ({"sub": ""}, "sub is not a name"),
    ],
)
def test_what_a_token_says_is_checked(provider: IdentityProvider, changed: dict[str, Any], why: str) -> None:
    claims = {
        name: time.time() + each if isinstance(each, FromNow) else each for name, each in changed.items()
    }
    with pytest.raises(BadToken, match=why):
        checked(provider, provider.token(**claims))


def test_a_token_for_some_audience_is_refused_where_none_is_expected(provider: IdentityProvider) -> None:
    with pytest.raises(BadToken, match="another audience"):
        checked(provider, provider.token(), RULES._replace(audience=()))
    assert checked(provider, provider.token(aud=None), RULES._replace(audience=())) == "ana"


def forged(provider: IdentityProvider, algorithm: str, secret: bytes = b"") -> str:
    parts = [{"alg": algorithm, "kid": "first"}, provider.claims()]
    text = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts
    )
    signature = hmac.digest(secret, text.encode(), hashlib.sha256) if secret else b""
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_no_signature_is_no_signature(provider: IdentityProvider) -> None:
    for algorithm in ("none", "None", "RS256"):
        with pytest.raises(BadToken):
            checked(provider, forged(provider, algorithm))


def test_the_public_key_is_no_shared_secret(provider: IdentityProvider) -> None:
    public = provider.keys["first"].public_key()
    for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1):
        with pytest.raises(BadToken, match="not one for this key"):
            checked(provider, forged(provider, "HS256", public.public_bytes(Encoding.PEM, form)))


def test_a_signature_by_another_key_is_wrong(provider: IdentityProvider) -> None:
    with IdentityProvider() as stranger, pytest.raises(BadToken, match="signature is wrong"):
        checked(provider, stranger.token())
    with pytest.raises(BadToken, match="not one for this key"):
        checked(provider, provider.token(key="curve", kid="first"))


def test_a_key_is_used_with_its_own_algorithm_only(provider: IdentityProvider) -> None:
    [entry, _] = json.loads(provider.jwks())["keys"]
    keys = parse_keys(json.dumps({"keys": [{**entry, "alg": "PS256"}]}).encode())
    assert keys[None] == keys["first"]
    assert check(provider.token(algorithm="PS256"), keys["first"], RULES).name == "ana"
    with pytest.raises(BadToken, match="not one for this key"):
        check(provider.token(), keys["first"], RULES)


def test_keys_for_other_things_are_left_out(provider: IdentityProvider) -> None:
    [entry, other] = json.loads(provider.jwks())["keys"]
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}
    unknown = {"kty": "EC", "crv": "P-1", "kid": "odd"}
    listed = [{**entry, "use": "enc"}, secret, unknown, {"kid": "no type"}, other]
    assert set(parse_keys(json.dumps({"keys": listed}).encode())) == {"curve", None}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": [7]}', b'{"keys": []}', b"[" * 100_000]
)
def test_what_is_no_set_of_keys_is_told(text: bytes) -> None:
    with pytest.raises(NoKeys):
        parse_keys(text)


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "e30.e30.", "." * 1000, "W10.W10.W10"])
def test_what_is_no_token_is_told(token: str) -> None:
    with pytest.raises(BadToken):
        check(token, Key(None, ("RS256",)), RULES) if key_id(token) is None else None


def test_keys_come_from_a_server_or_a_file(provider: IdentityProvider, tmp_path: Path) -> None:
    assert set(fetched_keys(provider.keys_url)) == {"first", "curve"}
    file = tmp_path / "the keys.json"
    file.write_text(provider.jwks())
    assert set(fetched_keys(file.as_uri())) == {"first", "curve"}
    for url in ("ftp://host/keys", "keys"):
        with pytest.raises(NoKeys, match="is not the address of a web server"):
            fetched_keys(url)
    with pytest.raises(NoKeys, match="No such file"):
        fetched_keys((tmp_path / "none").as_uri())
    with pytest.raises(NoKeys, match="cannot fetch"):
        fetched_keys("http://127.0.0.1:1/keys")


def test_a_refusal_shows_nothing_of_the_token(provider: IdentityProvider) -> None:
    token = provider.token(sub="eva", iss="https://secret-place")
    with pytest.raises(BadToken) as refused:
        checked(provider, token)
    assert "secret-place" not in str(refused.value)
    assert jwt.get_unverified_header(token)["kid"] == "first"
