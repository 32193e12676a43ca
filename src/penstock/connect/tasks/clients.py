"""Clients of a task: the worker's properties, and what the connector's configuration says otherwise.

A client gets, each later one over the one before: what the runtime needs; the worker's properties of security and connection;
those with the client's prefix (`producer.`); the connector's `producer.override.`. As in Kafka Connect, but that security need
not be said once more behind the prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from penstock.client.errors import BadOption
from penstock.client.librdkafka_settings import librdkafka_settings
from penstock.client.properties import NAMES, SECURITY_NAMES
from penstock.connect.errors import InvalidConfig
from penstock.connect.tasks.settings import WorkerSettings, with_prefix

log = logging.getLogger("penstock.connect")

PRODUCER, CONSUMER, ADMIN = "producer", "consumer", "admin"
BOOTSTRAP: Final = "bootstrap.servers"
_SHARED: Final = SECURITY_NAMES | {
    "client.dns.lookup", "connections.max.idle.ms", "metadata.max.age.ms", "reconnect.backoff.ms",
    "reconnect.backoff.max.ms", "retry.backoff.ms", "request.timeout.ms", "broker.address.family",
}  # fmt: skip
"""Of the worker's own properties, those that are about how a cluster is reached."""
_OF_PRINCIPAL: Final = frozenset({"security.protocol", "sasl.jaas.config", "sasl.mechanism"})
_REFUSAL: Final = (
    "The '{policy}' policy does not allow '{name}' to be overridden in the connector configuration."
)
_POLICIES: Final = ("All", "None", "Principal", "Allowlist")

FOREVER_MS: Final = 2_147_483_647
LINGER_MS: Final = 1
PRODUCER_SETTINGS: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # the Java client's
    "linger.ms": LINGER_MS,
    "message.timeout.ms": FOREVER_MS,  # a cluster that is away for long is waited for
    "message.max.bytes": 1_000_000_000,  # the topic decides what is too large
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 32 * 1024,  # the Java client's buffer.memory
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.max.ms": 1000,
}
CONSUMER_SETTINGS: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_uncommitted",  # as Kafka Connect's
    "check.crcs": True,
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 100,
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 16 * 1024,
    # By default it is five minutes: for so long a new topic would be read by nobody.
    "topic.metadata.refresh.interval.ms": 10_000,
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,
}
ADMIN_SETTINGS: Final[dict[str, Any]] = {"socket.timeout.ms": 30_000}
_DEFAULTS: Final = {PRODUCER: PRODUCER_SETTINGS, CONSUMER: CONSUMER_SETTINGS, ADMIN: ADMIN_SETTINGS}


def refused_overrides(worker: WorkerSettings, config: Mapping[str, str]) -> dict[str, str]:
    """Overrides in a connector's configuration that the worker's policy does not allow, with Kafka's words for it."""
    policy = policy_of(worker)
    if policy == "All":
        return {}
    allowed = {"None": frozenset(), "Principal": _OF_PRINCIPAL, "Allowlist": worker.override_allowlist}[
        policy
    ]
    refused = {}
    for role in (PRODUCER, CONSUMER, ADMIN):
        prefix = f"{role}.override."
        for name in config:
            if name.startswith(prefix) and name.removeprefix(prefix) not in allowed:
                refused[name] = _REFUSAL.format(policy=policy, name=name.removeprefix(prefix))
    return refused


def policy_of(worker: WorkerSettings) -> str:
    """By its short name, whichever class of Kafka's is named. InvalidConfig."""
    name = worker.override_policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    if name not in _POLICIES:
        raise InvalidConfig(
            f"connector.client.config.override.policy must be one of {', '.join(_POLICIES)}, not {worker.override_policy}"
        )
    return name


def properties_of(worker: WorkerSettings, config: Mapping[str, str], role: str) -> dict[str, str]:
    """In Kafka's names, without the runtime's own. InvalidConfig for an override that is not allowed."""
    refused = refused_overrides(worker, config)
    if refused:
        raise InvalidConfig(next(iter(refused.values())))
    shared = {name: value for name, value in worker.properties.items() if name in _SHARED}
    return {
        **shared,
        BOOTSTRAP: worker.bootstrap,
        **with_prefix(worker.properties, f"{role}."),
        **with_prefix(config, f"{role}.override."),
    }


def settings_of(worker: WorkerSettings, config: Mapping[str, str], role: str, **own: Any) -> dict[str, Any]:
    """For librdkafka. `own`, with underscores for points, can be overridden by nobody."""
    given = properties_of(worker, config, role)
    known = {name: value for name, value in given.items() if name in NAMES}
    for name in given.keys() - known.keys():
        log.warning("%s.%s: there is no such property, and it has no effect", role, name)
    try:
        found = librdkafka_settings(known, role=role)
    except BadOption as error:
        raise InvalidConfig(f"{role}: {error}") from None
    merged = {**_DEFAULTS[role], **found, **{name.replace("_", "."): value for name, value in own.items()}}
    if role == PRODUCER and "enable.idempotence" not in found and _gives_up_order(found):
        merged["enable.idempotence"] = False
    if role == CONSUMER and str(merged.get("group.protocol", "classic")).lower() == "consumer":
        for name in ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms"):
            merged.pop(name, None)
    return merged


def _gives_up_order(found: Mapping[str, Any]) -> bool:
    """What somebody asks for who does without an idempotent producer."""
    acks = str(found.get("acks", found.get("request.required.acks", "all"))).lower()
    in_flight = float(found.get("max.in.flight.requests.per.connection", found.get("max.in.flight", 1)))
    return acks not in ("all", "-1") or in_flight > 5 or str(found.get("retries", "")) == "0"


def make_producer(settings: Mapping[str, Any]) -> Producer:
    made: Producer = _made(Producer, settings)
    return made


def make_consumer(settings: Mapping[str, Any]) -> Consumer:
    made: Consumer = _made(Consumer, settings)
    return made


def at_hand(consumer: Consumer, at_once: int, wait_s: float) -> list[Any]:
    """What is there, or the first that comes. `consume` alone waits for as many as it is asked for, or for the whole time."""
    first = consumer.poll(wait_s)
    return [] if first is None else [first, *consumer.consume(at_once - 1, 0)]


def make_admin(worker: WorkerSettings, config: Mapping[str, str]) -> AdminClient:
    made: AdminClient = _made(AdminClient, settings_of(worker, config, ADMIN))
    return made


def _made(kind: Any, settings: Mapping[str, Any]) -> Any:
    try:
        return kind(dict(settings), logger=log.getChild("client"))
    except KafkaException as error:
        raise InvalidConfig(f"the client's properties are not usable: {error.args[0].str()}") from None
