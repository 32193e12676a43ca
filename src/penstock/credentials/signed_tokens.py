"""Bearer tokens: JWTs, checked with the keys of an identity provider.

Only signatures of key pairs count: a token that is signed with a shared secret, or not at all, is refused. With which
algorithms a key may be used, the key itself says, never the token.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock.credentials.http import Exchange, reason_of
from penstock.security.bearer import BadToken, Bearer, name_in, scopes

FETCH_TIMEOUT_S: Final = 5.0
MAX_KEYS_BYTES: Final = 1 << 20
MAX_KEYS: Final = 1000
_READ_BYTES: Final = 64 << 10
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
EDWARDS: Final = "EdDSA"


class NoKeys(Exception):
    """The keys cannot be had; the text says why, in one line."""


class Key(NamedTuple):
    public: Any
    algorithms: tuple[str, ...]


Keys = Mapping[str | None, Key]
"""By their ids. Where there is only one it is under None, too: a token need not name the only one."""


class Rules(NamedTuple):
    """What a token must say."""

    issuer: str = ""
    audience: tuple[str, ...] = ()
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    clock_skew_s: float = 30.0
    required: Sequence[str] = ("exp", "iat")
    algorithms: Sequence[str] = (*RSA, *CURVES.values())
    refuses_any_audience: bool = True
    """As in Kafka: where no audience is expected, a token that is for one is not for us."""


def has_library() -> bool:
    try:
        import jwt  # noqa: F401
    except ImportError:
        return False
    return True


def fetched_keys(url: str) -> Keys:
    """From a web server, or from a file by its file: URL; NoKeys otherwise."""
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme == "file":
        return parse_keys(_file(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)))
    if scheme not in ("http", "https"):
        raise NoKeys(f"{url} is not the address of a web server or a file")
    return parse_keys(_page(url))


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_KEYS_BYTES)
    except OSError as error:
        raise NoKeys(f"cannot read {path}: {error.strerror}") from None


def _page(url: str) -> bytes:
    """A server that sends little by little is waited for no longer than one that sends nothing."""
    page = bytearray()
    try:
        with Exchange(FETCH_TIMEOUT_S) as exchange, exchange.open(url) as answer:
            while chunk := answer.read1(_READ_BYTES):
                page += chunk
                if len(page) > MAX_KEYS_BYTES:
                    raise NoKeys(f"{url} answers with more than {MAX_KEYS_BYTES} bytes")
    except (OSError, ValueError, http.client.HTTPException) as error:
        cause = reason_of(error) if not isinstance(error, ValueError) else "it does not answer with a page"
        raise NoKeys(f"cannot fetch {url}: {cause}") from None
    return bytes(page)


def parse_keys(text: bytes) -> Keys:
    """A JWKS (RFC 7517). Keys that are not for signatures of key pairs are left out."""
    try:
        listed = json.loads(text)["keys"]
        found = dict(filter(None, map(_key, listed[:MAX_KEYS])))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NoKeys("what was found are no keys (a JWKS)") from None
    if not found:
        raise NoKeys("there is no key for signatures (RSA or EC) among what was found")
    if len(found) == 1:
        found.setdefault(None, next(iter(found.values())))
    return found


def _key(entry: dict[str, Any]) -> tuple[str | None, Key] | None:
    """With its id; None for one that is not for us."""
    import jwt

    if entry.get("use") not in (None, "sig") or entry.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        public = jwt.PyJWK(entry).key
    except jwt.PyJWTError:
        return None
    if hasattr(public, "public_key"):  # somebody has put the private one there
        public = public.public_key()
    if entry["kty"] == "RSA":
        usable: tuple[str, ...] = RSA
    elif entry["kty"] == "EC":
        usable = tuple(name for curve, name in CURVES.items() if curve == public.curve.name)
    else:
        usable = (EDWARDS,)
    if "alg" in entry:
        usable = tuple(name for name in usable if name == entry["alg"])
    return (entry.get("kid"), Key(public, usable)) if usable else None


def key_id(token: str) -> str | None:
    """Which key the token says it is signed with; BadToken."""
    import jwt

    try:
        named = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise BadToken("it is no signed token") from None
    return named if isinstance(named, str) else None


def check(token: str, key: Key, rules: Rules) -> Bearer:
    """Who it is, and until when the token counts; BadToken otherwise."""
    import jwt

    try:
        claims = jwt.decode(
            token,
            key.public,
            algorithms=[name for name in key.algorithms if name in rules.algorithms],
            issuer=rules.issuer or None,
            audience=list(rules.audience) or None,
            leeway=rules.clock_skew_s,
            options={
                "require": [*rules.required, rules.subject_claim],
                "verify_aud": rules.refuses_any_audience or bool(rules.audience),
            },
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadToken(_why(error, jwt)) from None
    scopes(claims.get(rules.scope_claim))
    return Bearer(name_in(claims, rules.subject_claim), int(float(claims["exp"]) * 1000))


def _why(error: Exception, jwt: Any) -> str:
    """In words of ours: the library's may hold what is in the token."""
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"it has no {error.claim}"
    reasons = {
        jwt.ExpiredSignatureError: "it has expired",
        jwt.ImmatureSignatureError: "it is not valid yet",
        jwt.InvalidAudienceError: "it is for another audience",
        jwt.InvalidIssuerError: "it is from another issuer",
        jwt.InvalidAlgorithmError: "its algorithm is not one for this key",
        jwt.InvalidSignatureError: "its signature is wrong",
    }
    return next((why for kind, why in reasons.items() if isinstance(error, kind)), "it cannot be read")
