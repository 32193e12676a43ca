"""The properties of the SQL server, by ksqlDB's names where ksqlDB has one; ours begin with `penstock.`.

Properties that a statement may bring along (`SET`, `streamsProperties`) are in `STATEMENT_PROPERTIES`: those of the
streams that run it,
with or without `ksql.streams.` in front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.client.errors import BadOption
from penstock.client.properties import NAMES, check
from penstock.config.option import BOOLEAN, INT, LONG, READ_ONLY, STRING, Option, at_least, one_of
from penstock.model.endpoints import Address
from penstock.sql.engine.connect_calls import CONNECT_URL, ConnectServer, connect_of
from penstock.web.options import Listen, WebOptions, load

DEFAULT_PORT: Final = 8088
DEFAULT_HOST: Final = "0.0.0.0"
DEFAULT_BOOTSTRAP: Final = "localhost:9092"
STREAMS: Final = "ksql.streams."
REGISTRY: Final = "ksql.schema.registry."
REGISTRY_URL: Final = "ksql.schema.registry.url"
QUERIES_FILE: Final = "ksql.queries.file"
THREADS: Final = "num.stream.threads"
"""Taken from clients, and without effect."""
AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"

SQL_OPTIONS: Final = (
    Option("bootstrap.servers", STRING, DEFAULT_BOOTSTRAP, None, READ_ONLY, "Where the cluster is."),
    Option("ksql.service.id", STRING, "default_", None, READ_ONLY,
           "The name of this server and of those that share its statements: it is in the names of topics and groups."),
    Option(REGISTRY_URL, STRING, "", None, READ_ONLY,
           "Where the schema registry is, for AVRO, PROTOBUF and JSON_SR. `ksql.schema.registry.…` is its login."),
    Option(CONNECT_URL, STRING, "", None, READ_ONLY,
           "Where Connect is, for statements about connectors. `ksql.connect.ssl.…` says whom https trusts."),
    Option("ksql.output.topic.name.prefix", STRING, "", None, READ_ONLY,
           "In front of the names of topics that statements make without naming them."),
    Option("ksql.persistence.default.format.key", STRING, "KAFKA", None, READ_ONLY,
           "The format of keys where a statement says none."),
    Option("ksql.persistence.default.format.value", STRING, "", None, READ_ONLY,
           "The format of values where a statement says none; not set: it must say one."),
    Option("ksql.internal.topic.replicas", INT, 1, at_least(1), READ_ONLY,
           "How many copies the topic of the commands has, where there are so many brokers."),
    Option("ksql.query.pull.max.rows", INT, 1_000_000, at_least(1), READ_ONLY,
           "How many rows a pull query may look at. One that needs more is refused."),
    Option("ksql.max.push.queries", INT, 100, at_least(0), READ_ONLY, "How many push queries may be open at a time."),
    Option("ksql.query.push.buffer.rows", INT, 10_000, at_least(1), READ_ONLY,
           "How many rows wait for a client of a push query that reads slowly. Then its query waits."),
    Option("ksql.timestamp.throw.on.invalid", BOOLEAN, False, None, READ_ONLY,
           "Has no effect yet: a record whose TIMESTAMP column cannot be read is left out and told."),
    Option("ksql.fail.on.deserialization.error", BOOLEAN, False, None, READ_ONLY,
           "Whether a record that cannot be read stops the query. False: it is left out and told in the processing log."),
    Option("ksql.logging.processing.topic.name", STRING, "", None, READ_ONLY,
           "The topic of the processing log: what could not be read or computed. Not set: the server's own log."),
    Option("ksql.query.legacy.format", BOOLEAN, False, None, READ_ONLY,
           "Whether clients of KSQL 5.1 are served: /query answers with an object a line, SELECT without EMIT goes on, "
           "WITH (KEY='column') is taken, and SHOW STREAMS tells one format."),
    Option(QUERIES_FILE, STRING, "", None, READ_ONLY,
           "A file of statements that run at the start. The server then takes no others (headless)."),
    Option("penstock.sql.auth.propagate", BOOLEAN, False, None, READ_ONLY,
           "Whether the brokers see the login of who asks (HTTP basic), not the server's. `security.protocol` is a SASL one."),
    Option("penstock.sql.login.mechanism", STRING, "", None, READ_ONLY,
           "The SASL mechanism of logins that are passed on. Not set: sasl.mechanism, or else PLAIN."),
    Option("penstock.sql.functions.enabled", BOOLEAN, False, None, READ_ONLY,
           "Whether CREATE FUNCTION may bring Python programs, which run with the rights of the server and of Spark's workers."),
    Option("penstock.sql.functions.timeout.ms", INT, 1000, at_least(1), READ_ONLY,
           "How long one call of such a function may take. Then it is given up, and its result is NULL."),
    Option("penstock.sql.master", STRING, "local", None, READ_ONLY,
           "The Spark master on which queries run: `local`, or `spark://HOST:PORT`."),
    Option("penstock.sql.tasks", INT, 1, at_least(1), READ_ONLY,
           "How many tasks a query has at most. More than its topics have partitions are not used."),
    Option("penstock.sql.data", STRING, "", None, READ_ONLY,
           "A folder for what the server can make again: rows of tables for pull queries. Not set: one that goes with it."),
    Option("ksql.streams.processing.guarantee", STRING, AT_LEAST_ONCE,
           one_of(AT_LEAST_ONCE, EXACTLY_ONCE, "exactly_once", "exactly_once_beta"), READ_ONLY,
           "What queries promise after a failure."),
    Option("ksql.streams.commit.interval.ms", LONG, 0, at_least(0), READ_ONLY,
           "How often a query commits. 0: 100 ms with exactly_once_v2, 1000 ms otherwise; earlier where nothing more waits."),
    Option("ksql.streams.auto.offset.reset", STRING, "latest", one_of("earliest", "latest"), READ_ONLY,
           "Where a query begins to read a topic."),
)  # fmt: skip

_OWN: Final = {option.name for option in SQL_OPTIONS}
_OTHERS: Final = (
    "ksql.",
    "confluent.",
    "metric.reporters",
    "metrics.",
    "producer.",
    "consumer.",
    "compression.type",
    "ssl.",
)

# A statement may set these, with or without `ksql.streams.` in front; and those that begin with `ksql.query.`.
STATEMENT_PROPERTIES: Final = frozenset({
    "auto.offset.reset", "processing.guarantee", "commit.interval.ms", "cache.max.bytes.buffering", "statestore.cache.max.bytes",
    "num.stream.threads", "max.task.idle.ms", "task.timeout.ms", "default.deserialization.exception.handler", "max.poll.records",
    "default.timestamp.extractor", "state.cleanup.delay.ms", "num.standby.replicas", "topology.optimization",
    "replication.factor", "metadata.max.age.ms",
    "consumer.max.poll.interval.ms", "producer.linger.ms", "buffered.records.per.partition",
})  # fmt: skip
PROHIBITED: Final = frozenset({
    "ksql.service.id", "bootstrap.servers", "ksql.streams.bootstrap.servers", "ksql.extension.dir", "listeners",
    "ksql.queries.file", CONNECT_URL, REGISTRY_URL, "penstock.sql.master", "application.id",
})  # fmt: skip


def of_streams(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of the streams that run a statement, without `ksql.streams.`."""
    found = {name.removeprefix(STREAMS): value for name, value in properties.items()}
    return {name: found[name] for name in found if name in STATEMENT_PROPERTIES and name != THREADS}


@dataclass(frozen=True)
class SqlOptions:
    web: WebOptions
    values: Mapping[str, Any]
    bootstrap: str
    client: Mapping[str, str] = field(repr=False)
    """Properties of the Kafka clients."""
    registry: Mapping[str, str] = field(repr=False)
    """Those of the registry's login, with `schema.registry.` in front."""
    connect: ConnectServer | None
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def service_id(self) -> str:
        return str(self.values["ksql.service.id"])

    @property
    def command_topic(self) -> str:
        return f"_confluent-ksql-{self.service_id}_command_topic"

    def application_id(self, query_id: str) -> str:
        return f"_confluent-ksql-{self.service_id}query_{query_id}"


def sql_options(
    given: Mapping[str, str],
    *,
    bootstrap: str | None = None,
    client: Mapping[str, str] | None = None,
    host: str | None = None,
    port: int | None = None,
) -> SqlOptions:
    """`client` is the file of `--command-config`; what the command line says is stronger than the file. BadOption."""
    properties = dict(given)
    if host is not None or port is not None:
        scheme = properties.pop("listeners", "").strip().partition(":")[0] or "http"
        properties["listeners"] = (
            f"{scheme}://{host or DEFAULT_HOST}:{DEFAULT_PORT if port is None else port}"
        )
    loaded = load(
        properties,
        SQL_OPTIONS,
        ignored_prefixes=(*_OTHERS, *NAMES),
        default_listener=Listen("http", Address(DEFAULT_HOST, DEFAULT_PORT)),
    )
    clients = dict(client or {})
    said = clients.pop("bootstrap.servers", None)
    for name, value in given.items():
        bare = name.removeprefix(STREAMS)
        if bare in NAMES and name not in _OWN:
            clients[bare] = value
    try:
        check(clients)
    except BadOption as error:
        raise BadOption(f"{error}") from None
    where = bootstrap or given.get("bootstrap.servers") or said or DEFAULT_BOOTSTRAP
    registry = {
        name.removeprefix("ksql."): value
        for name, value in given.items()
        if name.startswith(REGISTRY) and name != REGISTRY_URL
    }
    values = {**loaded.own, "bootstrap.servers": where}
    connect = connect_of(values, given)
    return SqlOptions(loaded.web, values, where, clients, registry, connect, loaded.warnings)
