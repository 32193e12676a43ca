"""`kafka.*` options: the Java clients' property names, which Spark's users know, for librdkafka.

Every name that the Java clients have is taken. Some have no meaning here (how a Java program is put together) and are
left out; the ones that Spark's own source refuses are refused. Anything else is a slip of the pen and is told so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from penstock.spark.failures import BadOption

PREFIX = "kafka."

_SECURITY = """
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
security.protocol security.providers ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type
"""
_CLIENT = """
bootstrap.servers client.dns.lookup client.id config.providers connections.max.idle.ms enable.metrics.push
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms send.buffer.bytes
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""
_CONSUMER = """
allow.auto.create.topics auto.commit.interval.ms check.crcs client.rack default.api.timeout.ms exclude.internal.topics
fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor
heartbeat.interval.ms isolation.level max.partition.fetch.bytes max.poll.interval.ms max.poll.records
partition.assignment.strategy session.timeout.ms
"""
_PRODUCER = """
acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delivery.timeout.ms enable.idempotence linger.ms max.block.ms max.in.flight.requests.per.connection max.request.size
metadata.max.idle.ms partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
partitioner.ignore.keys retries transaction.timeout.ms
"""

CONSUMER_NAMES = frozenset((_SECURITY + _CLIENT + _CONSUMER).split())
PRODUCER_NAMES = frozenset((_SECURITY + _CLIENT + _PRODUCER).split())
REFUSED = {
    "auto.offset.reset": "cannot be set: use 'startingOffsets'",
    "enable.auto.commit": "cannot be set: Spark keeps the offsets; 'commit.group' shows them to others",
    "interceptor.classes": "cannot be set",
    "key.deserializer": "cannot be set: keys are binary; cast them",
    "value.deserializer": "cannot be set: values are binary; cast them",
    "key.serializer": "cannot be set: keys are strings or binary",
    "value.serializer": "cannot be set: values are strings or binary",
    "transactional.id": "cannot be set: 'exactlyOnce' makes transactional ids from the query's id",
}
CLUSTER_NAMES = frozenset(
    (_SECURITY + "bootstrap.servers client.id client.dns.lookup request.timeout.ms").split()
)

_RENAMED = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": "ssl.ca.location",
    "delivery.timeout.ms": "message.timeout.ms",
}
_LIBRDKAFKA = """
acks batch.size bootstrap.servers client.dns.lookup client.id client.rack compression.type connections.max.idle.ms
delivery.timeout.ms enable.idempotence enable.metrics.push linger.ms max.in.flight.requests.per.connection
max.request.size metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms
retry.backoff.ms sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.mechanism sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url security.protocol send.buffer.bytes
socket.connection.setup.timeout.ms ssl.cipher.suites ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.truststore.certificates ssl.truststore.location transaction.timeout.ms
"""
_KNOWN_TO_LIBRDKAFKA = frozenset(_LIBRDKAFKA.split())


def checked(options: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    """The `kafka.*` options without their prefix; BadOption for the first that cannot be."""
    properties: dict[str, str] = {}
    for option, value in options.items():
        if not option.startswith(PREFIX):
            continue
        name = option.removeprefix(PREFIX)
        if name in REFUSED:
            raise BadOption(option, REFUSED[name])
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise BadOption(option, "is unknown" + (f"; did you mean '{PREFIX}{near[0]}'?" if near else ""))
        properties[name] = value
    if not properties.get("bootstrap.servers", "").strip():
        raise BadOption("kafka.bootstrap.servers", "must say where the cluster is, such as localhost:9092")
    return properties


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that mean something to librdkafka, under its names."""
    settings: dict[str, str] = {}
    for name, value in properties.items():
        if name == "sasl.jaas.config":
            found = dict(re.findall(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"', value))
            settings.update({f"sasl.{key}": found[key] for key in ("username", "password") if key in found})
        elif name == "ssl.endpoint.identification.algorithm":
            settings[name] = value or "none"
        elif name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = str(max(1, _number(name, value) // 1024))
        elif name in _KNOWN_TO_LIBRDKAFKA:
            settings[_RENAMED.get(name, name)] = value
    return settings


def cluster_only(properties: Mapping[str, str]) -> dict[str, str]:
    """What says where the cluster is and who we are; not how to fetch or produce."""
    return {name: value for name, value in properties.items() if name in CLUSTER_NAMES}


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise BadOption(PREFIX + name, f"must be a number, not '{value}'") from None
