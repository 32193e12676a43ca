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

from penstock.credentials.http import Exchange, reason_of
from penstock.security.bearer import ENDPOINT, TokenSource

REQUEST_TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
USED_FOR: Final = 0.8  # of a token's life; the rest is for clocks that differ and for the way to the broker


class NoToken(Exception):
    """There is none to be had. `option` is the one to look at."""

    def __init__(self, option: str, complaint: str) -> None:
        super().__init__(complaint)
        self.option = option


# Whose token, the token, and until when it is used, by the monotonic clock.
_kept: dict[TokenSource, tuple[str, float]] = {}
_lock: Final = threading.Lock()


def token_of(source: TokenSource) -> str:
    """NoToken otherwise."""
    with _lock:
        token, until_s = _kept.get(source, ("", 0.0))
        if time.monotonic() < until_s:
            return token
        token, lifetime_s = _ask(source)
        _kept[source] = (token, time.monotonic() + lifetime_s * USED_FOR)
        return token


def _ask(source: TokenSource) -> tuple[str, float]:
    form = {"grant_type": "client_credentials"} | ({"scope": source.scope} if source.scope else {})
    pair = f"{urllib.parse.quote_plus(source.client_id)}:{urllib.parse.quote_plus(source.secret)}"
    request = urllib.request.Request(
        source.endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
            "Accept": "application/json",
        },
    )
    try:
        with Exchange(REQUEST_TIMEOUT_S) as exchange, exchange.open(request) as answer:
            said = json.loads(answer.read(MAX_ANSWER_BYTES))
        return str(said["access_token"]), float(said.get("expires_in", 0))
    except urllib.error.HTTPError as error:
        with error:
            complaint = f"{source.endpoint} gives no token: {error.code} {error.reason}"
        is_our_fault = error.code in (400, 401, 403)
        raise NoToken(source.secret_option if is_our_fault else ENDPOINT, complaint) from None
    except OSError as error:
        raise NoToken(ENDPOINT, f"cannot reach {source.endpoint}: {reason_of(error)}") from None
    except (http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NoToken(ENDPOINT, f"{source.endpoint} does not answer with a token") from None
