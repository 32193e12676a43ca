"""The properties that every HTTP service takes, by Confluent's names where Confluent has one; ours begin with `penstock.`.

A service adds its own table. `load` reads both out of one set of properties, and tells of names that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from penstock.client.errors import BadOption
from penstock.config.option import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    READ_ONLY,
    STRING,
    ConfigError,
    Option,
    at_least,
    one_of,
)
from penstock.model.endpoints import Address, bracketed

NONE, BASIC, BEARER = "NONE", "BASIC", "BEARER"

WEB_OPTIONS: Final = (
    Option("listeners", LIST, [], None, READ_ONLY,
           "Where it listens: http://HOST:PORT or https://HOST:PORT, several with commas between them."),
    Option("host.name", STRING, "", None, READ_ONLY,
           "The host name by which other instances find this one. Not set: that of the machine."),
    Option("idle.timeout.ms", INT, 30_000, at_least(1), READ_ONLY,
           "How long a connection may be idle, and how long the headers of a request may take."),
    Option("shutdown.graceful.ms", INT, 5000, at_least(0), READ_ONLY,
           "How long requests that are being served may take to end when the service stops."),
    Option("server.connection.limit", INT, 2000, at_least(1), READ_ONLY,
           "How many connections a listener holds. One more is closed at once."),
    Option("max.request.header.size", INT, 65_536, at_least(1024), READ_ONLY,
           "How large the path and the headers of a request may be together."),
    Option("penstock.request.max.bytes", INT, 16 << 20, at_least(1), READ_ONLY,
           "How large the body of a request may be."),
    Option("penstock.request.timeout.ms", INT, 60_000, at_least(1), READ_ONLY,
           "How long a request may take, its body included. Streams have bounds of their own."),
    Option("penstock.request.limit", INT, 1000, at_least(1), READ_ONLY,
           "How many requests are served at a time. One more is answered with 503."),
    Option("penstock.access.log", BOOLEAN, True, None, READ_ONLY, "Whether each request is told in the log."),
    Option("access.control.allow.origin", STRING, "", None, READ_ONLY,
           "Access-Control-Allow-Origin of the answers, for pages of other hosts in browsers."),
    Option("access.control.allow.methods", STRING, "", None, READ_ONLY, "Access-Control-Allow-Methods."),
    Option("access.control.allow.headers", STRING, "", None, READ_ONLY, "Access-Control-Allow-Headers."),
    Option("authentication.method", LIST, [NONE], one_of(NONE, BASIC, BEARER, any_case=True), READ_ONLY,
           "How clients log in: NONE, BASIC (name and password), BEARER (a JWT), or BASIC,BEARER."),
    Option("authentication.realm", STRING, "penstock", None, READ_ONLY, "What a browser shows when it asks for a login."),
    Option("authentication.roles", LIST, ["*"], None, READ_ONLY, "Roles that may log in by BASIC; * is any."),
    Option("penstock.authentication.read.only.roles", LIST, [], None, READ_ONLY,
           "Users of BASIC whose roles are all among these may look and change nothing: they may ask by GET and HEAD only."),
    Option("authentication.skip.paths", LIST, [], None, READ_ONLY, "Paths that need no login, as /health never does."),
    Option("penstock.authentication.users.file", STRING, "", None, READ_ONLY,
           "The users of BASIC, each a line `name: password,role`. It is read again when it has changed."),
    Option("oauthbearer.jwks.endpoint.url", STRING, "", None, READ_ONLY,
           "Where the keys are that sign the tokens of BEARER; file:///… is a file."),
    Option("oauthbearer.expected.issuer", STRING, "", None, READ_ONLY, "What `iss` of a token must be."),
    Option("oauthbearer.expected.audience", LIST, [], None, READ_ONLY, "What `aud` of a token must be, or one of several."),
    Option("oauthbearer.sub.claim.name", STRING, "sub", None, READ_ONLY, "The claim that has the name of the client."),
    Option("ssl.client.authentication", STRING, "NONE", one_of("NONE", "REQUESTED", "REQUIRED", any_case=True), READ_ONLY,
           "Whether clients of an https listener show a certificate, which is their login."),
    Option("ssl.client.auth", STRING, "", None, READ_ONLY, "The old form of it: true is REQUIRED."),
    Option("ssl.principal.mapping.rules", STRING, "DEFAULT", None, READ_ONLY,
           "How a name is made of the one in a client's certificate, as brokers do it."),
    Option("ssl.keystore.location", STRING, "", None, READ_ONLY, "The certificate and key of https: PEM, PKCS12 or JKS."),
    Option("ssl.keystore.password", PASSWORD, "", None, READ_ONLY, "Its password."),
    Option("ssl.keystore.type", STRING, "", None, READ_ONLY, "Not needed: a file says itself what it is."),
    Option("ssl.keystore.certificate.chain", STRING, "", None, READ_ONLY, "The certificate as PEM text."),
    Option("ssl.keystore.key", PASSWORD, "", None, READ_ONLY, "The private key as PEM text."),
    Option("ssl.key.password", PASSWORD, "", None, READ_ONLY, "The password of the private key."),
    Option("ssl.truststore.location", STRING, "", None, READ_ONLY, "The authorities whose client certificates are good."),
    Option("ssl.truststore.password", PASSWORD, "", None, READ_ONLY, "Its password."),
    Option("ssl.truststore.type", STRING, "", None, READ_ONLY, "Not needed."),
    Option("ssl.truststore.certificates", STRING, "", None, READ_ONLY, "The same as PEM text."),
    Option("ssl.enabled.protocols", STRING, "TLSv1.2,TLSv1.3", None, READ_ONLY, "The versions of TLS."),
    Option("ssl.cipher.suites", STRING, "", None, READ_ONLY, "The ciphers of TLS 1.2; nothing is OpenSSL's choice."),
)  # fmt: skip


class Listen(NamedTuple):
    """One listener."""

    scheme: str
    address: Address

    def __str__(self) -> str:
        return f"{self.scheme}://{bracketed(self.address.host)}:{self.address.port}"


@dataclass(frozen=True)
class WebOptions:
    """The table as the frame uses it. `given` keeps the texts of `ssl.…` for the TLS context."""

    listeners: tuple[Listen, ...]
    values: Mapping[str, Any]
    given: Mapping[str, str] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


class Loaded(NamedTuple):
    web: WebOptions
    own: Mapping[str, Any]
    """The service's own, each with its value or default."""
    warnings: list[str]


def load(
    given: Mapping[str, str],
    own: Sequence[Option] = (),
    *,
    ignored_prefixes: Iterable[str] = (),
    default_listener: Listen | None = None,
) -> Loaded:
    """BadOption for a value that cannot be used. Names that begin with one of `ignored_prefixes` are for others."""
    web = {option.name: _value(option, given) for option in WEB_OPTIONS}
    listeners = tuple(map(parse_listener, web["listeners"]))
    if not listeners and default_listener is not None:
        listeners = (default_listener,)
    tables = {option.name for option in (*WEB_OPTIONS, *own)}
    prefixes = tuple(ignored_prefixes)
    warnings = []
    for name in given:
        if name not in tables and not name.startswith(prefixes):
            near = get_close_matches(name, tables, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            warnings.append(f"there is no property {name}{hint}")
    return Loaded(
        WebOptions(listeners, web, dict(given)),
        {option.name: _value(option, given) for option in own},
        warnings,
    )


def _value(option: Option, given: Mapping[str, str]) -> Any:
    if option.name not in given:
        return option.default
    try:
        return option.parse(given[option.name])
    except ConfigError as error:
        raise BadOption(f"{option.name}: {error}") from None


def parse_listener(text: str) -> Listen:
    """`http://0.0.0.0:8081`, also with Confluent's names in front: `INTERNAL://…` is not one of them."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port = None
    if port is None or parts.scheme not in ("http", "https") or parts.path.strip("/"):
        raise BadOption(f"listeners: '{text}' is not http://HOST:PORT or https://HOST:PORT")
    return Listen(parts.scheme, Address(parts.hostname or "0.0.0.0", port))
