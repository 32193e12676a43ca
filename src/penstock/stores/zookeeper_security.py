"""How we enter ZooKeeper: TLS and a login by SASL, from Kafka's options, and in words why we do not get in.

The login is that of a JAAS file's `Client` section, as Kafka's brokers and ZooKeeper's own tools have it: the file that
`KAFKA_OPTS=-Djava.security.auth.login.config=FILE` names, or one module in `penstock.zookeeper.sasl.jaas.config`.
"""

import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.security.jaas import BadJaas, LoginModule, parse_login
from penstock.security.jaas_files import JaasFile
from penstock.security.tls_context import client_context
from penstock.stores.zookeeper_sasl import LoginRefused, SaslUser

TLS: Final = "zookeeper.ssl.client.enable"
JAAS: Final = "penstock.zookeeper.sasl.jaas.config"
SECTION: Final = "Client"
MODULE: Final = "DigestLoginModule"
_PREFIX: Final = "zookeeper.ssl."


class ZooKeeperSecurity(NamedTuple):
    tls: ssl.SSLContext | None = None
    user: SaslUser | None = None


OPEN: Final = ZooKeeperSecurity()


def security_of(given: Mapping[str, str], environment: Mapping[str, str]) -> ZooKeeperSecurity:
    """Of a broker's options; ValueError begins with the option's name. Reads files: for the start."""
    is_tls = given.get(TLS, "false").strip().lower() == "true"
    return ZooKeeperSecurity(_tls(given) if is_tls else None, _user(given, environment))


def _tls(given: Mapping[str, str]) -> ssl.SSLContext:
    for name in ("crl", "ocsp"):
        if given.get(f"{_PREFIX}{name}.enable", "false").strip().lower() == "true":
            raise ValueError(
                f"{_PREFIX}{name}.enable: Penstock does not ask whether certificates were revoked"
            )
    options = {
        "ssl." + name.removeprefix(_PREFIX): text for name, text in given.items() if name.startswith(_PREFIX)
    }
    protocol = options.pop("ssl.protocol", "")
    if protocol not in ("", "TLS"):
        options.setdefault("ssl.enabled.protocols", protocol)
    try:
        return client_context(options)
    except ValueError as error:
        raise ValueError(f"zookeeper.{error}") from None


def _user(given: Mapping[str, str], environment: Mapping[str, str]) -> SaslUser | None:
    text = given.get(JAAS)
    if text:
        try:
            return _user_of(parse_login(text), JAAS)
        except BadJaas as error:
            raise ValueError(f"{JAAS}: {error}") from None
    file = JaasFile(environment)
    modules = file.modules(SECTION)
    return _user_of(modules[0], file.where) if modules else None


def _user_of(module: LoginModule, where: str) -> SaslUser:
    if module.name.rpartition(".")[2] != MODULE:
        raise ValueError(f"{where}: only {MODULE} can be used for ZooKeeper, not another class")
    name, password = module.options.get("username"), module.options.get("password")
    if not name or password is None:
        raise ValueError(f'{where}: the module must have username="…" and password="…"')
    return SaslUser(name, password)


def why_not(error: Exception, *, uses_tls: bool, is_new: bool) -> str:
    """What is wrong beyond that a server is not there; empty where nothing is. `is_new`: no session has been had yet."""
    if isinstance(error, LoginRefused):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        what = error.verify_message.rstrip(".")
        is_name = "not valid for" in what
        option = "endpoint.identification.algorithm" if is_name else "truststore.location"
        return f"its certificate is not accepted: {what} ({_PREFIX}{option})"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        if "CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
            return "it does not accept our certificate, or wants one (zookeeper.ssl.keystore.location)"
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"):
            return "it does not speak TLS on this port (zookeeper.ssl.client.enable)"
        return f"TLS with it fails: {reason.lower().replace('_', ' ')}"
    if isinstance(error, (ConnectionResetError, ConnectionAbortedError)) and is_new:
        if uses_tls:
            return "it closed the connection: is that a port for TLS, and do we need a certificate?"
        return "it closed the connection: is that a port for TLS (zookeeper.ssl.client.enable)?"
    return ""
