"""A small OpenID provider that the tests run: discovery, a login page, a token endpoint that checks what it must."""

from __future__ import annotations

import base64
import hashlib
import html
import http.server
import json
import secrets
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

from tests.identity_provider import IdentityProvider

CLIENT_ID = "penstock-console"
CLIENT_SECRET = "s3cret+/="


class OpenIdProvider:
    """Use as a context. `person` is who presses its button; `spoil` may change the claims of the next token."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "17", "preferred_username": "ana", "groups": ["ops"]}
        self.spoil: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.codes: dict[str, dict[str, str]] = {}
        self.refusals: list[str] = []
        self._keys = IdentityProvider()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                if parts.path == "/.well-known/openid-configuration":
                    self._say(200, "application/json", json.dumps(provider.about()))
                elif parts.path == "/keys":
                    self._say(200, "application/json", provider._keys.jwks())
                elif parts.path == "/authorize":
                    link = html.escape("/approve?" + parts.query)
                    self._say(
                        200, "text/html", f'<title>Provider</title><a id="approve" href="{link}">Yes</a>'
                    )
                elif parts.path == "/approve":
                    code = secrets.token_urlsafe(16)
                    provider.codes[code] = query
                    back = urlencode({"code": code, "state": query["state"], "iss": provider.issuer})
                    self.send_response(302)
                    self.send_header("Location", f"{query['redirect_uri']}?{back}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                elif parts.path == "/favicon.ico":
                    self._say(200, "image/x-icon", "")
                else:
                    self._say(404, "text/plain", "?")

            def do_POST(self) -> None:
                form = {
                    name: values[0]
                    for name, values in parse_qs(
                        self.rfile.read(int(self.headers["Content-Length"])).decode()
                    ).items()
                }
                status, said = provider.token(form, self.headers.get("Authorization", ""))
                self._say(status, "application/json", json.dumps(said))

            def _say(self, status: int, content_type: str, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def about(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """A code counts once, for the client and the verifier that it was given to."""
        begun = self.codes.pop(form.get("code", ""), None)
        user_info = f"{quote_plus(CLIENT_ID)}:{quote_plus(CLIENT_SECRET)}"
        pair = base64.b64encode(user_info.encode())
        problem = ""
        if begun is None:
            problem = "code"
        elif authorization != f"Basic {pair.decode()}":
            problem = "client"
        elif form["redirect_uri"] != begun["redirect_uri"]:
            problem = "redirect"
        else:
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if begun["code_challenge_method"] != "S256" or challenge != begun["code_challenge"]:
                problem = "verifier"
        if problem or begun is None:
            self.refusals.append(problem)
            return 400, {"error": "invalid_grant"}
        claims = self.spoil({**self.person, "iss": self.issuer, "aud": CLIENT_ID, "nonce": begun["nonce"]})
        return 200, {"id_token": self._keys.token(**claims), "access_token": "x", "token_type": "Bearer"}

    def __enter__(self) -> OpenIdProvider:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._keys._server.server_close()
