"""Access tokens for OAUTHBEARER: asked for with a client's id and secret, and kept while they last."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Final

from penstock.client.errors import AccessRefused
from penstock.client.security import Login

REQUEST_TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
USED_FOR: Final = 0.8  # of a token's life; the rest is for clocks that differ and for the way to the broker
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would take the client's secret along to wherever it is sent."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirects)
# Whose token, the token, and until when it is used, by the monotonic clock.
_kept: dict[Login, tuple[str, float]] = {}
_lock: Final = threading.Lock()


def token_of(login: Login) -> str:
    """AccessRefused, which names the option, where there is none to be had."""
    with _lock:
        token, until_s = _kept.get(login, ("", 0.0))
        if time.monotonic() < until_s:
            return token
        token, lifetime_s = _ask(login)
        _kept[login] = (token, time.monotonic() + lifetime_s * USED_FOR)
        return token


def _ask(login: Login) -> tuple[str, float]:
    form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
    pair = f"{urllib.parse.quote_plus(login.username)}:{urllib.parse.quote_plus(login.password)}"
    request = urllib.request.Request(
        login.token_endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
            "Accept": "application/json",
        },
    )
    try:
        with _opener.open(request, timeout=REQUEST_TIMEOUT_S) as answer:
            said = json.loads(answer.read(MAX_ANSWER_BYTES))
        return str(said["access_token"]), float(said.get("expires_in", 0))
    except urllib.error.HTTPError as error:
        with error:
            complaint = f"{login.token_endpoint} gives no token: {error.code} {error.reason}"
        is_our_fault = error.code in (400, 401, 403)
        raise AccessRefused(login.option if is_our_fault else _ENDPOINT, complaint) from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise AccessRefused(_ENDPOINT, f"cannot reach {login.token_endpoint}: {reason}") from None
    except (http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise AccessRefused(_ENDPOINT, f"{login.token_endpoint} does not answer with a token") from None
