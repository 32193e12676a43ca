"""How a client proves who it is, and whom it trusts: Kafka's security properties, checked at once.

Two dialects are taken, because people have files in both: the Java clients' (`sasl.jaas.config`, `ssl.truststore.…`,
`ssl.keystore.…`) and librdkafka's (`sasl.username`, `ssl.ca.location`, …). Whichever was used, a reader gets a `Security`
and librdkafka gets its own names, so that one set of properties serves reading and writing.

Secrets stand in no message and in no `repr`.
"""

from __future__ import annotations

import os
import re
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from penstock.client.errors import BadOption
from penstock.client.key_stores import Identity, certificates, identity

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_JAVA: Final = """
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
security.protocol security.providers ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type
"""
_LIBRDKAFKA: Final = """
sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.method sasl.password
sasl.username ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
ssl.key.location ssl.key.pem
"""
SECURITY_NAMES: Final = frozenset((_JAVA + _LIBRDKAFKA).split())
"""All that are taken; those that say how a Java program is put together have no effect."""


@dataclass(frozen=True)
class Login:
    """With OAUTHBEARER the name and password are a client's id and secret, for which the endpoint gives tokens."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    option: str
    """Where the password came from."""
    token_endpoint: str = ""
    scope: str = ""


@dataclass(frozen=True)
class Security:
    protocol: str = "PLAINTEXT"
    login: Login | None = None
    trusted_pem: str | None = field(default=None, repr=False)
    """None: what this machine trusts."""
    trust_option: str = "ssl.truststore.location"
    identity: Identity | None = None
    checks_host_name: bool = True
    ciphers: str = ""
    """For librdkafka; those of Java and OpenSSL have other names, so Python is not told."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @cached_property
    def tls_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=self.trusted_pem)
        except ssl.SSLError as error:
            raise BadOption(f"{self.trust_option}: holds no certificates: {error.reason}") from None
        context.check_hostname = self.checks_host_name
        if self.identity is not None:
            _load(context, self.identity)
        return context

    def librdkafka_settings(self) -> dict[str, str]:
        settings = {"security.protocol": self.protocol}
        if self.ciphers:
            settings["ssl.cipher.suites"] = self.ciphers
        if self.login is not None:
            settings |= _librdkafka_login(self.login)
        if self.uses_tls:
            settings["ssl.endpoint.identification.algorithm"] = "https" if self.checks_host_name else "none"
            if self.trusted_pem is not None:
                settings["ssl.ca.pem"] = self.trusted_pem
            if self.identity is not None:
                settings["ssl.certificate.pem"] = self.identity.certificates_pem
                settings["ssl.key.pem"] = self.identity.key_pem
                if self.identity.key_password is not None:
                    settings["ssl.key.password"] = self.identity.key_password
        return settings


def _librdkafka_login(login: Login) -> dict[str, str]:
    settings = {"sasl.mechanisms": login.mechanism}
    if login.mechanism != "OAUTHBEARER":
        return settings | {"sasl.username": login.username, "sasl.password": login.password}
    settings |= {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": login.username,
        "sasl.oauthbearer.client.secret": login.password,
        "sasl.oauthbearer.token.endpoint.url": login.token_endpoint,
    }
    return settings | ({"sasl.oauthbearer.scope": login.scope} if login.scope else {})


NO_SECURITY: Final = Security()


def security_of(properties: Mapping[str, str]) -> Security:
    """From the properties that are in SECURITY_NAMES; others are not looked at. BadOption begins with a name.

    Files are read here, once for the same properties in one process.
    """
    given = {name: value for name, value in properties.items() if name in SECURITY_NAMES}
    return _security(tuple(sorted(given.items()))) if given else NO_SECURITY


@lru_cache(maxsize=16)
def _security(items: tuple[tuple[str, str], ...]) -> Security:
    given = dict(items)
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise BadOption(f"security.protocol: '{protocol}' is not {_listed(PROTOCOLS)}")
    login = _login(given, protocol) if protocol.startswith("SASL") else None
    if not protocol.endswith("SSL"):
        return Security(protocol, login)
    trust_option = _first(
        given,
        "ssl.truststore.certificates",
        "ssl.ca.pem",
        "ssl.truststore.location",
        "ssl.ca.location",
    )
    trusted_pem = None
    if trust_option is not None:
        trusted_pem = certificates(
            trust_option,
            given[trust_option],
            password_option="ssl.truststore.password",
            password=given.get("ssl.truststore.password"),
        )
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", "none", ""):
        raise BadOption(
            f"ssl.endpoint.identification.algorithm: '{algorithm}' is not https, or none (or nothing)"
        )
    security = Security(
        protocol,
        login,
        trusted_pem,
        trust_option or "ssl.truststore.location",
        identity(given),
        algorithm == "https",
        given.get("ssl.cipher.suites", ""),
    )
    security.tls_context  # noqa: B018 - what cannot be used is told now
    return security


def _login(given: Mapping[str, str], protocol: str) -> Login:
    option = _first(given, "sasl.mechanism", "sasl.mechanisms")
    if option is None:
        raise BadOption(f"sasl.mechanism: must be given with {protocol}: {_listed(MECHANISMS)}")
    mechanism = given[option].strip().upper()
    if mechanism not in MECHANISMS:
        raise BadOption(f"{option}: '{mechanism}' cannot be used here; it must be {_listed(MECHANISMS)}")
    if mechanism == "OAUTHBEARER":
        return _oauth_login(given)
    if "sasl.jaas.config" in given:
        said = _jaas(given["sasl.jaas.config"])
        if not said.get("username") or "password" not in said:
            raise BadOption(
                f'sasl.jaas.config: must hold username="…" and password="…" of a login module for {mechanism}'
            )
        if said.get("tokenauth", "").lower() == "true":
            raise BadOption("sasl.jaas.config: delegation tokens (tokenauth) cannot be used here")
        return Login(mechanism, said["username"], said["password"], "sasl.jaas.config")
    for name in ("sasl.username", "sasl.password"):
        if not given.get(name):
            raise BadOption(f"{name}: must be given with {protocol} (or sasl.jaas.config)")
    return Login(mechanism, given["sasl.username"], given["sasl.password"], "sasl.password")


def _oauth_login(given: Mapping[str, str]) -> Login:
    """The client's id and secret stand in the JAAS text, or have options of their own."""
    said = _jaas(given.get("sasl.jaas.config", ""))
    endpoint = given.get("sasl.oauthbearer.token.endpoint.url", "")
    if urllib.parse.urlsplit(endpoint).scheme not in ("http", "https"):
        raise BadOption(
            "sasl.oauthbearer.token.endpoint.url: must be given with OAUTHBEARER and begin with https://"
        )
    scope = given.get("sasl.oauthbearer.scope") or said.get("scope", "")
    for prefix in ("sasl.oauthbearer.client.credentials.client", "sasl.oauthbearer.client"):
        if given.get(f"{prefix}.id"):
            secret = given.get(f"{prefix}.secret", "")
            return Login("OAUTHBEARER", given[f"{prefix}.id"], secret, f"{prefix}.secret", endpoint, scope)
    if not said.get("clientId"):
        raise BadOption('sasl.jaas.config: must hold clientId="…" and clientSecret="…" for OAUTHBEARER')
    secret = said.get("clientSecret", "")
    return Login("OAUTHBEARER", said["clientId"], secret, "sasl.jaas.config", endpoint, scope)


def _jaas(text: str) -> dict[str, str]:
    """The options behind the login module's name: `username="ana"`, also without the quotes."""
    found = re.findall(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', text)
    return {name: re.sub(r"\\(.)", r"\1", quoted) or bare for name, quoted, bare in found}


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    """Python reads a key from a file only. This one is in memory: a key without its password never lies on a disk."""
    memory = os.memfd_create("penstock-identity")
    try:
        with open(memory, "w", closefd=False) as file:
            file.write(identity.key_pem + identity.certificates_pem)
        context.load_cert_chain(f"/proc/self/fd/{memory}", password=lambda: identity.key_password or "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadOption(
                f"{identity.option}: the private key is of another certificate than the one given"
            ) from None
        told = (
            "does not open the private key" if identity.key_password else "is missing, or the key is broken"
        )
        raise BadOption(f"ssl.key.password: {told} ({identity.option})") from None
    finally:
        os.close(memory)


def _first(given: Mapping[str, str], *names: str) -> str | None:
    return next((name for name in names if given.get(name)), None)


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
