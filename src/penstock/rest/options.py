"""The properties of the REST proxy, by Confluent's names where Confluent has one; ours begin with `penstock.`.

`client.…`, `producer.…`, `consumer.…` and `admin.…` are for the clients: `client.` for all three, the others for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.client.errors import BadOption
from penstock.client.properties import check, unknown
from penstock.config.option import BOOLEAN, INT, LIST, LONG, READ_ONLY, STRING, Option, at_least, one_of
from penstock.model.endpoints import Address
from penstock.web.options import Listen, WebOptions, load

DEFAULT_PORT: Final = 8082
DEFAULT_HOST: Final = "0.0.0.0"
DEFAULT_BOOTSTRAP: Final = "localhost:9092"
BASIC: Final = "BASIC"
JETTY_AUTH: Final = "JETTY_AUTH"
"""Confluent's name of BASIC."""
BEARER: Final = "BEARER"
SSL: Final = "SSL"
PROPAGATE: Final = "confluent.rest.auth.propagate.method"

REST_OPTIONS: Final = (
    Option("bootstrap.servers", STRING, DEFAULT_BOOTSTRAP, None, READ_ONLY, "Where the cluster is."),
    Option("id", STRING, "", None, READ_ONLY, "A name of this proxy, which is in the names of its consumer instances."),
    Option("advertised.listeners", LIST, [], None, READ_ONLY,
           "The addresses at which clients find this proxy; they are in `base_uri` and in the links of v3. Not set: host.name, "
           "or else the host that the client has asked."),
    Option("schema.registry.url", STRING, "", None, READ_ONLY,
           "Where the schema registry is, for the formats avro, jsonschema and protobuf."),
    Option("api.v2.enable", BOOLEAN, True, None, READ_ONLY, "Whether v2 is served."),
    Option("api.v3.enable", BOOLEAN, True, None, READ_ONLY, "Whether v3 is served."),
    Option("api.v3.produce.batch.maximum.entries", INT, 10, at_least(1), READ_ONLY,
           "How many records one request to records:batch may have."),
    Option("consumer.request.timeout.ms", INT, 1000, at_least(0), READ_ONLY,
           "How long a read waits for records, unless the instance has a time of its own."),
    Option("consumer.request.max.bytes", LONG, 64 << 20, at_least(0), READ_ONLY,
           "How many bytes of keys and values a read returns at most."),
    Option("consumer.instance.timeout.ms", INT, 300_000, at_least(1), READ_ONLY,
           "How long a consumer instance may be idle. Then it is deleted."),
    Option("fetch.min.bytes", INT, -1, at_least(-1), READ_ONLY,
           "How many bytes end a read before its time is over; -1: it ends when nothing more is there to be read."),
    Option("streaming.connection.max.duration.ms", LONG, 86_400_000, at_least(1), READ_ONLY,
           "How long a stream of records that are produced by v3 may take."),
    Option(PROPAGATE, STRING, "NONE", one_of("NONE", BASIC, JETTY_AUTH, BEARER, any_case=True), READ_ONLY,
           "BASIC (Confluent's name of it is JETTY_AUTH): who asks has to send a name and a password, and they are the login at "
           "the brokers. BEARER: the same with a token, by OAUTHBEARER. NONE: the proxy's own login is used for all."),
    Option("penstock.rest.login.mechanism", STRING, "", None, READ_ONLY,
           "The SASL mechanism of logins that are passed on. Not set: client.sasl.mechanism, or else PLAIN."),
    Option("penstock.rest.login.limit", INT, 100, at_least(1), READ_ONLY,
           "How many logins have clients of their own at a time; of more the one that is idle longest is closed."),
    Option("penstock.rest.login.idle.ms", INT, 300_000, at_least(1), READ_ONLY,
           "How long the clients of a login are kept that nobody uses."),
    Option("penstock.consumer.instance.limit", INT, 200, at_least(0), READ_ONLY,
           "How many consumer instances this proxy holds. One more is answered with 429."),
    Option("penstock.consumer.assignment.timeout.ms", INT, 10_000, at_least(0), READ_ONLY,
           "How long the first read of an instance waits until the group has given it partitions."),
    Option("penstock.rest.peers", LIST, [], None, READ_ONLY,
           "Other proxies, as ID=http://HOST:PORT with their `id`. A request about a consumer instance that lives in one of them "
           "is passed on to it."),
    Option("penstock.admin.threads", INT, 16, at_least(1), READ_ONLY,
           "How many questions are asked of the brokers at a time, those of producing and consuming not counted."),
    # Accepted and without effect: how a Java program is put together, or what was removed there too.
    Option("consumer.threads", INT, 50, None, READ_ONLY, "Not needed: each instance has its thread.", honoured=False),
    Option("consumer.iterator.timeout.ms", INT, 1, None, READ_ONLY, "Not needed.", honoured=False),
    Option("consumer.iterator.backoff.ms", INT, 50, None, READ_ONLY, "Not needed.", honoured=False),
    Option("producer.threads", INT, 5, None, READ_ONLY, "Not needed.", honoured=False),
    Option("client.init.timeout.ms", INT, 60_000, None, READ_ONLY, "Not needed.", honoured=False),
    Option("client.timeout.ms", INT, 500, None, READ_ONLY, "Not needed.", honoured=False),
    Option("simpleconsumer.pool.size.max", INT, 25, None, READ_ONLY, "Not needed.", honoured=False),
    Option("simpleconsumer.pool.timeout.ms", INT, 1000, None, READ_ONLY, "Not needed.", honoured=False),
    Option("kafka.rest.resource.extension.class", STRING, "", None, READ_ONLY, "Not needed.", honoured=False),
    Option("use.custom.request.logging", BOOLEAN, True, None, READ_ONLY, "Not needed.", honoured=False),
    Option("zookeeper.connect", STRING, "", None, READ_ONLY, "Not needed.", honoured=False),
)  # fmt: skip

_OWN: Final = frozenset(option.name for option in REST_OPTIONS)
_ROLES: Final = ("admin", "producer", "consumer")
_REGISTRY_PREFIX: Final = "schema.registry."
_OTHERS: Final = (
    "client.", "admin.", "producer.", "consumer.", _REGISTRY_PREFIX, "confluent.telemetry.", "confluent.license",
    "metric.reporters", "metrics.", "rate.limit.", "api.v3.produce.", "api.endpoints.", "config.providers",
)  # fmt: skip


@dataclass(frozen=True)
class RestOptions:
    """The table as the proxy uses it, and the properties of each kind of client."""

    values: Mapping[str, Any]
    clients: Mapping[str, Mapping[str, str]] = field(repr=False)
    """By role: admin, producer, consumer."""
    registry: Mapping[str, str] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def bootstrap(self) -> str:
        # Kafka REST's files may have the protocol in front: PLAINTEXT://host:9092
        words = (word.strip().rpartition("://")[2] for word in self.values["bootstrap.servers"].split(","))
        return ",".join(word for word in words if word)

    @property
    def passes_logins_on(self) -> bool:
        return str(self.values[PROPAGATE]).upper() in (BASIC, JETTY_AUTH, BEARER)

    @property
    def passes_tokens_on(self) -> bool:
        return str(self.values[PROPAGATE]).upper() == BEARER


@dataclass(frozen=True)
class LoadedRest:
    web: WebOptions
    rest: RestOptions
    warnings: list[str]


def load_rest(
    given: Mapping[str, str],
    *,
    command: Mapping[str, str] | None = None,
    host: str | None = None,
    port: int | None = None,
) -> LoadedRest:
    """`command` are properties of a client, without a prefix, that count for all of its kinds. BadOption."""
    properties = dict(given)
    if properties.get(PROPAGATE, "").strip().upper() == SSL:
        raise BadOption(
            f"{PROPAGATE}: SSL cannot be done, because a proxy does not have the keys of its callers' certificates; use BASIC or "
            "BEARER, or NONE with a login of the proxy's own"
        )
    scheme = "http"
    if host is not None or port is not None:
        # The command line says where; whether it is https the file says.
        scheme = properties.pop("listeners", "").strip().partition(":")[0] or scheme
    default = Listen(
        "https" if scheme == "https" else "http",
        Address(host or DEFAULT_HOST, DEFAULT_PORT if port is None else port),
    )
    loaded = load(properties, REST_OPTIONS, ignored_prefixes=_OTHERS, default_listener=default)
    shared = dict(command or {})
    shared.pop("bootstrap.servers", None)
    clients = {}
    for role in _ROLES:
        wanted = {**shared, **_behind("client.", given), **_behind(f"{role}.", given)}
        strange = unknown(wanted)
        loaded.warnings.extend(
            f"there is no property {role}.{name}" for name in strange if name not in shared
        )
        clients[role] = {name: value for name, value in wanted.items() if name not in strange}
        try:
            check(clients[role])
        except BadOption as error:
            raise BadOption(f"{role}.{error}") from None
    rest = RestOptions(
        loaded.own, clients, {n: v for n, v in given.items() if n.startswith(_REGISTRY_PREFIX)}
    )
    return LoadedRest(loaded.web, rest, list(dict.fromkeys(loaded.warnings)))


def _behind(prefix: str, given: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in given.items()
        if name.startswith(prefix) and name not in _OWN
    }
