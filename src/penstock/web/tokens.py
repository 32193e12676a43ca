"""Bearer tokens: JWTs, checked with the keys of an identity provider (`credentials.signed_tokens`).

The keys are fetched at the first token and again when a token names a key that is not known, at most each REFETCH_S. It all
blocks, so it runs in a thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

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

REFETCH_S: Final = 10.0
LEEWAY_S: Final = 30.0


class TokenCheck:
    def __init__(self, *, url: str, issuer: str, audience: Sequence[str], claim: str) -> None:
        self._url = url
        self._rules = Rules(
            issuer,
            tuple(audience),
            claim,
            clock_skew_s=LEEWAY_S,
            required=("exp",),
            algorithms=(*RSA, *CURVES.values(), EDWARDS),
            refuses_any_audience=False,
        )
        self._keys: Keys = {}
        self._fetched_s = float("-inf")
        self._lock = threading.Lock()

    def name_of(self, token: str) -> tuple[str, float]:
        """Who it is, and until when the token counts (Unix time). BadToken otherwise."""
        bearer = check(token, self._key(key_id(token)), self._rules)
        return bearer.name, bearer.expires_ms / 1000 + LEEWAY_S

    def _key(self, named: str | None) -> Key:
        with self._lock:
            if named not in self._keys and time.monotonic() - self._fetched_s > REFETCH_S:
                self._fetched_s = time.monotonic()
                try:
                    self._keys = fetched_keys(self._url)
                except NoKeys as error:
                    raise BadToken(
                        f"the keys of oauthbearer.jwks.endpoint.url cannot be read: {error}"
                    ) from None
            if named not in self._keys:
                raise BadToken("it is signed with a key that is not known")
            return self._keys[named]
