"""Broker options: logins by access tokens (OAUTHBEARER) and by Kerberos tickets (GSSAPI).

Names, types, defaults, checks and whether they may change live are Kafka 4.3.1's.
"""

from penstock.config.option import (
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    PER_BROKER,
    READ_ONLY,
    STRING,
    Check,
    ConfigError,
    Option,
    at_least,
    invalid_value,
    one_of,
)

_KAFKAS_PACKAGES = "org.apache.kafka."


def _refuse_others(name: str, value: str | None) -> ConfigError | None:
    """What checks logins in a way of its own would not be asked: the broker must not look as if it was."""
    if not value or value.startswith(_KAFKAS_PACKAGES):
        return None
    return invalid_value(name, value=value, why="Java classes cannot be used, and only Kafka's own are known")


OF_KAFKA = Check("a class of Kafka's own", _refuse_others)
PRINCIPAL_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

LOGIN_OPTIONS = (
    Option("sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, READ_ONLY,
           "Where the keys are that access tokens are checked with (a JWKS): https://, http://, or file: and a path."),
    Option("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, None, READ_ONLY,
           "After what time the keys are fetched again."),
    Option("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None, READ_ONLY,
           "The first wait after keys could not be fetched; it doubles from time to time."),
    Option("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, None, READ_ONLY,
           "The longest wait after keys could not be fetched."),
    Option("sasl.oauthbearer.expected.issuer", STRING, None, None, READ_ONLY,
           "Who must have issued an access token (its claim `iss`)."),
    Option("sasl.oauthbearer.expected.audience", LIST, None, None, READ_ONLY,
           "For whom an access token must be: one of these is in its claim `aud`. Not set: a token that has one is refused."),
    Option("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, READ_ONLY,
           "The claim with the scopes of an access token."),
    Option("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, READ_ONLY,
           "The claim with the name of who an access token is for; it becomes the principal."),
    Option("sasl.oauthbearer.clock.skew.seconds", INT, 30, at_least(0), READ_ONLY,
           "By how much clocks may differ where the times in an access token are checked."),
    Option("sasl.oauthbearer.token.endpoint.url", STRING, None, None, READ_ONLY,
           "Where this broker gets the access token with which it logs in at other brokers."),
    Option("sasl.oauthbearer.client.credentials.client.id", STRING, None, None, READ_ONLY,
           "The id with which this broker asks for its access token; or clientId in its sasl.jaas.config."),
    Option("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None, READ_ONLY,
           "The secret with which this broker asks for its access token; or clientSecret in its sasl.jaas.config."),
    Option("sasl.oauthbearer.scope", STRING, None, None, READ_ONLY,
           "The scope of the access token that this broker asks for; or scope in its sasl.jaas.config."),
    Option("sasl.kerberos.service.name", STRING, None, None, PER_BROKER,
           "The first part of the principals of brokers, for which tickets are asked; kafka where it is not set."),
    Option("sasl.kerberos.principal.to.local.rules", LIST, ["DEFAULT"], None, PER_BROKER,
           "How the name in a Kerberos ticket becomes a principal: RULE:[n:format](pattern)s/from/to/g/L, or DEFAULT."),
    Option("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None, PER_BROKER,
           "Kafka's command that renews tickets. The library does that here.", honoured=False),
    Option("sasl.kerberos.min.time.before.relogin", LONG, 60_000, None, PER_BROKER,
           "Kafka's wait between two logins at the key server. The library asks when a ticket is over.", honoured=False),
    Option("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None, PER_BROKER,
           "How much of Kafka's time of renewal is by chance.", honoured=False),
    Option("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None, PER_BROKER,
           "At what part of a ticket's life Kafka renews it.", honoured=False),
    Option("principal.builder.class", CLASS, PRINCIPAL_BUILDER, one_of(PRINCIPAL_BUILDER), PER_BROKER,
           "The Java class that makes principals of logins and certificates. Penstock does as Kafka's own, and takes no other."),
    Option("sasl.login.callback.handler.class", CLASS, None, None, READ_ONLY,
           "The Java class by which Kafka gets tokens. Penstock has its own way, and takes any name.", honoured=False),
    Option("sasl.server.callback.handler.class", CLASS, None, OF_KAFKA, READ_ONLY,
           "The Java class by which Kafka checks logins. Penstock does as Kafka's own, and takes no other.", honoured=False),
    Option("ssl.engine.factory.class", CLASS, None, OF_KAFKA, PER_BROKER,
           "The Java class by which Kafka makes TLS. Penstock does as Kafka's own, and takes no other.", honoured=False),
)  # fmt: skip
