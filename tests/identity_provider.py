"""An identity provider for tests: it has keys, publishes them, and gives tokens to whoever asks with an id and a secret."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
import urllib.parse
from types import TracebackType
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER = "https://login.example.com"
AUDIENCE = "kafka"


class IdentityProvider:
    """Use as a context. Its page of keys hangs while `may_answer` is not set; `fetches` counts who asked for it."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.new_key("first")
        self.secrets = {"broker": "b-secret", "ana": "a-secret"}
        self.lifetime_s = 600.0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.fetches = 0
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.fetches += 1
                provider.may_answer.wait(60)
                self._say(200, provider.jwks())

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"]))
                assert urllib.parse.parse_qs(form.decode())["grant_type"] == ["client_credentials"]
                _, _, pair = self.headers["Authorization"].partition(" ")
                name, _, secret = base64.b64decode(pair).decode().partition(":")
                if provider.secrets.get(name) != secret:
                    self._say(401, '{"error":"invalid_client"}')
                    return
                said = {
                    "access_token": provider.token(name),
                    "expires_in": provider.lifetime_s,
                    "token_type": "Bearer",
                }
                self._say(200, json.dumps(said))

            def _say(self, status: int, text: str) -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text.encode())
                except ConnectionError:
                    pass  # whoever asked waits no longer

            def log_message(self, *_: object) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def keys_url(self) -> str:
        return f"{self.address}/keys"

    @property
    def token_url(self) -> str:
        return f"{self.address}/token"

    def new_key(self, name: str, kind: str = "RSA") -> None:
        if kind == "RSA":
            self.keys[name] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        else:
            self.keys[name] = ec.generate_private_key(ec.SECP256R1())

    def jwks(self) -> str:
        entries = []
        for name, key in self.keys.items():
            kind = (
                jwt.algorithms.RSAAlgorithm
                if isinstance(key, rsa.RSAPrivateKey)
                else jwt.algorithms.ECAlgorithm
            )
            entries.append({**kind.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"})
        return json.dumps({"keys": entries})

    def claims(self, name: str = "ana", **changed: Any) -> dict[str, Any]:
        """Of a good token. What is changed to None is left out."""
        now = time.time()
        claims = {
            "sub": name, "iss": ISSUER, "aud": AUDIENCE, "iat": now - 1, "exp": now + self.lifetime_s, "scope": "all"
        }  # fmt: skip
        return {key: value for key, value in {**claims, **changed}.items() if value is not None}

    def token(
        self,
        name: str = "ana",
        *,
        key: str = "first",
        kid: str | None = None,
        algorithm: str = "",
        **changed: Any,
    ) -> str:
        private = self.keys[key]
        usual = "RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(
            self.claims(name, **changed), private, algorithm=algorithm or usual, headers={"kid": kid or key}
        )

    def __enter__(self) -> IdentityProvider:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
