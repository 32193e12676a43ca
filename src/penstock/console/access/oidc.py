"""OpenID Connect: the login at an identity provider, by the code flow with state, nonce and PKCE.

    browser → /login/oidc → provider → /login/oidc/callback?code&state → (token endpoint) → a session

What a login was begun with is kept on the server, under its state, for a few minutes; a cookie binds it to the browser that began
it. The id token comes over TLS from the provider's own address, and its signature, issuer, audience, times and nonce are checked
all the same. Nothing of the provider's tokens is kept. Everything here blocks and runs in a thread.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import threading
import time
import urllib.parse
import urllib.request
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.client.errors import UserError
from penstock.console.gate import is_loopback
from penstock.console.settings import OidcSettings
from penstock.credentials.http import Exchange, reason_of
from penstock.credentials.signed_tokens import (
    CURVES,
    EDWARDS,
    RSA,
    Key,
    Keys,
    NoKeys,
    Rules,
    check,
    fetched_keys,
    key_id,
)
from penstock.security.bearer import BadToken

TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
KEPT_S: Final = 300.0
"""What the provider says about itself and its keys, and a login that was begun."""
MAX_BEGUN: Final = 1000
MAX_TEXT: Final = 256
MAX_GROUPS: Final = 500


class OidcFailed(UserError):
    """The login did not work; the line says why, without anything secret in it."""


class Begun(NamedTuple):
    url: str
    """Where the browser goes."""
    binding: str
    """For its cookie."""


class Known(NamedTuple):
    name: str
    groups: tuple[str, ...]
    next: str


class _Pending(NamedTuple):
    binding_hash: bytes
    nonce: str
    verifier: str
    next: str
    redirect_url: str
    begun_s: float


class OidcLogins:
    """Safe to share between threads."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._about: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, Keys] | None = None

    def begin(self, *, redirect_url: str, next_path: str) -> Begun:
        """OidcFailed where the provider does not answer."""
        about = self._provider()
        state, nonce, verifier, binding = (secrets.token_urlsafe(32) for _ in range(4))
        pending = _Pending(_hash(binding), nonce, verifier, next_path, redirect_url, time.monotonic())
        with self._lock:
            self._pending[state] = pending
            if len(self._pending) > MAX_BEGUN:
                self._pending.popitem(last=False)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = urllib.parse.urlencode(
            {
                "response_type": "code", "client_id": self._settings.client_id, "redirect_uri": redirect_url,
                "scope": " ".join(self._settings.scopes), "state": state, "nonce": nonce,
                "code_challenge": challenge, "code_challenge_method": "S256",
            }
        )  # fmt: skip
        endpoint = about["authorization_endpoint"]
        return Begun(f"{endpoint}{'&' if '?' in endpoint else '?'}{query}", binding)

    def end(self, query: Mapping[str, str], *, binding: str) -> Known:
        """Who it is, from what the provider sent the browser back with. OidcFailed. A state counts once."""
        with self._lock:
            pending = self._pending.pop(query.get("state", ""), None)
        if pending is None or time.monotonic() - pending.begun_s > KEPT_S:
            raise OidcFailed("this login is not known, or took too long; begin again")
        if not hmac.compare_digest(pending.binding_hash, _hash(binding)):
            raise OidcFailed("this login was begun in another browser; begin again")
        if "error" in query:
            raise OidcFailed(f"the provider said: {_short(query['error'])}")
        if query.get("iss", self._settings.issuer) != self._settings.issuer:
            raise OidcFailed("the answer comes from another provider")
        if not query.get("code"):
            raise OidcFailed("the provider sent no code")
        claims = self._claims(self._id_token(query["code"], pending), nonce=pending.nonce)
        return Known(self._name(claims), self._groups(claims), pending.next)

    def _id_token(self, code: str, pending: _Pending) -> str:
        settings = self._settings
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": pending.redirect_url,
            "code_verifier": pending.verifier, "client_id": settings.client_id,
        }  # fmt: skip
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if settings.client_secret:
            pair = ":".join(map(urllib.parse.quote_plus, (settings.client_id, settings.client_secret)))
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        endpoint = self._provider()["token_endpoint"]
        answer = _asked(
            urllib.request.Request(endpoint, urllib.parse.urlencode(form).encode(), headers, method="POST")
        )
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise OidcFailed("the provider gave no id token")
        return token

    def _claims(self, token: str, *, nonce: str) -> dict[str, Any]:
        import jwt

        rules = Rules(
            issuer=self._settings.issuer,
            audience=(self._settings.client_id,),
            required=("exp", "iat"),
            algorithms=(*RSA, *CURVES.values(), EDWARDS),
        )
        try:
            check(token, self._key(key_id(token)), rules)
            claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})  # it is checked
        except (BadToken, jwt.PyJWTError) as error:
            raise OidcFailed(f"the provider's token is not good: {error}") from None
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise OidcFailed("the provider's token is for another login")
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise OidcFailed("the provider's token is for another client")
        return claims

    def _key(self, named: str | None) -> Key:
        with self._lock:
            known = self._keys
        if known is None or named not in known[1] or time.monotonic() - known[0] > KEPT_S:
            try:
                known = time.monotonic(), fetched_keys(self._provider()["jwks_uri"])
            except NoKeys as error:
                raise OidcFailed(f"the keys of the provider cannot be read: {error}") from None
            with self._lock:
                self._keys = known
        if named not in known[1]:
            raise BadToken("it is signed with a key that is not known")
        return known[1][named]

    def _provider(self) -> Mapping[str, Any]:
        """What it says about itself."""
        with self._lock:
            known = self._about
        if known is not None and time.monotonic() - known[0] < KEPT_S:
            return known[1]
        url = self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        _check_address(url)
        about = _asked(urllib.request.Request(url, headers={"Accept": "application/json"}))
        if about.get("issuer") != self._settings.issuer:
            raise OidcFailed(f"{url} is about another issuer than {self._settings.issuer}")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not isinstance(about.get(name), str):
                raise OidcFailed(f"{url} does not tell {name}")
            _check_address(about[name])
        with self._lock:
            self._about = time.monotonic(), about
        return about

    def _name(self, claims: Mapping[str, Any]) -> str:
        for claim in (self._settings.name_claim, "sub"):
            found = claims.get(claim)
            if isinstance(found, str) and found.strip() and found.isprintable():
                return found.strip()[:MAX_TEXT]
        raise OidcFailed(f"the provider's token has no {self._settings.name_claim}")

    def _groups(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        if not self._settings.roles_claim:
            return ()
        found: Any = claims
        for part in self._settings.roles_claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        return tuple(each for each in listed[:MAX_GROUPS] if isinstance(each, str))


def _asked(request: urllib.request.Request) -> dict[str, Any]:
    where = request.full_url.partition("?")[0]
    try:
        with Exchange(TIMEOUT_S) as exchange, exchange.open(request) as answer:
            body = answer.read(MAX_ANSWER_BYTES + 1)
        found = json.loads(body)
    except urllib.error.HTTPError as error:
        raise OidcFailed(f"{where} answers with {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        raise OidcFailed(f"cannot reach {where}: {reason_of(error)}") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or len(body) > MAX_ANSWER_BYTES:
        raise OidcFailed(f"{where} does not answer as an OpenID provider")
    return found


def _check_address(url: str) -> None:
    """Without TLS anybody on the way could be the provider."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.netloc)):
        raise OidcFailed(f"{url} is not an https address")


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _short(text: str) -> str:
    return "".join(each if each.isalnum() or each in " _-." else " " for each in text)[:100]
