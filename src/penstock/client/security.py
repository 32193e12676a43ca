"""How a client proves who it is, and whom it trusts: Kafka's security properties, checked at once.

Two dialects are taken, because people have files in both: the Java clients' (`sasl.jaas.config`, `ssl.truststore.…`,
`ssl.keystore.…`) and librdkafka's (`sasl.username`, `ssl.ca.location`, …). Whichever was used, a reader gets a `Security`
and librdkafka gets its own names, so that one set of properties serves reading and writing.

Secrets stand in no message and in no `repr`.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

from penstock.client.errors import BadOption
from penstock.client.properties import SECURITY_NAMES
from penstock.security.bearer import ENDPOINT, TokenSource, is_endpoint
from penstock.security.jaas import BadJaas, parse_login
from penstock.security.jaas_files import VARIABLE, JaasFile
from penstock.security.kerberos import GSSAPI, SERVICE, TicketSource
from penstock.security.key_stores import BadStore, Identity, certificates, check_type, identity
from penstock.security.tls_context import set_versions

log = logging.getLogger("penstock.client")

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
UNCHECKED: Final = "enable.ssl.certificate.verification"
"""Of librdkafka. False: no certificate is checked, and no host name."""
SECTION: Final = "KafkaClient"
"""Of a JAAS file."""
_LOGIN_NAMES: Final = (
    "sasl.jaas.config",
    "sasl.username",
    "sasl.kerberos.keytab",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.id",
)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", GSSAPI)


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
    tickets: TicketSource | None = None
    """With GSSAPI; the name is that of the principal then, where it is given."""
    is_token: bool = False
    """Whether name and password are a delegation token's id and HMAC."""
    bearer_token: str = field(default="", repr=False)
    """With OAUTHBEARER: a token that is there already. No endpoint is asked for one."""

    @property
    def token_source(self) -> TokenSource:
        return TokenSource(self.token_endpoint, self.username, self.password, self.option, self.scope)


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
    versions: str = ""
    """Of TLS, as `ssl.enabled.protocols` has them. librdkafka has no property for it."""
    checks_certificate: bool = True

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @cached_property
    def tls_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=self.trusted_pem)
        except ssl.SSLError as error:
            raise BadOption(f"{self.trust_option}: holds no certificates: {error.reason}") from None
        context.check_hostname = self.checks_host_name and self.checks_certificate
        if not self.checks_certificate:
            context.verify_mode = ssl.CERT_NONE
        set_versions(context, self.versions)
        if self.identity is not None:
            self.identity.load_into(context)
        return context

    def librdkafka_settings(self) -> dict[str, str]:
        settings = {"security.protocol": self.protocol}
        if self.ciphers:
            settings["ssl.cipher.suites"] = self.ciphers
        if self.login is not None:
            settings |= _librdkafka_login(self.login)
        if self.uses_tls:
            settings["ssl.endpoint.identification.algorithm"] = "https" if self.checks_host_name else "none"
            if not self.checks_certificate:
                settings[UNCHECKED] = "false"
            if self.trusted_pem is not None:
                settings["ssl.ca.pem"] = self.trusted_pem
            if self.identity is not None:
                settings["ssl.certificate.pem"] = self.identity.certificates_pem
                settings["ssl.key.pem"] = self.identity.key_pem
                if self.identity.key_password is not None:
                    settings["ssl.key.password"] = self.identity.key_password
        return settings


def _librdkafka_login(login: Login) -> dict[str, str]:
    if login.is_token:
        raise BadOption(
            "sasl.jaas.config: librdkafka, which writes and consumes records here, cannot log in with delegation tokens "
            "(tokenauth)"
        )
    settings = {"sasl.mechanisms": login.mechanism}
    if login.tickets is not None:
        more = {"principal": login.tickets.principal, "keytab": login.tickets.keytab}
        return (
            settings
            | {SERVICE: login.tickets.service}
            | {f"sasl.kerberos.{k}": v for k, v in more.items() if v}
        )
    if login.bearer_token:
        return settings  # `clients.Connection` gives it the token, by a call
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
    try:
        return _security(tuple(sorted(given.items())), os.environ.get(VARIABLE, "")) if given else NO_SECURITY
    except BadStore as error:
        raise BadOption(str(error)) from None


def with_bearer_token(properties: Mapping[str, str], token: str) -> Security:
    """The same way to the cluster, with this token as the login. BadOption where the protocol has no logins."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in ("SASL_PLAINTEXT", "SASL_SSL"):
        raise BadOption(
            f"security.protocol: '{protocol}' has no logins; it must be SASL_SSL or SASL_PLAINTEXT"
        )
    way = {name: value for name, value in properties.items() if not name.startswith("sasl.")}
    way["security.protocol"] = "SSL" if protocol == "SASL_SSL" else "PLAINTEXT"
    login = Login("OAUTHBEARER", "", "", "sasl.mechanism", bearer_token=token)
    return replace(security_of(way), protocol=protocol, login=login)


@lru_cache(maxsize=16)
def _security(items: tuple[tuple[str, str], ...], kafka_opts: str) -> Security:
    given = dict(items)
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise BadOption(f"security.protocol: '{protocol}' is not {_listed(PROTOCOLS)}")
    login = _login(_with_file(given, kafka_opts), protocol) if protocol.startswith("SASL") else None
    if not protocol.endswith("SSL"):
        return Security(protocol, login)
    _refuse_both(given, "ssl.truststore.certificates", "ssl.truststore.location")
    _refuse_both(given, "ssl.keystore.key", "ssl.keystore.location")
    trust_option = _first(
        given,
        "ssl.truststore.certificates",
        "ssl.ca.pem",
        "ssl.truststore.location",
        "ssl.ca.location",
    )
    _check_type(given, "ssl.truststore.type", "ssl.truststore.certificates", "ssl.truststore.location")
    _check_type(given, "ssl.keystore.type", "ssl.keystore.key", "ssl.keystore.location")
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
    checked = given.get(UNCHECKED, "true").strip().lower()
    if checked not in ("true", "false"):
        raise BadOption(f"{UNCHECKED}: must be true or false, not '{given[UNCHECKED]}'")
    security = Security(
        protocol,
        login,
        trusted_pem,
        trust_option or "ssl.truststore.location",
        identity(given),
        algorithm == "https",
        given.get("ssl.cipher.suites", ""),
        given.get("ssl.enabled.protocols", ""),
        checked == "true",
    )
    security.tls_context  # noqa: B018 - what cannot be used is told now
    if not security.checks_certificate:
        log.warning(
            "WARN: %s is false: no certificate is checked, so anybody can pose as the broker and read what is sent",
            UNCHECKED,
        )
    return security


def _check_type(given: Mapping[str, str], type_option: str, *stores: str) -> None:
    if given.get(type_option):
        option = _first(given, *stores)
        check_type(type_option, given[type_option], option, given.get(option or "", ""))


def _with_file(given: dict[str, str], kafka_opts: str) -> dict[str, str]:
    """With the login of the JAAS file that KAFKA_OPTS names, where the properties themselves hold none."""
    if any(given.get(name) for name in _LOGIN_NAMES):
        return given
    mechanism = given.get("sasl.mechanism") or given.get("sasl.mechanisms") or ""
    try:
        module = JaasFile({VARIABLE: kafka_opts}).module(mechanism.strip(), SECTION)
    except ValueError as error:
        raise BadOption(str(error)) from None
    return given if module is None else {**given, "sasl.jaas.config": module.text()}


def _login(given: Mapping[str, str], protocol: str) -> Login:
    option = _first(given, "sasl.mechanism", "sasl.mechanisms")
    if option is None:
        raise BadOption(f"sasl.mechanism: must be given with {protocol}: {_listed(MECHANISMS)}")
    mechanism = given[option].strip().upper()
    other = given.get("sasl.mechanisms", "").strip().upper()
    if other not in ("", mechanism):
        raise BadOption(
            f"sasl.mechanism: is {mechanism}, and sasl.mechanisms, which means the same, is {other}"
        )
    if mechanism not in MECHANISMS:
        raise BadOption(f"{option}: '{mechanism}' cannot be used here; it must be {_listed(MECHANISMS)}")
    if mechanism == "OAUTHBEARER":
        return _oauth_login(given)
    if mechanism == GSSAPI:
        return _kerberos_login(given)
    if "sasl.jaas.config" in given:
        said = _jaas(given["sasl.jaas.config"])
        if not said.get("username") or "password" not in said:
            raise BadOption(
                f'sasl.jaas.config: must hold username="…" and password="…" of a login module for {mechanism}'
            )
        is_token = said.get("tokenauth", "").lower() == "true"
        if is_token and mechanism == "PLAIN":
            raise BadOption(
                "sasl.jaas.config: delegation tokens (tokenauth) are for SCRAM, and not for PLAIN"
            )
        for name, part in (("sasl.username", "username"), ("sasl.password", "password")):
            if given.get(name, said[part]) != said[part]:
                raise BadOption(f"{name}: is another one than in sasl.jaas.config; leave out one of them")
        return Login(mechanism, said["username"], said["password"], "sasl.jaas.config", is_token=is_token)
    for name in ("sasl.username", "sasl.password"):
        if not given.get(name):
            raise BadOption(f"{name}: must be given with {protocol} (or sasl.jaas.config)")
    return Login(mechanism, given["sasl.username"], given["sasl.password"], "sasl.password")


def _kerberos_login(given: Mapping[str, str]) -> Login:
    """A keytab or a ticket cache, from the JAAS text or from librdkafka's properties."""
    said = dict(_jaas(given.get("sasl.jaas.config", "")))
    option = "sasl.jaas.config"
    if given.get("sasl.kerberos.keytab"):
        option = "sasl.kerberos.keytab"
        said |= {"useKeyTab": "true", "keyTab": given[option]}
    if given.get("sasl.kerberos.principal"):
        said["principal"] = given["sasl.kerberos.principal"]
    try:
        tickets = TicketSource.of(said, given.get(SERVICE, "").strip())
    except ValueError as error:
        raise BadOption(f"{option}: {error}") from None
    return Login(GSSAPI, tickets.principal, "", option, tickets=tickets)


def _oauth_login(given: Mapping[str, str]) -> Login:
    """The client's id and secret stand in the JAAS text, or have options of their own."""
    said = _jaas(given.get("sasl.jaas.config", ""))
    endpoint = given.get(ENDPOINT, "")
    if not is_endpoint(endpoint):
        raise BadOption(f"{ENDPOINT}: must be given with OAUTHBEARER and begin with https://")
    scope = given.get("sasl.oauthbearer.scope") or said.get("scope", "")
    for prefix in ("sasl.oauthbearer.client.credentials.client", "sasl.oauthbearer.client"):
        if given.get(f"{prefix}.id"):
            secret = given.get(f"{prefix}.secret", "")
            return Login("OAUTHBEARER", given[f"{prefix}.id"], secret, f"{prefix}.secret", endpoint, scope)
    if not said.get("clientId"):
        raise BadOption('sasl.jaas.config: must hold clientId="…" and clientSecret="…" for OAUTHBEARER')
    secret = said.get("clientSecret", "")
    return Login("OAUTHBEARER", said["clientId"], secret, "sasl.jaas.config", endpoint, scope)


def _jaas(text: str) -> Mapping[str, str]:
    """The options behind the login module's name."""
    if not text.strip():
        return {}
    try:
        return parse_login(text).options
    except BadJaas as error:
        raise BadOption(f"sasl.jaas.config: {error}") from None


def _first(given: Mapping[str, str], *names: str) -> str | None:
    return next((name for name in names if given.get(name)), None)


def _refuse_both(given: Mapping[str, str], name: str, other: str) -> None:
    """As the Java clients do."""
    if given.get(name) and given.get(other):
        raise BadOption(f"{name}: cannot be given together with {other}")


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
