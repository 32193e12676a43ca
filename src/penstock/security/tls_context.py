"""The TLS side of a listener, from Kafka's options: `ssl.keystore.…`, `ssl.truststore.…`, `ssl.client.auth` and the rest.

What a client may be asked for: `none`, `requested` (it may show a certificate, which must be good then) or `required`.
"""

import ssl
from collections.abc import Mapping
from typing import Final

from penstock.security.distinguished_names import name_as_java_writes_it
from penstock.security.key_stores import BadStore, certificates, identity
from penstock.security.principals import ANONYMOUS, USER, NameRules, Principal

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_CLIENTS: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_OF_TLS_1_3: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
_TRUST: Final = ("ssl.truststore.certificates", "ssl.truststore.location")


def server_context(given: Mapping[str, str]) -> ssl.SSLContext:
    """ValueError, which begins with the option's name, where the options cannot be used."""
    own = identity(given)
    if own is None:
        raise BadStore("ssl.keystore.location: must be given for a listener that speaks TLS")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A client of TLS 1.2 could ask for a signature over and over. Java's and librdkafka's never ask.
    context.options |= ssl.OP_NO_RENEGOTIATION
    own.load_into(context)
    set_versions(context, given.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"))
    _set_ciphers(context, given.get("ssl.cipher.suites", ""))
    wanted = given.get("ssl.client.auth", "none").lower()
    if wanted not in _CLIENTS:
        raise BadStore(f"ssl.client.auth: '{wanted}' is not required, requested or none")
    context.verify_mode = _CLIENTS[wanted]
    if context.verify_mode is not ssl.CERT_NONE:
        if not any(given.get(name) for name in _TRUST):
            raise BadStore(
                f"ssl.truststore.location: must be given with ssl.client.auth={wanted}, else whoever has a certificate "
                "of any authority that this machine trusts would be let in"
            )
        _trust(context, given)
    return context


def client_context(given: Mapping[str, str]) -> ssl.SSLContext:
    """For connections to other brokers. ValueError as above."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own = identity(given)
    if own is not None:
        own.load_into(context)
    set_versions(context, given.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"))
    _set_ciphers(context, given.get("ssl.cipher.suites", ""))
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", "none", ""):
        raise BadStore(f"ssl.endpoint.identification.algorithm: '{algorithm}' is not https, none or nothing")
    context.check_hostname = algorithm == "https"
    _trust(context, given)
    return context


def _trust(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    option = next((name for name in _TRUST if given.get(name)), None)
    if option is None:
        context.load_default_certs(
            ssl.Purpose.SERVER_AUTH
            if context.protocol is ssl.PROTOCOL_TLS_CLIENT
            else ssl.Purpose.CLIENT_AUTH
        )
        return
    pem = certificates(
        option,
        given[option],
        password_option="ssl.truststore.password",
        password=given.get("ssl.truststore.password"),
    )
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as error:
        raise BadStore(f"{option}: holds no certificates: {error.reason}") from None


def set_versions(context: ssl.SSLContext, text: str) -> None:
    """Of `ssl.enabled.protocols`: all from the oldest named to the newest. BadStore for a name that there is not."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _VERSIONS:
            raise BadStore(f"ssl.enabled.protocols: '{name}' is not {', '.join(_VERSIONS)}")
    if names:
        versions = [_VERSIONS[name] for name in names]
        context.minimum_version, context.maximum_version = min(versions), max(versions)


def _set_ciphers(context: ssl.SSLContext, text: str) -> None:
    """Java's names for TLS 1.2. Those of TLS 1.3 are the same everywhere, and OpenSSL has them all on. Who names no others wants
    nothing older: OpenSSL would offer its own choice of ciphers there."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    older = [_openssl_name(name) for name in names if name not in _OF_TLS_1_3]
    if not names:
        return
    if not older:
        if context.maximum_version not in (ssl.TLSVersion.MAXIMUM_SUPPORTED, ssl.TLSVersion.TLSv1_3):
            raise BadStore(
                "ssl.cipher.suites: has only ciphers of TLS 1.3, which ssl.enabled.protocols leaves out"
            )
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(older))
    except ssl.SSLError:
        raise BadStore(f"ssl.cipher.suites: OpenSSL has none of {', '.join(names)}") from None


def _openssl_name(java_name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384 there."""
    if "_WITH_" not in java_name:
        return java_name
    name = java_name.removeprefix("TLS_").removeprefix("SSL_").replace("_WITH_", "_")
    name = name.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("AES128_CBC", "AES128")
    name = name.replace("AES256_CBC", "AES256").replace("_POLY1305_SHA256", "_POLY1305")
    return name.removeprefix("RSA_").replace("_", "-")


def principal_of_certificate(certificate: bytes | None, rules: NameRules) -> Principal:
    """ANONYMOUS without a certificate; ValueError where no rule names the client."""
    if certificate is None:
        return ANONYMOUS
    from cryptography import x509

    subject = x509.load_der_x509_certificate(certificate).subject.public_bytes()
    return Principal(USER, rules.apply(name_as_java_writes_it(subject)))
