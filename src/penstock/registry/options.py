"""The registry's properties, by Confluent's names; `kafkastore.…` of a Kafka client go to the client.

What Confluent's registry knows and this one does not need is accepted and has no effect; a name that nobody knows is told, with
the nearest one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.errors import BadOption
from penstock.client.options import DEFAULT_BOOTSTRAP
from penstock.client.properties import NAMES, unknown
from penstock.config.option import (
    BOOLEAN,
    INT,
    PASSWORD,
    READ_ONLY,
    STRING,
    Option,
    at_least,
    one_of,
)
from penstock.model.endpoints import Address
from penstock.schemas.compatibility import BACKWARD, LEVELS
from penstock.web.options import Listen, Loaded, WebOptions, load

PORT: Final = 8081
KAFKASTORE: Final = "kafkastore."
BOOTSTRAP: Final = "kafkastore.bootstrap.servers"

OWN_OPTIONS: Final = (
    Option(BOOTSTRAP, STRING, "", None, READ_ONLY,
           "Where the cluster is: HOST:PORT, several with commas; PLAINTEXT:// and so on in front is taken off."),
    Option("kafkastore.topic", STRING, "_schemas", None, READ_ONLY, "The topic that has everything."),
    Option("kafkastore.topic.replication.factor", INT, 3, at_least(1), READ_ONLY,
           "Copies of the topic when it is made; not more than there are brokers."),
    Option("kafkastore.topic.skip.validation", BOOLEAN, False, None, READ_ONLY,
           "Do not look whether the topic is compacted and has one partition."),
    Option("kafkastore.timeout.ms", INT, 10_000, at_least(1), READ_ONLY,
           "How long a write may take until it is read back, and how long one waits for a leader."),
    Option("kafkastore.init.timeout.ms", INT, 60_000, at_least(1), READ_ONLY,
           "How long making and reading the topic may take at the start."),
    Option("schema.registry.group.id", STRING, "schema-registry", None, READ_ONLY,
           "The group of the instances that work together. They share the topic."),
    Option("kafkagroup.session.timeout.ms", INT, 10_000, at_least(1), READ_ONLY,
           "After how long without a sign of life another instance leads."),
    Option("kafkagroup.heartbeat.interval.ms", INT, 3000, at_least(1), READ_ONLY, "How often an instance says that it lives."),
    Option("kafkagroup.rebalance.timeout.ms", INT, 60_000, at_least(1), READ_ONLY,
           "How long the instances may take to find a leader."),
    Option("leader.eligibility", BOOLEAN, True, None, READ_ONLY, "Whether this instance may lead."),
    Option("master.eligibility", BOOLEAN, True, None, READ_ONLY, "The old name of it."),
    Option("leader.connect.timeout.ms", INT, 10_000, at_least(1), READ_ONLY, "How long a connection to the leader may take."),
    Option("leader.read.timeout.ms", INT, 60_000, at_least(1), READ_ONLY, "How long the leader may take to answer."),
    Option("schema.compatibility.level", STRING, BACKWARD.lower(), one_of(*LEVELS, any_case=True), READ_ONLY,
           "The level where no config says another."),
    Option("avro.compatibility.level", STRING, "", None, READ_ONLY, "The old name of it."),
    Option("mode.mutability", BOOLEAN, True, None, READ_ONLY, "Whether modes may be changed."),
    Option("schema.search.default.limit", INT, 1000, at_least(1), READ_ONLY, "How many schemas GET /schemas answers."),
    Option("schema.search.max.limit", INT, 1000, at_least(1), READ_ONLY, "How many it answers at most."),
    Option("host.port", INT, 0, at_least(0), READ_ONLY,
           "The port by which other instances find this one. Not set: that of the first listener."),
    Option("inter.instance.protocol", STRING, "http", one_of("http", "https", any_case=True), READ_ONLY,
           "How instances speak to one another."),
    Option("inter.instance.listener.name", STRING, "", None, READ_ONLY, "Has no effect: the first one of the protocol is taken."),
    Option("penstock.inter.instance.user.info", PASSWORD, "", None, READ_ONLY,
           "NAME:PASSWORD with which a follower passes writes on. Not set: the login of whoever asked."),
    Option("penstock.subject.acls.file", STRING, "", None, READ_ONLY,
           "The file of rules who may do what to which subjects. Not set: everybody who is logged in may do everything."),
    Option("super.users", STRING, "", None, READ_ONLY, "Who may do everything: User:admin;User:other."),
)  # fmt: skip

WITHOUT_EFFECT: Final = frozenset(
    [
        "associations.enable",
        "context.search.default.limit",
        "context.search.max.limit",
        "debug",
        "enable.fips",
        "enable.fips.mode",
        "enable.store.health.check",
        "http2.enabled",
        "init.resource.extension.class",
        "inter.instance.headers.whitelist",
        "kafkastore.checkpoint.dir",
        "kafkastore.checkpoint.version",
        "kafkastore.connection.url",
        "kafkastore.group.id",
        "kafkastore.init.wait.for.reader",
        "kafkastore.update.handlers",
        "kafkastore.write.max.retries",
        "kafkastore.write.retry.backoff.ms",
        "kafkastore.zk.session.timeout.ms",
        "leader.election.delay",
        "leader.election.sticky",
        "metadata.encoder.old.secret",
        "metadata.encoder.secret",
        "metadata.encoder.topic",
        "metrics.jmx.prefix",
        "metrics.num.samples",
        "metrics.sample.window.ms",
        "metric.reporters",
        "port",
        "request.logger.name",
        "resource.extension.class",
        "resource.static.locations",
        "response.http.headers.config",
        "response.mediatype.default",
        "response.mediatype.preferred",
        "schema.cache.expiry.secs",
        "schema.cache.size",
        "schema.canonicalize.on.consume",
        "schema.providers",
        "schema.providers.json.fetch.remote.schemas",
        "schema.registry.resource.extension.class",
        "schema.registry.zk.namespace",
        "schema.validate.fields",
        "schema.validate.new.schemas",
        "size.limit.filter.enabled",
        "size.limit.filter.max.request.body.size",
        "subject.search.default.limit",
        "subject.search.max.limit",
        "subject.version.search.default.limit",
        "subject.version.search.max.limit",
        "thread.pool.max",
        "thread.pool.min",
    ]
)


@dataclass(frozen=True)
class RegistryOptions:
    web: WebOptions
    values: Mapping[str, Any]
    bootstrap: str
    client: Mapping[str, str]
    """Properties of the Kafka client."""
    warnings: list[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def level(self) -> str:
        return str(
            self.values["avro.compatibility.level"] or self.values["schema.compatibility.level"]
        ).upper()

    @property
    def is_eligible(self) -> bool:
        return bool(self.values["leader.eligibility"] and self.values["master.eligibility"])

    @property
    def super_users(self) -> list[str]:
        return [name.strip() for name in self.values["super.users"].split(";") if name.strip()]


def registry_options(
    given: Mapping[str, str],
    *,
    bootstrap: str | None,
    client: Mapping[str, str],
    otherwise: str = DEFAULT_BOOTSTRAP,
) -> RegistryOptions:
    """`given` from the file of `--config`; `client` from that of `--command-config`, which counts less. `bootstrap` is what the
    command line says, `otherwise` where the cluster is if nobody says it."""
    loaded: Loaded = load(
        given,
        OWN_OPTIONS,
        ignored_prefixes=(KAFKASTORE, *WITHOUT_EFFECT),
        default_listener=Listen("http", Address("0.0.0.0", PORT)),
    )
    own = {option.name for option in OWN_OPTIONS}
    ours = {
        name.removeprefix(KAFKASTORE): value
        for name, value in given.items()
        if name.startswith(KAFKASTORE) and name not in own and name not in WITHOUT_EFFECT
    }
    warnings = list(loaded.warnings)
    known = [*NAMES, *(name.removeprefix(KAFKASTORE) for name in own if name.startswith(KAFKASTORE))]
    for name, near in unknown(ours, known).items():
        hint = f"; did you mean {KAFKASTORE}{near}?" if near else ""
        warnings.append(f"there is no property {KAFKASTORE}{name}{hint}")
    ours = {name: value for name, value in ours.items() if name in NAMES}
    level = loaded.own["avro.compatibility.level"]
    if level and level.upper() not in LEVELS:
        raise BadOption(f"avro.compatibility.level: '{level}' is not one of {', '.join(LEVELS)}")
    where = bootstrap or _plain(loaded.own[BOOTSTRAP]) or client.get("bootstrap.servers") or otherwise
    return RegistryOptions(loaded.web, loaded.own, where, {**client, **ours}, warnings)


def _plain(servers: str) -> str:
    """Confluent's form has the security protocol in front of each address."""
    return ",".join(
        server.strip().partition("://")[2] or server.strip()
        for server in servers.split(",")
        if server.strip()
    )
